"""What three to five columns show together and no two of them do: the interactions in their joint table.

    phi(x) = [ s_t * M_t Q_t onehot(cell_t(x)) ]_t          M_t: the cells of joint table t, the product of its columns'

Q takes all tables of two columns, of one, and the mean away from a joint table: of the terms of its analysis of
variance it keeps those of three columns and more. That of the columns S is the product of I - J / m over the columns in
S and of J / m over the others, where m is the number of cells of a column and J is all ones. So M Q is a matrix of
whole numbers.

Privacy: a record is in one cell of each joint table, and adds the row of M Q that belongs to that cell. Q is an
orthogonal projection, so the squared norm of that row is M^2 Q_xx = M sum_S prod_{i in S} (m_i - 1), S over the sets of
three columns and more: the same number M * free for every cell x, where ``free`` counts what pairs leave open of the
table. So ||phi(x)||^2 = sum_t s_t^2 M_t free_t for *every* record: an equality between integers, whatever the cells
are, which follow from released counts. With at most m rows a unit it is m times that (triangle inequality).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain, combinations
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.encode import Records
from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.partition import Partition
from dpmodels.late import Tensor, torch
from dpmodels.mechanisms.lattice import integer_radius

LEAST_ORDER = 3
"""Columns of the smallest interaction that tables of pairs do not show."""


@dataclass(frozen=True)
class JointTable:
    """Some columns of a partition, each with its cells put together in a few groups.

    Attributes:
        columns: their places in the partition.
        groups: for each column the group of every cell. Shapes: one [cells] a column.
    """

    columns: tuple[int, ...]
    groups: tuple[Whole, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of groups of each column."""
        return tuple(int(group.max()) + 1 for group in self.groups)

    @property
    def cells(self) -> int:
        """Return the number of cells of the table."""
        return math.prod(self.sizes)

    @property
    def free(self) -> int:
        """Return how many numbers the tables of two columns leave open."""
        return sum(math.prod(self.sizes[i] - 1 for i in some) for some in self._interacting())

    def _interacting(self) -> Iterator[tuple[int, ...]]:
        axes = range(len(self.columns))
        return chain.from_iterable(combinations(axes, order) for order in range(LEAST_ORDER, len(axes) + 1))

    def interactions(self, counts: Whole) -> Whole:
        """Return M Q of a table of counts, in whole numbers. Shapes: [m_1, m_2, ...] both."""
        total = np.zeros_like(counts)
        for some in self._interacting():
            term = counts
            for axis, size in enumerate(self.sizes):
                mean = term.sum(axis=axis, keepdims=True)
                term = size * term - mean if axis in some else np.broadcast_to(mean, term.shape)
            total = total + term
        return total

    @cached_property
    def is_interaction(self) -> Any:
        """Tell which coefficients are of interactions: those of three contrasts or more. Shapes: [m_1, m_2, ...]."""
        contrasts: Any = reduce(np.add.outer, [(np.arange(size) > 0).astype(int) for size in self.sizes])
        return contrasts >= LEAST_ORDER

    @property
    def bases(self) -> list[Floats]:
        """Return an orthonormal basis for each column: the constant, then its contrasts. Shapes: [m, m] each."""
        return [contrasts(size) for size in self.sizes]


def contrasts(size: int) -> Floats:
    """Return the constant and Helmert's contrasts of some cells, as the columns of an orthonormal matrix."""
    basis = np.triu(np.ones((size, size)), 1)
    basis[:, 0] = 1
    basis[range(1, size), range(1, size)] = -np.arange(1, size)
    result: Floats = basis / np.sqrt((basis**2).sum(axis=0))
    return result


def turned(table: Floats, bases: Sequence[Floats]) -> Floats:
    """Multiply every axis of a table with a matrix. Shapes: [m_1, ...], one [m_i, k_i] an axis -> [k_1, ...]."""
    for axis, basis in enumerate(bases):
        table = np.moveaxis(np.tensordot(table, basis, axes=(axis, 0)), -1, axis)
    return table


class Interactions(Embedding):
    """The interactions in some joint tables, of about ``norms`` lattice steps a record each.

    Shapes: the vector is the tables one after another, row by row.
    """

    def __init__(self, partition: Partition, tables: Sequence[JointTable], norms: Sequence[int], max_rows: int) -> None:
        self.partition, self.tables, self.norms, self.max_rows = partition, tuple(tables), tuple(norms), max_rows
        self.scales = [
            math.isqrt(norm**2 // max(table.cells * table.free, 1)) if table.free else 0
            for table, norm in zip(self.tables, self.norms, strict=True)
        ]
        self.dim = sum(table.cells for table in self.tables)
        self.l2_sensitivity = max_rows * integer_radius(self.squared_norm)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.partition, self.tables, self.norms, self.max_rows)

    @property
    def squared_norm(self) -> int:
        """Return the squared norm of one record's features, the same for every record, in lattice steps."""
        return sum(s**2 * table.cells * table.free for s, table in zip(self.scales, self.tables, strict=True))

    def lattice_sum(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        cells, sums = self.partition.cells(records), []
        for scale, table in zip(self.scales, self.tables, strict=True):
            groups = [group[cells[:, column]] for column, group in zip(table.columns, table.groups, strict=True)]
            place = np.ravel_multi_index(groups, table.sizes)
            counts = np.bincount(place, minlength=table.cells).reshape(table.sizes)
            sums.append(scale * table.interactions(counts).ravel())
        return torch.from_numpy(np.concatenate(sums))

    def unpack(self, released: Whole) -> list[tuple[JointTable, Floats, float]]:
        """Return every table that has interactions, their coefficients, and what noise of one step makes of each.

        The noise of all coefficients is independent. Shapes: coefficients [m_1, m_2, ...], zero where there is no
        interaction; in records (post-processing).
        """
        parts = np.split(released, np.cumsum([table.cells for table in self.tables])[:-1])
        result = []
        for scale, table, part in zip(self.scales, self.tables, parts, strict=True):
            if table.free:
                step = scale * table.cells
                coefficients = turned(part.reshape(table.sizes) / step, table.bases) * table.is_interaction
                result.append((table, coefficients, 1 / step))
        return result

    @property
    def stddevs(self) -> list[float]:
        """Return for each table what noise of one step makes of a cell of its interactions, in records."""
        steps = [max(scale * table.cells, 1) for scale, table in zip(self.scales, self.tables, strict=True)]
        return [math.sqrt(table.free / table.cells) / step for step, table in zip(steps, self.tables, strict=True)]

    def coordinates(self) -> dict[str, Any]:
        """Name every coordinate of the vector: its table and its cell."""
        return {
            "table": np.repeat(np.arange(len(self.tables)), [table.cells for table in self.tables]),
            "cell": np.concatenate([np.arange(table.cells) for table in self.tables]),
        }
