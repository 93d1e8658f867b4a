"""Rows of public tables as Arrow tables, and the numbers of the rows that keys name (contract/public.py)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.encode import Codec
from dpmodels.codec.stacked import matched
from dpmodels.contract.columns import Identifier
from dpmodels.contract.public import PublicTable
from dpmodels.contract.schema import Schema

UNKNOWN, NONE = -1, -2
"""Stand for a key that no row has, and for none."""


class PublicCodec(Codec):
    """Takes tables that have more columns than their schema: what is public may be left out by saying nothing of it."""

    def check_names(self, names: Sequence[str], is_text: bool = False, nested: bool = False) -> None:
        """Refuse a table in which a column of the schema is missing, or there twice."""
        super().check_names([name for name in names if name in self.schema.columns], is_text)

    def listed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the schema alone.

        Raises:
            DataError: one is missing, or there twice.
        """
        self.check_names(batch.schema.names)
        return batch.select(list(self.schema.columns))


def schema_of(name: str, table: PublicTable) -> Schema:
    """Return the schema of a public table's file, which may be all identifiers; its contract was checked."""
    return Schema.model_construct(name=name.replace("_", "-"), columns=table.columns)


def public_types(name: str, table: PublicTable) -> pa.Schema:
    """Return the types of a public table as it is handed over; of an identifier that of its values."""
    types, fields = Codec(schema_of(name, table)).output_schema, list[pa.Field]()
    for column, one in table.columns.items():
        if isinstance(one, Identifier):
            fields.append(pa.field(column, _kind(table.rows.get(column, ()))))
        else:
            fields.append(types.field(column))
    return pa.schema(fields)


def _kind(values: Sequence[Any]) -> pa.DataType:
    """Return the type that holds all values of an identifier: of text, of numbers, or of true and false."""
    kinds = {type(value) for value in values} - {type(None)}
    for kind, types in ((pa.bool_(), {bool}), (pa.int64(), {int}), (pa.float64(), {int, float})):
        if kinds and kinds <= types:
            return kind
    return pa.string()


def public_table(name: str, table: PublicTable) -> pa.Table:
    """Return the rows of a public table."""
    types = public_types(name, table)
    columns = [_array(table.rows.get(field.name, ()), field.type) for field in types]
    return pa.table(columns, schema=types)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values that a contract holds as it can write them: what is no number is written as text."""
    written = [value for value in values if value is not None]
    if written and isinstance(written[0], str):
        target = kind.value_type if pa.types.is_dictionary(kind) else kind
        array = pa.array(values, pa.string()).cast(target)
        return array.dictionary_encode() if pa.types.is_dictionary(kind) else array
    return pa.array(values, kind)


def rows_named(table: PublicTable, keys: Sequence[NDArray[Any]]) -> Whole:
    """Return the number of the row that each key names, UNKNOWN or NONE. Shapes: for each column [rows] -> [rows].

    A text file has no whole numbers, so a number is the text that it is written as, where the other side is text.
    """
    public = [np.array(list(values), dtype=object) for values in zip(*table.keys, strict=True)]
    pairs = [_alike(theirs, values.astype(object)) for theirs, values in zip(public, keys, strict=True)]
    rows = matched([theirs for theirs, _ in pairs], [values for _, values in pairs])
    empty: Mask = np.zeros(len(rows), dtype=np.bool_)
    for values in keys:
        empty |= np.array([value is None for value in values], dtype=np.bool_)
    rows[empty] = NONE
    return rows


def _alike(one: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two columns of keys as text, if one of them is."""
    kinds = {isinstance(value, str) for values in (one, other) for value in values if value is not None}
    return (_text(one), _text(other)) if len(kinds) > 1 else (one, other)


def _text(values: NDArray[Any]) -> NDArray[Any]:
    return np.array([value if value is None else str(value) for value in values], dtype=object)
