"""What is printed when a run ends: what came of it, how long each stage took, and what to do next."""

import json

from dpmodels.codec.flat import tables_of
from dpmodels.pages.glance import glance
from flows.command_line.console import console, print_facts
from flows.description import as_fact
from flows.planning import cautions_of
from tasks.run.store import Run
from tasks.stages.stage import seconds_of

WARNING = "WARNING"


def show_outcome(run: Run) -> None:
    """Print what came of a run that was handed over, but for what was said first."""
    print_facts("what came of it", {name: text for name, text in outcome(run).items() if name != WARNING})


def outcome(run: Run) -> dict[str, str]:
    """Say what came of a run that was handed over; what is said of the data stands in its publishable report."""
    facts = glance(json.loads((run.place("validate") / "report.json").read_text(encoding="utf-8")))
    if seconds := _seconds(run):
        facts["seconds"] = seconds
    said = (one for line in run.plan.lines[:1] for one in cautions_of(line.budget.epsilon, line.budget.delta, line))
    return facts | as_fact("caution", said) | {"next": "\n".join(_next(run))}


def _seconds(run: Run) -> str:
    """Name the seconds of every stage; those that grow with the number of private rows are for a terminal alone."""
    took = seconds_of(run)
    visible = {name: one for name, one in took.items() if console.is_terminal or not one.sensitive}
    return ", ".join(f"{name} {one.seconds:.1f}" for name, one in visible.items())


def _next(run: Run) -> list[str]:
    """Say what a person does with a hand-off."""
    out, sampled = run.settings.out, run.place("sample").exists()
    steps = {
        f"open {out / 'report.html'}": "how far off it may be, column by column" if sampled else "what is promised",
        f"nacre verify {run.settings.bucket or out}": "what a recipient checks",
    }
    if not run.settings.bucket:
        steps[f"nacre approve {out} --key KEY.pem"] = "whoever may decide signs that it may leave"
    if sampled:
        more = "more" if tables_of(run.plan.release.contract) else "more.parquet"
        steps[f"nacre sample {run.name} --rows 1000 --out {more} --home {run.home}"] = "more rows, free"
    return [f"{step}   ({why})" for step, why in steps.items()]
