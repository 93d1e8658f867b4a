"""Make the golden release of a discovery: ``python -m tests.releases.make_golden_discovery``.

As ``make_golden`` does for the methods of tables: what exists is never made again.
"""

import json
import tempfile
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpmodels.authoring.completion import ReleasedKeys
from dpmodels.contract.discovery.discovery import Discovery, MarkedKeys
from dpmodels.methods.tables.thresholded_counts import DiscoverySystem
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.release import FORMAT, read_release
from tests.kit.support import measured
from tests.releases.make_golden import sha256

GOLDEN = Path(__file__).parent / "golden_discovery"
BUDGET = PrivacyBudget(epsilon=2.0, delta=1e-6)
CONTRACT = Discovery(
    name="clinic",
    columns=("ward", "age", "day"),
    wanted={
        "ward": MarkedKeys(type="categorical", keys=("values",)),
        "age": MarkedKeys(type="integer", keys=("min", "max", "max_null_share")),
        "day": MarkedKeys(type="datetime", keys=("min", "max")),
    },
)


def make_rows() -> pa.Table:
    """Return the generated rows that the golden release is of."""
    rows = range(300)
    return pa.table(
        {
            "ward": ["Ida alone" if row == 7 else ("north", "south")[row % 2] for row in rows],
            "age": pa.array([None if row % 5 == 0 else (25, 60)[row % 2] for row in rows], pa.int64()),
            "day": [date(2020, 6, 1) + timedelta(days=row) for row in rows],
        }
    )


def read_of(found: ReleasedKeys) -> dict[str, Any]:
    """Return what a column's counts are read as, without the settings that a remark repeats."""
    read = json.loads(json.dumps(asdict(found)))
    return {name: value for name, value in read.items() if name not in ("tail", "hidden")}


def facts_of(path: Path) -> dict[str, Any]:
    """Return what must be read of a release for ever."""
    release = read_release(path).value
    found = DiscoverySystem.of_line(release.line).found(release)
    return {
        "sha256": sha256(path.read_bytes()),
        "plan_sha256": release.line.hash,
        "released": int(release.vector.sum()),
        "found": {name: read_of(one) for name, one in found.items()},
    }


def main() -> None:
    """Make the release of the newest format, if it is missing."""
    folder = GOLDEN / f"FORMAT-{FORMAT}"
    if folder.exists():
        return
    folder.mkdir(parents=True)
    system = DiscoverySystem()
    with tempfile.TemporaryDirectory() as work:
        measured(system, Path(work) / "m", system.plan(CONTRACT, BUDGET), *make_rows().to_batches())
        (path,) = (Path(work) / "m" / "public").glob("*.parquet")
        (folder / "discovery.parquet").write_bytes(path.read_bytes())
    facts = facts_of(folder / "discovery.parquet")
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
