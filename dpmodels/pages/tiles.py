"""What came of a run at a glance: of how many columns, means, pairs and relations synthetic rows are good for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmodels.pages.by_column import ALONE, BAD, CARE, GOOD, ByColumn, Cell
from dpmodels.pages.glance import likely_of_pair
from dpmodels.pages.means import CLOSE
from dpmodels.pages.page import percent
from dpmodels.pages.relations import relations

MOST, HALF = 0.8, 0.5
"""Parts of what there is that are good, from which on a tile says so, and from which on it says to take care."""


@dataclass(frozen=True)
class Tile:
    """How many of so many are good, what they are, and whether that is good, to be taken with care, or bad."""

    kind: str
    number: str
    words: str


def tiles(report: Mapping[str, Any], by_column: ByColumn | None) -> list[Tile]:
    """Count what is good: single columns, means and rates by the table of uses, pairs, and relations that are kept."""
    if by_column is None:
        return []
    cells = dict(zip(by_column.kinds, zip(*(cells for _, cells in by_column.lines), strict=True), strict=True))
    listed = (report.get("pairs") or {}).get("distances", ())
    close = [likely_of_pair(figures) <= CLOSE for _, _, *figures in listed]
    kept = [one.is_kept for one in relations(report).values() if one.is_certain]
    counted = [
        ("column", f"within {percent(CLOSE)}, each by itself", _are_good(cells.pop(ALONE))),
        ("pair", f"of columns within {percent(CLOSE)}", close),
        ("relation", "above noise, as strong as released", kept),
        *(
            ("column", f"good for {' and '.join(title.rsplit(', ', 1))}", _are_good(one))
            for (title, _), one in cells.items()
            if "99" not in title
        ),
    ]
    return [_tile(noun, words, good) for noun, words, good in counted if good]


def _are_good(cells: Iterable[Cell]) -> list[bool]:
    """Tell of each column that has a figure whether all its figures are good."""
    return [all(one.kind == GOOD for one in cell) for cell in cells if cell]


def _tile(noun: str, words: str, good: Sequence[bool]) -> Tile:
    part = sum(good) / len(good)
    plural = noun + "s" * (len(good) > 1)
    return Tile(
        GOOD if part >= MOST else CARE if part >= HALF else BAD, f"{sum(good):,} of {len(good):,}", f"{plural} {words}"
    )
