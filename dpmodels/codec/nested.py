"""Rows of a tree of tables as one nested table: a row is a unit, and the rows below it are lists of structures."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Whole
from dpmodels.contract.tree import Tree

Columns = Mapping[str, Mapping[str, pa.Array]]
"""By table, its columns by name."""


def nest(tree: Tree, columns: Columns, parents: Mapping[str, Whole], rows: Mapping[str, int]) -> pa.StructArray:
    """Put the rows of every table into lists in the rows of its parent.

    Args:
        columns: of each table.
        parents: for each row of a table the number of its parent's row; never falling. Shapes: [rows of the table].
        rows: how many there are in each table.
    """

    def of(table: str) -> pa.StructArray:
        arrays = dict(columns[table])
        for child in tree.children(table):
            counts = np.bincount(parents[child], minlength=rows[table])
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            arrays[child] = pa.LargeListArray.from_arrays(pa.array(offsets), of(child))
        return pa.StructArray.from_arrays(list(arrays.values()), fields=_fields(arrays))

    return of(tree.root)


def unnest(tree: Tree, batch: pa.RecordBatch | pa.Table) -> tuple[dict[str, pa.Table], dict[str, Whole]]:
    """Take the tables out of a nested one; return them, and for each row the number of its parent's row."""
    tables, parents = dict[str, pa.Table](), dict[str, Whole]()

    def take(table: str, columns: Mapping[str, pa.Array]) -> None:
        children = tree.children(table)
        tables[table] = pa.table({name: column for name, column in columns.items() if name not in children})
        for child in children:
            lists = columns[child]
            parents[child] = np.repeat(np.arange(len(lists)), _lengths(lists))
            below = lists.flatten()
            take(child, dict(zip(below.type.names, below.flatten(), strict=True)))

    take(tree.root, {name: _whole(batch.column(name)) for name in batch.schema.names})
    return tables, parents


def nested_type(tree: Tree, fields: Mapping[str, pa.Schema]) -> pa.Schema:
    """Return the schema of a nested table, of which ``fields`` are the columns of each table."""

    def of(table: str) -> list[pa.Field]:
        below = [pa.field(child, pa.large_list(pa.struct(of(child)))) for child in tree.children(table)]
        return [*fields[table], *below]

    return pa.schema(of(tree.root))


def _fields(arrays: Mapping[str, pa.Array]) -> list[pa.Field]:
    return [pa.field(name, array.type) for name, array in arrays.items()]


def _whole(column: Any) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _lengths(lists: pa.Array) -> Whole:
    lengths: Whole = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths
