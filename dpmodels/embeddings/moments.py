"""Moments of the one-hot record, conditional on the class: all one-way and two-way marginals of every class.

    phi(x) = [ a * onehot(x)_i ]_i  +  [ b * onehot(x)_i onehot(x)_j ]_{i<j, of different columns}     (x)  e_class(x)

A wide table has too many pairs of columns for its number of rows. There only some are measured: those of columns that
follow each other in the schema's order, which is public, or those that a look before chose.

Privacy: a record has one cell in each of its F columns, and one in the table of each of P pairs of columns: exactly F
first and P second moments are not zero, all in the block of its class. ||phi(x)||^2 = F a^2 + P b^2 for *every* record,
where a and b are whole lattice steps: the bound is an equality between integers. With at most m rows a unit it is m
times that (triangle inequality).
"""

import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.codec.encode import Records
from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.kernels import COMPILED_ROWS, CellFinder, count_moments
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import Unsuitable
from dpmodels.late import Tensor, compiled, torch
from dpmodels.mechanisms.lattice import integer_radius

BLOCK_ROWS = 4096
"""Rows multiplied at once. Below 2**24 every float32 product of one-hot rows is an exact integer."""

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]


def pairs_within(columns: int, reach: int) -> int:
    """Count the pairs of columns that are at most ``reach`` apart."""
    reach = min(reach, columns - 1)
    return reach * columns - reach * (reach + 1) // 2


def band(columns: int, reach: int) -> Mask:
    """Return the pairs of columns that are at most ``reach`` apart. Shapes: [F, F] symmetric."""
    apart = np.abs(np.arange(columns)[:, None] - np.arange(columns))
    paired: Mask = (apart > 0) & (apart <= reach)
    return paired


def _paired_cells(partition: Partition, paired: Mask) -> tuple[Counts, Counts]:
    """List the pairs of cells of paired columns, row by row."""
    sizes, offsets = partition.sizes, partition.offsets
    first, second = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for index, later in enumerate(np.triu(paired)):
        cells = [np.arange(offsets[other], offsets[other + 1]) for other in np.flatnonzero(later)]
        if cells:
            row = np.concatenate(cells)
            first.append(np.repeat(np.arange(offsets[index], offsets[index + 1]), len(row)))
            second.append(np.tile(row, sizes[index]))
    return np.concatenate(first), np.concatenate(second)


class Moments(Embedding):
    """First moments of ``one_way`` lattice steps a record and second moments of ``two_way`` (0: none).

    ``paired``: which two columns are measured together, [F, F] symmetric; without it, all of them.

    Shapes: the vector is [classes, D + P] flattened: D cells, then P pairs of cells of paired columns, row by row.

    Attributes:
        counts_margins: whether the tables of pairs say anything about their rows and columns that first moments do not.
    """

    counts_margins: ClassVar[bool] = True

    def __init__(
        self, partition: Partition, one_way: int, two_way: int, max_rows: int, paired: Mask | None = None
    ) -> None:
        if one_way < 1 or two_way < 0:
            raise Unsuitable(f"counts weigh {one_way} and {two_way} steps one way and two way; give at least 1 and 0")
        self.partition, self.one_way, self.two_way, self.max_rows = partition, one_way, two_way, max_rows
        columns = len(partition.sizes)
        self.paired = band(columns, columns if two_way else 0) if paired is None or not two_way else paired
        self.cells = int(partition.offsets[-1])
        self.first, self.second = _paired_cells(partition, self.paired)
        self.dim = partition.classes * (self.cells + len(self.first))
        self.l2_sensitivity = max_rows * integer_radius(self.squared_norm)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as what it is made of, a hundredth of the size."""
        return type(self), (self.partition, self.one_way, self.two_way, self.max_rows, self.paired)

    @property
    def squared_norm(self) -> int:
        """Return the squared norm of one record's features, the same for every record, in lattice steps."""
        return len(self.partition.sizes) * self.one_way**2 + int(np.triu(self.paired).sum()) * self.two_way**2

    @cached_property
    def steps(self) -> Counts:
        """Return the lattice steps that a whole number among the features stands for. Shapes: [D + P]."""
        return np.repeat([self.one_way, self.two_way], [self.cells, len(self.first)])

    @property
    def table_stddevs(self) -> tuple[Floats, Floats]:
        """Return what noise of one step makes of a pair's table: its standard deviation in a class, and in their sum.

        Shapes: two of [F, F], by the two columns; in records.
        """
        class_stddevs = np.full((len(self.partition.sizes),) * 2, 1 / self.two_way)
        return class_stddevs, class_stddevs * math.sqrt(self.partition.classes)

    @property
    def count_stddevs(self) -> tuple[Floats, Floats]:
        """Return the same of the counts of pairs of cells that ``unpack`` returns."""
        return self.table_stddevs

    @property
    def count_variances(self) -> dict[tuple[bool, bool], tuple[Floats, Floats]]:
        """Return the squares of ``count_stddevs`` as parts of independent noise; none where all counts have their own.

        Each adds up to nothing over those of the two columns that its key names, and is the same along the other one.
        """
        return {}

    def group_covariance(self, first: int, second: int, cells: tuple[Counts, Counts]) -> Floats:
        """Return what noise of one step makes of the counts of two columns in groups of cells, of all classes.

        Shapes: ``cells`` how many there are in each group of the columns, [g] and [h] -> [g h, g h], row by row; in
        records squared.
        """
        covariance: Floats = self.table_stddevs[1][first, second] ** 2 * np.diag(np.outer(*cells).ravel())
        return covariance

    def lattice_sum(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        return self.weighed_sum(records, device, 1)

    def weighed_sum(self, records: Records, device: "str | torch.device", share: int) -> Tensor:
        """Sum the features of a batch with every step divided by ``share``, rounded down."""
        sums = self.features(self._counts(records, device)) * (self.steps // share)
        return torch.from_numpy(sums.ravel())

    def features(self, counts: Counts) -> Counts:
        """Turn counts into whole numbers that a record adds to, by a linear map. Shapes: [classes, D + P] both."""
        return counts

    def _counts(self, records: Records, device: "str | torch.device") -> Counts:
        """Count cells and pairs of cells: by a compiled loop, or by Gram products where rows are few or on a GPU."""
        if torch.device(device).type == "cpu" and len(records) >= COMPILED_ROWS:
            return self._counted(records).reshape(self.partition.classes, -1)
        cells = torch.from_numpy(self.partition.cells(records) + self.partition.offsets[:-1]).to(device)
        label = torch.from_numpy(records.labels(self.partition.class_column)).to(device)
        classes = [self._class_counts(cells[label == c]) for c in range(self.partition.classes)]
        counts: Counts = torch.stack(classes).cpu().numpy()
        return counts

    def _counted(self, records: Records) -> Counts:
        cells = np.empty((len(self._finders), len(records)), dtype=np.uint32)
        for finder, codes, out in zip(self._finders, self.partition.codes(records), cells, strict=True):
            finder.find(codes, out)
        label, offsets = records.labels(self.partition.class_column), self.partition.offsets
        pair_counts = np.bincount(self.first, minlength=self.cells)  # pairs that begin with each cell
        before, width = np.cumsum(pair_counts) - pair_counts, self.dim // self.partition.classes
        later = np.triu(self.paired) * np.array(self.partition.sizes)
        place = np.where(later > 0, np.cumsum(later, axis=1) - later, -1)  # of the pairs with another column's cells
        vector = np.zeros(self.dim, dtype=np.int64)
        compiled(count_moments)(cells, label, offsets, before, place, width, vector)
        return vector

    @cached_property
    def _finders(self) -> list[CellFinder]:
        return [CellFinder(runs.first, runs.cell, runs.codes) for runs in self.partition.runs]

    def _class_counts(self, cells: Tensor) -> Tensor:
        ones = torch.bincount(cells.flatten(), minlength=self.cells)
        if not self.two_way:
            return ones
        gram = torch.zeros(self.cells, self.cells, dtype=torch.int64, device=cells.device)
        for block in torch.split(cells, BLOCK_ROWS):
            one_hot = torch.zeros(len(block), self.cells, device=cells.device).scatter_(1, block, 1.0)
            gram += (one_hot.T @ one_hot).to(torch.int64)
        return torch.cat([ones, gram[self.first, self.second]])

    def unpack_cells(self, released: Counts) -> Floats:
        """Return the noisy counts of cells alone (post-processing). Shapes: [classes, D], in records."""
        cells: Floats = released.reshape(self.partition.classes, -1)[:, : self.cells] / self.one_way
        return cells

    def unpack(self, released: Counts) -> tuple[Floats, Floats]:
        """Split a released vector into noisy counts of cells and of pairs of cells (post-processing).

        Shapes: [classes, D] and symmetric [classes, D, D], zero where nothing was measured; in records. Without
        second moments the latter is [classes, 0, 0], for D may be large.
        """
        blocks = released.reshape(self.partition.classes, -1).astype(np.float64)
        side = self.cells if self.two_way else 0
        pairs = np.zeros((len(blocks), side, side))
        if self.two_way:
            pairs[:, self.first, self.second] = self._tables(blocks[:, self.cells :])
        return blocks[:, : self.cells] / self.one_way, pairs + pairs.transpose(0, 2, 1)

    def _tables(self, blocks: Floats) -> Floats:
        """Turn what was released of pairs into records. Shapes: [classes, P] both."""
        return blocks / self.two_way

    def coordinates(self) -> dict[str, Any]:
        """Name every coordinate of the vector: its class and its one or two cells (-1: none)."""
        classes = self.partition.classes
        first = np.concatenate([np.arange(self.cells), self.first])
        second = np.concatenate([np.full(self.cells, -1), self.second])
        return {
            "class": np.repeat(np.arange(classes), len(first)),
            "first_cell": np.tile(first, classes),
            "second_cell": np.tile(second, classes),
        }
