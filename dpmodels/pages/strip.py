"""Small pictures of a report's columns and pairs in one row, each of which leads to the large one.

A small picture is no second drawing: it refers to the large one by its place on the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from dpmodels.pages.drawing import Figure
from dpmodels.pages.multiples import Multiples

PAIRS = "map-of-pairs"
"""Place of the map of pairs."""


@dataclass(frozen=True)
class Small:
    """A small picture: the place of the large one on the page, and its name."""

    place: str
    name: str


def strip(tables: Sequence[Multiples], pairs: Figure | None) -> tuple[list[Multiples], Figure | None, list[Small]]:
    """Give the drawings that are seen at once a place each, and return them with their small pictures."""
    placed, small = list[Multiples](), list[Small]()
    for table in tables:
        names = [Small(f"column-{len(small) + number}", one.title) for number, one in enumerate(table.first)]
        first = [_at(one.place, figure) for one, figure in zip(names, table.first, strict=True)]
        placed.append(replace(table, first=first))
        small += names
    if pairs:
        small.append(Small(PAIRS, "all pairs"))
    return placed, pairs and _at(PAIRS, pairs), small


def _at(place: str, figure: Figure) -> Figure:
    """Return a drawing that can be referred to."""
    begin = Markup('<svg id="{}" ').format(place)
    return replace(figure, svg=begin + Markup(str(figure.svg).removeprefix("<svg ")))
