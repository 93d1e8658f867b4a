"""What came of a run at a glance: of how many columns, means, pairs and relations synthetic rows are good for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmodels.pages.by_column import ALONE, OF_RATES, ByColumn, Cell
from dpmodels.pages.figures.grades import BAD, CARE, GOOD, MARKS, grade
from dpmodels.pages.figures.means import CLOSE, FAR
from dpmodels.pages.page import percent
from dpmodels.pages.uses import GOOD_ALL, known_of

MOST, HALF = 0.8, 0.5
"""Part that is good at least where a tile says so, and part that is bad at most where it says to take care."""
QUANTILES = "99 %"
"""How a kind of figure begins that is seldom asked for, and has no tile."""


@dataclass(frozen=True)
class Tile:
    """How many are good, to be taken with care, and bad, of what; and which of these the tile as a whole is."""

    kind: str
    good: int
    care: int
    words: str
    bad: int = 0


def tiles(report: Mapping[str, Any], by_column: ByColumn | None, asked: Sequence[str] = ()) -> list[Tile]:
    """Count what is good, of what is handed over alone, as the table and the sentences of uses sort it.

    ``asked``: the grades of the cards of what was asked for, which stand first.
    """
    known = known_of(report)
    if by_column is None or known is None:
        return []
    lines = [line for _, line in by_column.received]
    cells = dict(zip(by_column.kinds, zip(*lines, strict=True), strict=True)) if lines else {ALONE: ()}
    alone, received = _kinds(cells.pop(ALONE)), known.received
    certain = [GOOD if sort == GOOD_ALL else CARE for sort, some in received.certain().items() for _ in some]
    within = f"(good: within {percent(CLOSE)})"
    by_no_rule = ", by no rule or formula of the schema" * any(one.by_rule for one in received.relations.values())
    pairs = [grade(one, CLOSE, FAR) for one in received.within.values()]
    counted = [
        ("figure", " asked for, as marked below", asked),
        ("column", f", each by itself {within}", alone),
        ("pair", f" of columns, in broad groups {within}", pairs),
        ("relation", f" there for certain{by_no_rule} (good, or with care: as listed below)", certain),
    ]
    for (title, unit), column in cells.items():
        if not title.startswith(QUANTILES):
            noun, what = ("other column", ", for the") if unit == OF_RATES else ("column", " with a mean, for")
            counted.append((noun, f"{what} {' and '.join(title.rsplit(', ', 1))}", _kinds(column)))
    return [_tile(noun, words, kinds) for noun, words, kinds in counted if kinds]


def _kind(is_good: bool, is_bad: bool) -> str:
    return GOOD if is_good else BAD if is_bad else CARE


def _kinds(cells: Iterable[Cell]) -> list[str]:
    """Return the worst judgement of each column that has any."""
    return [max((one.kind for one in cell), key=MARKS.index) for cell in cells if cell]


def _tile(noun: str, words: str, kinds: Sequence[str]) -> Tile:
    good = kinds.count(GOOD)
    kind = _kind(good >= MOST * len(kinds), kinds.count(BAD) > HALF * len(kinds))
    words = f"of {len(kinds):,} {noun}{'s' * (len(kinds) > 1)}{words}"
    return Tile(kind, good, kinds.count(CARE), words, kinds.count(BAD))
