"""Output of the commands about runs: tables for people, all of them public."""

import json
from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table

from dpmodels.errors import ArtifactError
from dpmodels.ledger.approval import Approval, Asked
from dpmodels.schema.expectations import Verdicts
from flows.command_line.console import print_facts, print_table
from flows.command_line.summary import show_outcome
from flows.description import describe, describe_run
from tasks.adopt import Found, quote_old
from tasks.refit import Changes
from tasks.remove import charged_for, folders_of
from tasks.store import Run

PRODUCTS = {
    "synthetic": "synthetic table",
    "embeddings": "embeddings",
    "classifier.safetensors": "classifier",
    "soft-labels.parquet": "soft labels",
}
"""What a hand-off holds besides its report, and what it is called."""
PAGES = {"statement.html": "statement for an officer", "model-card.html": "model card"}


def show_hand_off(run: Run) -> None:
    """Print where the files of a hand-off are; of a client's run, where its release is."""
    if run.settings.federation:
        return print_facts("released", {"run": run.name, "release": str(run.place("sanitize"))})
    facts = {
        "run": run.name,
        **{what: str(run.settings.out / name) for name, what in PRODUCTS.items() if (run.settings.out / name).exists()},
        "report": str(run.settings.out / "report.html"),
        **{what: str(run.settings.out / name) for name, what in PAGES.items() if (run.settings.out / name).exists()},
        "manifest": str(run.settings.out / "manifest.json"),
        "ledger": "paid elsewhere"
        if run.settings.is_paid_elsewhere
        else f"{run.ledger} (account {run.settings.account})",
    }
    internal = run.sensitive / "internal-report.html"
    if internal.exists():
        facts["internal report"] = f"{internal} (sensitive: stays inside)"
    print_facts("hand-off", facts)
    show_outcome(run)
    print_warnings(run.place("validate") / "report.json")


def show_fitted(run: Run, changes: Changes) -> None:
    """Print what another fit of a release changed, who paid for the release, and where the files are."""
    typer.echo(changes)
    show_hand_off(run)


def show_asked(run: Run) -> None:
    """Print the plan that an officer is asked to sign for."""
    print_facts("plan", describe_run(run))


def show_approved(run: Run, approval: Approval, asked: Asked) -> None:
    """Print what an officer signed."""
    typer.echo(f"signed by {approval.officer}:\n{asked.text}signature {approval.signature}")
    typer.echo(f"next: nacre resume {run.name}")


def show_found(found: Found) -> None:
    """Print what a run of an earlier version will do if it is taken over."""
    print_facts("plan", describe(found.plan.lines, quote_old(found)))
    typer.echo("settings, as they were found")
    print_facts("", {name: str(value) for name, value in found.settings})


def show_removal(run: Run) -> None:
    """Print which files of a run would be deleted, and what stays: its charges and its hand-off."""
    zones = dict[str, list[str]]()
    for folder in folders_of(run):
        zones.setdefault(f"{folder.parent.name} folder", []).append(str(folder))
    facts = {zone: "\n".join(found) for zone, found in zones.items()}
    for held in charged_for(run):
        budget, kept = held.charge.budget, "was given back" if held.state == "voided" else "stays charged"
        amount = f"epsilon={budget.epsilon}, delta={budget.delta} on account {held.charge.account}"
        facts[f"charge {held.key[:12]}"] = f"{amount}, {held.state}: {kept}"
    if payer := run.settings.paid_by:
        facts["paid by"] = f"run {payer}, whose release it sampled again"
    print_facts("to be deleted", facts | {"stays": f"{run.settings.out}, what was handed over"})


def show_report(run: Run, out: Path | None) -> None:
    """Print where a finished run's publishable report is; if ``out`` is named, render the report again to that file.

    Raises:
        ArtifactError: the run has no report yet.
    """
    from tasks.validate import render_again

    report = run.finished("validate")
    if report is None:
        raise ArtifactError(f"run {run.name} has no report yet; resume it first")
    if out is not None:
        out.write_text(render_again(report), encoding="utf-8")
    page = out or report.path / "report.html"
    print_facts("report", {"page": str(page), "figures": str(report.path / "report.json")})
    print_warnings(report.path / "report.json")


def show_verified(folder: Path, public_key: Path | None) -> None:
    """Check a hand-off and print what is wrong with it, or who signed it.

    Raises:
        ArtifactError: something is wrong.
    """
    from dpmodels.hand_off.verify import verify_hand_off

    found = verify_hand_off(folder, public_key)
    for fault in found.faults:
        typer.echo(fault, err=True)
    if found.faults:
        raise ArtifactError(f"the hand-off {folder} has {len(found.faults)} fault(s)")
    facts = {"files": f"{found.files} as the manifest has them", "budget": found.budget, "charge": found.charge}
    print_facts("hand-off", {**facts, "signature": found.signature})
    for caution in found.cautions:
        typer.echo(f"caution: {caution}", err=True)


def show_gate(gate: Verdicts) -> None:
    """Print the result of every expectation."""
    table = Table(title=f"{gate.contract.name}: expectations", title_justify="left")
    for heading in ("about", "rule", "rows that fail", "verdict"):
        table.add_column(heading, justify="right" if heading == "rows that fail" else "left")
    for outcome in gate.outcomes:
        rule = outcome.rule
        about = rule.column or " and ".join(rule.columns) or "the table"
        failed = f"{outcome.failed} of {outcome.checked}" if rule.columns else ""
        table.add_row(
            escape(about),
            escape(rule.text),
            failed,
            "holds" if outcome.passed else f"[red]broken[/red] {rule.expectation}",
        )
    print_table(table)


def print_warnings(report: Path) -> None:
    """Print the warnings of a publishable report: of each column, and of the whole."""
    facts = json.loads(report.read_text(encoding="utf-8"))
    for column in facts.get("columns", ()):
        if "warning" in column:
            typer.echo(f"warning: column {column['name']}: {column['warning']}", err=True)
    for client in facts.get("clients", ()):
        if client["dropped"]:
            typer.echo(f"warning: client {client['name']} was dropped: {client['dropped']}", err=True)
    for caution in facts.get("cautions", ()):
        typer.echo(f"warning: {caution}", err=True)
