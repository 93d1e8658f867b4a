"""One row of each unit in every table of a tree, side by side in one table, for a discovery to count."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.arrays import Whole
from dpmodels.codec.convert import plain
from dpmodels.codec.stacked import has_repeated, parents_named
from dpmodels.contract.discovery import Discovery, JoinedTable
from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.reading.load import RawRows
from dpmodels.reading.tree_files import naming, place_of
from dpmodels.reading.user_ids import checked_ids

ORPHANS = "names a row that its parent's table lacks, or none; give every row a parent, or write `orphans: drop`"
NOBODY = -1
"""Stands for the unit of a row that belongs to none, and for the row of a unit that has none."""


@dataclass(frozen=True)
class KeyedRows:
    """Whose the rows of a table are, and what they are called by.

    Attributes:
        units: the number of each row's unit. Shapes: [rows].
        keys: the columns that name a row. Shapes: [rows] each.
        kinds: by column whether it holds text or whole numbers, which those that refer to it must do too.
    """

    units: Whole
    keys: dict[str, pa.Array]
    kinds: dict[str, set[str]]


def load_unit_rows(contract: Discovery, data: str, batch_rows: int) -> Sensitive[list[pa.RecordBatch]]:
    """Read all tables, join them by their keys, and draw a row of each unit from every table; null where it has none.

    Memory: the keys of all tables, and the columns of which something is to be discovered.

    Privacy: Sensitive. Which of a unit's rows is drawn depends on how many it has and on chance alone: so a neighbor
        has one row more or less, and all others are as they were.

    Raises:
        DataError: as for ``load_parts``, a row is named twice, or has no parent. No message names a value.
    """
    tables, columns, generator = dict[str, KeyedRows](), dict[str, pa.ChunkedArray](), np.random.default_rng()
    for name, branch in contract.tables.items():
        with naming(name):
            rows, above = _read(contract, data, name, batch_rows), tables.get(str(branch.parent))
            kinds = _kinds(contract, branch, above)
            parents = np.arange(len(rows)) if above is None else _parents(branch, rows, above, kinds, contract)
            stays = parents != NOBODY
            rows, units = rows.filter(pa.array(stays)), parents[stays] if above is None else above.units[parents[stays]]
            tables[name] = KeyedRows(units, _keys(branch, rows, kinds), kinds)
        order = generator.permutation(len(rows))
        drawn = np.full(len(next(iter(tables.values())).units), NOBODY)
        drawn[units[order]] = order  # of several rows of a unit the last one
        for column, called in contract.wanted_of(name).items():
            columns[called] = rows[column].take(pa.array(drawn, mask=drawn == NOBODY))
    return Sensitive(pa.table(columns).to_batches(batch_rows))


def _read(contract: Discovery, data: str, name: str, batch_rows: int) -> pa.Table:
    """Read the keys of a table and the columns of which something is to be discovered."""
    joins = dict.fromkeys((*contract.tables[name].key, *contract.tables[name].parent_key))
    source = RawRows(place_of(data, name), contract.reading_of(name), batch_rows, tuple(joins))
    source.check()
    names = list(joins | dict.fromkeys(contract.wanted_of(name)))
    empty = pa.table({column: pa.array([], pa.null()) for column in names})
    parts = [pa.table({column: plain(batch.column(column)) for column in names}) for batch in source]
    try:
        return pa.concat_tables([empty, *parts], promote_options="permissive")
    except pa.ArrowException:
        raise DataError("", "has columns that are of several types in several files; write each as one") from None


def _kinds(contract: Discovery, branch: JoinedTable, above: KeyedRows | None) -> dict[str, set[str]]:
    """Return by column of a table's keys what it holds, where that is known: a reference holds what it refers to."""
    kinds = {column: set[str]() for column in branch.key}
    if above is not None:
        key = contract.tables[str(branch.parent)].key
        kinds |= {column: above.kinds[named] for column, named in zip(branch.parent_key, key, strict=True)}
    return kinds


def _parents(
    branch: JoinedTable,
    rows: pa.Table,
    above: KeyedRows,
    kinds: dict[str, set[str]],
    contract: Discovery,
) -> Whole:
    """Return the number of each row's parent among those that stay, or that it has none.

    Raises:
        DataError: a row names no row of the parent's table, where that is refused.
    """
    named, key = [], contract.tables[str(branch.parent)].key
    for column in branch.parent_key:
        values = plain(rows[column])
        there = values if branch.orphans == "refuse" else pc.drop_null(values)
        if len(there):
            checked_ids(column, there, kinds[column])
        named.append(values)
    parents = parents_named(_chunked([above.keys[column] for column in key]), _chunked(named))
    if branch.orphans == "refuse" and (parents == NOBODY).any():
        raise DataError(branch.parent_key[0], ORPHANS)
    return parents


def _keys(branch: JoinedTable, rows: pa.Table, kinds: dict[str, set[str]]) -> dict[str, pa.Array]:
    """Return the columns that name a row, each once.

    Raises:
        DataError: two rows have one key.
    """
    if not len(rows):
        return {column: plain(rows[column]) for column in branch.key}
    keys = {column: checked_ids(column, rows[column], kinds[column]) for column in branch.key}
    if keys and has_repeated(_chunked(keys.values())):
        raise DataError(", ".join(branch.key), "must name each row once")
    return keys


def _chunked(columns: Iterable[pa.Array]) -> list[pa.ChunkedArray]:
    return [pa.chunked_array([values]) for values in columns]
