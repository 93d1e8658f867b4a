"""Notes on what a schema declares: those on columns that nobody receives are one sentence, whatever their number."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dpmodels.contract.remarks import NOT_HANDED_OVER, is_declared
from dpmodels.plural import listed

OF_DROPPED = re.compile(re.escape(NOT_HANDED_OVER).replace(re.escape("{name}"), "(.*)"), re.DOTALL)
"""What a report says of a column that nobody receives."""
OF_SEVERAL = (
    "columns {names}: not handed over (`keep: drop`); what is said of them is of the rows before they were left out"
)

COUNTED_AS = "counted_as"
"""What a report calls the column that is counted in the place of a derived one, and has its value in every row."""


def not_handed_over(facts: Mapping[str, Any]) -> frozenset[str]:
    """Name the columns of a report, or of a card's figures, that nobody receives, by the cautions that say so."""
    return frozenset(_names(facts.get("cautions", ())))


def left_out_and_reckoned(facts: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Name the columns of a card that nobody receives; and say which of these follow from others that are received.

    Those are no columns of the files, and whoever has the files can reckon them all the same.
    """
    reckoned = facts["content"].get("reckoned", {})
    hidden = sorted(not_handed_over(facts["quality"]) - reckoned.keys())
    return hidden, [f"{name} (from {listed(operands, 'and')})" for name, operands in sorted(reckoned.items())]


def notes_of(report: Mapping[str, Any]) -> list[str]:
    """Return what is no warning, since the schema declares it: rows of each user that are used, what is left out."""
    return together(one for one in report.get("cautions", ()) if is_declared(one))


def together(remarks: Iterable[str]) -> list[str]:
    """Return remarks, of which those on columns that nobody receives are the last one."""
    every = list(remarks)
    names = _names(every)
    if len(names) < 2:
        return every
    others = [one for one in every if not OF_DROPPED.fullmatch(one)]
    return [*others, OF_SEVERAL.format(names=f"{', '.join(names[:-1])} and {names[-1]}")]


def _names(remarks: Collection[str]) -> list[str]:
    return [match[1] for one in remarks if (match := OF_DROPPED.fullmatch(one))]
