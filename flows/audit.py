"""A whole run on a made table and on a neighbor of it, with what was drawn for the first copied for the second.

Everything that leaves the sensitive zone is compared: the hand-off, the released and the control zone, by names and
bytes, the ledger's charges, and all that was said. Only the places of two runs differ, and what no two ledgers share.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from dpmodels.errors import NacreError
from dpmodels.evaluation.audit.audit import audit
from dpmodels.evaluation.audit.findings import Audit, Finding
from dpmodels.evaluation.audit.made import clinic, mails
from dpmodels.evaluation.audit.quick import QUICK
from dpmodels.evaluation.audit.replay import KEYS, listening
from dpmodels.evaluation.audit.tap import ALL_KINDS, replaced, tapped
from dpmodels.ledger.ledger import Ledger
from flows import planning
from flows.config import SynthesizeConfig
from flows.synthesize import synthesize
from tasks.store import Run

ROWS = 150
CANARY = 918_273_645
"""The identifier of the neighbor's record, where its table has one: it may be found in no file and no word."""
UNSHARED = {"hash", "nonce", "time", "previous_hash"}


def audited(method: str, folder: Path, full: bool = False) -> Audit:
    """Audit a method, and a whole run of it where it is a method of the registry.

    Raises:
        InvalidArgument: there is no such method.
    """
    found = audit(method, folder / "method", full)
    if method not in QUICK:
        return found
    charged = 0.5 if QUICK[method].data is clinic else None
    flow = flow_findings(method, folder / "flow", charged)
    return found.model_copy(update={"findings": (*found.findings, *flow)})


def flow_findings(method: str, folder: Path, report_epsilon: float | None = None) -> list[Finding]:
    """Run a method of the registry on two neighbors, and compare all that leaves the sensitive zone."""
    tables = dict(zip(("d", "neighbor"), neighbors(method), strict=True))
    left, keys = dict[str, dict[str, Any]](), list(KEYS)
    try:
        with tapped() as tap, replaced(planning, "new_name", lambda: "the-run"):
            for name, table in tables.items():
                tap.given = list(keys)
                run, said = run_on(folder / name, table, method, report_epsilon)
                left[name] = {**left_by(run), "said": said.replace(str(folder / name), "")}
                tap.copy(tap.restart(), *ALL_KINDS)
    except NacreError as fault:
        return [Finding(check="flow", holds=False, says=f"a run on a neighbor ends otherwise: {fault}")]
    differing = [
        name for name in {**left["d"], **left["neighbor"]} if left["d"].get(name) != left["neighbor"].get(name)
    ]
    says = f"a whole run on a neighbor leaves the same {len(left['d'])} files, charges and words"
    if differing:
        says = f"a whole run on a neighbor leaves others: {', '.join(sorted(differing))}"
    same = Finding(check="flow", holds=not differing and len(left["d"]) >= 10, says=says)
    return [same, *_traces(run, said)]


def neighbors(method: str) -> tuple[pa.Table, pa.Table]:
    """Return a made table, and the same with an extreme record more."""
    data = QUICK[method].data
    table = data.make_table(ROWS)
    extreme = {name: values[:1] for name, values in data.EXTREMES.items()}
    if data is mails:
        extreme = {"id": [CANARY], "vector": extreme["embedding"], "kind": extreme["kind"]}
    elif data is clinic:
        extreme["patient"] = [CANARY]
    return table, pa.concat_tables([table, pa.table(extreme, schema=table.schema)])


def run_on(folder: Path, table: pa.Table, method: str, report_epsilon: float | None = None) -> tuple[Run, str]:
    """Take a table to a hand-off below a folder; return the run, and all that it said."""
    folder.mkdir(parents=True)
    quick = QUICK[method]
    pq.write_table(table, folder / "data.parquet")
    (folder / "schema.yaml").write_text(quick.data.make_schema().to_yaml())
    model = {"method": method, "measurement": quick.measurement, "training": quick.training}
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": model}))
    settings = {
        "data": folder / "data.parquet",
        "schema": folder / "schema.yaml",
        "out": folder / "out",
        "privacy": {"target_epsilon": 1.0, "delta": 1e-5, "report_epsilon": report_epsilon},
        "runtime": {"home": folder / "home", "prefect": False},
    }
    with listening() as said:
        return synthesize(SynthesizeConfig.build(settings, folder / "config.yaml")), said.getvalue()


def left_by(run: Run) -> dict[str, Any]:
    """Return every file of the hand-off, the released and the control zone, and the charges."""
    places = {"out": run.settings.out, "released": run.released, "control": run.control}
    found: dict[str, Any] = {
        f"{zone}/{path.relative_to(root)}": path.read_bytes()
        for zone, root in places.items()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    settings = found.pop("control/settings.json").decode()
    manifest = json.loads(found.pop("out/manifest.json"))
    entries = [
        _shared(entry.model_dump()) | {"payload": _shared(entry.content)}
        for entry in Ledger(run.home / "ledger.sqlite").entries()
    ]
    return found | {
        "control/settings.json": settings.replace(str(run.home.parent), ""),
        "out/manifest.json": _shared(manifest),
        "ledger": entries,
    }


def _traces(run: Run, said: str) -> Iterator[Finding]:
    """Tell whether a hash of what is sensitive, which would confirm a guess, or a canary lies where others can read."""
    sensitive = [Path(run.settings.data), *(path for path in run.sensitive.rglob("*") if path.is_file())]
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest().encode() for path in sensitive]
    inside = run.home / "sensitive"
    files = [path for root in (run.settings.out, run.home) for path in root.rglob("*") if path.is_file()]
    public = said.encode() + b"".join(path.read_bytes() for path in files if inside not in path.parents)
    holds = len(hashes) > 1 and not any(each in public for each in hashes)
    yield Finding(check="flow", holds=holds, says=f"no hash of {len(hashes)} sensitive files lies outside their zone")
    canaries = str(CANARY).encode(), CANARY.to_bytes(8, "little")
    holds = not any(each in public for each in canaries)
    yield Finding(check="flow", holds=holds, says="no identifier of the neighbor's record is in any file or word")


def _shared(content: Any) -> Any:
    """Leave out of a manifest or an entry what no two ledgers share."""
    if isinstance(content, dict):
        return {key: _shared(value) for key, value in content.items() if key not in UNSHARED}
    return [_shared(each) for each in content] if isinstance(content, list) else content
