"""What is printed when a run ends: what came of it, how long each stage took, and what to do next."""

import json
import re
from collections.abc import Mapping

from dpmodels.codec.flat import tables_of
from dpmodels.pages.glance import glance
from flows.command_line.console import console, print_facts
from flows.description import REFUSED, as_fact, as_lines
from flows.planning import cautions_of
from flows.widths import WITHIN, of_middle_rows
from tasks.run.store import Run
from tasks.stages.stage import seconds_of

WARNING = "WARNING"
IN_DETAIL = re.compile(
    r"noise_stddev of |means$|figures within$|of [\d,]+ rows$|max_rows$|training$|stands out$|delta$|charge$|"
    r".*: (?:noise_stddev of |charge|in words)"
)
"""Facts of a plan that say more of what others say: each charge, its noise, and where models are trained."""
BUYS = (WITHIN, "delta", "stands out", "max_rows")
"""Those of them that say what a budget buys, which whoever chooses one asks first."""
MOST_LINES = 14
UNDECLARED = "not declared"
"""What a plan's facts call the answers that nobody gave, of which the first line counts them."""


def shortened(facts: Mapping[str, str]) -> dict[str, str]:
    """Return of what is to be signed the facts that decide, a line each, and how many more lines `--details` shows."""
    most = [(name, text) for name, text in facts.items() if not IN_DETAIL.match(name)]
    short = {name: text.partition("\n")[0] for name, text in most[:MOST_LINES]}
    if UNDECLARED in facts:  # behind all that is declared, and yet what whoever signs weighs
        short[UNDECLARED] = facts[UNDECLARED].partition("\n")[0]
    return short | _left_out(facts, short)


def plan_in_short(facts: Mapping[str, str], command: str) -> dict[str, str]:
    """Return of a plan what a person decides by: the price, what it buys, the account's answer, and what comes next.

    Figures are said for one number of rows; the noise of each count, and each charge, are left to `--details`. A plan
    that charges nothing, or scores alone, is short as it is.
    """
    if "target" not in facts:
        return dict(facts)
    first = {*BUYS, *of_middle_rows(facts)}
    short = {name: text for name, text in facts.items() if name in first or not IN_DETAIL.match(name)}
    then = {} if facts.get("answer") == REFUSED else {"next": f"{command} with the same options charges this, once"}
    return short | then | _left_out(facts, short)


def _left_out(facts: Mapping[str, str], short: Mapping[str, str]) -> dict[str, str]:
    """Count the lines that are not shown, and say how they are; nothing where all are."""
    more = len(as_lines(facts)) - len(as_lines(short))
    return {"more": f"{more} lines: the same command with --details shows them"} if more else {}


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
