"""What came of a run at a glance: of how many columns, means, pairs and relations synthetic rows are good for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmodels.pages.by_column import ALONE, BAD, CARE, GOOD, OF_RATES, ByColumn, Cell
from dpmodels.pages.glance import likely_of_pair
from dpmodels.pages.means import CLOSE
from dpmodels.pages.page import percent
from dpmodels.pages.relations import KEPT, relations
from dpmodels.pages.uses import FAR

MOST, HALF = 0.8, 0.5
"""Part that is good at least where a tile says so, and part that is bad at most where it says to take care."""
QUANTILES = "99 %"
"""How a kind of figure begins that is seldom asked for, and has no tile."""


@dataclass(frozen=True)
class Tile:
    """How many are good, and to be taken with care, of what; and which of these the tile as a whole is, or bad."""

    kind: str
    good: int
    care: int
    words: str


def tiles(report: Mapping[str, Any], by_column: ByColumn | None) -> list[Tile]:
    """Count what is good: single columns, means and rates by the table of uses, pairs, and relations that are kept.

    Columns are those of the schema, as in the headline, and derived ones aside.
    """
    if by_column is None:
        return []
    of_schema = {one["name"] for one in report["columns"]}
    lines = [cells for name, cells in by_column.lines if name in of_schema]
    cells = dict(zip(by_column.kinds, zip(*lines, strict=True), strict=True))
    alone = _kinds(cells.pop(ALONE))
    listed = (report.get("pairs") or {}).get("distances", ())
    pairs = [likely_of_pair(figures) for _, _, *figures in listed]
    certain = [one for one in relations(report).values() if one.is_certain]
    within, aside = f"(good: within {percent(CLOSE)})", ", derived ones aside" * bool(report.get("derived"))
    counted = [
        ("column", f", each by itself {within}{aside}", alone),
        ("pair", f" of columns, in broad groups {within}", [_kind(one <= CLOSE, one > FAR) for one in pairs]),
        (
            "relation",
            f" above noise (good: kept to {percent(KEPT)} or more)",
            [_kind(one.is_kept, one.is_weakened) for one in certain],
        ),
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
    return [max((one.kind for one in cell), key=(GOOD, CARE, BAD).index) for cell in cells if cell]


def _tile(noun: str, words: str, kinds: Sequence[str]) -> Tile:
    good = kinds.count(GOOD)
    kind = _kind(good >= MOST * len(kinds), kinds.count(BAD) > HALF * len(kinds))
    return Tile(kind, good, kinds.count(CARE), f"of {len(kinds):,} {noun}{'s' * (len(kinds) > 1)}{words}")
