"""What documents say of a column, as the keys of its type have it."""

import math
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

from dpmodels.authoring.facts import TODO, Bound, Facts
from dpmodels.authoring.file_types import NUMBERS, Keys, inner_type

CENTS = 2  # decimals of money
MOST_DECIMALS = 12  # that a schema's `round` may keep


def unfilled(type_name: str, facts: Facts) -> Keys:
    """Return the keys of a documented type of which nothing else is known."""
    if type_name in NUMBERS:
        return {"type": type_name, "min": TODO, "max": TODO}
    if type_name == "datetime":
        return {"type": type_name, "min": TODO, "max": TODO, "resolution": "day" if facts.kind == "date" else TODO}
    if type_name == TODO:
        return {"type": TODO, **{key: end.value for key, end in (("min", facts.low), ("max", facts.high)) if end}}
    return {"type": type_name, "values": TODO} if type_name == "categorical" else {"type": type_name}


def values_of(facts: Facts, kind: str) -> list[Any] | None:
    """Return the documented values as the file's type has them; None where it cannot."""
    values = list(facts.values or ())
    if kind in NUMBERS:
        numbers = [float(value) if isinstance(value, str) and _is_number(value) else value for value in values]
        if any(isinstance(value, str) for value in numbers):
            return None
        whole = all(float(value).is_integer() for value in numbers)
        return [int(value) if whole else float(value) for value in numbers]
    if kind == "categorical" or (kind == TODO and facts.kind == "text"):
        return None if any(isinstance(value, bool) for value in values) else [str(value) for value in values]
    return values if kind == TODO else None


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def bounds_of(keys: Keys, facts: Facts) -> Keys:
    """Return the documented bounds as the column's type has them, and how its numbers are spread and rounded."""
    if keys["type"] in NUMBERS:
        decimals = 0 if keys["type"] == "integer" else facts.decimals
        decimals = decimals if decimals is None or decimals <= MOST_DECIMALS else None
        ends = [_edge(facts.low, -1, decimals), _edge(facts.high, 1, decimals)]
        further: Keys = {"round": decimals} if keys["type"] == "number" and decimals is not None else {}
        further |= {"scale": facts.scale} if facts.scale else {}
        further |= {"zero_inflated": facts.zeros} if facts.zeros is not None else {}
        whole = int if keys["type"] == "integer" else float
        return {
            key: TODO if end is None else whole(end) for key, end in zip(("min", "max"), ends, strict=True)
        } | further
    if keys["type"] == "datetime":
        of_days = all(end is not None and type(end.value) is date for end in (facts.low, facts.high))
        open_to = "day" if of_days and facts.kind is None and keys["resolution"] == TODO else keys["resolution"]
        resolution = "day" if facts.kind == "date" else facts.resolution or open_to
        least, most = (_moment(end, into, resolution == "day") for end, into in ((facts.low, 1), (facts.high, -1)))
        return {"min": least, "max": most, "resolution": resolution}
    return {}


def _edge(bound: Bound | None, side: int, decimals: int | None) -> float | None:
    """Move a bound inwards to the nearest number of so many decimals that the interval has."""
    if bound is None or isinstance(bound.value, date):
        return None
    if decimals is None:
        return float(bound.value)
    steps = round(float(bound.value) * 10**decimals, 6)  # the documented number is decimal, and its double is not
    rank = math.floor(steps) if side > 0 else math.ceil(steps)
    rank -= side * (bound.open and rank == steps)
    return float(rank / 10**decimals) if decimals else rank


def _moment(bound: Bound | None, inwards: int, whole_days: bool) -> Any:
    if bound is None or not isinstance(bound.value, date):
        return TODO
    if isinstance(bound.value, datetime):
        return bound.value.date() if whole_days else bound.value.replace(microsecond=0)
    return bound.value + timedelta(days=inwards) if bound.open and date.min < bound.value < date.max else bound.value


def in_cents(facts: Facts, dtype: pa.DataType | None) -> Facts:
    """Round money to cents, unless other decimals are documented, by its bounds too, or the file's type has some."""
    ends = [end.value for end in (facts.low, facts.high) if end and isinstance(end.value, float)]
    is_fixed = facts.decimals is not None or (dtype is not None and pa.types.is_decimal(inner_type(dtype)))
    if not facts.money or is_fixed or any(end != round(end, CENTS) for end in ends):
        return facts
    return replace(facts, decimals=CENTS)
