"""The rows of all tables of a tree in one plain table: a unit's row, then those below it, then the next unit's.

    table    the number of the table whose row it is
    back     how many rows before it the row of its parent stands; 0 for that of a unit
    T.c      column c of table T; null in the rows of other tables

So a file of a tree is a file like any other, and a batch that begins with a unit's row can be read by itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.convert import plain
from dpmodels.contract.base import is_text
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError

TABLE, BACK = "table", "back"
Columns = Mapping[str, Mapping[str, pa.Array]]
"""By table, its columns by name."""
DAMAGED = "the rows of units are not in their order"


def stacked_type(fields: Mapping[str, pa.Schema]) -> pa.Schema:
    """Return the schema of a stacked table, of which ``fields`` are the columns of each table."""
    columns = [pa.field(f"{table}.{one.name}", one.type) for table, schema in fields.items() for one in schema]
    return pa.schema([pa.field(TABLE, pa.int64()), pa.field(BACK, pa.int64()), *columns])


def stack(tree: Tree, columns: Columns, parents: Mapping[str, Whole], rows: Mapping[str, int]) -> list[pa.Array]:
    """Put the rows of all tables into one, unit by unit; return its columns.

    Args:
        tree: of the tables.
        columns: of each table.
        parents: for each row of a table but the root the number of its parent's row; never falling.
        rows: how many there are in each table.
    """
    units = {tree.root: np.arange(rows[tree.root])}
    for table, above in parents.items():
        units[table] = units[str(tree.tables[table].parent)][above]
    number = np.repeat(np.arange(len(tree.tables)), [rows[table] for table in tree.tables])
    order = np.lexsort((number, np.concatenate([units[table] for table in tree.tables])))
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    at = dict(zip(tree.tables, np.split(position, np.cumsum([rows[table] for table in tree.tables])[:-1]), strict=True))
    back = np.zeros(len(order), dtype=np.int64)
    for table, above in parents.items():
        back[at[table]] = at[table] - at[str(tree.tables[table].parent)][above]
    arrays = [pa.array(number[order]), pa.array(back)]
    for table, own in columns.items():
        index = np.full(len(order), -1)
        index[at[table]] = np.arange(rows[table])
        arrays += [column.take(pa.array(index, mask=index < 0)) for column in own.values()]
    return arrays


def unstack(tree: Tree, batch: pa.RecordBatch | pa.Table) -> tuple[dict[str, pa.Table], dict[str, Whole]]:
    """Take the tables out of a stacked one; return them, and for each row the number of its parent's row.

    Raises:
        DataError: a row does not stand below a row of its parent's table.
    """
    number, back = (_whole(batch, name) for name in (TABLE, BACK))
    names, own = list(tree.tables), np.zeros(len(number), dtype=np.int64)
    tables, parents, masks = dict[str, pa.Table](), dict[str, Whole](), dict[str, Mask]()
    if len(number) and not 0 <= number.min() <= number.max() < len(names):
        raise DataError("", DAMAGED)
    for index, table in enumerate(names):
        masks[table] = number == index
        own[masks[table]] = np.arange(masks[table].sum())
        columns = [name for name in batch.schema.names if name.startswith(f"{table}.")]
        rows = batch.select(columns).filter(pa.array(masks[table]))
        tables[table] = pa.table(rows).rename_columns([name.removeprefix(f"{table}.") for name in columns])
        if table != tree.root:
            position = np.flatnonzero(masks[table])
            above = position - back[position]
            if (back[position] < 1).any() or (above < 0).any():
                raise DataError("", DAMAGED)
            if not masks[str(tree.tables[table].parent)][above].all() or (np.diff(above) < 0).any():
                raise DataError("", DAMAGED)
            parents[table] = own[above]
    return tables, parents


def whole_units(tree: Tree, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut batches that follow each other anew, so that each holds all rows of its units; none of them is empty."""
    left: list[pa.RecordBatch] = []
    for batch in batches:
        begins = np.flatnonzero(_whole(batch, TABLE) == list(tree.tables).index(tree.root))
        if len(begins):
            yield from _joined([*left, batch.slice(0, int(begins[-1]))])
            left = []
        left.append(batch.slice(int(begins[-1]) if len(begins) else 0))
    yield from _joined(left)


def _joined(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    rows = [batch for batch in batches if len(batch)]
    return pa.Table.from_batches(rows).unify_dictionaries().combine_chunks().to_batches() if rows else []


def _whole(batch: pa.RecordBatch | pa.Table, name: str) -> Whole:
    if batch.schema.names.count(name) != 1:
        raise DataError("", DAMAGED)
    column = batch.column(name)
    if column.null_count or not pa.types.is_int64(column.type):
        raise DataError("", DAMAGED)
    numbers: Whole = column.to_numpy()
    return numbers


WIDEST_WHOLE = pa.decimal128(20)
"""The type in which whole numbers of all widths are the same."""


def matched(parents: Sequence[Any], children: Sequence[Any]) -> Whole:
    """Return for each row below the number of the first row above that has the same key; -1 where none has.

    Shapes: for each column of the key the values of the rows above, and those of the rows below -> [rows below]. Both
    are arrays of NumPy, or of Arrow, which take no object each.
    """
    if len(parents) == 1 and not isinstance(parents[0], np.ndarray):
        return _looked_up(parents[0], children[0])
    number, rows = numbered([joined(pair) for pair in zip(parents, children, strict=True)]), len(parents[0])
    first = np.full(int(number.max(initial=-1)) + 1, -1)
    first[number[:rows][::-1]] = np.arange(rows)[::-1]
    above: Whole = first[number[rows:]]
    return above


def parents_named(parents: Sequence[pa.ChunkedArray], children: Sequence[pa.ChunkedArray]) -> Whole:
    """Return the number of the row above that each row names, as ``matched`` does; -1 also where a column is null."""
    above = matched(parents, children)
    for values in children:
        above[values.is_null().to_numpy()] = -1
    return above


def has_repeated(columns: Sequence[pa.ChunkedArray]) -> bool:
    """Tell whether two rows of several columns are the same."""
    return bool(np.bincount(numbered(columns)).max(initial=0) > 1)


def _looked_up(parents: pa.ChunkedArray, children: pa.ChunkedArray) -> Whole:
    """Return the same of one column, chunk by chunk, so that no copy of all values is made."""
    kind = joined([parents.slice(0, 0), children.slice(0, 0)]).type
    above = pc.index_in(children.cast(kind), value_set=parents.cast(kind).combine_chunks())
    rows: Whole = np.concatenate([np.zeros(0, np.int64), *(chunk.fill_null(-1).to_numpy() for chunk in above.chunks)])
    return rows


def joined(parts: Sequence[Any]) -> Any:
    """Join the values of one column; whole numbers of different widths are the same, as they are where they are read.

    Raises:
        ArrowInvalid: some are text and some are numbers.
    """
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    kinds = {part.type for part in parts if not pa.types.is_null(part.type)}
    whole = kinds.pop() if len(kinds) == 1 else WIDEST_WHOLE
    kind = pa.large_string() if any(map(is_text, {whole, *kinds})) else whole
    chunks = [chunk for part in parts for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])]
    return pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)


def objects_of(values: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return the values of a column as objects, equal ones as one object; None stands for null. Shapes: [rows]."""
    decoded = plain(values)
    whole = decoded.combine_chunks() if isinstance(decoded, pa.ChunkedArray) else decoded
    encoded = whole.dictionary_encode()
    different: NDArray[Any] = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    rows: NDArray[Any] = different[encoded.indices.fill_null(len(different) - 1).to_numpy()]
    return rows


def numbered(columns: Sequence[Any]) -> Whole:
    """Number the different rows of several columns; null is a value like others. Shapes: [rows]."""
    import pandas as pd

    total = np.zeros(len(columns[0]), dtype=np.int64)
    for values in columns:
        numbers, count = _numbers(values)
        total = numbers if not total.any() else pd.factorize(total * (count + 1) + numbers)[0].astype(np.int64)
    return total


def _numbers(values: Any) -> tuple[Whole, int]:
    """Number the different values of a column from 1 on, null as 0; return how many there are."""
    import pandas as pd

    if isinstance(values, np.ndarray):
        numbers, different = pd.factorize(values)
        return numbers.astype(np.int64) + 1, len(different)
    encoded = values.combine_chunks().dictionary_encode()
    indices = encoded.indices.fill_null(-1).to_numpy().astype(np.int64) + 1
    return indices, len(encoded.dictionary)
