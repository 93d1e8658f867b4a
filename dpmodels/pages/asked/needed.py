"""A table of the figures that rows are good for, by column, in which a person ticks what the declared purpose needs.

Nacre compares no words: it says how good each figure is, and a person which of them the purpose asks.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from dpmodels.pages.asked.limits import RATE, TERMS, heading
from dpmodels.pages.card_words import cut
from dpmodels.pages.figures.open_means import IF_THIN

SIGNS = {"good": "✓", "care": "~", "bad": "✗"}
OPEN, PALE = "if values thin out", "in some groups"
SIGN_OF_TERMS = {"hold": "✓", PALE: "~", OPEN: "~"}
BY_GROUP = "means by group"
IN_POINTS = ", within points"
"""In what rates are judged; all else is a percentage, which says of what it is one."""
NO_FIGURE = "–"
MOST = 60
"""Columns of which the table has a line; of more the report has all."""


class Needed(NamedTuple):
    """A table of figures: what is judged, a line for each column, and how many more columns there are."""

    titles: list[str]
    lines: list[tuple[str, list[str]]]
    more: int


def figures_to_tick(facts: Mapping[str, Any]) -> Needed | None:
    """Return how good each figure of each column is that is handed over; None of cards that have no marks."""
    marks, stated = facts["quality"].get("marked", {}), facts["quality"].get("group_means", {})
    columns = [one["name"] for one in facts["content"].get("columns", ())]
    named = [name for name in columns if any(name in kind for one in marks.values() for kind in one.values())]
    if not named:
        return None
    titles = [f"{heading(title)}{IN_POINTS * title.startswith(RATE)}" for title in marks] + [BY_GROUP] * bool(stated)
    lines = [
        (cut(name), [*(_cell(one, name) for one in marks.values()), *([_by_group(stated, name)] if stated else [])])
        for name in named[:MOST]
    ]
    return Needed(titles, lines, len(named[MOST:]))


def _cell(kinds: Mapping[str, Mapping[str, str]], name: str) -> str:
    """Write how good a figure of a column is, and within what it is."""
    for kind, sign in SIGNS.items():
        if name in kinds.get(kind, {}):
            return f"{sign} {kinds[kind][name]}"
    return NO_FIGURE


def _by_group(stated: Mapping[str, list[str]], name: str) -> str:
    """Write by which columns a report states means of one, with a sign each, and on what terms; else that it has none.

    A figure of which more is known than that it is stated stands without the words of its terms.
    """
    said = [
        f"{SIGN_OF_TERMS[terms]} by {cut(one.partition(' by ')[2])}{f' ({IF_THIN})' if terms == OPEN else ''}"
        for terms in TERMS
        for one in stated.get(terms, ())
        if one.partition(" by ")[0] == name
    ]
    return "; ".join(said) or NO_FIGURE
