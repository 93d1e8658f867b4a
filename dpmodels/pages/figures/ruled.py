"""Which pairs of columns a rule of the schema relates: that they depend on each other is no finding.

Privacy: post-processing of a publishable report.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

EVERY_ROW = "must hold in every row"
"""What the gate says of a rule of a row."""
RULE = re.compile(rf"`(.+)` {EVERY_ROW}(?: of table (.+))?", re.DOTALL)
WHEN = re.compile(r"when (.+?) then (.+)", re.DOTALL)
BOTH = re.compile(r"(.+?)\s*(?:<=|>=|<|>)\s*(.+)", re.DOTALL)
BY_RULE = "by a rule of the schema"
"""How pages and terminals call such a relation."""


def ruled_pairs(report: Mapping[str, Any]) -> frozenset[tuple[int, int]]:
    """Return the places of the columns that a rule relates: both sides of ``a <= b``, and of ``when a ... then b``.

    Two columns on one side of a rule are not related by it, nor are those that a derived column in it follows from.
    """
    places = {one.get("name", ""): place for place, one in enumerate(report.get("columns", ()))}
    sides = (side for one in report.get("gate", ()) for side in _sides(str(one["rule"]), places))
    return frozenset((min(pair), max(pair)) for one, other in sides for pair in product(one, other) if len({*pair}) > 1)


def _sides(text: str, places: Mapping[str, int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the places of the columns on the two sides of a rule; nothing where a check is no rule of a row."""
    if not (rule := RULE.fullmatch(text)):
        return
    if sides := WHEN.fullmatch(rule[1].strip()):
        parts = [side.split(" and ") for side in sides.groups()]
    elif sides := BOTH.fullmatch(rule[1].strip()):
        parts = [[side] for side in sides.groups()]
    else:
        return
    one, other = ([_place(part, places, rule[2]) for part in side] for side in parts)
    yield _known(one), _known(other)


def _known(places: Sequence[int | None]) -> list[int]:
    return [place for place in places if place is not None]


def _place(part: str, places: Mapping[str, int], table: str | None) -> int | None:
    """Return the place of the column that a condition is about; None where the report has none of its name."""
    bare, inside = part.strip().removeprefix("not ").strip(), f"{table}." if table else ""
    for name in sorted(_begins(bare, places, inside), key=len, reverse=True):
        return places[name]
    return None


def _begins(bare: str, names: Collection[str], inside: str) -> Iterator[str]:
    """Yield the names that a condition begins with, of columns of a table by what they are called there."""
    for name in names:
        short = name.removeprefix(inside)
        if bare.startswith(short) and bare[len(short) :].lstrip()[:1] in ("", *"=!<>"):
            yield name
