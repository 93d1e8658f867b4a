"""Publish: assemble the hand-off, which appears whole or not at all."""

import json
import os
import shutil
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.artifact import sha256_of
from dpmodels.errors import ArtifactError
from dpmodels.files import copy_plain
from dpmodels.hand_off.verify import sign_manifest
from dpmodels.ledger.ledger import Charge
from dpmodels.releases.plan import REPORT, Line
from tasks.accounts import charges_of, desk_of
from tasks.ready import check_free
from tasks.receive import forget, receive
from tasks.stage import stage
from tasks.store import MADE, Handle, Run, members, replace_folder

DAY = 86_400


@stage("publish", sensitive=False)
def publish(run: Run, release: Handle, synthetic: Handle, report: Handle) -> Handle:
    """Copy the synthetic table that was checked, and the report, and write the manifest that accounts for them."""
    out, plan = run.settings.out, run.plan.release
    if holds_run(out, run.name):
        return Handle(path=out)
    check_free(out)
    part = out.with_name(f".part-{out.name}-{run.name}")
    shutil.rmtree(part, ignore_errors=True)
    (part / MADE["sample"]).mkdir(parents=True)
    received = receive(run)
    files = [(file, part / MADE["sample"]) for file in members(received.folder, received.synthetic)]
    files += [(file, part) for file in members(run.control.parent, report.path)]
    for file, folder in files:
        copy_plain(file.parents[1], file, folder / file.name)
    (part / "schema.yaml").write_text(plan.table.to_yaml(), encoding="utf-8")
    (part / "manifest.json").write_text(json.dumps(manifest(run, plan, release, part), indent=1), encoding="utf-8")
    if run.settings.signing_key is not None:
        sign_manifest(part, run.settings.signing_key)
    blur_times(part)
    replace_folder(part, out)
    forget(run)
    return Handle(path=out)


def blur_times(folder: Path) -> None:
    """Set the times of all files to the beginning of the day: how long a run took grows with the data."""
    day = time.time() // DAY * DAY
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (day, day))


def manifest(run: Run, plan: Line, release: Handle, folder: Path) -> dict[str, Any]:
    """Say what was asked, what was spent, what came of it, and which ledger entries paid."""
    charge = charges_of(run)[0]
    budget = plan.budget
    return {
        "format": 1,
        "nacre_version": version("nacre"),
        "run": charge.run,
        **({"sampled_again_as": run.name} if run.settings.paid_by else {}),
        "data_set": plan.table.name,
        "method": plan.method,
        "adjacency": budget.adjacency.value,
        "unit": str(budget.unit),
        "schema_sha256": plan.table.hash,
        "release_sha256": sealed_digest(run, charge, release),
        **line(run, plan, charge),
        **charged_line(run),
        **approval(run),
        "artifacts": {
            str(file.relative_to(folder)): sha256_of(file) for file in sorted(folder.rglob("*")) if file.is_file()
        },
    }


def line(run: Run, plan: Line, charge: Charge) -> dict[str, Any]:
    """Say what one line of the plan asked for, what it cost, and which ledger entries paid."""
    budget, entries = plan.budget, desk_of(run).ledger.entries(key=charge.key)
    return {
        "asked": {"epsilon": budget.epsilon, "delta": budget.delta},
        "spent": {"epsilon": str(spent_epsilon([plan.event], budget.delta_exact)), "delta": budget.delta},
        "events": [plan.event.model_dump(mode="json")],
        "plan_sha256": plan.hash,
        "ledger": {
            "account": charge.account,
            "charge": charge.key,
            # the day and no more: a run's time grows with the data
            "entries": [{"seq": e.seq, "kind": e.kind, "day": e.time[:10], "hash": e.hash} for e in entries],
        },
    }


def sealed_digest(run: Run, charge: Charge, release: Handle) -> str:
    """Return the release's digest, as the ledger sealed it.

    Raises:
        ArtifactError: the run goes by another release than the sealed one.
    """
    held = desk_of(run).held()
    if held is None or held.artifact_hash != release.sha256:
        raise ArtifactError(
            f"the release of run {run.name} is not the one that the ledger sealed; nothing was handed over"
        )
    return held.artifact_hash


def charged_line(run: Run) -> dict[str, Any]:
    """Account for the charged section of the report, if the run was asked for one and it was not given up."""
    plan, done = run.plan.report, run.finished("score")
    if plan is None:
        return {}
    charge = charges_of(run)[1]
    held = desk_of(run, REPORT).held()
    if held is None or held.state == "voided":
        return {}
    budget, events = plan.budget, run.plan.events
    total = {"epsilon": str(spent_epsilon(events, budget.delta_exact)), "delta": budget.delta}
    scores = {"scores_sha256": done.sha256} if done else {}
    return {"report": {**line(run, plan, charge), **scores}, "total_spent": total}


def approval(run: Run) -> dict[str, Any]:
    """Say who signed for the run's charges, as the ledger has it, if somebody had to."""
    charge = charges_of(run)[0]
    entries = desk_of(run).ledger.entries(key=charge.key)
    reserved = next((entry.content for entry in entries if entry.kind == "reserve"), {})
    return {"approved": reserved["approval"]} if "approval" in reserved else {}


def holds_run(out: Path, name: str) -> bool:
    """Tell whether the hand-off of this very run is already in place."""
    try:
        manifest = json.loads((out / "manifest.json").read_text())
        return bool(manifest.get("sampled_again_as", manifest["run"]) == name)
    except (OSError, ValueError, KeyError):
        return False
