"""Numbers of a schema that may mean thousands: a run and a check of rows ask which one is meant."""

from dpmodels.authoring.outline import Outline, mantissa
from dpmodels.contract.numbers import Number
from dpmodels.contract.schema import Schema
from dpmodels.errors import SchemaFault
from dpmodels.plain_yaml import Place, read_yaml

THOUSANDS = 3
"""Digits between the marks of a large number."""


def unclear_numbers(contract: Schema, text: str) -> list[SchemaFault]:
    """List the bounds of a schema that nobody but who wrote its text can tell from thousands."""
    outline = Outline()
    read_yaml(text, outline)
    places = [place for place, number in outline.grouped.items() if _is_unclear(number, place, contract)]
    messages = {place: f"is not clear: {outline.thousands(place)}" for place in places}
    return [SchemaFault(outline.line(place), ".".join(place), message) for place, message in messages.items()]


def _is_unclear(text: str, place: Place, contract: Schema) -> bool:
    """Tell whether 20.000 may be meant as thousands: nobody writes three zeros of decimals that a column has not."""
    column = contract.columns.get(place[1]) if len(place) == 3 else None
    return mantissa(text).endswith(".000") and isinstance(column, Number) and column.decimals != THOUSANDS
