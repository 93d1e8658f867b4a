"""The bounds of a derived column, as a rule of the columns that it follows from.

A derived column is never drawn, so whoever holds it to a last day holds its operands to it: ``joined`` and ``active``
where ``last_visit`` is ``add_days(joined, active)``. A row in which an operand is null keeps the rule, as in SQL.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Mask
from dpmodels.contract.continuous import Continuous, decode_numbers
from dpmodels.contract.datetimes import Datetime
from dpmodels.contract.derivation.derived import BOUNDS, Derived
from dpmodels.contract.formula import moment_of, reckon

Columns = Mapping[str, Any]
POINTS = 65
"""Values of an operand that are looked at for one that keeps the bounds, before what lies between two of them is."""
STARTS = 64
"""Rows within the bounds of the operands by which a schema's bounds are held to be possible."""
HALVINGS = 64


@dataclass(frozen=True)
class DerivedBound:
    """``low <= what a formula gives <= high``, in numbers or in ticks; a bound that is not given is infinite."""

    name: str
    column: Derived
    low: float
    high: float

    @property
    def text(self) -> str:
        """Write the rule."""
        least, most = self.column.min, self.column.max
        if most is None:
            return f"{self.name} >= {least}"
        return f"{self.name} <= {most}" if least is None else f"{least} <= {self.name} <= {most}"

    def __str__(self) -> str:
        return self.text

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the columns that it holds to the bounds."""
        return self.column.operands

    def side(self, numbers: Floats) -> Floats:
        """Return how far values of the derived column lie above the bounds, below them if negative; 0 for NaN."""
        return np.where(np.isnan(numbers), 0.0, numbers - np.clip(numbers, self.low, self.high))

    def kept(self, operands: Mapping[str, Floats], columns: Columns) -> Mask:
        """Tell which rows keep the rule, by the numbers or ticks of its columns."""
        within: Mask = self.side(reckoned(self.column, operands, columns)) == 0
        return within


def reckoned(column: Derived, operands: Mapping[str, Floats], columns: Columns) -> Floats:
    """Return what the formula of a derived column gives, as it is handed over; null as NaN."""
    numbers = reckon(str(column.formula), operands, columns)
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = numbers if column.round is None else np.round(numbers, column.round)
        if column.dtype == "int64":
            return np.rint(numbers)
        return numbers.astype(np.float32).astype(np.float64) if column.dtype == "float32" else numbers


def bounds_of(columns: Columns) -> Iterator[DerivedBound]:
    """Yield the rules of those derived columns that have bounds; they are without faults."""
    for name, column in columns.items():
        if isinstance(column, Derived) and column.is_bounded:
            yield DerivedBound(name, column, *_ends(column, columns))


def bound_faults(name: str, column: Derived, columns: Columns) -> Iterator[tuple[str, str]]:
    """Name what is wrong with the bounds of a derived column whose formula has no fault, as (key, message)."""
    bounds = {key: bound for key in BOUNDS if (bound := getattr(column, key)) is not None}
    moment = moment_of(str(column.formula), columns)
    for key, bound in bounds.items():
        if isinstance(bound, date) != (moment is not None):
            yield key, f"must be a {'date' if moment else 'number'}, which is what `{column.formula}` gives"
            return
        if getattr(bound, "tzinfo", None):
            yield key, "must be written without a time zone"
            return
    if not bounds:
        return
    rule = DerivedBound(name, column, *_ends(column, columns))
    if rule.low > rule.high:
        yield "min", f"{column.min} is above max {column.max}: the bounds are reversed"
    elif not _is_possible(rule, columns):
        yield [*bounds][-1], f"leaves `{column.formula}` no value within the bounds of {', '.join(column.operands)}"


def brought_within(
    rule: DerivedBound, operands: Mapping[str, Floats], columns: Columns, names: Sequence[str]
) -> dict[str, Floats]:
    """Move operands, one after the other, to the nearest value by which a row keeps the rule.

    Where no value of one does, it takes the one that comes nearest to that, and the next is moved. Rows that keep the
    rule stay as they are; where no operand that may be moved helps, a row still breaks it.

    Args:
        rule: the bounds.
        operands: numbers or ticks of its columns. Shape: [B].
        columns: of the schema.
        names: the operands that may be moved, in the order in which they are.
    """
    moved = dict(operands)
    for name in names:
        rows = np.flatnonzero(~rule.kept(moved, columns))
        if not len(rows):
            break
        moved[name] = moved[name].copy()
        moved[name][rows] = _moved(rule, {key: one[rows] for key, one in moved.items()}, columns, name)
    return moved


def _moved(rule: DerivedBound, operands: Mapping[str, Floats], columns: Columns, name: str) -> Floats:
    """Return the value of one operand, in rows that break the rule, that keeps it or comes nearest to that."""
    column, x = columns[name], operands[name]

    def side(values: Floats) -> Floats:
        given = reckoned(rule.column, {**operands, name: values}, columns)
        return np.where(np.isnan(given), np.inf, rule.side(given))

    points = _stored(column, column.interval.from_unit(np.linspace(0.0, 1.0, POINTS)))
    sides = np.array([side(np.full_like(x, point)) for point in points])
    apart = np.abs(column.interval.to_unit(points)[:, None] - column.interval.to_unit(x)[None])
    best, rows = np.lexsort((apart, np.abs(sides)), axis=0)[0], np.arange(len(x))
    below, above = (points[np.lexsort((apart, np.abs(sides), sides * sign >= 0), axis=0)[0]] for sign in (1, -1))
    good: Floats = points[best]
    keeps, crossed = sides[best, rows] == 0, (sides < 0).any(axis=0) & (sides > 0).any(axis=0)
    for _ in range(HALVINGS):  # narrow bounds may lie between two points
        middle = _stored(column, below / 2 + above / 2)
        at = side(middle)
        good = np.where(~keeps & crossed & (at == 0), middle, good)
        keeps |= crossed & (at == 0)
        below, above = np.where(at < 0, middle, below), np.where(at > 0, middle, above)
    bad = x.copy()
    for _ in range(HALVINGS):
        middle = _stored(column, bad / 2 + good / 2)
        within = side(middle) == 0
        good, bad = np.where(keeps & within, middle, good), np.where(within, bad, middle)
    return good


def _stored(column: Continuous, x: Floats) -> Floats:
    """Return values as they come back from their encoding."""
    interval = column.interval
    return decode_numbers(column, np.zeros(len(x), dtype=np.int32), interval.to_unit(interval.snap(x)))


def _ends(column: Derived, columns: Columns) -> tuple[float, float]:
    """Return both bounds as numbers or ticks; of a date, the last is the whole of that day."""
    given = {key: bound for key in BOUNDS if (bound := getattr(column, key)) is not None}
    if moment := moment_of(str(column.formula), columns):
        bounded: Datetime = moment.model_copy(update=given)
        return bounded.low if "min" in given else -np.inf, bounded.high if "max" in given else np.inf
    low, high = float(given.get("min", -np.inf)), float(given.get("max", np.inf))
    return (float(np.float32(low)), float(np.float32(high))) if column.dtype == "float32" else (low, high)


def _is_possible(rule: DerivedBound, columns: Columns) -> bool:
    """Tell whether some row within the bounds of the operands keeps the rule, as far as a search of them tells."""
    rng = np.random.default_rng(0)
    start = {
        name: _stored(columns[name], columns[name].interval.from_unit(rng.random(STARTS))) for name in rule.columns
    }
    if rule.kept(start, columns).any():
        return True
    return bool(rule.kept(brought_within(rule, start, columns, [*rule.columns] * 2), columns).any())


def movable(rule: DerivedBound, columns: Columns, fixed: Collection[str] = ()) -> list[str]:
    """List the operands that may be moved: a computed one first, which is modeled for this column, and dates last."""
    names = [name for name in rule.columns if name not in fixed]
    return sorted(names, key=lambda name: (not getattr(columns[name], "computed", None), _is_date(columns[name])))


def _is_date(column: object) -> bool:
    return isinstance(column, Datetime)
