"""Small pictures of a report's columns and pairs in one row, each of which leads to the large one.

A small picture is no second drawing: it refers to the large one by its place on the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from dpmodels.pages.drawing import WIDTH, Figure, number
from dpmodels.pages.multiples import Multiples

PAIRS = "map-of-pairs"
"""Place of the map of pairs."""
FEW = 16
"""Small pictures that have room to be larger on a first screen."""


ACROSS_FEW, ACROSS, ACROSS_PHONE = (4, 5, 3), (9, 10, 8, 7), (3, 4)
"""Small pictures in a row: of few on a wide screen, of many there, and on a phone; the first that leaves none alone."""


def across(number: int) -> str:
    """Return the classes that say how many of so many small pictures stand in a row, on a wide screen and a phone."""
    every = (ACROSS_FEW, ACROSS, ACROSS_PHONE)
    few, many, narrow = (next((one for one in choices if number % one != 1), choices[0]) for choices in every)
    return f"few across-{few} narrow-{narrow}" if number <= FEW else f"across-{many} narrow-{narrow}"


@dataclass(frozen=True)
class Small:
    """A small picture: the place of the large one, its name, what is said of it, what it shows, and the drawing.

    Its part of the drawing keeps its shape, or is stretched to what room there is.
    """

    place: str
    name: str
    brief: str
    part: str
    drawing: Markup
    is_stretched: bool = False


def strip(tables: Sequence[Multiples], pairs: Figure | None) -> tuple[list[Multiples], Figure | None, list[Small]]:
    """Give the drawings that are seen at once a place each, and return them with their small pictures."""
    placed, small = list[Multiples](), list[Small]()
    for table in tables:
        names = [_small(f"column-{len(small) + number}", one) for number, one in enumerate(table.first)]
        first = [_at(one.place, figure) for one, figure in zip(names, table.first, strict=True)]
        placed.append(replace(table, first=first))
        small += names
    if pairs:
        small.append(replace(_small(PAIRS, pairs), name="all pairs", is_stretched=True))
    return placed, pairs and _at(PAIRS, pairs), small


def _small(place: str, figure: Figure) -> Small:
    """Draw a figure small: by a drawing that is made for it, or as part of the large one."""
    height = figure.svg.split('viewBox="', 1)[1].split('"', 1)[0].split()[-1]
    again = Markup('<use href="#{}" width="{}" height="{}"/>').format(place, WIDTH, height)
    part = " ".join(map(number, figure.part)) or f"0 0 {WIDTH} {height}"
    return Small(place, figure.title, figure.brief, part, figure.small or again)


def _at(place: str, figure: Figure) -> Figure:
    """Return a drawing that can be referred to."""
    begin = Markup('<svg id="{}" ').format(place)
    return replace(figure, svg=begin + Markup(str(figure.svg).removeprefix("<svg ")))
