"""One row of each unit in every table of a tree, side by side, for a discovery to count.

Files may type one column differently. Each value stays of the type that its own file gives it, so that no row decides
what others are read as: rows whose values are of other types are in other batches. Keys are whole numbers or text;
whole numbers of all widths are joined as one exact type, as they are where a tree is read (codec/stacked.py).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.convert import plain
from dpmodels.codec.ids import key_values
from dpmodels.codec.stacked import has_repeated, joined, numbered, parents_named
from dpmodels.contract.discovery.discovery import Discovery, JoinedTable
from dpmodels.contract.text_forms.written import Forms, with_form
from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.reading.load import RawRows
from dpmodels.reading.tree_files import naming, place_of

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
    keys: dict[str, pa.ChunkedArray]
    kinds: dict[str, set[str]]


@dataclass(frozen=True)
class DrawnRows:
    """The row of each unit in one table.

    Attributes:
        parts: drawn rows by the types of their columns; at least one part.
        part: the number of the part that a unit's row is in; 0 where it has none. Shapes: [units].
        row: the number of the unit's row in that part, or NOBODY. Shapes: [units].
    """

    parts: list[pa.Table]
    part: Whole
    row: Whole

    def columns(self, units: Whole) -> dict[str, pa.ChunkedArray]:
        """Return the columns of units whose rows are in one part; null where a unit has none."""
        part, rows = self.parts[self.part[units[0]]], self.row[units]
        drawn = part.take(pa.array(rows, mask=rows == NOBODY))
        return dict(zip(drawn.column_names, drawn.columns, strict=True))


def load_unit_rows(
    contract: Discovery, data: str, batch_rows: int, decimals: Collection[str] = (), forms: Forms = MappingProxyType({})
) -> Sensitive[list[pa.RecordBatch]]:
    """Read all tables, join them by their keys, and draw a row of each unit from every table; null where it has none.

    ``decimals`` are columns of numbers with three decimals or more, as ``Discovery.reading`` has them; ``forms`` say by
    table how text is written.

    Memory: the keys of all tables, and the columns of which something is to be discovered.

    Privacy: Sensitive. Which of a unit's rows is drawn depends on how many it has and on chance alone: so a neighbor
        has one row more or less, and all others are as they were. That tables do not join is seen by whoever sees the
        run at all, as where they are read for a run (reading/tree.py).

    Raises:
        DataError: as for ``load_parts``, a row is named twice, or has no parent. No message names a value.
    """
    tables, drawn, generator = dict[str, KeyedRows](), list[DrawnRows](), np.random.default_rng()
    for name, branch in contract.tables.items():
        above = tables.get(str(branch.parent))
        with naming(name):
            kinds = _kinds(contract, branch, above)
            reading = with_form(contract.reading_of(name, decimals), forms.get(name))
            source = RawRows(place_of(data, name), reading, batch_rows, _joins(branch))
            parts = _read(contract, source, name, kinds)
            units = np.arange(sum(map(len, parts))) if above is None else _units(branch, parts, above, contract)
            tables[name] = KeyedRows(units[units != NOBODY], _keys(branch, parts, units != NOBODY), kinds)
        if called := contract.wanted_of(name):
            values = [part.select(list(called)).rename_columns(list(called.values())) for part in parts]
            order = generator.permutation(np.flatnonzero(units != NOBODY))
            rows = np.full(len(next(iter(tables.values())).units), NOBODY)
            rows[units[order]] = order  # of several rows of a unit the last one
            drawn.append(_drawn(values or [pa.table({column: pa.nulls(0) for column in called.values()})], rows))
    return Sensitive([*_side_by_side(drawn, batch_rows)])


def _joins(branch: JoinedTable) -> tuple[str, ...]:
    """Return the columns of a table's own key and of its parent's, each once."""
    return tuple(dict.fromkeys((*branch.key, *branch.parent_key)))


def _read(contract: Discovery, source: RawRows, name: str, kinds: dict[str, set[str]]) -> list[pa.Table]:
    """Read the keys of a table and the columns of which something is to be discovered: rows of other types apart."""
    branch, wanted = contract.tables[name], contract.wanted_of(name)
    joins = _joins(branch)
    source.check()
    parts = dict[tuple[pa.DataType, ...], list[pa.RecordBatch]]()
    for batch in source:
        columns = {column: plain(batch.column(column)) for column in (*wanted, *joins)}
        for column in joins:
            may_lack = branch.orphans == "drop" and column in branch.parent_key
            columns[column] = key_values(column, columns[column], kinds[column], may_lack)
        rows = pa.RecordBatch.from_pydict(columns)
        parts.setdefault(tuple(rows.schema.types), []).append(rows)
    return [pa.Table.from_batches(batches) for batches in parts.values()]


def _kinds(contract: Discovery, branch: JoinedTable, above: KeyedRows | None) -> dict[str, set[str]]:
    """Return by column of a table's keys what it holds, where that is known: a reference holds what it refers to."""
    kinds = {column: set[str]() for column in branch.key}
    if above is not None:
        key = contract.tables[str(branch.parent)].key
        kinds |= {column: above.kinds[named] for column, named in zip(branch.parent_key, key, strict=True)}
    return kinds


def _column(parts: Sequence[pa.Table], name: str) -> pa.ChunkedArray:
    """Return a column of keys of all parts, one after another."""
    return joined([part[name] for part in parts] or [pa.nulls(0)])


def _units(branch: JoinedTable, parts: Sequence[pa.Table], above: KeyedRows, contract: Discovery) -> Whole:
    """Return the number of each row's unit, or that it belongs to none.

    Raises:
        DataError: a row names no row of the parent's table, where that is refused.
    """
    key = contract.tables[str(branch.parent)].key
    parents = parents_named([above.keys[one] for one in key], [_column(parts, one) for one in branch.parent_key])
    if branch.orphans == "refuse" and (parents == NOBODY).any():
        raise DataError(branch.parent_key[0], ORPHANS)
    units: Whole = np.append(above.units, NOBODY)[parents]
    return units


def _keys(branch: JoinedTable, parts: Sequence[pa.Table], stays: Mask) -> dict[str, pa.ChunkedArray]:
    """Return the columns that name the rows that stay, each once.

    Raises:
        DataError: two rows have one key.
    """
    keys = {column: _column(parts, column).filter(pa.array(stays)) for column in branch.key}
    if keys and has_repeated([*keys.values()]):
        raise DataError(", ".join(branch.key), "must name each row once")
    return keys


def _drawn(parts: list[pa.Table], rows: Whole) -> DrawnRows:
    """Take the drawn rows of units out of parts, whose rows are numbered one part after another. Shapes: [units]."""
    drawn, first = list[pa.Table](), 0
    part, row = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), NOBODY)
    for number, values in enumerate(parts):
        units = np.flatnonzero((rows >= first) & (rows < first + len(values)))
        part[units], row[units] = number, np.arange(len(units))
        drawn.append(values.take(pa.array(rows[units] - first)))
        first += len(values)
    return DrawnRows(drawn, part, row)


def _side_by_side(drawn: Sequence[DrawnRows], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Put the rows of each unit into one, with others whose columns are of the same types."""
    types = numbered([one.part for one in drawn])
    for number in np.unique(types):
        units = np.flatnonzero(types == number)
        columns = {name: values for one in drawn for name, values in one.columns(units).items()}
        yield from pa.table(columns).to_batches(batch_rows)
