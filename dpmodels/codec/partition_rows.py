"""Which rows of a table are of the one partition that a schema is about; each row alone decides."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.arrays import Mask
from dpmodels.codec.convert import check_type, plain, select, states_of, to_ticks
from dpmodels.contract.base import is_text
from dpmodels.contract.columns import Categorical, Column, Datetime
from dpmodels.contract.partition import Partition, is_day, listed
from dpmodels.errors import DataError


def within(batches: Iterable[pa.RecordBatch], partition: Partition, column: Column) -> Iterator[pa.RecordBatch]:
    """Leave out the rows of other partitions, and those of none.

    Privacy: Sensitive -> Sensitive; whether a row stays depends on that row and the public schema alone (stability 1).
    """
    for batch in batches:
        if batch.schema.names.count(partition.column) != 1:
            raise DataError(partition.column, "must be in the data exactly once")
        mask = in_partition(partition, column, batch.column(partition.column))
        if mask.any():
            yield batch if mask.all() else select(batch, mask)


def in_partition(partition: Partition, column: Column, array: pa.Array) -> Mask:
    """Tell which values of the partition column are those of the partition."""
    name, value = partition.column, partition.value or ""
    if isinstance(column, Datetime):
        check_type(name, column, array.type)
        return _on_day(array, value)
    if isinstance(column, Categorical):
        check_type(name, column, array.type)
        members: Mask = states_of(column, array) == column.values.index(listed(column)[value])
        return members
    return _as_text(name, array, value)


def _as_text(name: str, array: pa.Array, value: str) -> Mask:
    """Compare a dropped column: moments by their day, text and whole numbers by how they are written."""
    array = plain(array)
    kind = array.type
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
        return _on_day(array, value) if is_day(value) else np.zeros(len(array), dtype=np.bool_)
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise DataError(name, "must hold dates, times without a zone, text or whole numbers to tell partitions apart")
    same: Mask = pc.equal(array.cast(pa.string()), value).fill_null(False).to_numpy(zero_copy_only=False)
    return same


def _on_day(array: pa.Array, value: str) -> Mask:
    day = float(np.datetime64(value, "D").astype(np.int64))
    same: Mask = to_ticks(plain(array), "D") == day
    return same
