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
from numpy.typing import NDArray

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.codes import Codes, code_type
from dpmodels.codec.convert import plain
from dpmodels.codec.stacked import matched, numbered
from dpmodels.codec.tree import TreeCodec, TreeRecords
from dpmodels.contract.tree import Branch, Tree
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.privacy import Sensitive
from dpmodels.reading.ingest import check_passed, encode_checked
from dpmodels.reading.pictures import Batches
from dpmodels.reading.user_ids import read_ids

ONCE = "must name each row of table {} once"
REPEATED = "must not be the same in two rows of table {} that belong to one row of its parent, since it is `unique`"
LACKING = (
    "of table {} names a row that its parent's table lacks, or none; give every row a parent, or write `orphans: drop`"
)


@dataclass(frozen=True)
class Raw:
    """The encoded rows of one table as they were read, with its keys.

    Attributes:
        codes: of the modeled columns. Shapes: arrays of [rows].
        keys: values of the columns in ``key`` and of those that name the parent, by column; None stands for null.
    """

    codes: list[Codes]
    keys: Mapping[str, NDArray[Any]]


def transform_tree(
    tree: Tree, tables: Mapping[str, Sequence[Sensitive[Batches]]], gates: Mapping[str, Gate], folder: Path, units: int
) -> None:
    """Write the rows of all units to a folder, ``units`` of them a batch, if every table passes its gate.

    Of the rows of one parent, the first ``most`` stay, by the order column and then as they were read; rows below a row
    that does not stay are left out with it, and nothing counts them.

    Privacy: Sensitive -> Sensitive; which rows of a unit stay, and what they are, is a function of that unit's own rows
        alone. That a rule is broken is seen by whoever sees the run at all, as of any gate.

    Raises:
        DataError: a table breaks its part of the schema, a row is named twice, or has no parent. No message names a
            value.
    """
    kinds: dict[tuple[str, str], set[str]] = {}
    raw = {name: _read(tree, name, tables[name], gates[name], kinds) for name in tree.tables}
    for gate in gates.values():
        gate.settle()
    check_passed(bool(len(raw[tree.root].codes[0])), *gates.values(), of_users=True)
    records, codec = joined(tree, raw), TreeCodec(tree)
    with pa.OSFile(str(folder / "part-00000.arrow"), "wb") as sink, pa.ipc.new_file(sink, codec.arrow_schema) as writer:
        for start in range(0, len(records), units):
            writer.write_batch(codec.to_arrow(records.take(slice(start, start + units))))


def joined(tree: Tree, raw: Mapping[str, Raw]) -> TreeRecords:
    """Join encoded tables by their keys.

    Raises:
        DataError: as ``transform_tree``.
    """
    codes, parents = {tree.root: raw[tree.root].codes}, dict[str, Whole]()
    kept = {tree.root: np.arange(len(raw[tree.root].codes[0]))}
    for name, branch in tree.tables.items():
        _check_once(name, branch, raw[name].keys)
        if branch.parent is None:
            continue
        above = _rows_above(tree, name, raw)
        number = np.full(len(raw[branch.parent].codes[0]), -1)
        number[kept[branch.parent]] = np.arange(len(kept[branch.parent]))
        above = np.where(above < 0, -1, number[above])
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
    above = dict(zip(on, tree.tables[branch.parent].key, strict=True)) if branch.parent else {}
    codes: dict[str, list[Codes]] = {column: [] for column in branch.modelled}
    keys: dict[str, list[NDArray[Any]]] = {column: [] for column in tree.joins(name)}
    batches: Iterator[pa.RecordBatch] = chain.from_iterable(part.reveal() for part in parts)
    for batch, records in encode_checked(batches, gate):
        for column, values in zip(branch.modelled, records.codes or (), strict=True):
            codes[column].append(values)
        for column, parts_of_key in keys.items():
            place = (str(branch.parent), above[column]) if column in above else (name, column)
            drops = branch.orphans == "drop" and column in on
            parts_of_key.append(_ids(column, batch.column(column), kinds.setdefault(place, set()), drops))
    empty = {column: np.zeros(0, dtype=code_type(one)) for column, one in branch.modelled.items()}
    whole = [np.concatenate([empty[column], *values]) for column, values in codes.items()]
    return Raw(whole, {column: np.concatenate([np.zeros(0, object), *values]) for column, values in keys.items()})


def _ids(name: str, column: pa.Array, kinds: set[str], drops: bool) -> NDArray[Any]:
    """Return the values of a key; null is refused, or is None where the rows that have it are left out."""
    array = plain(column)
    if not (drops and array.null_count):
        return read_ids(name, array, kinds).astype(object)
    ids = np.full(len(array), None, dtype=object)
    if array.null_count < len(array):
        ids[array.is_valid().to_numpy(zero_copy_only=False)] = read_ids(name, pc.drop_null(array), kinds)
    return ids


def _rows_above(tree: Tree, name: str, raw: Mapping[str, Raw]) -> Whole:
    """Return the number of each row's parent, or -1 where there is none and such rows are left out.

    Raises:
        DataError: there is none, and such rows are refused.
    """
    branch = tree.tables[name]
    key, on = tree.tables[str(branch.parent)].key, tree.keys_of(name)
    parents = [raw[str(branch.parent)].keys[column] for column in key]
    children = [raw[name].keys[column] for column in on]
    above = matched(parents, children)
    above[_any_null(children)] = -1
    if branch.orphans == "refuse" and (above < 0).any():
        raise DataError(on[0], LACKING.format(name))
    return above


def _check_once(name: str, branch: Branch, keys: Mapping[str, NDArray[Any]]) -> None:
    if not branch.key:
        return
    values = [keys[column] for column in branch.key]
    known = ~_any_null(values)
    number = numbered(values)[known]
    if len(np.unique(number)) < len(number):
        raise DataError(branch.key[-1], ONCE.format(name))


def _check_unique(name: str, branch: Branch, above: Whole, order: Any = None) -> None:
    """Refuse two rows of one parent with one value of a unique order column; the rows are sorted by both."""
    if branch.unique and ((np.diff(above) == 0) & (np.diff(order.astype(np.int64)) == 0)).any():
        raise DataError(str(branch.order), REPEATED.format(name))


def _any_null(columns: Sequence[NDArray[Any]]) -> Mask:
    null: Mask = np.zeros(len(columns[0]), dtype=np.bool_)
    for values in columns:
        null |= np.array([value is None for value in values], dtype=np.bool_)
    return null


def _order_of(branch: Branch, raw: Raw) -> Codes:
    """Return the codes of the order column, which rise as its values do."""
    return raw.codes[list(branch.modelled).index(str(branch.order))]
