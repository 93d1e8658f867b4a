"""Make golden releases of moments that were planned before ``floor``: ``python -m tests.releases.make_golden_moments``.

As ``make_golden`` does for the methods of tables: what exists is never made again, and only a version without
``floor`` could make it.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dpmodels.contract.federation import Federation
from dpmodels.embeddings.frozen import digest_of
from dpmodels.methods.federations.heads import HeadsMeasurement
from dpmodels.methods.federations.heads_and_moments import BothMeasurement, HeadsAndMoments
from dpmodels.methods.federations.moments_head import ClientMoments, MomentsHead
from dpmodels.methods.registry import system_of
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.release import read_release
from dpmodels.releases.system import System
from dpmodels.statistics.component_moments import Points
from tests.kit.support import desk_in
from tests.releases.make_golden import sha256

GOLDEN = Path(__file__).parent / "golden_moments"
CLASSES, FEATURES = 3, 5
NEGATIVES = np.random.default_rng(1).integers(-1500, 1500, (20, FEATURES))
CONTRACT = Federation.model_validate(
    {
        "name": "golden",
        "clients": [{"name": "a"}, {"name": "b"}],
        "features": FEATURES,
        "classes": ["first", "second", "third"],
        "extractor": "0" * 64,
        "negatives": len(NEGATIVES),
        "auxiliary": digest_of(NEGATIVES),
    }
)
MADE = {"one": (True, 2.0), "classes": (False, 2.0), "both": (True, 4.0)}
"""By name, whether all classes share one second moment, and epsilon."""


def make_points(number: int = 400) -> Points:
    """Return vectors whose class shifts one feature."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, CLASSES, number)
    z = rng.normal(0, 400, (number, FEATURES))
    z[np.arange(number), label] += 1500
    return Points(np.rint(z).astype(np.int64), label)


def system_for(name: str) -> System[Any]:
    """Return the system of a golden release."""
    moments = ClientMoments(pooled=MADE[name][0])
    if name != "both":
        return MomentsHead(moments)
    return HeadsAndMoments(BothMeasurement(heads=HeadsMeasurement(records=400), moments=moments), NEGATIVES)


def facts_of(path: Path) -> dict[str, Any]:
    """Return what must be read of a release for ever."""
    released = read_release(path)
    line = released.value.line
    fitted = system_of(line.method, line.measurement).fit([released])
    read = {name: getattr(fitted, name).tolist() for name in ("log_shares", "means", "inverses", "log_volumes")}
    return {"sha256": sha256(path.read_bytes()), "plan_sha256": line.hash, **read}


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for name, (_, epsilon) in MADE.items():
        place = GOLDEN / f"{name}.parquet"
        if place.exists():
            continue
        system, about = system_for(name), CONTRACT.of("a")
        line = system.plan(about, PrivacyBudget(epsilon=epsilon, delta=1e-5, adjacency=about.adjacency))
        with tempfile.TemporaryDirectory() as folder:
            place.write_bytes(
                system.measure(Sensitive([make_points()]), line, desk_in(Path(folder), line)).value.read_bytes()
            )
    facts = {path.stem: facts_of(path) for path in sorted(GOLDEN.glob("*.parquet"))}
    (GOLDEN / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
