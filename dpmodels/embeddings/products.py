"""First moments by class, and for every two columns of a wide table one product of plus and minus one.

    phi(x) = [ a * onehot(x)_i (x) e_class ]_i   +   [ s_ij * h_i(x) h_j(x) ]_{i<j}

A released look before cuts the cells of each column in two halves of about the same mass; h_i(x) is 1 in the upper half
and -1 in the lower. A table of k x k cells spreads what two columns have in common over k^2 noisy counts. Where records
are few for so many pairs that would drown, and its one product still stands out.

Privacy: unit and adjacency are the schema's. A record has one cell in each of its F columns, all in the block of its
class, and every product of it is 1 or -1. So ||phi(x)||^2 = F a^2 + sum_ij s_ij^2 for *every* record: an equality
between integers, whatever the halves are, which are a function of released counts. With at most m rows a unit it is m
times that (triangle inequality). Released are the noisy counts of the cells and the noisy sums of the F (F - 1) / 2
products.
"""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpmodels.codec.encode import Records
from dpmodels.embeddings.moments import BLOCK_ROWS, Counts, Floats, Moments, band
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.per_user import UserMoments
from dpmodels.late import torch


def halves_of(histograms: list[Counts]) -> tuple[Counts, ...]:
    """Cut the cells of every column where the counts below come closest to half: -1 below, 1 above.

    A column of one cell is all below.
    """
    halves = []
    for counts in histograms:
        below = np.cumsum(np.maximum(counts, 0))
        last = int(np.argmin(np.abs(2 * below[:-1] - below[-1]))) if len(counts) > 1 else 0
        halves.append(np.where(np.arange(len(counts)) > last, 1, -1))
    return tuple(halves)


class Products(Moments):
    """First moments of ``one_way`` lattice steps a record, and products of ``two_way`` steps.

    ``weights`` multiplies the steps of every two columns, as a workload asks: [F, F] symmetric, whole numbers.

    Shapes: the vector is [classes, D] flattened, D cells by class, then P products, row by row; ``halves`` one array a
    column, [cells], of 1 and -1; ``pairs`` the two columns of every product and ``scales`` its lattice steps, [P] each.
    """

    counts_margins: ClassVar[bool] = False

    def __init__(
        self,
        partition: Partition,
        halves: tuple[Counts, ...],
        one_way: int,
        two_way: int,
        max_rows: int,
        weights: Counts | None = None,
    ) -> None:
        columns = len(partition.sizes)
        self.halves, self.weights, self.pairs = halves, weights, np.triu_indices(columns, 1)
        ones = np.ones(len(self.pairs[0]), dtype=np.int64)
        self.scales: Counts = two_way * (ones if weights is None else weights[self.pairs])
        super().__init__(partition, one_way, 0, max_rows)
        self.two_way, self.paired = two_way, band(columns, columns)
        self.dim = partition.classes * self.cells + len(self.scales)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self.partition, self.halves, self.one_way, self.two_way, self.max_rows, self.weights
        return type(self), parts

    @property
    def squared_norm(self) -> int:
        products = sum(int(scale) ** 2 for scale in self.scales)
        return len(self.partition.sizes) * self.one_way**2 + products

    @cached_property
    def steps(self) -> Counts:
        """Return the lattice steps of every coordinate. Shapes: [dim]."""
        cells = self.partition.classes * self.cells
        return np.concatenate([np.full(cells, self.one_way), self.scales])

    def _counts(self, records: Records, device: "str | torch.device") -> Counts:
        """Count cells by class, and add up products; a block of rows has whole numbers that float32 holds exactly."""
        cells = self.partition.cells(records) + self.partition.offsets[:-1]
        places = cells + self.cells * records.labels(self.partition.class_column)[:, None]
        counts = np.bincount(places.ravel(), minlength=self.partition.classes * self.cells)
        signs = np.concatenate(self.halves).astype(np.float32)
        gram = np.zeros((cells.shape[1],) * 2, dtype=np.int64)
        for start in range(0, len(cells), BLOCK_ROWS):
            block = torch.from_numpy(signs[cells[start : start + BLOCK_ROWS]]).to(device)
            gram += (block.T @ block).to(torch.int64).cpu().numpy()
        return np.concatenate([counts, gram[self.pairs]])

    def unpack_cells(self, released: Counts) -> Floats:
        """Return the noisy counts of cells alone (post-processing). Shapes: [classes, D], in records."""
        cells: Floats = released[: self.partition.classes * self.cells] / self.one_way
        return cells.reshape(self.partition.classes, -1)

    def unpack(self, released: Counts) -> tuple[Floats, Floats]:
        """Return the noisy counts of cells, and no table of pairs of cells. Shapes: [classes, D], [classes, 0, 0]."""
        return self.unpack_cells(released), np.zeros((self.partition.classes, 0, 0))

    def unpack_products(self, released: Counts) -> tuple[Floats, Floats]:
        """Return the noisy sums of products, and what noise of one step makes of each. Shapes: [F, F] symmetric."""
        sums, stddevs = np.zeros(self.paired.shape), np.zeros(self.paired.shape)
        sums[self.pairs] = released[self.partition.classes * self.cells :] / self.scales
        stddevs[self.pairs] = 1 / self.scales
        return sums + sums.T, stddevs + stddevs.T

    def unpack_halves(self, released: Counts) -> tuple[Floats, Floats]:
        """Return the noisy sums of every h_i, and of the records as each column counts them. Shapes: [F] both."""
        counts, starts = self.unpack_cells(released).sum(axis=0), self.partition.offsets[:-1]
        return np.add.reduceat(counts * np.concatenate(self.halves), starts), np.add.reduceat(counts, starts)

    @property
    def count_stddevs(self) -> tuple[Floats, Floats]:
        """Return what noise of one step makes of a count of two halves, of all classes together; classes have none.

        A count is (n_ij + b m_i + c m_j + b c p) / 4 with the signs b and c of the halves, the sums m of h, the sum p
        of the product, and the records n_ij, the mean of what both columns count. Shapes: [F, F] both.
        """
        stddevs: Floats = np.sqrt(np.sum([one for one, _ in self.count_variances.values()], axis=0))
        return stddevs, stddevs

    @property
    def count_variances(self) -> dict[tuple[bool, bool], tuple[Floats, Floats]]:
        cells = np.array(self.partition.sizes) * self.partition.classes / self.one_way**2
        product = np.zeros((len(cells), len(cells)))
        product[self.pairs] = 1.0 / self.scales.astype(np.float64) ** 2
        first = np.broadcast_to(cells[:, None], product.shape)
        records = (first + first.T) / 4
        parts = {
            (True, False): first,
            (False, True): first.T,
            (False, False): records,
            (True, True): product + product.T,
        }
        return {over: (one / 16, one / 16) for over, one in parts.items()}

    def coordinates(self) -> dict[str, Any]:
        """Name every coordinate: class and cell, or no class and the uppermost cells of the two columns."""
        classes, uppermost = self.partition.classes, self.partition.offsets[1:] - 1
        first, second = (uppermost[each] for each in self.pairs)
        return {
            "class": np.concatenate([np.repeat(np.arange(classes), self.cells), np.full(len(first), -1)]),
            "first_cell": np.concatenate([np.tile(np.arange(self.cells), classes), first]),
            "second_cell": np.concatenate([np.full(classes * self.cells, -1), second]),
        }


class UserProducts(UserMoments, Products):
    """Products of users' rows; its steps are those of a user with one row."""
