"""Contingency tables of a column and its candidate parents, and how far each is from independence.

Every column has cells and, where that gives fewer, coarse cells made of them; a *view* is a column at one of the two:
view 2c is column c by its cells, view 2c + 1 by its coarse cells. A family is a child column and its parents' views.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Whole
from dpmodels.codec.encode import Records
from dpmodels.contract.columns import Continuous
from dpmodels.embeddings.partition import Partition
from dpmodels.privacy import Sensitive

SHARE_BITS = 16
"""Shares of a column's cells are whole multiples of 2**-16."""
SCORE_STEP = 2 ** (SHARE_BITS + 1)
"""One record of a dependence score, in score steps."""


@dataclass(frozen=True)
class Family:
    """A child column and the views of its parents."""

    child: int
    parents: tuple[int, ...]


@dataclass(frozen=True)
class Views:
    """The cells and the coarse cells of every column; a partition without a conditioning column. All released."""

    partition: Partition
    coarse: tuple[Whole, ...]

    @classmethod
    def of(cls, partition: Partition, histograms: Sequence[Whole], groups: int) -> "Views":
        """Group cells into about ``groups`` of equal mass, by released histograms over the partition's cells."""
        coarse = []
        for column, merge, counts in zip(partition.columns, partition.merge, histograms, strict=True):
            values = int(merge[column.cells - 1]) + 1 if isinstance(column, Continuous) else 0
            coarse.append(_group(np.maximum(counts, 0), values, groups))
        return cls(partition, tuple(coarse))

    @cached_property
    def sizes(self) -> list[int]:
        """Count the cells of every view."""
        pairs = zip(self.partition.sizes, self.coarse, strict=True)
        return [size for fine, coarse in pairs for size in (fine, int(coarse.max()) + 1)]

    def of_column(self, column: int) -> tuple[int, ...]:
        """List the views of a column that differ."""
        fine, coarse = self.sizes[2 * column : 2 * column + 2]
        return (2 * column, 2 * column + 1) if coarse < fine else (2 * column,)

    def shape(self, family: Family) -> tuple[int, int]:
        """Return the sizes of a family's table: combinations of its parents' cells, cells of the child."""
        return math.prod(self.sizes[view] for view in family.parents), self.sizes[2 * family.child]

    def codes(self, view: int, cells: Whole) -> Whole:
        """Return the codes of a view for a column's cells."""
        return self.coarse[view // 2][cells] if view % 2 else cells

    def rows_of(self, family: Family, cells: Sequence[Whole]) -> Whole:
        """Number the combination of the parents' cells. Shapes: ``cells[c]`` is [B]; returns [B]."""
        code = np.zeros(len(cells[family.child]), dtype=np.int64)
        for view in family.parents:
            code = code * self.sizes[view] + self.codes(view, cells[view // 2])
        return code


class ContingencyTables:
    """Counts any contingency table of a set of records; what it returns is ``Sensitive``.

    Privacy: keeps the cells of every record in memory, F integers of one or two bytes a record.
    """

    def __init__(self, views: Views, batches: Sensitive[Iterable[Records]]) -> None:
        kind, sizes = np.min_scalar_type(max(views.partition.sizes)), views.partition.sizes
        parts = [views.partition.cells(records).astype(kind) for records in batches.reveal()]
        whole = np.concatenate([np.zeros((0, len(sizes)), dtype=kind), *parts])
        self._cells = Sensitive([np.ascontiguousarray(column) for column in whole.T])
        self._views = views
        self._scores: dict[Family, Sensitive[int]] = {}

    def transform_scores(
        self, families: Sequence[Family], shares: Sequence[Whole], penalties: Sequence[int]
    ) -> Sensitive[NDArray[np.int64]]:
        """Score each family by the distance of its table from independence, less a public penalty.

            score = sum over parents' cells r and cells x of | 2^16 N[r, x] - P[x] N[r] |,     N[r] = sum_x N[r, x]

        ``shares[c]`` are the *released* shares P of column c's cells, non-negative and of sum 2**16. No private count
        is divided by: 2 n times the total variation distance, had P been the true shares.

        Privacy: a record in (r', x') changes row r' alone, by 2^16 [x = x'] - P[x], of which the absolute sum is
            2^16 - P[x'] + sum_{x != x'} P[x] = 2 (2^16 - P[x']) <= 2^17 = ``SCORE_STEP``. By the triangle inequality
            a score moves by at most one SCORE_STEP a record; the penalty does not move.
        """
        for family in families:
            if family not in self._scores:
                table = self._table(family)
                distance = (table << SHARE_BITS) - table.sum(axis=1, keepdims=True) * shares[family.child]
                self._scores[family] = Sensitive(int(np.abs(distance).sum()))
        scores = [self._scores[family].reveal() for family in families]
        return Sensitive(np.array(scores, dtype=np.int64) - np.array(penalties, dtype=np.int64))

    def transform_tables(self, families: Sequence[Family], steps: Sequence[int]) -> Sensitive[NDArray[np.int64]]:
        """Count the tables of families, flattened one after the other, table t in units of ``steps[t]`` a record.

        Privacy: a record is in one cell of each table, so it moves the vector by exactly sqrt(sum steps^2) in L2 norm
            and by sum steps in L1 norm.
        """
        tables = [self._table(family).ravel() * step for family, step in zip(families, steps, strict=True)]
        return Sensitive(np.concatenate(tables))

    def _table(self, family: Family) -> NDArray[np.int64]:
        """Count one table. Shapes: ``views.shape(family)``."""
        cells, shape = self._cells.reveal(), self._views.shape(family)
        code = self._views.rows_of(family, cells) * shape[1] + cells[family.child]
        counts: NDArray[np.int64] = np.bincount(code, minlength=shape[0] * shape[1]).reshape(shape)
        return counts


def _group(counts: Whole, values: int, groups: int) -> Whole:
    """Group the first ``values`` cells, which are ordered, into runs of about equal mass; keep the largest others."""
    ordered, rest = counts[:values], counts[values:]
    middle = np.cumsum(ordered) - ordered / 2
    run = np.unique((groups * middle / max(int(ordered.sum()), 1)).astype(np.int64), return_inverse=True)[1]
    first = int(run.max()) + 1 if values else 0
    if values or len(rest) <= groups:  # special states of an interval are few
        return np.concatenate([run, first + np.arange(len(rest))]).astype(np.int64)
    group = np.full(len(rest), groups - 1)
    group[np.sort(np.argsort(-rest, kind="stable")[: groups - 1])] = np.arange(groups - 1)
    return group.astype(np.int64)
