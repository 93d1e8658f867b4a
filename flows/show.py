"""What the command line prints: tables for people, all of it public."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import Event, Leaf, ParallelEvent, PureEvent, SampledGaussianEvent, leaves
from dpmodels.errors import ArtifactError
from dpmodels.evaluation.published.charged import Scores
from dpmodels.ledger.approval import Approval, Asked
from dpmodels.ledger.records import Quote
from dpmodels.releases.plan import Line
from dpmodels.schema.expectations import Gate
from dpmodels.synthesizers.registry import create
from tasks.accounts import quote
from tasks.adopt import Found
from tasks.store import Run

console = Console()


def show_plan(lines: Sequence[Line], quote: Quote | None) -> None:
    """Print what the lines of a plan charge, their noise, and what the account says to all of it."""
    _print_facts("plan", plan_facts(lines, quote))


def plan_facts(lines: Sequence[Line], quote: Quote | None) -> dict[str, str]:
    """Say in words what the lines of a plan charge, their noise, and what the account says to all of it."""
    plan, *report = lines
    facts = {
        "data set": plan.contract.name,
        "method": plan.method,
        "unit, adjacency": f"{plan.budget.unit}, {plan.budget.adjacency}",
        "target": f"epsilon={plan.budget.epsilon}, delta={plan.budget.delta}",
        "charge": charge_in_words(plan.event),
    }
    noise = create(plan.method, plan.measurement, {}).noise(plan)
    facts |= {f"noise_stddev of the {name}": f"{value:.4g}" for name, value in noise.items()}
    for line in report:
        facts["report: target"] = f"epsilon={line.budget.epsilon}, delta={line.budget.delta}"
        facts["report: charge"] = charge_in_words(line.event)
        noise = Scores.reading(line).noise(line)
        facts |= {f"report: noise_stddev of the {name}": f"{value:.4g}" for name, value in noise.items()}
        both = spent_epsilon([plan.event, line.event], plan.budget.delta_exact)
        facts["release and report"] = f"epsilon={both} together, delta={plan.budget.delta}"
    if quote is None:
        facts["account"] = "not open: the first run opens it, with this budget as the cap"
    else:
        facts["account"] = f"{quote.account}, cap epsilon={quote.cap} at delta={quote.delta}"
        facts["spent"] = f"epsilon={quote.spent_before} before, {quote.spent_after} after"
        facts["answer"] = "would be accepted" if quote.accepted else "would be REFUSED"
    return facts


def charge_in_words(event: Event) -> str:
    """Say what is charged, one line a kind of release."""
    times = Counter(_unnamed(part) for part in leaves([event]))
    return "\n".join(_words(part) + (f", {count} times" if count > 1 else "") for part, count in times.items())


def _unnamed(part: Leaf | ParallelEvent) -> Leaf | ParallelEvent:
    return part if isinstance(part, ParallelEvent) else part.model_copy(update={"mechanism": ""})


def _words(part: Leaf | ParallelEvent) -> str:
    match part:
        case ParallelEvent():
            return f"each {part.by} of its own, in parallel: " + "; or ".join(map(charge_in_words, part.events))
        case SampledGaussianEvent():
            each = f"each record with probability {part.sampling_probability:g}"
            return f"{part.steps} steps of DP-SGD, noise_multiplier={part.noise_multiplier:.6f}, {each}"
        case PureEvent():
            return f"pure, epsilon={part.epsilon:.6f}"
    return f"{part.kind.capitalize()}, noise_multiplier={part.noise_multiplier:.6f}"


def show_hand_off(run: Run) -> None:
    """Print where everything is."""
    facts = {
        "run": run.name,
        "synthetic table": str(run.settings.out / "synthetic"),
        "report": str(run.settings.out / "report.html"),
        "manifest": str(run.settings.out / "manifest.json"),
        "ledger": f"{run.ledger} (account {run.settings.account})",
    }
    internal = run.sensitive / "internal-report.json"
    if internal.exists():
        facts["internal report"] = f"{internal} (sensitive: stays inside)"
    _print_facts("hand-off", facts)
    print_warnings(run.place("validate") / "report.json")


def show_approved(run: Run, approval: Approval, asked: Asked) -> None:
    """Print the plan that an officer signed for."""
    show_plan(run.plan.lines, quote(run))
    typer.echo(f"signed by {approval.officer}:\n{asked.text}signature {approval.signature}")
    typer.echo(f"next: nacre resume {run.name}")


def show_found(found: Found) -> None:
    """Print what a run that is to be taken over is going to do."""
    show_plan(found.plan.lines, None)
    _print_facts("settings, as they were found", {name: str(value) for name, value in found.settings})


def show_report(run: Run, out: Path | None) -> None:
    """Print where a finished run's publishable report is; lay it out again in ``out`` if that is named.

    Raises:
        ArtifactError: the run has not come that far.
    """
    from tasks.validate import render_again

    report = run.finished("validate")
    if report is None:
        raise ArtifactError(f"run {run.name} has no report yet; resume it first")
    if out is not None:
        out.write_text(render_again(report), encoding="utf-8")
    page = out or report.path / "report.html"
    _print_facts("report", {"page": str(page), "figures": str(report.path / "report.json")})
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
    _print_facts("hand-off", {"files": f"{found.files} as the manifest has them", "signature": found.signature})


def show_gate(gate: Gate) -> None:
    """Print what came of every expectation."""
    table = Table(title=f"{gate.schema.name}: expectations", title_justify="left")
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
    console.print(table)


def print_warnings(report: Path) -> None:
    """Print what a publishable report warns of, column by column."""
    for column in json.loads(report.read_text(encoding="utf-8"))["columns"]:
        if "warning" in column:
            typer.echo(f"warning: column {column['name']}: {column['warning']}", err=True)


def _print_facts(title: str, facts: dict[str, str]) -> None:
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value in facts.items():
        table.add_row(escape(name), escape(value))
    console.print(table)
