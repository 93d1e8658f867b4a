"""Numbers of a schema that may mean thousands, or hours: a run and a check of rows ask which one is meant."""

from collections.abc import Iterator
from typing import Any

from dpmodels.authoring.outline import Outline, mantissa
from dpmodels.clock import TIME
from dpmodels.contract.discovery.discovery import columns_of, is_map
from dpmodels.contract.documents import Documents
from dpmodels.contract.numbers import Number
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.errors import SchemaFault
from dpmodels.plain_yaml import Place, read_yaml

THOUSANDS = 3
"""Digits between the marks of a large number."""


HOURS = 24
OF_HOURS = (
    "is not clear: {bound} is counted in the unit of `dtype`, so it is {moment} after midnight; "
    'write "{clock}", in quotes, for that hour of the day{otherwise}'
)


def unclear_numbers(contract: Schema | Documents | Tree, text: str) -> list[SchemaFault]:
    """List the bounds of a schema that nobody but who wrote its text can tell from thousands, or from hours."""
    outline = Outline()
    messages = dict(_unclear_hours(read_yaml(text, outline)))
    if contract.is_table:
        places = [place for place, number in outline.grouped.items() if _is_unclear(number, place, contract)]
        messages |= {place: f"is not clear: {outline.thousands(place)}" for place in places}
    return [SchemaFault(outline.line(place), ".".join(place), message) for place, message in messages.items()]


def _unclear_hours(data: Any) -> Iterator[tuple[Place, str]]:
    """Yield the bounds of times of day that are numbers of an hour, where the unit is a second or less."""
    for column, place in columns_of(data).values():
        kind = TIME.fullmatch(str(column.get("dtype"))) if is_map(column) else None
        for key in ("min", "max") if kind else ():
            bound = column.get(key)
            if type(bound) is int and 0 < bound <= HOURS:
                yield (*place, key), _of_hours(bound, kind[1])  # type: ignore[index]


def _of_hours(bound: int, unit: str) -> str:
    moment, otherwise = f"{bound} {unit}", f', or "00:00:{bound:02d}"' if unit == "s" else ""
    clock = "23:59:59" if bound == HOURS else f"{bound:02d}:00:00"
    return OF_HOURS.format(bound=bound, moment=moment, clock=clock, otherwise=otherwise)


def _is_unclear(text: str, place: Place, contract: Schema) -> bool:
    """Tell whether 20.000 may be meant as thousands: nobody writes three zeros of decimals that a column has not."""
    column = contract.columns.get(place[1]) if len(place) == 3 else None
    return mantissa(text).endswith(".000") and isinstance(column, Number) and column.decimals != THOUSANDS
