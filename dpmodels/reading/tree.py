"""Read the tables of a tree, join them by their keys, and write the rows of units encoded (contract/tree.py).

Memory: the encoded rows of all tables, one to four bytes a value, and the values of their keys.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.codes import Codes, code_type
from dpmodels.codec.convert import plain
from dpmodels.codec.stacked import joined as joined_values
from dpmodels.codec.stacked import matched, numbered, objects_of
from dpmodels.codec.tree import TreeCodec, TreeRecords, reference_codes
from dpmodels.contract.branch import Branch
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.gate.tree_gate import TreeRules
from dpmodels.privacy import Sensitive
from dpmodels.reading.ingest import check_passed, encode_checked
from dpmodels.reading.pictures import Batches
from dpmodels.reading.tree_files import naming
from dpmodels.reading.user_ids import checked_ids

ONCE = "the key of table {} ({}) must name each row once"
REPEATED = "must not be the same in two rows of table {} that belong to one row of its parent, since it is `unique`"
LACKING = (
    "of table {} names a row that its parent's table lacks, or none; give every row a parent, or write `orphans: drop`"
)

LEFT_OUT, NOBODY = -1, -2
"""Stand for the parent of a row whose parent is left out, and of one that names none."""


@dataclass(frozen=True)
class Raw:
    """The encoded rows of one table as they were read, with its keys.

    Attributes:
        codes: of the modeled columns. Shapes: arrays of [rows].
        keys: values of the columns in ``key`` and of those that name the parent, by column.
    """

    codes: list[Codes]
    keys: Mapping[str, pa.ChunkedArray]


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
    raw = dict[str, Raw]()
    for name in tree.tables:
        with naming(name):
            raw[name] = _read(tree, name, tables[name], gates[name], kinds)
    for name, gate in gates.items():
        gate.settle()
        with naming(name):
            check_passed(name != tree.root or bool(len(raw[name].codes[0])), gate, of_users=True)
    records, codec = joined(tree, raw), TreeCodec(tree)
    with pa.OSFile(str(folder / "part-00000.arrow"), "wb") as sink, pa.ipc.new_file(sink, codec.arrow_schema) as writer:
        for start in range(0, len(records), units):
            rules.check(part := records.take(slice(start, start + units)))
            writer.write_batch(codec.to_arrow(part))
    check_passed(True, rules, of_users=True)


def joined(tree: Tree, raw: Mapping[str, Raw]) -> TreeRecords:
    """Join encoded tables by their keys.

    Raises:
        DataError: as ``transform_tree``.
    """
    codes, parents = {tree.root: raw[tree.root].codes}, dict[str, Whole]()
    kept = {tree.root: np.arange(len(raw[tree.root].codes[0]))}
    for name, branch in tree.tables.items():
        if branch.parent is None:
            _check_once(name, branch, raw[name].keys, np.ones(len(kept[name]), dtype=np.bool_))
            continue
        above = _rows_above(tree, name, raw, kept[branch.parent])
        _check_once(name, branch, raw[name].keys, above > NOBODY)
        above = np.maximum(above, LEFT_OUT)
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
    tree: Tree, name: str, parts: Sequence[Sensitive[Batches]], gate: Gate, kinds: dict[tuple[str, str], set[str]]
) -> Raw:
    """Read one table; columns that name the same rows are written in one way, in all tables."""
    branch, on = tree.tables[name], tree.keys_of(name)
    codes: dict[str, list[Codes]] = {column: [] for column in gate.schema.modelled}
    keys: dict[str, list[pa.Array]] = {column: [] for column in tree.key_columns(name)}
    batches: Iterator[pa.RecordBatch] = chain.from_iterable(part.reveal() for part in parts)
    for batch, records in encode_checked(batches, gate):
        for column, values in zip(codes, records.codes or (), strict=True):
            codes[column].append(values)
        for column, parts_of_key in keys.items():
            source = _source(tree, name, column)
            may_lack = (branch.orphans == "drop" and column in on) or tree.reference_by(name, column) is not None
            values = plain(batch.column(column))
            values = values if source[1] != tree.tables[source[0]].order else _whole_numbers(column, values)
            parts_of_key.append(_ids(column, values, kinds.setdefault(source, set()), may_lack))
    empty = {column: np.zeros(0, dtype=code_type(one)) for column, one in gate.schema.modelled.items()}
    whole = [np.concatenate([empty[column], *values]) for column, values in codes.items()]
    key_values = {column: joined_values(values or [pa.array([], pa.int64())]) for column, values in keys.items()}
    named = {column for one in branch.refers for column in one.by}
    references = {column: objects_of(key_values[column]) for column in named}
    return Raw([*whole, *reference_codes(tree, name, references)], key_values)


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


def _ids(name: str, column: pa.Array, kinds: set[str], drops: bool) -> pa.Array:
    """Return the values of a key; null is refused, or stays null where the rows that have it are left out."""
    if not (drops and column.null_count):
        return checked_ids(name, column, kinds)
    if column.null_count < len(column):
        checked_ids(name, pc.drop_null(column), kinds)
    return column.cast(pa.large_string()) if kinds == {"text"} else column


def _rows_above(tree: Tree, name: str, raw: Mapping[str, Raw], kept: Whole) -> Whole:
    """Return the number of each row's parent among those that are kept, or why there is none.

    Raises:
        DataError: a row names no parent, and such rows are refused.
    """
    parent, key, on = str(tree.tables[name].parent), tree.tables[str(tree.tables[name].parent)].key, tree.keys_of(name)
    stays = np.zeros(len(raw[parent].codes[0]), dtype=np.bool_)
    stays[kept] = True
    order = pa.array(np.concatenate([kept, np.flatnonzero(~stays)]))  # of two rows of one key the one that stays
    children = [raw[name].keys[column] for column in on]
    above = matched([raw[parent].keys[column].take(order) for column in key], children)
    nobody = (above < 0) | _any_null(children)
    above[above >= len(kept)] = LEFT_OUT
    above[nobody] = NOBODY
    if tree.tables[name].orphans == "refuse" and nobody.any():
        raise DataError(f"{name}.{on[0]}", LACKING.format(name))
    return above


def _check_once(name: str, branch: Branch, keys: Mapping[str, pa.ChunkedArray], stays: Mask) -> None:
    """Refuse two rows of one key, among those that stay: rows without a parent may be left out."""
    if not branch.key:
        return
    number = numbered([keys[column] for column in branch.key])[stays]
    if np.bincount(number).max(initial=0) > 1:
        raise DataError("", ONCE.format(name, ", ".join(branch.key)))


def _check_unique(name: str, branch: Branch, above: Whole, order: Any = None) -> None:
    """Refuse two rows of one parent with one value of a unique order column; the rows are sorted by both."""
    if branch.unique and ((np.diff(above) == 0) & (np.diff(order.astype(np.int64)) == 0)).any():
        raise DataError(f"{name}.{branch.order}", REPEATED.format(name))


def _any_null(columns: Sequence[pa.ChunkedArray]) -> Mask:
    null: Mask = np.zeros(len(columns[0]), dtype=np.bool_)
    for values in columns:
        null |= values.is_null().to_numpy()
    return null


def _order_of(branch: Branch, raw: Raw) -> Codes:
    """Return the codes of the order column, which rise as its values do."""
    return raw.codes[list(branch.modelled).index(str(branch.order))]
