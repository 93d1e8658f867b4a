"""Why groups of a picture are pale: in one phrase beside it, and in the table of its numbers, nothing on every line.

Privacy: post-processing of a publishable report.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from dpmodels.pages.page import capital
from dpmodels.plural import listed

BUT = "but"
MOST = 3
"""Groups that a sentence names."""


class Reasoned(NamedTuple):
    """A table with why lines are not to be relied on, and the reason that stands above it."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    above: str = ""


def with_reasons(header: tuple[str, ...], rows: Sequence[tuple[str, ...]], reasons: Sequence[str]) -> Reasoned:
    """Lay reasons beside the lines of a table, which begin with the name of a group.

    The one that most lines have is said once, above, where several have it or no line has another; others stand in a
    column.
    """
    counts = Counter(filter(None, reasons))
    if not counts:
        return Reasoned(header, tuple(rows))
    first, lines = counts.most_common(1)[0]
    if len(counts) > 1 and lines == 1:
        return Reasoned((*header, BUT), _beside(rows, reasons))
    named = [row[0] for row, reason in zip(rows, reasons, strict=True) if reason == first]
    others = [row[0] for row, reason in zip(rows, reasons, strict=True) if reason != first]
    above = f"{capital(_which(named, others))}: {first}."
    if len(counts) == 1:
        return Reasoned(header, tuple(rows), above)
    return Reasoned((*header, BUT), _beside(rows, ["" if one == first else one for one in reasons]), above)


def _beside(rows: Sequence[tuple[str, ...]], reasons: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple((*row, reason) for row, reason in zip(rows, reasons, strict=True))


def _which(named: list[str], others: list[str]) -> str:
    """Say of which groups something holds."""
    if not others:
        return "of every group"
    if len(named) <= MOST:
        return f"of {listed(named, 'and')}"
    return f"of all but {listed(others, 'and')}" if len(others) <= MOST else f"of {len(named)} groups"


def pale_in_words(reasons: Sequence[str], number: int) -> str:
    """Say how many of so many groups are pale, and why where all are for one reason; ``reasons``: of these."""
    if not reasons:
        return ""
    which = f"all {number}" if len(reasons) == number else f"{len(reasons)} of {number}"
    return f"{which} pale" + (f": {reasons[0]}" if len({*reasons}) == 1 else "")
