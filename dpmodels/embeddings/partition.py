"""Cells: a record as one small integer a column, at the finest public grid or after merging thin cells.

The fine cells are public. Merging reads a *released* histogram, so the merged cells are released too: a run of adjacent
cells, or a set of rare categories, becomes one cell until it holds enough to stand out of the noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmodels.arrays import Whole
from dpmodels.codec.codes import Codes, code_count, first_codes
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.contract.schema import Schema

Counts = Whole


@dataclass(frozen=True)
class Runs:
    """The cells of one column as runs of its codes: each run's first code and its cell, and the number of codes."""

    first: Whole
    cell: Whole
    codes: int

    def cells(self, codes: Codes) -> Whole:
        """Return the cell of each code."""
        if len(self.first) == self.codes:  # every run is a single code
            return self.cell[codes]
        return self.cell[np.searchsorted(self.first, codes.astype(np.int64), side="right") - 1]


@dataclass(frozen=True)
class Partition:
    """The cells of every modeled column but the conditioning one.

    Attributes:
        codec: encoder of the schema whose interval columns have the fine cells.
        merge: one array a column, from fine cell to cell.
        classes: states of the conditioning column, 1 without one.
        class_column: its place among the modeled columns.
    """

    codec: Codec
    merge: tuple[Whole, ...]
    classes: int
    class_column: int | None

    @classmethod
    def fine(cls, schema: Schema, most_cells: int, conditional: bool = True) -> "Partition":
        """Cut every interval column into at most ``most_cells`` cells; condition on a categorical target if asked."""
        codec = Codec(_with_cells(schema, most_cells))
        class_column = schema.class_index if conditional else None
        sizes = [size for index, size in enumerate(codec.cell_sizes) if index != class_column]
        classes = 1 if class_column is None else schema.classes
        return cls(codec, tuple(np.arange(size) for size in sizes), classes, class_column)

    def cut(self, edges: Mapping[int, Whole]) -> "Partition":
        """Return a fine partition in which some interval columns, by their places, are cut at ``edges``."""
        continuous = {name: column for name, column in self.codec.columns.items() if isinstance(column, Continuous)}
        columns = {self.names[index]: continuous[self.names[index]].cut(cut) for index, cut in edges.items()}
        codec = Codec(_with_columns(self.codec.schema, columns))
        sizes = [codec.columns[name].size for name in self.names]
        return Partition(codec, tuple(np.arange(size) for size in sizes), self.classes, self.class_column)

    def edges(self, index: int) -> Whole:
        """Return where the fine cells of an interval column begin and end; nothing of another column."""
        column = self.columns[index]
        return column.edges if isinstance(column, Continuous) else np.zeros(0, dtype=np.int64)

    @property
    def names(self) -> list[str]:
        """List the names of the columns that have cells here, in schema order."""
        return [name for index, name in enumerate(self.codec.columns) if index != self.class_column]

    @property
    def columns(self) -> list[Modelled]:
        """List the columns that have cells here, in schema order."""
        return [c for index, c in enumerate(self.codec.columns.values()) if index != self.class_column]

    @property
    def sizes(self) -> list[int]:
        """Count each column's cells."""
        return [int(merge.max()) + 1 for merge in self.merge]

    @property
    def offsets(self) -> Whole:
        """Return the first coordinate of each column, then the number of all cells."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def runs(self) -> tuple[Runs, ...]:
        """Return each column's cells as runs of codes."""
        return tuple(
            Runs(first_codes(column), merge, code_count(column))
            for column, merge in zip(self.columns, self.merge, strict=True)
        )

    def codes(self, records: Records) -> list[Codes]:
        """Return the codes of the columns that have cells here. Shapes: F arrays of [B]."""
        codes = self.codec.codes_of(records)
        return [column for index, column in enumerate(codes) if index != self.class_column]

    def cells(self, records: Records) -> Whole:
        """Number each record's cells. Shapes: [B, F] int64, column f below ``sizes[f]``."""
        pairs = zip(self.runs, self.codes(records), strict=True)
        return np.stack([runs.cells(codes) for runs, codes in pairs], axis=1)

    def merged(
        self, histograms: list[Whole], least: int | Sequence[int], runs: int | Sequence[int], most_cells: int
    ) -> "Partition":
        """Merge thin cells of a fine partition, by released histograms over all classes.

        Args:
            histograms: one a column, in any unit; may be negative.
            least: what a cell should hold at least, in that unit; of all columns, or one number a column.
            runs: cells that the values of an interval column should be cut into, if each can hold ``least``; likewise.
            most_cells: bound on the cells of all columns together, unless the fewest possible already exceed it.
        """
        most = _water_level(self.sizes, most_cells)
        leasts, parts = ([each] * len(self.columns) if isinstance(each, int) else each for each in (least, runs))
        merge = tuple(
            _merge_interval(counts, column.cells, bound, min(part, most - (column.states - 1)))
            if isinstance(column, Continuous)
            else _merge_rare(counts, bound, most)
            for column, counts, bound, part in zip(self.columns, histograms, leasts, parts, strict=True)
        )
        return Partition(self.codec, merge, self.classes, self.class_column)

    def groups(self, index: int, histogram: Whole, most: int) -> Whole:
        """Put the cells of a column together in at most ``most`` groups: runs of equal mass, or the largest ones.

        States of an interval column without a value keep a group each, beside one of all values at least.

        Args:
            index: place of the column.
            histogram: of its fine cells, released, in any unit; may be negative.
            most: groups at most.

        Shapes: returns the group of every cell, [cells].
        """
        column, counts = self.columns[index], np.zeros(self.sizes[index], dtype=np.int64)
        np.add.at(counts, self.merge[index], histogram)
        if not isinstance(column, Continuous):
            return _merge_rare(counts, int(counts.min()), most)
        values = int(self.merge[index][column.cells - 1]) + 1
        parts = max(most - (len(counts) - values), 1)
        below = np.cumsum(np.maximum(counts[:values], 0))
        ends = [int(np.argmin(np.abs(below - part / parts * below[-1]))) for part in range(1, parts)]
        group = np.searchsorted(np.unique(ends), np.arange(values)) if ends else np.zeros(values, dtype=np.int64)
        group = np.unique(group, return_inverse=True)[1]
        return np.concatenate([group, group[-1] + 1 + np.arange(len(counts) - values)])


def _with_cells(schema: Schema, most: int) -> Schema:
    columns = {
        name: column.model_copy(update={"cells": min(most, column.interval.points or most)})
        if isinstance(column, Continuous)
        else column
        for name, column in schema.columns.items()
    }
    return _with_columns(schema, columns)


def _with_columns(schema: Schema, columns: Mapping[str, Any]) -> Schema:
    return Schema(name=schema.name, unit=schema.unit, target=schema.target, columns={**schema.columns, **columns})


def _water_level(sizes: list[int], most_cells: int) -> int:
    """Return the largest q >= 2 with sum of min(size, q) <= ``most_cells``."""
    level = 2
    while level < max(sizes) and sum(min(size, level + 1) for size in sizes) <= most_cells:
        level += 1
    return level


def _merge_interval(counts: Whole, values: int, least: int, runs: int) -> Whole:
    """Merge the value cells into at most ``runs`` runs; the special states after them keep a cell of their own."""
    runs = max(runs, 1)
    value_counts = counts[:values]  # signed: clipping would let empty cells add their noise up to a mass
    full = max(least, math.ceil(int(value_counts.sum()) / runs), 1)
    while (cell_runs := _cut(value_counts, least, full))[-1] >= runs:
        full += full // 4 + 1
    specials = np.arange(cell_runs[-1] + 1, cell_runs[-1] + 1 + len(counts) - values)
    return np.concatenate([cell_runs, specials])


def _cut(value_counts: Whole, least: int, full: int) -> Whole:
    """Close a run once it holds ``full``, or ``least`` where the next cell is full by itself."""
    cell_runs, run, mass = np.zeros(len(value_counts), dtype=np.int64), 0, 0
    for index, count in enumerate(value_counts.tolist()):
        if mass >= full or (count >= full and mass >= least):
            run, mass = run + 1, 0
        cell_runs[index] = run
        mass += count
    if run > 0 and mass < least:  # the last run is too thin to stand alone
        cell_runs[cell_runs == run] = run - 1
    return cell_runs


def _merge_rare(counts: Whole, least: int, most: int) -> Whole:
    """Give every category of at least ``least`` its own cell, the largest first if there are too many, the rest one."""
    order = np.argsort(-counts, kind="stable")
    frequent = order[: most - 1] if len(counts) > most else order
    frequent = np.sort(frequent[counts[frequent] >= least])
    cells = np.full(len(counts), len(frequent), dtype=np.int64)
    cells[frequent] = np.arange(len(frequent))
    return cells
