"""The bounds of a derived column, as a rule of the columns that it follows from.

A derived column is never drawn, so whoever holds it to a last day holds its operands to it: ``joined`` and ``active``
where ``last_visit`` is ``add_days(joined, active)``. A row in which an operand is null keeps the rule, as in SQL.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Mask, Whole
from dpmodels.contract.continuous import Continuous, decode_numbers
from dpmodels.contract.datetimes import Datetime
from dpmodels.contract.derivation.derived import BOUNDS, CLOSE, CLOSE_FLOAT, Derived
from dpmodels.contract.derivation.reach import reach
from dpmodels.contract.formula import is_whole, moment_of, reckon

Columns = Mapping[str, Any]
POINTS = 65
"""Values of an operand that are looked at for one that keeps the bounds, before what lies between two of them is."""
STARTS = 64
"""Rows within the bounds of the operands by which a schema's bounds are held to be possible."""
HALVINGS = 64
END = time(23, 59, 59)
"""The end of a last day, as a data contract writes it."""
ZOOMS = 5
"""Times that the values beside the best are looked at more closely: each has a part in 32 of what the last had."""
UNSEEN = "column {}: no row within the bounds of {} was seen to keep `{}`, so look at these bounds again"


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
    return handed_over(column, reckon(str(column.formula), operands, columns), columns)


def handed_over(column: Derived, numbers: Floats, columns: Columns) -> Floats:
    """Return numbers as a derived column holds them: to its decimals, of its type, and at a bound that they just miss.

    ``share * 3`` of 0.1 is 0.30000000000000004 by float64, which a largest value of 0.3 is not meant to forbid.
    """
    numbers = _typed(column, numbers)
    if column.round is not None or column.dtype == "int64" or not column.is_bounded or _is_exact(column, columns):
        return numbers
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = np.clip(numbers, *_ends(column, columns))
        near = np.abs(numbers - nearest) <= CLOSE.get(str(column.dtype), CLOSE_FLOAT) * np.maximum(1, np.abs(nearest))
    return np.where(near, nearest, numbers)


def _typed(column: Derived, numbers: Floats) -> Floats:
    """Return numbers to the decimals of a derived column, and of its type."""
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = numbers if column.round is None else np.round(numbers, column.round)
        if column.dtype == "int64":
            return np.rint(numbers)
        return numbers.astype(np.float32).astype(np.float64) if column.dtype == "float32" else numbers


def _is_exact(column: Derived, columns: Columns) -> bool:
    """Tell whether a formula gives ticks or whole numbers, which float64 reckons without an error."""
    formula = str(column.formula)
    return moment_of(formula, columns) is not None or is_whole(formula, columns)


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
        if message := _bound_fault(key, bound, column, moment):
            yield key, message
            return
    if not bounds:
        return
    if listed := [operand for operand in column.operands if not isinstance(columns[operand], Continuous)]:
        rule_of = "goes with a formula of columns between bounds"
        yield next(iter(bounds)), f"{rule_of}, and `{listed[0]}` is listed: leave it out"
        return
    rule = DerivedBound(name, column, *_ends(column, columns))
    if rule.low > rule.high:
        yield "min", f"{column.min} is above max {column.max}: the bounds are reversed"
        return
    least, most = handed_over(column, np.array(reach(str(column.formula), columns)), columns)
    if (least > rule.high or most < rule.low) and not _is_possible(rule, columns):
        yield [*bounds][-1], f"leaves `{column.formula}` no value within the bounds of {', '.join(column.operands)}"


def _bound_fault(key: str, bound: Any, column: Derived, moment: Datetime | None) -> str:
    """Say what is wrong with one bound by itself, or return an empty text."""
    if isinstance(bound, date) != (moment is not None):
        return f"must be a {'date' if moment else 'number'}, which is what `{column.formula}` gives"
    if getattr(bound, "tzinfo", None):
        return "must be written without a time zone"
    if column.dtype == "float32" and abs(bound) > float(np.finfo(np.float32).max):
        return f"{bound} is more than float32 holds"
    is_end = key == "max" and isinstance(bound, datetime) and bound.time() == END
    if moment and isinstance(bound, datetime) and not is_end:
        tick = np.datetime64(bound).astype(f"datetime64[{moment.tick}]")
        if tick != np.datetime64(bound):
            near = str((tick + (key == "min")).astype(f"datetime64[{'D' if moment.tick == 'D' else 's'}]"))
            whole = near.replace("T", " ")
            return f"must be a whole {moment.resolution}, as what `{column.formula}` gives is, such as {whole}"
    return ""


def unseen_bounds(columns: Columns) -> Iterator[str]:
    """Say of which bounds a search saw no row that keeps them, though nothing shows that there is none."""
    for rule in bounds_of(columns):
        if not _is_possible(rule, columns):
            yield UNSEEN.format(rule.name, ", ".join(rule.columns), rule)


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

    def side(values: Floats, rows: Any = slice(None), near: bool = False) -> Floats:
        others = {key: one[rows] for key, one in operands.items()}
        given = _typed(rule.column, reckon(str(rule.column.formula), others | {name: values}, columns))
        given = handed_over(rule.column, given, columns) if near else given  # else all would end where near ends
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
        fit = crossed & (side(middle, near=True) == 0)
        good = np.where(~keeps & fit, middle, good)
        keeps |= fit
        below, above = np.where(at < 0, middle, below), np.where(at > 0, middle, above)
    if len(far := np.flatnonzero(~keeps & ~crossed)):  # both beside them may lie on one side, as of abs(x - 7)
        good[far] = _looked_closer(column, points, best[far], lambda values: side(values, far))
        keeps[far] = side(good[far], far) == 0
    bad = x.copy()
    for _ in range(HALVINGS):
        middle = _stored(column, bad / 2 + good / 2)
        within = side(middle) == 0
        good, bad = np.where(keeps & within, middle, good), np.where(within, bad, middle)
    return good


def _looked_closer(column: Continuous, points: Floats, best: Whole, side: Callable[[Floats], Floats]) -> Floats:
    """Return the value nearest to the bounds among those beside the best point of each row, ever more closely."""
    low, high = points[np.maximum(best - 1, 0)], points[np.minimum(best + 1, len(points) - 1)]
    rows, good = np.arange(len(best)), points[best]
    for _ in range(ZOOMS):
        tried = [_stored(column, low + (high - low) * part) for part in np.linspace(0.0, 1.0, POINTS)]
        values = np.array([good, *tried])
        at = np.abs(np.array([side(one) for one in values])).argmin(axis=0)
        good, step = values[at, rows], (high - low) / (POINTS - 1)
        low, high = np.maximum(good - step, column.low), np.minimum(good + step, column.high)
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
    if column.dtype == "float32":
        with np.errstate(over="ignore"):  # a bound that float32 does not hold is a fault of its own
            return float(np.float32(low)), float(np.float32(high))
    return low, high


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
