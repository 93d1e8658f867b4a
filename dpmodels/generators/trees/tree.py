"""Mixtures of the flat tables of a tree, drawn as units with all their rows in every table (contract/tree.py).

    unit      its columns, and how many rows it has in each table below: from the mixture of the root
    row       its columns, and how many rows it has in each table below: from the mixture of its table, given the
              columns of all rows above it, its place among the rows of its parent, and the row before it
    part      the columns of a table of at most one row a parent: from the mixture of the parent's table

What is given enters exactly (trees/given.py). Rows that follow each other are drawn place by place. Values of the order
column never fall within a parent, and rise where they are unique; rows that would break it are left out.

Privacy: post-processing.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.codes import Codes, code_type, to_codes
from dpmodels.codec.encode import Records
from dpmodels.codec.tree import TreeRecords
from dpmodels.contract.branch import POSITION, PREVIOUS, ROWS
from dpmodels.contract.columns import Continuous
from dpmodels.contract.continuous import decode_numbers
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.generators.constraints import Rules
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.model_file import write_model
from dpmodels.generators.sampling import Sampler
from dpmodels.generators.trees.given import GivenColumns
from dpmodels.generators.trees.ruled import allowed_cells, draw_by_rules
from dpmodels.late import Tensor


@dataclass
class Rows:
    """Drawn rows of one table: states and values by the names of the attributes, and the parent of each row."""

    states: dict[str, Any]
    values: dict[str, Any]
    parents: Whole

    def __len__(self) -> int:
        return len(self.parents)

    def take(self, index: Any) -> "Rows":
        """Select rows."""
        states, values = ({name: x[index] for name, x in each.items()} for each in (self.states, self.values))
        return Rows(states, values, self.parents[index])

    def records(self, schema: Schema) -> Records:
        """Return the rows as those of a flat table; columns that are not known yet are 0. Shapes: [B, F]."""
        zero = np.zeros(len(self))
        states = np.stack([self.states.get(name, zero) for name in schema.modelled], axis=1).astype(np.int32)
        return Records(states, np.stack([self.values.get(name, zero) for name in schema.modelled], axis=1))

    def fill(self, records: Records, schema: Schema, names: Any) -> None:
        """Take some columns from rows of a flat table."""
        for index, name in enumerate(schema.modelled):
            if name in names:
                self.states[name], self.values[name] = records.states[:, index], records.values[:, index]


@dataclass
class TreeModel(Sampler):
    """Draws units with their rows; ``rows`` and the released number of records count units.

    Attributes:
        schema: the tree; models: the mixture of each flat table.
    """

    kind: ClassVar[str] = "tree"
    batch_rows: ClassVar[int] = 8_192
    schema: Tree
    models: Mapping[str, MixtureModel]
    release_entry: str

    @property
    def class_counts(self) -> Tensor:
        """The released number of units."""
        return self.models[self.schema.root].class_counts

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> TreeRecords:
        """Draw so many units with all their rows."""
        tree, drawn = self.schema, dict[str, Rows]()
        for table in tree.measured:
            drawn[table] = self._units(rows, rng) if table == tree.root else self._below(table, drawn, rng)
            for part in tree.parts(table):
                drawn[part] = self._part(table, part, drawn[table], rng)
        codes = {table: _codes(tree, table, drawn[table], rng) for table in tree.tables}
        return TreeRecords(tree, codes, {table: drawn[table].parents for table in tree.tables if table != tree.root})

    def _units(self, rows: int, rng: np.random.Generator) -> Rows:
        """Draw the rows of the root."""
        root, units = self.schema.root, Rows({}, {}, np.zeros(rows, dtype=np.int64))
        rules, draw = self._rules(root, self._attributes(root)), self.models[root].draw
        records = draw(rows, rng)
        if rules.all:
            records, fits = draw_by_rules(lambda numbers: draw(len(numbers), rng), rows, rules, rng)
            records = records.take(_stand_ins(fits, rules, rng))
        units.fill(records, self.schema.flat_of(root), self._attributes(root))
        return units

    def _rules(self, table: str, names: Collection[str]) -> Rules:
        """Return the rules of a table's rows, of which the named columns are drawn."""
        schema = self.schema.ruled(table)
        return Rules(schema, [name for name in schema.modelled if name not in names])

    def _attributes(self, table: str) -> set[str]:
        """Name the attributes of a table that are drawn first: all but those of the tables that are part of it."""
        parts = {f"{part}.{name}" for part in self.schema.parts(table) for name in self.schema.tables[part].grouped}
        return set(self.schema.attributes(table)) - parts

    def _part(self, table: str, part: str, rows: Rows, rng: np.random.Generator) -> Rows:
        """Draw the rows of a table that is part of another, and tell the rows above what they are."""
        tree, flat, columns = self.schema, self.schema.flat_of(table), self.schema.tables[part].grouped
        names = {f"{part}.{name}" for name in columns}
        present = {f"{part}.{name}" for name, column in columns.items() if not column.nullable}
        ignored = {name for name in tree.attributes(table) if name not in rows.states} - names
        there = np.flatnonzero(_numbers(flat, f"{part}.{ROWS}", rows) > 0)
        result = Rows({}, {}, there)
        if len(there):
            rules = self._rules(part, names)
            draw = GivenColumns(self.models[table], names, ignored, present, bool(rules.all))
            records, fits = _drawn(draw, rows.take(there).records(flat), rules, rng)
            for index, name in enumerate(flat.modelled):
                if name in present:  # a rule may have been kept by a null that the table itself has not
                    fits &= records.states[:, index] != flat.modelled[name].null_state
            there, result = there[fits], Rows({}, {}, there[fits])
            result.fill(records.take(fits), flat, names)
        for name in names:
            column = flat.modelled[name]
            rows.states[name] = np.full(len(rows), column.null_state, dtype=np.int32)
            rows.values[name] = np.zeros(len(rows))
            if len(there):
                rows.states[name][there], rows.values[name][there] = result.states[name], result.values[name]
            else:
                result.states[name], result.values[name] = np.zeros(0, dtype=np.int32), np.zeros(0)
        return result

    def _below(self, table: str, drawn: Mapping[str, Rows], rng: np.random.Generator) -> Rows:
        """Draw the rows of a table, whose parents are drawn."""
        tree, parent = self.schema, str(self.schema.tables[table].parent)
        counts = _numbers(tree.flat_of(parent), f"{table}.{ROWS}", drawn[parent])
        rows = Rows({}, {}, np.repeat(np.arange(len(counts)), counts))
        above = rows.parents
        for name in reversed(tree.above(table)):
            for key in tree.attributes(name):
                rows.states[key], rows.values[key] = drawn[name].states[key][above], drawn[name].values[key][above]
            above = drawn[name].parents[above]
        position = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows.parents] + 1
        place: Any = tree.flat_of(table).modelled[f"{table}.{POSITION}"]
        rows.states[f"{table}.{POSITION}"] = np.zeros(len(rows), dtype=np.int32)
        rows.values[f"{table}.{POSITION}"] = place.interval.to_unit(position.astype(np.float64))
        return self._in_turn(table, rows, position, rng)

    def _in_turn(self, table: str, rows: Rows, position: Whole, rng: np.random.Generator) -> Rows:
        """Draw the rows of each parent one after the other where a row follows the one before; else all at once."""
        tree, flat = self.schema, self.schema.flat_of(table)
        names, followed = self._attributes(table), tree.followed(table)
        parts = {name for name in tree.attributes(table) if name not in names}
        in_turn = [f"{table}.{tree.tables[table].order}"] if tree.tables[table].order in followed else []
        rules, keep = self._rules(table, names.difference(in_turn)), np.ones(len(rows), dtype=np.bool_)
        draw = GivenColumns(self.models[table], names, parts, by_allowed=bool(rules.all))
        last = np.flatnonzero(np.diff(rows.parents, append=-1) != 0)[np.unique(rows.parents, return_inverse=True)[1]]
        for name in names:
            rows.states[name], rows.values[name] = np.zeros(len(rows), dtype=np.int32), np.zeros(len(rows))
        for turn in range(1, int(position.max(initial=0)) + 1) if followed else (0,):
            here = np.flatnonzero(position == turn) if followed else np.arange(len(rows))
            if turn > 1:
                here = here[keep[here - 1]]
                keep[np.setdiff1d(np.flatnonzero(position == turn), here, assume_unique=True)] = False
            part, allowed = rows.take(here), None
            for name in followed:
                self._follow(table, name, rows, part, here, turn)
            if in_turn:
                allowed = self._allowed(table, draw, part, last[here] - here)
                keep[here] = next(iter(allowed.values())).any(axis=1)
            if len(here):
                fresh, fits = _drawn(draw, part.records(flat), rules, rng, allowed)
                keep[here] &= fits
                for index, name in enumerate(flat.modelled):
                    if name in names:
                        rows.states[name][here] = fresh.states[:, index]
                        rows.values[name][here] = fresh.values[:, index]
        return self._ordered(table, rows.take(keep), rules)

    def _follow(self, table: str, name: str, rows: Rows, part: Rows, here: Whole, turn: int) -> None:
        """Tell rows what the row before is; the first of a parent has none."""
        key, column = f"{table}.{name}.{PREVIOUS}", self.schema.given(table)[f"{table}.{name}.{PREVIOUS}"]
        if turn == 1:
            part.states[key] = np.full(len(here), column.null_state, dtype=np.int32)
            part.values[key] = np.zeros(len(here))
        else:
            part.states[key], part.values[key] = (
                each[f"{table}.{name}"][here - 1] for each in (rows.states, rows.values)
            )

    def _allowed(self, table: str, draw: GivenColumns, part: Rows, after: Whole) -> dict[int, Mask]:
        """Say which fine cells of the order column come after the row before. Shapes: [B, cells].

        ``after``: how many rows of the same parent come after; unique values leave room for them.
        """
        branch, name = self.schema.tables[table], f"{table}.{self.schema.tables[table].order}"
        index = draw.partition.names.index(name)
        column = cast(Continuous, draw.partition.columns[index])
        started = part.states[f"{name}.{PREVIOUS}"] == 0
        before = np.where(started, column.grid.of(part.values[f"{name}.{PREVIOUS}"]), 0)
        first, last = column.grid.bounds
        single = (first == last)[before] & branch.unique
        lowest = (before + (single & started))[:, None]
        highest = np.full(len(after), column.cells - 1)
        if branch.unique and column.interval.points is not None:
            place = np.maximum(column.interval.points - 1 - after, 0)
            highest = column.grid.of(column.interval.unit_at(place.astype(np.float64)))
        cells = np.arange(column.size)
        return {index: (lowest <= cells) & (cells <= highest[:, None])}

    def _ordered(self, table: str, rows: Rows, rules: Rules) -> Rows:
        """Sort the values of the order column within each parent, and leave out repeated ones if they are unique.

        Where a row would break a rule, the rows of its parent are sorted as they are, with all of their columns.
        """
        branch = self.schema.tables[table]
        if branch.order is None:
            return rows
        name, column = f"{table}.{branch.order}", cast(Continuous, branch.modelled[branch.order])
        numbers = decode_numbers(column, rows.states[name], rows.values[name])
        order = np.lexsort((numbers, rows.parents))
        sorted_rows = rows.take(order)
        rows.states[name], rows.values[name] = sorted_rows.states[name], sorted_rows.values[name]
        if rules.all:
            broken = ~rules.hold(rows.records(self.schema.flat_of(table)))
            whole = np.isin(rows.parents, rows.parents[broken])
            rows = rows.take(np.where(whole, order, np.arange(len(rows))))
            rows.states[name], rows.values[name] = sorted_rows.states[name], sorted_rows.values[name]
        if not branch.unique:
            return rows
        same = (np.diff(numbers[order], prepend=np.nan) == 0) & (np.diff(rows.parents, prepend=-1) == 0)
        return rows.take(~same)

    def save(self, path: Path) -> None:
        tensors = {
            f"{table}/{key}": tensor for table, model in self.models.items() for key, tensor in model.tensors().items()
        }
        most = {table: model.most_cells for table, model in self.models.items()}
        facts = {"most_cells": max(most.values()), "most_cells_of": most, "release_entry": self.release_entry}
        write_model(path, self.kind, self.schema, tensors, **facts)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "TreeModel":
        """Rebuild what ``save`` wrote."""
        tree, entry, models = facts["schema"], facts["release_entry"], {}
        for table in tree.measured:
            own = {key.removeprefix(f"{table}/"): x for key, x in tensors.items() if key.startswith(f"{table}/")}
            most = min(facts["most_cells_of"][table], facts["most_cells"])
            flat = {"schema": tree.flat_of(table), "most_cells": most, "release_entry": entry}
            models[table] = MixtureModel.of(flat, own)
        return cls(tree, models, entry)


def _drawn(
    draw: GivenColumns,
    incomplete: Records,
    rules: Rules,
    rng: np.random.Generator,
    allowed: dict[int, Mask] | None = None,
) -> tuple[Records, Mask]:
    """Draw rows of which some columns are known; tell which of them keep the rules."""
    if not rules.all:
        return draw.draw(incomplete, rng, allowed), np.ones(len(incomplete), dtype=np.bool_)

    masks = allowed_cells(draw, incomplete, rules)
    masks |= {column: masks.get(column, True) & mask for column, mask in (allowed or {}).items()}

    def again(numbers: Whole) -> Records:
        cells = {column: mask[numbers] for column, mask in masks.items()}
        return draw.complete(incomplete.take(numbers), rng, cells)

    return draw_by_rules(again, len(incomplete), rules, rng)


def _stand_ins(fits: Mask, rules: Rules, rng: np.random.Generator) -> Whole:
    """Return for each unit its own number, or that of one that keeps the rules where it does not.

    Raises:
        DataError: none keeps them.
    """
    good = np.flatnonzero(fits)
    if not len(good):
        raise DataError("", f"no row keeps {rules}: these rules contradict each other; nothing was handed over")
    return np.where(fits, np.arange(len(fits)), rng.choice(good, len(fits)))


def _numbers(schema: Schema, name: str, rows: Rows) -> Whole:
    """Return the whole numbers of a column. Shapes: [rows]."""
    column = cast(Continuous, schema.modelled[name])
    return np.rint(decode_numbers(column, rows.states[name], rows.values[name])).astype(np.int64)


def _codes(tree: Tree, table: str, rows: Rows, rng: np.random.Generator) -> list[Codes]:
    """Return the codes of a table's modeled columns; of a group of public rows each is as likely as the others."""
    branch, codes = tree.tables[table], list[Codes]()
    for name, column in branch.grouped.items():
        codes.append(to_codes(column, rows.states[f"{table}.{name}"], rows.values[f"{table}.{name}"]))
    for place, one in enumerate(branch.refers, len(codes) - len(branch.refers)):
        if (public := branch.public_of(one)).size > public.groups:
            members = np.append(np.argsort(public.group_of, kind="stable"), public.size)  # null comes last
            sizes = np.bincount(np.append(public.group_of, public.groups))
            first = np.cumsum(sizes) - sizes
            chosen = first[codes[place]] + (rng.random(len(rows)) * sizes[codes[place]]).astype(np.int64)
            codes[place] = members[chosen].astype(code_type(branch.modelled[one.name]))
    return codes
