"""A plan in short: what a person decides by, and how many lines are left out."""

import re
from collections.abc import Mapping

from flows.description import REFUSED, as_lines
from flows.widths import WITHIN, of_middle_rows

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


BY_COMMAND = "the same command with --details shows them"


def shortened(facts: Mapping[str, str]) -> dict[str, str]:
    """Return of what is to be signed the facts that decide, a line each, and how many more lines `--details` shows."""
    most = [(name, text) for name, text in facts.items() if not IN_DETAIL.match(name)]
    short = {name: text.partition("\n")[0] for name, text in most[:MOST_LINES]}
    if UNDECLARED in facts:  # behind all that is declared, and yet what whoever signs weighs
        short[UNDECLARED] = facts[UNDECLARED].partition("\n")[0]
    return short | _left_out(facts, short)


def plan_in_short(facts: Mapping[str, str], command: str, whole: str = BY_COMMAND) -> dict[str, str]:
    """Return of a plan what a person decides by: the price, what it buys, the account's answer, and what comes next.

    Figures are said for one number of rows; the noise of each count, and each charge, are left out. A plan
    that charges nothing, or scores alone, is short as it is. ``whole`` says what has all of it.
    """
    if "target" not in facts:
        return dict(facts)
    first = {*BUYS, *of_middle_rows(facts)}
    short = {name: text for name, text in facts.items() if name in first or not IN_DETAIL.match(name)}
    then = {} if facts.get("answer") == REFUSED else {"next": f"{command} with the same options charges this, once"}
    return short | then | _left_out(facts, short, whole)


def _left_out(facts: Mapping[str, str], short: Mapping[str, str], whole: str = BY_COMMAND) -> dict[str, str]:
    """Count the lines that are not shown, and say how they are; nothing where all are."""
    more = len(as_lines(facts)) - len(as_lines(short))
    return {"more": f"{more} lines: {whole}"} if more else {}
