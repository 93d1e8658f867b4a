"""Compute derived columns, for synthetic rows and for the gate, which compares a raw column with what it should be."""

import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.arrays import Floats, Mask
from dpmodels.codec.convert import (
    arrow_type,
    as_numbers,
    check_type,
    joined,
    moments_of,
    number_type,
    plain,
    states_of,
    to_floats,
)
from dpmodels.contract.base import described, is_text
from dpmodels.contract.columns import Categorical, computed, helpers, names_of
from dpmodels.contract.derivation.affine import affine_of
from dpmodels.contract.derivation.bounds import handed_over
from dpmodels.contract.derivation.derived import CLOSE, CLOSE_FLOAT, Derived
from dpmodels.contract.derivation.tariff import is_placed
from dpmodels.contract.formula import SECONDS, is_whole, moment_of, names_in, reckon
from dpmodels.contract.schema import UNREAD, Schema
from dpmodels.errors import DataError

Columns = Mapping[str, Any]
YEARS, YEARS_IN_NANOSECONDS = (-62_135_596_800.0, 253_402_300_799.0), (-9.2e9, 9.2e9)
"""The first and the last second from 1970 on of the years 1 to 9999, and of those that nanoseconds can tell."""


def derived_type(column: Derived, columns: Columns) -> pa.DataType:
    """Return the Arrow type that a derived column is handed over as."""
    if column.values is not None:
        return pa.array(list(column.values.values())).type
    if moment := moment_of(str(column.formula), columns):
        return arrow_type(moment)
    return number_type(column.dtype or ("int64" if is_whole(str(column.formula), columns) else "float64"))


def bounds_as(column: Derived, kind: pa.DataType) -> dict[str, Any]:
    """Return the bounds of a derived column of an Arrow type, in the words and values of a data contract."""
    given = {"minimum": column.min, "maximum": column.max}
    return {key: _bound_as(bound, kind, key == "maximum") for key, bound in given.items() if bound is not None}


def _bound_as(bound: float | date, kind: pa.DataType, is_last: bool) -> Any:
    """Write a bound: a number, a day, or a time, which of a last day that is written without one is its end."""
    if not isinstance(bound, date):
        return int(bound) if pa.types.is_integer(kind) and float(bound).is_integer() else float(bound)
    if pa.types.is_date(kind):
        return bound.isoformat()[:10]
    moment = bound if isinstance(bound, datetime) else datetime.combine(bound, time(23, 59, 59) if is_last else time())
    return moment.isoformat()[:19] + ("Z" if kind.tz else "")


def derive(column: Derived, columns: Columns, table: pa.Table | pa.RecordBatch) -> pa.Array:
    """Return a derived column from the columns of a table that it follows from. Privacy: as sensitive as the table."""
    if column.values is not None:
        return _looked_up(column, columns[str(column.of)], table.column(str(column.of)))
    if moment := moment_of(str(column.formula), columns):
        ticks = _reckoned(column, columns, table)
        first, last = YEARS_IN_NANOSECONDS if "[ns" in moment.resolved_dtype else YEARS
        seconds = ticks * SECONDS[moment.tick]
        return moments_of(moment, ticks, ~((first <= seconds) & (seconds <= last)))
    return _stored(handed_over(column, _reckoned(column, columns, table), columns), derived_type(column, columns))


def with_computed(batches: Iterable[pa.RecordBatch], schema: Schema) -> Iterable[pa.RecordBatch]:
    """Compute the columns of raw rows that the schema computes, each of its own row; a null gives null.

    So are derived columns that the rows lack.

    A column of such a name that the table has itself, as a synthetic one, is computed anew. What a formula gives is
    rounded to the decimals of its column here, so that its bounds are held to what the column keeps.

    Privacy: Sensitive -> Sensitive; each row by itself (stability 1).

    Raises:
        DataError: while reading: a column that one is computed from is not of its type.
    """
    formulas, operands, follows_from = computed(schema.columns), operands_of(schema), may_lack(schema)
    decimals = {name: getattr(schema.columns[name], "round", None) for name in formulas}
    whole = (_with_derived(batch, follows_from, schema.columns) for batch in batches) if follows_from else batches
    return (_with(batch, formulas, operands, decimals) for batch in whole) if formulas else whole


def may_lack(schema: Schema) -> dict[str, Derived | None]:
    """Return the derived columns that a raw table may lack, since all that they follow from stands in it.

    One is None that follows from what is not read.
    """
    there = schema.raw.keys() - schema.derived.keys()
    follow = {name: column for name, column in schema.derived.items() if {*column.operands} <= there}
    return follow | {name: None for name, column in schema.columns.items() if column == UNREAD}


def _with_derived(batch: pa.RecordBatch, derived: Mapping[str, Derived | None], columns: Columns) -> pa.RecordBatch:
    """Add the derived columns that raw rows lack, each of its own row; one that they have stays, and is checked."""
    for name, column in derived.items():
        if name in batch.schema.names:
            continue
        for operand in column.operands if column else ():
            check_type(operand, columns[operand], batch.column(operand).type)
        batch = batch.append_column(name, derive(column, columns, batch) if column else pa.nulls(batch.num_rows))
    return batch


def within_bounds(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Take what was computed anew of rows without it to its bounds, which what follows from it left by rounding.

    Where its formula has no result, as a share of nothing, any value gives the same row.
    """
    for name in helpers(schema.columns):
        column: Any = schema.columns[name]
        at = batch.schema.get_field_index(name)
        least = pc.max_element_wise(batch.column(at), column.low, skip_nulls=not column.nullable)
        batch = batch.set_column(at, name, pc.min_element_wise(least, column.high, skip_nulls=False))
    return batch


def operands_of(schema: Schema) -> dict[str, Any]:
    """Return the columns of the raw table that others are computed from.

    Raises:
        DataError: one is not in the schema of a table that was read in part.
    """
    names = [name for formula in computed(schema.columns).values() for name in names_in(formula)]
    if absent := [name for name in names if name not in schema.raw]:
        raise DataError(absent[0], "is in the schema but not in the data")
    return {name: schema.raw[name] for name in names}


def _with(
    batch: pa.RecordBatch, formulas: Mapping[str, str], operands: Columns, decimals: Mapping[str, int | None]
) -> pa.RecordBatch:
    numbers = dict[str, Floats]()
    for name, column in operands.items():
        array = joined(batch.column(name))
        check_type(name, column, array.type)
        numbers[name] = _operand(column, array)
    for name, formula in formulas.items():
        values = reckon(formula, numbers, operands)
        kept = decimals[name]
        array = pa.array(values if kept is None else np.round(values, kept), mask=np.isnan(values))
        at = batch.schema.get_field_index(name)
        batch = batch.append_column(name, array) if at < 0 else batch.set_column(at, name, array)
    return batch


def _reckoned(column: Derived, columns: Columns, table: pa.Table | pa.RecordBatch) -> Floats:
    numbers = {name: _operand(columns[name], table.column(name)) for name in column.operands}
    return reckon(str(column.formula), numbers, columns)


def _operand(column: Any, array: pa.Array | pa.ChunkedArray) -> Floats:
    """Return a column as a formula has it, NaN for null: of values that are no numbers, their places."""
    if not is_placed(column):
        return as_numbers(column, array)
    states = states_of(column, array)
    return np.where(states < 0, np.nan, states)


def _stored(computed: Floats, kind: pa.DataType) -> pa.Array:
    """Store what a formula gave as its type; null stands for what has no value, or none that float64 holds exactly."""
    is_decimal = pa.types.is_decimal(kind)
    scale, most = kind.scale if is_decimal else 0, math.inf
    if is_decimal or pa.types.is_integer(kind):
        most = min(2.0**53, 10.0**kind.precision - 1 if is_decimal else math.inf)
        computed = np.rint(computed * 10.0**scale)
    null = ~np.isfinite(computed) | (np.abs(computed) > most)
    filled = np.where(null, 0, computed) + 0.0  # of what rounds to nothing from below the zero has a sign
    if is_decimal:
        return pa.array(filled.astype(np.int64), mask=null).view(pa.decimal64(18, scale)).cast(kind)
    return pa.array(filled.astype(kind.to_pandas_dtype()), type=kind, mask=null)


def follows(name: str, columns: Columns, batch: pa.Table | pa.RecordBatch, raw: bool = False) -> Mask:
    """Tell which rows of a batch hold in a derived column what the schema derives; a null on either side does.

    A sum of columns that ``raw`` rows hold to some decimals may have been reckoned before these were rounded.

    Raises:
        DataError: a column it follows from is missing, or the column's own type cannot hold what is derived.
    """
    column: Derived = columns[name]
    for other in column.operands:
        if other not in batch.schema.names:
            raise DataError(other, "is in the schema but not in the data")
    if moment := column.formula and moment_of(column.formula, columns):
        check_type(name, moment, batch.column(name).type)
        ticks, sum_of = as_numbers(moment, batch.column(name)), _reckoned(column, columns, batch)
        as_added: Mask = (ticks == sum_of) | np.isnan(ticks) | np.isnan(sum_of)
        return as_added
    actual, expected = plain(batch.column(name)), derive(column, columns, batch)
    if pa.types.is_null(actual.type):
        return np.ones(len(actual), dtype=np.bool_)
    if not _alike(actual.type, expected.type):
        what = f"must hold {described(expected.type)}, as the schema derives it; it holds {described(actual.type)}"
        raise DataError(name, what)
    if is_text(expected.type) or pa.types.is_boolean(expected.type):
        same: Mask = pc.equal(actual.cast(expected.type), expected).fill_null(True).to_numpy(zero_copy_only=False)
        return same
    x, y = to_floats(actual), to_floats(expected) if column.round is None else _reckoned(column, columns, batch)
    kind = "float32" if pa.types.is_float32(expected.type) else str(expected.type)
    near = np.abs(x - y) <= CLOSE.get(kind, CLOSE_FLOAT) * np.maximum(1, np.abs(y)) + _half(column.round)
    if raw and (of_parts := _half_of_parts(column, columns)):
        near |= np.abs(x - y) < _half(column.round) + of_parts - CLOSE_FLOAT * np.maximum(1, np.abs(y))
    return near | np.isnan(x) | np.isnan(y)


def otherwise_rounded(name: str, columns: Columns, batch: pa.Table | pa.RecordBatch, raw: bool = False) -> Mask:
    """Tell which rows hold what the schema derives, and yet another last decimal than synthetic rows would have.

    Privacy: as sensitive as the table.
    """
    column: Derived = columns[name]
    fits, actual = follows(name, columns, batch, raw), plain(batch.column(name))
    if pa.types.is_null(actual.type):
        return ~fits
    expected = handed_over(column, _reckoned(column, columns, batch), columns)
    return fits & (np.abs(to_floats(actual) - expected) > _half(column.round))


def apart_by(name: str, columns: Columns, batch: pa.Table | pa.RecordBatch) -> Floats:
    """Return by how much each row differs from the number that the schema derives; 0 where either is null.

    Privacy: as sensitive as the table.
    """
    column: Derived = columns[name]
    expected = handed_over(column, _reckoned(column, columns, batch), columns)
    return np.nan_to_num(np.abs(to_floats(plain(batch.column(name))) - expected), nan=0.0, posinf=np.inf)


def off_by_one_unit(name: str, columns: Columns, batch: pa.Table | pa.RecordBatch) -> Mask:
    """Tell which rows differ from what the schema derives by one unit of the last decimal at most.

    Privacy: as sensitive as the table.
    """
    column: Derived = columns[name]
    expected = handed_over(column, _reckoned(column, columns, batch), columns)
    apart = np.abs(to_floats(plain(batch.column(name))) - expected)
    near: Mask = apart <= (1 + CLOSE_FLOAT) * 2 * _half(column.round) + CLOSE_FLOAT * np.maximum(1, np.abs(expected))
    return near


def _half(decimals: int | None) -> float:
    """Return by how much rounding moves a number at most, whichever way a half goes."""
    return 0.0 if decimals is None else 0.5 * 10.0**-decimals


def _half_of_parts(column: Derived, columns: Columns) -> float:
    """Return by how much rounding moves a sum of columns that keep decimals; 0 of anything else."""
    total = affine_of(str(column.formula)) if column.round is not None else None
    parts = [getattr(columns[name], "round", None) for name in total.slopes] if total else []
    is_sum = total is not None and {*map(abs, total.slopes.values())} == {1.0}
    return math.fsum(map(_half, parts)) if is_sum and len(parts) > 1 else 0.0


def _looked_up(column: Derived, other: Categorical, array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Look each value up; null stands for null, and so does what the schema does not list."""
    states, values = states_of(other, array), column.values or {}
    return pa.array([values[one] for one in names_of(other)]).take(pa.array(states, mask=states < 0))


def _alike(actual: pa.DataType, expected: pa.DataType) -> bool:
    """Tell whether a raw type can hold what the schema derives."""
    if is_text(expected):
        return is_text(actual)
    if pa.types.is_boolean(expected):
        return bool(pa.types.is_boolean(actual))
    return bool(pa.types.is_integer(actual) or pa.types.is_floating(actual) or pa.types.is_decimal(actual))
