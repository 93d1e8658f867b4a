"""Conditions on rows, such as ``age > 60`` or ``not sick``: how they are written, and which rows meet them.

As in SQL, a null meets no condition but ``COLUMN = null``. All conditions hold together.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Mask
from dpmodels.contract.base import Modelled
from dpmodels.contract.columns import Continuous, Datetime, Discrete, Number, names_of
from dpmodels.contract.continuous import decode_numbers
from dpmodels.errors import Unsuitable, near

SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "!=": np.not_equal,
    "=": np.equal,
    "<": np.less,
    ">": np.greater,
}
EQUAL = ("=", "!=")
NULL = "null"


@dataclass(frozen=True)
class Condition:
    """One condition: the column, the sign, and the number or the number of the state that the column is held to."""

    text: str
    name: str
    column: Modelled
    sign: str
    value: float
    of_state: bool = False

    @property
    def null(self) -> int:
        """The state that stands for null; -1, which no row has, where the column has none."""
        return -1 if self.column.null_state is None else self.column.null_state

    def holds(self, states: NDArray[np.int32], numbers: Floats) -> Mask:
        """Tell which rows meet it, by their states and by their numbers, which only a column on an interval has."""
        holding: Mask = SIGNS[self.sign](states if self.of_state else numbers, self.value)
        return (
            holding
            if self.of_state and self.value == self.null and self.sign == "="
            else holding & (states != self.null)
        )


def parse(text: str, columns: Mapping[str, Any]) -> Condition:
    """Read ``COLUMN SIGN VALUE``, or a column of true and false by itself or after ``not``.

    Raises:
        Unsuitable: it is no condition, or no value of the column can meet it as it is written.
    """
    text = text.strip()
    for bare, value in ((text, "true"), (text.removeprefix("not ").strip(), "false")):
        if is_boolean(columns.get(bare)):
            return _held(text, bare, columns, "=", value)
    names = sorted((name for name in columns if text.startswith(name)), key=len, reverse=True)
    for name in names:
        if match := re.fullmatch(rf"(==|{'|'.join(SIGNS)})\s*(.*)", text[len(name) :].strip(), re.DOTALL):
            return _held(text, name, columns, match[1].replace("==", "="), match[2])
    modelled = [name for name, column in columns.items() if isinstance(column, Modelled)]
    name = re.split(rf"\s*(?:{'|'.join(SIGNS)})", text, maxsplit=1)[0]
    if name != text:
        of_tables = [column for column in modelled if column.endswith(f".{name}")]
        hint = f"; did you mean `{of_tables[0]}`?" if of_tables else near(name, modelled)
        instead = hint or ", but " + ", ".join(modelled)
        raise Unsuitable(f"`{text}`: there is no column {name}{instead}")
    columns_text, hint = ", ".join(modelled), near(text, modelled)
    form = f"write a column ({columns_text}), one of = != < <= > >=, and a value"
    raise Unsuitable(f"`{text}` is no condition: {form}{hint}")


def is_boolean(column: Any) -> bool:
    """Tell whether a column, if it is one, holds true and false."""
    return isinstance(column, Discrete) and column.kind == "boolean"


def _held(text: str, name: str, columns: Mapping[str, Any], sign: str, value: str) -> Condition:
    column = columns[name]
    if not isinstance(column, Continuous | Discrete):
        instead = f"; set one on {' or '.join(column.operands)}" if hasattr(column, "operands") else ""
        raise Unsuitable(f"`{text}`: column {name} is not modeled, so no condition can be set on it{instead}")
    if value == NULL and column.null_state is not None and NULL not in names_of(column):
        if sign not in EQUAL:
            raise Unsuitable(f"`{text}`: null has no order; write = or !=")
        return Condition(text, name, column, sign, column.null_state, of_state=True)
    if value == NULL and NULL not in names_of(column):
        raise Unsuitable(f"`{text}`: column {name} is never null; where it may be, write `nullable: true` for it")
    if isinstance(column, Continuous):
        return Condition(text, name, column, sign, _number(text, name, column, sign, value))
    return _of_states(text, name, column, sign, value)


def _of_states(text: str, name: str, column: Discrete, sign: str, value: str) -> Condition:
    names = names_of(column)
    value = value.lower() if is_boolean(column) else value  # Python writes True, a spreadsheet TRUE
    if sign in EQUAL:
        number = _float(value) if column.kind in ("integer", "number") else None
        if value in names:
            return Condition(text, name, column, sign, names.index(value), of_state=True)
        if number is None or number not in column.keys:
            meant = near(value, names) if column.kind == "text" else ""
            raise Unsuitable(f"`{text}`: {value} is no value of column {name}; it has {_some(names)}{meant}")
        return Condition(text, name, column, sign, column.keys.index(number), of_state=True)
    if column.kind not in ("integer", "number") or (number := _float(value)) is None:
        lacks = "the value is no number" if column.kind in ("integer", "number") else "its values have no order"
        raise Unsuitable(f"`{text}`: column {name} cannot be compared by {sign}, for {lacks}; write = or !=")
    return Condition(text, name, column, sign, number)


def _number(text: str, name: str, column: Continuous, sign: str, value: str) -> float:
    number = _ticks(column, value) if isinstance(column, Datetime) else _float(value)
    kind = f"no moment that column {name} tells, such as {column.min}" if isinstance(column, Datetime) else "no number"
    if number is None:
        raise Unsuitable(f"`{text}`: {value} is {kind}")
    if not column.low <= number <= column.high:
        raise Unsuitable(f"`{text}`: a value of column {name} {column.rule}")
    number = float(np.float32(number)) if column.resolved_dtype == "float32" else number
    if sign in EQUAL and column.decimals is None and (number or column.zero_state is None):
        zeros = "" if number else ", or `zero_inflated: true` beside its bounds, which keeps zeros exactly"
        raise Unsuitable(
            f"`{text}`: no row has exactly this value, for column {name} is not rounded; write < or >{zeros}"
        )
    if sign in EQUAL and number != column.interval.snap(np.array([number]))[0] and isinstance(column, Number):
        raise Unsuitable(f"`{text}`: column {name} keeps {column.decimals} decimals")
    if sign in EQUAL and number != column.interval.snap(np.array([number]))[0]:
        what = f"multiples of {column.unit}" if column.unit > 1 else "whole numbers"
        raise Unsuitable(f"`{text}`: column {name} has {what} only")
    return number


def _float(text: str) -> float | None:
    try:
        return float(text) if np.isfinite(float(text)) else None
    except ValueError:
        return None


def _ticks(column: Datetime, text: str) -> float | None:
    """Read a moment; None for one with a zone, or finer than the column's resolution."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is not None or np.datetime64(moment).astype(f"datetime64[{column.tick}]") != np.datetime64(moment):
        return None
    return float(np.datetime64(moment).astype(f"datetime64[{column.tick}]").astype(np.int64))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def hold(conditions: Sequence[Condition], states: NDArray[np.int32], values: Floats) -> Mask:
    """Tell which values of one column, given by states and unit values, meet all of its conditions."""
    numbers = numbers_of(conditions[0].column, states, values)
    holding: Mask = np.logical_and.reduce([one.holds(states, numbers) for one in conditions])
    return holding


def numbers_of(column: Modelled, states: NDArray[np.int32], values: Floats) -> Floats:
    """Return the numbers that states and unit values stand for, NaN where they stand for none."""
    if isinstance(column, Continuous):
        return decode_numbers(column, states, values)
    keys = column.keys if isinstance(column, Discrete) and column.kind in ("integer", "number") else []
    numbers: Floats = np.append(np.array(keys, dtype=np.float64), np.nan)[np.minimum(states, len(keys))]
    return numbers


def bounds(conditions: Sequence[Condition]) -> tuple[float, float]:
    """Return the bounds that the conditions on one column on an interval set to its numbers.

    On a lattice they lie half a step beside the number, so that rounding decides nothing.
    """
    low, high = -np.inf, np.inf
    for one in conditions:
        column = one.column
        if one.of_state or one.sign == "!=" or not isinstance(column, Continuous):
            continue
        lattice = column.decimals is not None and column.interval.snap(np.array([one.value]))[0] == one.value
        half = 0.5 * column.interval.step if lattice else 0.0
        if one.sign in ("=", ">=", ">"):
            low = max(low, one.value + (half if one.sign == ">" else -half))
        if one.sign in ("=", "<=", "<"):
            high = min(high, one.value + (-half if one.sign == "<" else half))
    return low, high


def cell_shares(conditions: Sequence[Condition], column: Modelled) -> Floats:
    """Return the probability that a draw within each cell of a column meets all of its conditions. Shapes: [cells].

    ``column`` is the conditions' own column, cut into the cells that are drawn from.
    """
    if not isinstance(column, Continuous):
        return hold(conditions, np.arange(column.states, dtype=np.int32), np.zeros(column.states)).astype(np.float64)
    special = np.arange(1, column.states, dtype=np.int32)
    special_shares = hold(conditions, special, np.zeros(len(special))).astype(np.float64)
    if any(one.of_state and one.sign == "=" for one in conditions):  # nothing but null
        return np.concatenate([np.zeros(column.cells), special_shares])
    low, high = bounds(conditions)
    shares = column.grid.shares(low, high)
    half = 0.0 if column.decimals is None else 0.5 * column.interval.step
    for value in {one.value for one in conditions if one.sign == "!=" and not one.of_state and low < one.value < high}:
        shares = shares - column.grid.shares(value - half, value + half)
        shares[shares < 1e-12] = 0.0  # what rounding leaves of a cell of this value alone
    return np.concatenate([shares, special_shares])
