"""One column between Arrow and numpy: its types, its states and unit values, and the policy for what lies outside."""

from collections.abc import Collection
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Mask
from dpmodels.codec.codes import Codes, code_type, number_codes
from dpmodels.contract.base import APART, OF_WORDS, Modelled, decimal_digits, described, is_text, zone_of
from dpmodels.contract.columns import (
    EXACT,
    NEAREST,
    Categorical,
    Column,
    Continuous,
    Datetime,
    Derived,
    Discrete,
    Integer,
)
from dpmodels.contract.continuous import decode_numbers
from dpmodels.errors import DataError

MISSING = ("NoneType", "NaTType", "NAType")
"""Types of Python and pandas that hold no value."""
NUMBERS = (int, float, Decimal)
FAMILIES = (bool, str, bytes, date, time, timedelta, UUID)
"""Further types of which one column holds one alone, as it does moments with and without a time zone."""
COMMAS = 'read its file with `read_csv(..., decimal=",", thousands=".")` if it has decimal commas'
OF_TEXT = (
    'say above `columns` how the text writes them, as `text: {decimal: ",", thousands: "."}`, or `text: {decimal: '
    '"."}` for 1234.5'
)
EXACT_TENS = 22
"""Up to which power of ten is exact as float64: a whole number that is exact, over one of them, is the nearest."""


def arrow_type(column: Modelled) -> pa.DataType:
    """Return the Arrow type a column is decoded to."""
    name = column.resolved_dtype
    if name == "dictionary":
        text = isinstance(column, Categorical) and column.kind == "text"
        return pa.dictionary(pa.int32(), pa.string() if text else pa.int64())
    if name.startswith("timestamp"):
        return pa.timestamp(name[10:12].rstrip("],"), zone_of(name))
    return number_type(name)


def number_type(name: str) -> pa.DataType:
    """Return the Arrow type of a dtype's name, which may be ``decimal(12, 2)``."""
    digits = decimal_digits(name)
    return pa.decimal128(*digits) if digits else pa.type_for_alias(name)


def mixes(values: Collection[Any]) -> bool:
    """Tell whether values are of several families."""
    return len(families(values)) > 1


def families(values: Collection[Any]) -> set[type]:
    """Return the families of values: types of which one column holds one alone. Scalars of numpy are each of their own.

    Privacy: of several families Arrow takes all for the first or the widest, so what one value is would change how all
        others are read. NaN beside others stands for what is missing.
    """
    kinds = {kind for kind in set(map(type, values)) if kind.__name__ not in MISSING}
    floats = {kind for kind in kinds if issubclass(kind, float)}
    if floats and kinds - floats and all(value != value for value in values if isinstance(value, float)):
        kinds -= floats
    if any(issubclass(kind, np.generic) and not issubclass(kind, float | str | bytes) for kind in kinds):
        return kinds
    moments = {kind for kind in kinds if issubclass(kind, datetime)}
    in_zones = {value.tzinfo is not None for value in values if type(value) in moments} if moments else set()
    return {tzinfo if is_zoned else datetime for is_zoned in in_zones} | {_family(kind) for kind in kinds - moments}


def _family(kind: type) -> type:
    """Return the type that stands for all that are read alike: ``float`` for numbers, else the first of FAMILIES."""
    if kind is not bool and issubclass(kind, NUMBERS):
        return float
    return next((family for family in FAMILIES if issubclass(kind, family)), kind)


def csv_type(column: Column) -> pa.DataType:
    """Return the type to read a column of a CSV file as."""
    if isinstance(column, Datetime):
        return pa.timestamp("us", zone_of(column.resolved_dtype))
    if isinstance(column, Continuous) and pa.types.is_time(kind := arrow_type(column)):
        return kind
    if isinstance(column, Discrete | Derived):
        return {"text": pa.string(), "boolean": pa.bool_()}.get(column.kind, pa.float64())
    return pa.float64() if isinstance(column, Continuous) else pa.string()  # text is no image, and is refused as one


def check_type(name: str, column: Modelled, dtype: pa.DataType) -> None:
    """Refuse a type that cannot hold the column's values; a column of nothing but nulls has any type."""
    inner = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    number = pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_decimal(inner)
    zoned = pa.types.is_timestamp(inner) and inner.tz is not None
    kinds, fits = "numbers", number
    if isinstance(column, Datetime):
        zone = zone_of(column.resolved_dtype)
        moment = pa.types.is_date(inner) or (pa.types.is_timestamp(inner) and not zoned)
        kinds, fits = ("times with a zone", zoned) if zone else ("dates, or times without a zone", moment)
    elif isinstance(column, Integer) and _is_clock(kind := arrow_type(column)):
        kinds, fits = f"{column.dtype}, or whole numbers of its unit", number or inner.id in _CLOCKS[kind.id]
    elif isinstance(column, Discrete) and column.kind == "boolean":
        kinds, fits = "booleans", pa.types.is_boolean(inner)
    elif isinstance(column, Discrete) and column.kind == "text":
        kinds, fits = "text", is_text(inner)
    if not (fits or pa.types.is_null(inner)):
        of_values = isinstance(column, Discrete) and column.kind != "boolean"
        kind = f"its type {type(column).__name__.lower()} in the schema says"
        rule = f"must hold {kinds}, as {'its values in the schema are' if of_values else kind}"
        raise DataError(name, f"{rule}; it holds {described(dtype)}{_way_out(column, inner)}")


_TIMES, _DURATIONS = (pa.time32("s").id, pa.time64("us").id), (pa.duration("s").id,)
_CLOCKS = {**dict.fromkeys(_TIMES, _TIMES), **dict.fromkeys(_DURATIONS, _DURATIONS)}


def _is_clock(kind: pa.DataType) -> bool:
    return kind.id in _CLOCKS


def _way_out(column: Modelled, dtype: pa.DataType) -> str:
    """Say what to do about a type that is read, but not by the column's declaration, or that is not read at all."""
    if pa.types.is_nested(dtype):
        return f"; {APART}"
    if _is_clock(dtype):
        return f'; declare it `type: integer` with `dtype: "{dtype}"`, and its bounds as numbers of that unit'
    if is_text(dtype) and isinstance(column, Continuous):
        if isinstance(column, Datetime):
            return "; turn it into dates, as pandas.to_datetime does"
        return f"; turn it into numbers, as pandas.to_numeric does, or {COMMAS}; or {OF_TEXT}. Or {OF_WORDS}"
    if isinstance(column, Discrete) and is_text(dtype):
        return "; if these are words, or codes such as '0', write its `values` in quotes"
    if isinstance(column, Discrete) and column.kind == "text":
        return "; if these are numbers, write its `values` without quotes"
    if isinstance(column, Datetime) and pa.types.is_timestamp(dtype) and dtype.tz is not None:
        return '; say so, as in `dtype: "timestamp[us, tz=UTC]"`, with a `resolution` and with bounds in UTC'
    return ""


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Join the chunks of a column and expand its dictionary."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def is_whole(array: pa.Array) -> bool:
    """Tell whether a column holds what its type says; a damaged file may hold text that is none."""
    try:
        array.validate(full=True)
    except pa.ArrowException:  # it quotes the value
        return False
    return True


def joined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Join the chunks of a column; one chunk keeps its dictionary."""
    return plain(column) if isinstance(column, pa.ChunkedArray) else column


def laid_out(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Lay views of text out as text, also in a dictionary, and dictionaries of spans as spans.

    Much of Arrow computes with no views, and Parquet keeps no unit of spans in a dictionary.
    """
    types = types_laid_out(batch.schema)
    if types.equals(batch.schema):
        return batch
    arrays = [_laid_out(array, field.type) for array, field in zip(batch.columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=types)


def types_laid_out(types: pa.Schema) -> pa.Schema:
    """Return the types that batches of these have once they are laid out."""
    return pa.schema([pa.field(field.name, _layout(field.type)) for field in types])


def _layout(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind) and pa.types.is_duration(kind.value_type):
        return kind.value_type
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _layout(kind.value_type), kind.ordered)
    return pa.large_string() if pa.types.is_string_view(kind) else kind


def _laid_out(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if not pa.types.is_dictionary(kind):
        return plain(array) if pa.types.is_dictionary(array.type) else array.cast(kind)
    return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(kind.value_type), ordered=kind.ordered)


def select(batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    """Return the rows of a batch that a mask keeps."""
    return laid_out(batch).filter(pa.array(mask))


def to_floats(array: pa.Array) -> NDArray[np.float64]:
    """Return an array as float64, null as NaN; beyond 2**53 rounding cannot bring a value back within bounds."""
    if pa.types.is_decimal(array.type):
        return _decimals(array)
    wide: NDArray[np.float64] = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return wide


def _decimals(array: pa.Array) -> NDArray[np.float64]:
    """Return the float64 nearest to each decimal, which Arrow's own cast misses by a bit.

    Privacy: of each decimal by itself. Neither how large others in the batch are, nor how many digits the type has,
        which some readers find by all of the rows, decides how one is rounded.
    """
    scale, null = array.type.scale, array.is_null().to_numpy(zero_copy_only=False)
    if not len(array) or not 0 <= scale <= EXACT_TENS or array.type.bit_width > 128:
        return _nearest(array)
    wide = array.cast(pa.decimal128(38, scale))
    words = np.frombuffer(wide.buffers()[1], dtype="<i8", count=2 * (wide.offset + len(wide)))
    low, high = words.reshape(-1, 2)[wide.offset :].T
    exact = null | ((high == low >> 63) & (low >= -EXACT) & (low <= EXACT))
    x = np.where(null, np.nan, low / 10.0**scale)
    if not exact.all():
        x[~exact] = _nearest(array.filter(pa.array(~exact)))
    return x


def _nearest(array: pa.Array) -> NDArray[np.float64]:
    return to_floats(array.cast(pa.string()).cast(pa.float64()))


def as_numbers(column: Continuous | Categorical, array: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a raw column as numbers or ticks, null as NaN; times and durations are cut down to the column's unit."""
    array = plain(array)
    if _is_clock(array.type):
        kind = arrow_type(column)
        array = array.cast(kind, safe=False).view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if isinstance(column, Datetime):
        return to_ticks(array, column.tick)
    x = to_floats(array)
    return np.floor(x / column.unit) * column.unit if isinstance(column, Integer) and column.resolution else x


def to_keys(column: Modelled, array: pa.Array) -> NDArray[np.float64]:
    """Return numeric categories as they are compared: in the precision of the output type, null as NaN."""
    width = np.float32 if column.resolved_dtype == "float32" else np.float64
    with np.errstate(over="ignore"):  # what is too large is not listed; a warning would say that there is some
        return to_floats(array).astype(width).astype(np.float64) + 0.0  # + 0.0 turns -0.0 into 0.0


def _refuse(name: str, column: Any, outside: Mask, null: Mask) -> Mask:
    """Raise for what the schema refuses; return the rows it rejects."""
    barred = np.zeros_like(null) if column.nullable else null
    if column.outside == "reject-row":
        return outside | barred
    if barred.any():
        raise DataError(name, "must not be null: fill it in, or write `nullable: true` in the schema")
    if column.outside == "refuse" and outside.any():
        raise DataError(name, f"{column.rule} (the schema says outside: refuse)")
    return np.zeros_like(null)


def encode_discrete(name: str, column: Any, array: pa.Array) -> tuple[Codes, Mask]:
    """Return the codes and the rejected rows of a categorical or boolean column."""
    state, null = _find(column, array)
    outside = (state < 0) & ~null
    dropped = _refuse(name, column, outside, null)
    if column.outside == "other":
        state[outside] = column.values.index(column.other)
    if column.nullable:
        state[null] = column.null_state
    return state.astype(code_type(column)), dropped  # a rejected row's state is never read


def _find(column: Any, array: pa.Array) -> tuple[NDArray[np.int32], Mask]:
    """Return each value's place among the column's (-1: none), and which are null; by a dictionary's entries."""
    if pa.types.is_dictionary(array.type):
        state, null = _find(column, array.dictionary)
        entries = array.indices.fill_null(len(state)).to_numpy(zero_copy_only=False)
        return np.append(state, np.int32(-1))[entries], np.append(null, True)[entries]
    keys = column.keys
    if pa.types.is_null(array.type):
        array = array.cast(pa.array(keys).type)
    if isinstance(keys[0], float):
        array = pa.array(to_keys(column, array), from_pandas=True)
    elif pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    null = array.is_null().to_numpy(zero_copy_only=False)
    positions = pc.index_in(array, value_set=pa.array(keys, type=array.type))
    state = positions.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    if column.outside == NEAREST:
        unlisted = (state < 0) & ~null
        state[unlisted] = _nearest_of(np.array(keys), array.filter(pa.array(unlisted)).to_numpy(zero_copy_only=False))
    return state, null


def unlisted(column: Discrete, array: pa.Array) -> tuple[Mask, Mask]:
    """Return which values are not among the listed ones, whatever the schema says of these, and which are null."""
    state, null = _find(column.model_copy(update={"outside": "refuse"}), array)
    return (state < 0) & ~null, null


def _nearest_of(keys: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the place of the listed number that is nearest to each, of two the lower one. Shapes: [k], [n] -> [n]."""
    order = np.argsort(keys)
    middles = keys[order][1:] / 2 + keys[order][:-1] / 2  # their sum may be too large for a number
    places: NDArray[np.int64] = order[np.searchsorted(middles, x)]
    return places


def states_of(column: Discrete, array: pa.Array) -> NDArray[np.int32]:
    """Return the place of each value among the listed ones; -1 for null and for a value that is not listed."""
    return _find(column, joined(array))[0]


def encode_continuous(name: str, column: Any, array: pa.Array) -> tuple[Codes, Mask]:
    """Return the codes and the rejected rows of a column on an interval."""
    x = as_numbers(column, array)
    null = np.isnan(x)
    if isinstance(column, Integer) and (np.isfinite(x) & (x != np.floor(x))).any():
        raise DataError(name, "must hold whole numbers, as its type integer in the schema says")
    outside = (x < column.low) | (x > column.high)  # false for null, which is NaN
    dropped = _refuse(name, column, outside, null)
    x = column.interval.snap(np.where(null, column.low, x))
    state = np.zeros(len(x), dtype=np.int32)
    if column.zero_state is not None:
        state[x == 0] = column.zero_state
    if column.nullable:
        state[null] = column.null_state
    return number_codes(column, state, x), dropped


def to_ticks(array: pa.Array, tick: str) -> NDArray[np.float64]:
    """Return moments as whole ticks since 1970, cut down to the resolution, null as NaN."""
    if pa.types.is_null(array.type):
        return np.full(len(array), np.nan)
    moments = array.to_numpy(zero_copy_only=False).astype(f"datetime64[{tick}]")
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64))


def encode_numbers(column: Continuous, x: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return numbers as states and values, after moving them to the column's lattice and into its bounds."""
    x = column.interval.snap(x)
    states = np.zeros(len(x), dtype=np.int32)
    if column.zero_state is not None:
        states[x == 0] = column.zero_state
    return states, np.where(states == 0, column.interval.to_unit(x), 0.0)


def moments_of(column: Datetime, ticks: Floats, null: Mask) -> pa.Array:
    """Turn ticks of a datetime into its output type."""
    target = arrow_type(column)
    unit = "D" if target == pa.date32() else target.unit
    moments = np.rint(np.where(null, column.low, ticks)).astype(np.int64).astype(f"datetime64[{column.tick}]")
    return pa.array(moments.astype(f"datetime64[{unit}]"), type=target, mask=null)


def decode_column(column: Any, states: NDArray[np.int32], values: NDArray[np.float64]) -> pa.Array:
    """Turn one column's states and values back into its output type."""
    null = states == column.null_state if column.null_state is not None else np.zeros(len(states), dtype=np.bool_)
    target = arrow_type(column)
    if isinstance(column, Discrete):
        index = pa.array(states, type=pa.int32(), mask=null)
        if pa.types.is_dictionary(target):
            return pa.DictionaryArray.from_arrays(index, pa.array(column.values, type=target.value_type))
        return pa.array(column.keys).cast(target).take(index)
    x = np.where(null, column.low, decode_numbers(column, states, values))
    if isinstance(column, Datetime):
        return moments_of(column, x, null)
    if digits := decimal_digits(column.resolved_dtype):
        whole = np.rint(x * 10.0 ** digits[1]).astype(np.int64)
        return pa.array(whole, mask=null).view(pa.decimal64(18, digits[1])).cast(target)
    if _is_clock(target):
        return pa.array(x.astype(f"int{target.bit_width}"), mask=null).view(target)
    return pa.array(x.astype(target.to_pandas_dtype()), type=target, mask=null)
