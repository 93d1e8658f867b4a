"""Publish: assemble the hand-off, which appears whole or not at all."""

import json
import shutil
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpmodels.accounting.artifact import sha256_of
from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.hand_off import sign_manifest
from dpmodels.accounting.ledger import Charge, Ledger
from dpmodels.errors import ArtifactError
from dpmodels.synthesizers.base import Plan
from tasks.sanitize import charge_of, charges_of
from tasks.stage import stage
from tasks.store import Handle, Run, digest, replace_folder


@stage("publish", sensitive=False)
def publish(run: Run, release: Handle, synthetic: Handle, report: Handle) -> Handle:
    """Copy the synthetic table and the report, and write the manifest that accounts for them."""
    out, plan = run.settings.out, run.plan
    if holds_run(out, run.name):
        return Handle(path=out, sha256=digest(out))
    check_free(out)
    part = out.with_name(f".part-{out.name}-{run.name}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    shutil.copytree(synthetic.path, part / "synthetic")
    for file in report.path.iterdir():
        shutil.copy(file, part / file.name)
    (part / "schema.yaml").write_text(plan.table.to_yaml(), encoding="utf-8")
    (part / "manifest.json").write_text(json.dumps(manifest(run, plan, release, part), indent=1), encoding="utf-8")
    if run.settings.signing_key is not None:
        sign_manifest(part, run.settings.signing_key)
    replace_folder(part, out)
    return Handle(path=out, sha256=digest(out))


def manifest(run: Run, plan: Plan, release: Handle, folder: Path) -> dict[str, Any]:
    """Say what was asked, what was spent, what came of it, and which ledger entries paid."""
    charge = charge_of(run.settings.paid_by or run.name, plan, run.settings)
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
        "release_sha256": release.sha256,
        **line(run, plan, charge),
        **charged_line(run),
        **approval(run),
        "artifacts": {
            str(file.relative_to(folder)): sha256_of(file) for file in sorted(folder.rglob("*")) if file.is_file()
        },
    }


def line(run: Run, plan: Plan, charge: Charge) -> dict[str, Any]:
    """Say what one line of the plan asked for, what it cost, and which ledger entries paid."""
    budget, entries = plan.budget, Ledger(run.ledger).entries(key=charge.key)
    return {
        "asked": {"epsilon": budget.epsilon, "delta": budget.delta},
        "spent": {"epsilon": str(spent_epsilon([plan.event], Decimal(repr(budget.delta)))), "delta": budget.delta},
        "events": [plan.event.model_dump(mode="json")],
        "plan_sha256": plan.hash,
        "ledger": {
            "account": charge.account,
            "charge": charge.key,
            "entries": [{"seq": e.seq, "kind": e.kind, "time": e.time, "hash": e.hash} for e in entries],
        },
    }


def charged_line(run: Run) -> dict[str, Any]:
    """Account for the charged section of the report, if the run was asked for one and it was not given up."""
    plan, done = run.report_plan, run.finished("score")
    if plan is None:
        return {}
    charge = charges_of(run)[1]
    held = Ledger(run.ledger).find(charge.key)
    if held is None or held.state == "voided":
        return {}
    delta, events = plan.budget.delta, [run.plan.event, plan.event]
    total = {"epsilon": str(spent_epsilon(events, Decimal(repr(delta)))), "delta": delta}
    scores = {"scores_sha256": done.sha256} if done else {}
    return {"report": {**line(run, plan, charge), **scores}, "total_spent": total}


def approval(run: Run) -> dict[str, Any]:
    """Say who approved the run, if somebody had to."""
    record = run.released / "approval.json"
    return {"approved": json.loads(record.read_text(encoding="utf-8"))} if record.exists() else {}


def holds_run(out: Path, name: str) -> bool:
    """Tell whether the hand-off of this very run is already in place."""
    try:
        manifest = json.loads((out / "manifest.json").read_text())
        return bool(manifest.get("sampled_again_as", manifest["run"]) == name)
    except (OSError, ValueError, KeyError):
        return False


def check_free(out: Path) -> None:
    """Refuse a hand-off folder that is already taken.

    Raises:
        ArtifactError: it holds files, or is one.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ArtifactError(f"--out {out} already holds files; name a new folder")
