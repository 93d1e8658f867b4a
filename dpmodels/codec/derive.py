"""Compute derived columns, for synthetic rows and for the gate, which compares a raw column with what it should be."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.arrays import Floats, Mask
from dpmodels.codec.convert import as_numbers, number_type, plain, states_of, to_floats
from dpmodels.contract.base import described, is_text
from dpmodels.contract.columns import Categorical, names_of
from dpmodels.contract.derived import Derived
from dpmodels.contract.formula import is_whole, reckon
from dpmodels.errors import DataError

Columns = Mapping[str, Any]
CLOSE = {"int64": 0.0, "float32": 1e-5}
"""How far a raw number may lie from its formula, relative to it: by another order of the same sums."""


def derived_type(column: Derived, columns: Columns) -> pa.DataType:
    """Return the Arrow type that a derived column is handed over as."""
    if column.values is not None:
        return pa.array(list(column.values.values())).type
    return number_type(column.dtype or ("int64" if is_whole(str(column.formula), columns) else "float64"))


def derive(column: Derived, columns: Columns, table: pa.Table | pa.RecordBatch) -> pa.Array:
    """Return a derived column from the columns of a table that it follows from. Privacy: as sensitive as the table."""
    if column.values is not None:
        return _looked_up(column, columns[str(column.of)], table.column(str(column.of)))
    return _stored(_reckoned(column, columns, table), column, derived_type(column, columns))


def _reckoned(column: Derived, columns: Columns, table: pa.Table | pa.RecordBatch) -> Floats:
    numbers = {name: as_numbers(columns[name], table.column(name)) for name in column.operands}
    return reckon(str(column.formula), numbers, columns)


def _stored(computed: Floats, column: Derived, kind: pa.DataType) -> pa.Array:
    """Store what a formula gave as its type; null stands for what has no value, or none that float64 holds exactly."""
    if column.round is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            computed = np.round(computed, column.round)
    is_decimal = pa.types.is_decimal(kind)
    scale, most = kind.scale if is_decimal else 0, math.inf
    if is_decimal or pa.types.is_integer(kind):
        most = min(2.0**53 / 10.0**scale, 10.0 ** (kind.precision - scale) if is_decimal else math.inf)
        computed = np.rint(computed * 10.0**scale)
    null = ~np.isfinite(computed) | (np.abs(computed) > most * 10.0**scale)
    filled = np.where(null, 0, computed)
    if is_decimal:
        return pa.array(filled.astype(np.int64), mask=null).view(pa.decimal64(18, scale)).cast(kind)
    return pa.array(filled.astype(kind.to_pandas_dtype()), type=kind, mask=null)


def follows(name: str, columns: Columns, batch: pa.Table | pa.RecordBatch) -> Mask:
    """Tell which rows of a batch hold in a derived column what the schema derives; a null on either side does.

    Raises:
        DataError: a column it follows from is missing, or the column's own type cannot hold what is derived.
    """
    column: Derived = columns[name]
    for other in column.operands:
        if other not in batch.schema.names:
            raise DataError(other, "is in the schema but not in the data")
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
    near = np.abs(x - y) <= CLOSE.get(str(expected.type), 1e-9) * np.maximum(1, np.abs(y)) + _half(column.round)
    return near | np.isnan(x) | np.isnan(y)


def _half(decimals: int | None) -> float:
    """Return by how much rounding moves a number at most, whichever way a half goes."""
    return 0.0 if decimals is None else 0.5 * 10.0**-decimals


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
