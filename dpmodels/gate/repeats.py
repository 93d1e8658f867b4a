"""Values of identifiers that are in more than one row of a raw table, where its schema says that none is."""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.codec.convert import plain
from dpmodels.codec.ids import SEVERAL_KINDS, key_values
from dpmodels.codec.stacked import joined
from dpmodels.contract.base import is_text
from dpmodels.errors import DataError


class Repeats:
    """The values of some columns in all batches so far, of whatever part of the table; null is no value, as in SQL.

    Memory: the values themselves, as text or whole numbers, until they are counted.

    Privacy: as sensitive as the table.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._values: dict[str, list[pa.Array]] = {name: [] for name in names}

    def see(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Keep the values of a batch, in the one form in which users are told apart.

        Raises:
            DataError: a value is neither text nor a whole number, or has another spelling that looks alike.
        """
        for name in self._values.keys() & {*batch.schema.names}:
            column = batch.column(name)
            whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            values = pc.drop_null(key_values(name, plain(whole), set(), may_lack=True))
            if len(values):
                self._values[name].append(values.take(pa.array(np.arange(len(values)))))  # a slice travels whole

    def add(self, other: "Repeats") -> None:
        """Add the values of other rows of the table."""
        for name, values in other._values.items():
            self._values[name] += values

    def settle(self) -> Mapping[str, int]:
        """Count by column the rows whose value an earlier row has, and forget the values.

        Raises:
            DataError: files type a column differently.
        """
        counts = dict[str, int]()
        for name, parts in self._values.items():
            if len({is_text(part.type) for part in parts}) > 1:
                raise DataError(name, SEVERAL_KINDS)
            counts[name] = sum(map(len, parts)) - pc.count_distinct(joined(parts)).as_py() if parts else 0
            parts.clear()
        return counts
