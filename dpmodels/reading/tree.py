"""Read the tables of a tree, join them by their keys, and write the rows of units encoded (contract/tree.py).

    read      every table once, through its gate; encoded rows and keys to disk          reading/rows_on_disk.py
    join      some units at a time: their rows in the root, then in each table those that name a row above

Memory: the rows of the units that are joined at a time, ``ROWS_AT_ONCE`` of them about, and a bit for every row.
Each time all keys are read once more, so that time grows with the square of the rows beyond that number.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.codes import Codes
from dpmodels.codec.convert import plain
from dpmodels.codec.ids import key_values
from dpmodels.codec.stacked import has_repeated, objects_of, parents_named
from dpmodels.codec.tree import TreeCodec, TreeRecords, reference_codes
from dpmodels.contract.branch import Branch
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.gate.tree_gate import TreeRules
from dpmodels.privacy import Sensitive
from dpmodels.reading.ingest import check_passed, encode_checked
from dpmodels.reading.pictures import Batches
from dpmodels.reading.rows_on_disk import KeysOnDisk, Raw, RowsOnDisk
from dpmodels.reading.tree_files import naming

ONCE = "the key of table {} ({}) must name each row once"
REPEATED = "must not be the same in two rows of table {} that belong to one row of its parent, since it is `unique`"
LACKING = (
    "of table {} names a row that its parent's table lacks, or none; give every row a parent, or write `orphans: drop`"
)

LEFT_OUT = NOBODY = -1
"""Stand for the parent of a row whose parent is left out, and of one that names none."""
ROWS_AT_ONCE = 2**21
"""About how many rows of all tables are joined at a time; public, and nothing that is summed depends on it."""
Choice = Callable[[slice, Mapping[str, pa.ChunkedArray]], Mask]


def transform_tree(
    tables: Mapping[str, Sequence[Sensitive[Batches]]],
    gates: Mapping[str, Gate],
    rules: TreeRules,
    folder: Path,
    units: int,
) -> None:
    """Write the rows of all units to a folder, ``units`` of them a batch, if every table passes its gate.

    Of the rows of one parent, the first ``most`` stay, by the order column and then as they were read; rows below a row
    that does not stay are left out with it, and nothing counts them.

    Privacy: Sensitive -> Sensitive; which rows of a unit stay, and what they are, is a function of that unit's own rows
        alone. That a rule is broken is seen by whoever sees the run at all, as of any gate.

    Rows that stay keep the rules that are about several tables, or nothing is written that anybody goes on with.

    Raises:
        DataError: a table breaks its part of the schema, a row is named twice, or has no parent. No message names a
            value.
    """
    tree = rules.tree
    kinds: dict[tuple[str, str], set[str]] = {}
    codec, target = TreeCodec(tree), str(folder / "part-00000.arrow")
    with TemporaryDirectory(dir=folder) as place:
        read = {name: RowsOnDisk(tree, name, Path(place)) for name in tree.tables}
        for name in tree.tables:
            with naming(name):
                _read(read[name], tables[name], gates[name], kinds)
        for name, gate in gates.items():
            gate.settle()
            with naming(name):
                check_passed(name != tree.root or bool(read[name].rows), gate, of_users=True)
        with pa.OSFile(target, "wb") as sink, pa.ipc.new_file(sink, codec.arrow_schema) as writer:
            for raw in _some_at_a_time(tree, read, units):
                records = joined(tree, raw)
                for start in range(0, len(records), units):
                    rules.check(part := records.take(slice(start, start + units)))
                    writer.write_batch(codec.to_arrow(part))
    check_passed(True, rules, of_users=True)


def _some_at_a_time(tree: Tree, read: Mapping[str, RowsOnDisk], units: int) -> Iterator[dict[str, Raw]]:
    """Yield the rows of some units in all tables: whole batches of ``units``, as far as there are so many.

    Raises:
        DataError: a row has no parent, or two have one key.
    """
    times = -(-sum(rows.rows for rows in read.values()) // ROWS_AT_ONCE)
    step = max(-(-read[tree.root].rows // times // units), 1) * units
    taken = {name: np.zeros(rows.rows, dtype=np.bool_) for name, rows in read.items()}
    keys = {name: KeysOnDisk(rows.folder, name, times) for name, rows in read.items() if tree.tables[name].key}
    for start in range(0, read[tree.root].rows, step):
        raw = dict[str, Raw]()
        for name, branch in tree.tables.items():
            if branch.parent is None:
                here = np.zeros(read[name].rows, dtype=np.bool_)
                here[start : start + step] = True
                raw[name] = read[name].choose(_marked(here))
            else:
                raw[name] = read[name].choose(_named(tree, name, raw[branch.parent], taken[name]))
            if name in keys and times > 1:
                keys[name].add([raw[name].keys[column] for column in branch.key])
        yield raw
    for name in keys if times > 1 else ():
        if keys[name].has_repeated():
            raise DataError("", ONCE.format(name, ", ".join(tree.tables[name].key)))
    _check_parents(tree, read, taken)


def _marked(mask: Mask) -> Choice:
    """Choose the rows that are marked. Shapes: [rows]."""
    return lambda at, _: mask[at]


def _named(tree: Tree, name: str, above: Raw, taken: Mask) -> Choice:
    """Choose the rows that name one of some rows of the parent's table, and note which they are. Shapes: [rows]."""

    def choice(at: slice, keys: Mapping[str, pa.ChunkedArray]) -> Mask:
        stays: Mask = _parents(tree, name, above.keys, keys) != NOBODY
        taken[at] |= stays
        return stays

    return choice


def _check_parents(tree: Tree, read: Mapping[str, RowsOnDisk], taken: Mapping[str, Mask]) -> None:
    """Refuse rows that no unit has, where that is refused; those below a row that is left out are left out with it."""
    left = dict[str, Raw]()
    for name, branch in tree.tables.items():
        if branch.parent is None or taken[name].all():
            continue
        left[name] = read[name].choose(_marked(~taken[name]))
        nobody = np.ones(len(left[name]), dtype=np.bool_)
        if branch.parent in left:
            nobody = _parents(tree, name, left[branch.parent].keys, left[name].keys) == NOBODY
        if branch.orphans == "refuse" and nobody.any():
            raise DataError(f"{name}.{tree.keys_of(name)[0]}", LACKING.format(name))


def _parents(tree: Tree, name: str, above: Mapping[str, pa.ChunkedArray], keys: Mapping[str, pa.ChunkedArray]) -> Whole:
    """Return the number of the row above that each row names, or that it names none. Shapes: [rows above], [rows]."""
    key = tree.tables[str(tree.tables[name].parent)].key
    return parents_named([above[column] for column in key], [keys[column] for column in tree.keys_of(name)])


def joined(tree: Tree, raw: Mapping[str, Raw]) -> TreeRecords:
    """Join encoded tables by their keys; every row names one of its parent's table.

    Raises:
        DataError: as ``transform_tree``.
    """
    codes, parents = {tree.root: raw[tree.root].codes}, dict[str, Whole]()
    kept = {tree.root: np.arange(len(raw[tree.root]))}
    for name, branch in tree.tables.items():
        _check_once(name, branch, raw[name].keys)
        if branch.parent is None:
            continue
        place = np.full(len(raw[branch.parent]), LEFT_OUT)
        place[kept[branch.parent]] = np.arange(len(kept[branch.parent]))
        above = place[_parents(tree, name, raw[branch.parent].keys, raw[name].keys)]
        by = [_order_of(branch, raw[name])] if branch.order else []
        order = np.lexsort((*by, above))
        order = order[above[order] >= 0]
        _check_unique(name, branch, above[order], *[each[order] for each in by])
        counts = np.bincount(above[order], minlength=len(kept[branch.parent]))
        rank = np.arange(len(order)) - (np.cumsum(counts) - counts)[above[order]]
        kept[name] = order[rank < branch.most]
        parents[name] = above[kept[name]]
        codes[name] = [column[kept[name]] for column in raw[name].codes]
    return TreeRecords(tree, {name: codes[name] for name in tree.tables}, parents)


def _read(
    rows: RowsOnDisk, parts: Sequence[Sensitive[Batches]], gate: Gate, kinds: dict[tuple[str, str], set[str]]
) -> None:
    """Read one table; columns that name the same rows are written in one way, in all tables."""
    tree, name = rows.tree, rows.table
    branch, on = tree.tables[name], tree.keys_of(name)
    named = {column for one in branch.refers for column in one.by}
    batches: Iterator[pa.RecordBatch] = chain.from_iterable(part.reveal() for part in parts)
    for batch, records in encode_checked(batches, gate):
        keys = dict[str, pa.Array]()
        for column in tree.key_columns(name):
            values, source = plain(batch.column(column)), _source(tree, name, column)
            may_lack = (branch.orphans == "drop" and column in on) or column in named
            values = values if source[1] != tree.tables[source[0]].order else _whole_numbers(column, values)
            keys[column] = key_values(column, values, kinds.setdefault(source, set()), may_lack)
        references = reference_codes(tree, name, {column: objects_of(keys[column]) for column in named})
        rows.add([*(records.codes or ()), *references], keys)
    rows.close()


def _source(tree: Tree, table: str, column: str) -> tuple[str, str]:
    """Return the table and the column that a key's values are of, wherever it is repeated."""
    on, parent = tree.keys_of(table), tree.tables[table].parent
    if parent is None or column not in on:
        return table, column
    return _source(tree, parent, tree.tables[parent].key[on.index(column)])


def _whole_numbers(name: str, array: pa.Array) -> pa.Array:
    """Return the values of an order column, and of columns that repeat it, as whole numbers however files type them.

    Raises:
        DataError: one is none.
    """
    try:
        return array if pa.types.is_integer(array.type) else array.cast(pa.float64()).cast(pa.int64())
    except pa.ArrowException:
        raise DataError(name, "must hold whole numbers, since it is part of a key") from None


def _check_once(name: str, branch: Branch, keys: Mapping[str, pa.ChunkedArray]) -> None:
    """Refuse two rows of one key."""
    if branch.key and has_repeated([keys[column] for column in branch.key]):
        raise DataError("", ONCE.format(name, ", ".join(branch.key)))


def _check_unique(name: str, branch: Branch, above: Whole, order: Any = None) -> None:
    """Refuse two rows of one parent with one value of a unique order column; the rows are sorted by both."""
    if branch.unique and ((np.diff(above) == 0) & (np.diff(order.astype(np.int64)) == 0)).any():
        raise DataError(f"{name}.{branch.order}", REPEATED.format(name))


def _order_of(branch: Branch, raw: Raw) -> Codes:
    """Return the codes of the order column, which rise as its values do."""
    return raw.codes[list(branch.modelled).index(str(branch.order))]
