"""Whole runs on a made data set, on a neighbor and on quite other data, with what was drawn for the first copied.

Everything that leaves the sensitive zone is compared: the hand-off, the home but for that zone, temporary files, by
names and bytes, the ledger, and all that was said. Only the places of two runs differ, and what no two ledgers share.
"""

import hashlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpmodels.audit.audit import audit
from dpmodels.audit.data import data_of
from dpmodels.audit.findings import Audit, Finding
from dpmodels.audit.left import held, left_below
from dpmodels.audit.made import clinic
from dpmodels.audit.replay import KEYS, ROUNDED, Step, charged, moved_by, steps_of
from dpmodels.audit.subjects import AS_READ, World
from dpmodels.audit.tap import ALL_KINDS, Tap, tapped
from dpmodels.contract.federation import SCORES
from dpmodels.errors import NacreError
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.hand_off.writer import DAY
from dpmodels.methods.quick import QUICK
from dpmodels.methods.tables.thresholded_counts import DiscoverySystem
from flows.audit_runs import CANARY, GIVEN, carried_out, tables_of
from tasks.run.store import Run

NEIGHBOR = World("the neighbor", ())
DISCOVERY = DiscoverySystem.method


def audited(method: str, folder: Path, full: bool = False) -> Audit:
    """Audit a method, and a whole run of it to its hand-off.

    A discovery hands nothing over, and of models that are trained in rounds no run keeps a promise. Whole runs of the
    methods for users are those of the same methods for records.

    Raises:
        InvalidArgument: there is no such method.
    """
    method_audit = audit(method, folder / "method", full)
    if method in (DISCOVERY, SCORES, *AS_READ):
        return method_audit
    report = 0.5 if method in QUICK and data_of(method) is clinic else None
    flow = flow_findings(method, folder / "flow", report)
    return method_audit.model_copy(update={"findings": (*method_audit.findings, *flow)})


def flow_findings(method: str, folder: Path, report_epsilon: float | None = None) -> list[Finding]:
    """Run a method on a data set, on a neighbor and on other data, and compare all that leaves the sensitive zone."""
    left, steps = list[dict[str, bytes]](), list[Step]()
    try:
        with tapped() as tap:
            for number, table in enumerate(tables_of(method)):
                tap.keys_left = list(KEYS)
                run, output = run_on(folder / str(number), table, method, report_epsilon)
                left.append({**left_by(run), "said": output.encode()})
                steps = _follow(steps, tap, run, neighbor=number == 2)
                tap.copy([step.draw for step in steps], *ALL_KINDS)
    except NacreError as fault:
        return [Finding(check="flow", holds=False, says=f"a run on other data ends otherwise: {fault}")]
    names = {name: None for each in left for name in each}
    differing = [name for name in names if any(each.get(name) != left[0].get(name) for each in left)]
    says = f"whole runs on a neighbor and on other data leave the same {len(names)} files, charges and words"
    if differing:
        says = f"whole runs on a neighbor and on other data leave others: {', '.join(sorted(differing))}"
    too_far = [step.kind for step in steps if step.reach > step.hidden * ROUNDED]
    says_far = f"a neighbor moves none of {len(steps)} draws of a run farther than its noise hides"
    if too_far:
        says_far = f"a neighbor moves {len(too_far)} of {len(steps)} draws of a run farther than its noise hides"
    return [
        Finding(check="flow", holds=not differing and len(names) >= 10, says=says),
        Finding(check="flow", holds=not too_far, says=says_far),
        *_checked(run),
        *_traces(run, left[-1], table),
    ]


def _follow(steps: list[Step], tap: Tap, run: Run, neighbor: bool) -> list[Step]:
    """Return the draws of the first run with their charges; note how far the neighbor moved them."""
    if not steps:
        events = [event for line in run.plan.lines for event in charged(line.event, tap)]
        return steps_of(tap.restart(), events)
    draws = tap.restart()
    if neighbor:
        for step, draw in zip(steps, draws, strict=True):
            moved_by(step, draw, NEIGHBOR)
    return steps


def run_on(folder: Path, table: pa.Table, method: str, report_epsilon: float | None = None) -> tuple[Run, str]:
    """Take a table to a hand-off below a folder; return the run, and all that it said."""
    with held(folder) as stream:
        run = carried_out(folder, table, method, report_epsilon)
    return run, stream.getvalue().replace(str(folder), "")


def left_by(run: Run) -> dict[str, bytes]:
    """Return every file of the hand-off and the home, the sensitive zone excepted, and the ledger's entries."""
    folder, mark = run.home.parent, "home/control/ledger.json"
    files = left_below(folder, folder / GIVEN, run.home / "sensitive")
    content: dict[str, Any] = json.loads(files[mark])
    return files | {mark: json.dumps({**content, "file": 0}).encode()}  # its number on the disk


def _checked(run: Run) -> Iterator[Finding]:
    """Hold the hand-off to what a recipient would check, and its files' times to a day."""
    faults = verify_hand_off(run.settings.out).faults
    says = "the hand-off is what its manifest says, and costs that" if not faults else "; ".join(faults)
    yield Finding(check="flow", holds=not faults, says=says)
    times = {path.stat().st_mtime % DAY for path in run.settings.out.rglob("*")}
    yield Finding(check="flow", holds=times == {0.0}, says="the files of the hand-off are dated to a day and no more")


def _traces(run: Run, left: dict[str, bytes], table: pa.Table) -> Iterator[Finding]:
    """Tell whether a hash of what is sensitive, which would confirm a guess, or a canary lies where others can read."""
    sensitive = [Path(run.settings.data), *(path for path in (run.home / "sensitive").rglob("*") if path.is_file())]
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest().encode() for path in sensitive if path.is_file()]
    public = b"".join(left.values())
    holds = len(hashes) > 1 and not any(each in public for each in hashes)
    yield Finding(check="flow", holds=holds, says=f"no hash of {len(hashes)} sensitive files lies outside their zone")
    if any(CANARY in column.to_pylist() for column in table.columns):
        canaries = str(CANARY).encode(), CANARY.to_bytes(8, "little"), struct.pack("<d", CANARY)
        holds = not any(each in public for each in canaries)
        yield Finding(check="flow", holds=holds, says="no canary of the neighbor's record is in any file or word")
