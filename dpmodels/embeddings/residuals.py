"""Residuals of pairs of columns in place of their counts, in part added up over all classes.

    r(x, y) = (m onehot(x) - 1)(k onehot(y) - 1)'               m and k: the cells of the two columns

    phi(record) = [ a * onehot(x)_i ]_i  (x)  e_class   +   [ s_ij * r(x_i, x_j) ]_{i<j}  (x)  (alpha e_class + beta 1)
                  s_ij: a whole number for every two columns, larger where a workload asks for them

Rows and columns of r sum to zero: all that first moments say of a pair is left out, so noise need not hide it twice.
And since classes share most of how columns depend on each other, a record of any class adds to the blocks of all.

Privacy: of a record's m numbers (m onehot(x) - 1) one is m - 1 and the others are -1, so their squares add up to
(m - 1)^2 + (m - 1) = m (m - 1), and those of the outer product r to m k (m - 1)(k - 1), for *every* record. The factors
of the blocks are alpha + beta once and beta otherwise. So ||phi||^2 = F a^2 + ((alpha + beta)^2 + (classes - 1) beta^2)
sum_ij s_ij^2 m k (m - 1)(k - 1) whatever the record is: an equality between integers, as without residuals.

Reading: sum_x r = m k T - m R 1' - k 1 C' + n 1 1' with the counts T of pairs of cells, their row and column sums R and
C and the n rows, which is m k times T less its means of rows and columns (``centered``): what first moments leave open.
"""

import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpmodels.embeddings.moments import Counts, Floats, Mask, Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import Unsuitable

Mix = tuple[int, int]
"""Alpha and beta: the factor of a record in the block of its class is alpha + beta, and beta in those of the others."""
LEAST_ALPHA = 8
"""Lower bound on about what alpha is where beta is not 0: so finely can what all classes share be weighed."""
LEAST_RATIO = 1 / 64
"""Ratio of beta to alpha below which beta is 0: larger integers would leave less of the lattice for residuals."""


def mix_of(pooled_share: float, classes: int) -> Mix:
    """Return alpha and beta with which the sum over the classes takes about this share of a pair's squared norm.

    The factors of the blocks, alpha e_class + beta 1, are (alpha + beta classes) / classes in each block and what
    departs from that, whose squared norms are (alpha + beta classes)^2 / classes and alpha^2 (1 - 1 / classes). With
    beta = 0 the sum's share is 1 / classes; it is never less.
    """
    ratio = (math.sqrt(pooled_share / (1 - pooled_share) * (classes - 1)) - 1) / classes
    if classes == 1 or ratio < LEAST_RATIO:
        return 1, 0
    beta = max(1, round(LEAST_ALPHA * ratio))
    return round(beta / ratio), beta


def squared_mix(mix: Mix, classes: int) -> int:
    """Return the squared norm of the factors that a record has in the blocks of the classes."""
    alpha, beta = mix
    return (alpha + beta) ** 2 + (classes - 1) * beta**2


def mixed_stddevs(mix: Mix, classes: int) -> tuple[float, float]:
    """Return the standard deviation of the noise of a table: of one class, and of all together.

    Both come from the blocks of the classes. The blocks' mean over alpha + beta classes is the mean of the classes'
    tables, and a block departs from that mean by alpha times what its table does.

    Units: that of the noise in a block whose record has factors of norm 1.
    """
    (alpha, beta), squared = mix, squared_mix(mix, classes)
    whole = squared * classes / (alpha + beta * classes) ** 2
    return math.sqrt(squared * (1 - 1 / classes) / alpha**2 + whole / classes**2), math.sqrt(whole)


def scaled_to(
    norm: int, partition: Partition, paired: Mask, one_way: int, two_way: int, weights: Counts | None = None
) -> tuple[int, int]:
    """Scale the weights of residuals so that their squared norm is at most ``norm``, and hardly less.

    A residual needs (m - 1)(k - 1) / (m k) of the squared norm of a count, which merged cells decide. All divisions
    round towards a smaller norm.
    """
    sizes, needed = partition.sizes, len(partition.sizes) * one_way**2
    for i, j in np.argwhere(np.triu(paired)).tolist():
        m, k = sizes[i], sizes[j]
        steps = two_way * (1 if weights is None else int(weights[i, j]))
        needed += -(-(steps**2) * (m - 1) * (k - 1) // (m * k))
    scaled = math.isqrt(two_way**2 * norm // needed)
    return scaled * one_way // two_way, scaled


def centered(tables: Floats, offsets: Counts) -> Floats:
    """Subtract the means of rows and of columns in every block of two columns. Shapes: [classes, D, D] both."""
    sizes, starts = np.diff(offsets), offsets[:-1]
    tables = tables - np.repeat(np.add.reduceat(tables, starts, axis=1) / sizes[:, None], sizes, axis=1)
    tables -= np.repeat(np.add.reduceat(tables, starts, axis=2) / sizes, sizes, axis=2)
    return tables


class Residuals(Moments):
    """First moments of ``one_way`` lattice steps a record, and residuals of pairs.

    ``two_way`` is the norm, in steps, that a residual of many cells has: s = two_way // (m k |factors of the blocks|).
    ``mix`` is alpha and beta; ``weights`` multiplies s of every two columns, as a workload asks. Shapes: [F, F].
    """

    counts_margins: ClassVar[bool] = False

    def __init__(
        self,
        partition: Partition,
        one_way: int,
        two_way: int,
        max_rows: int,
        paired: Mask | None = None,
        mix: Mix = (1, 0),
        weights: Counts | None = None,
    ) -> None:
        self.mix, self.weights = mix, weights
        self.column_sizes = np.array(partition.sizes)
        super().__init__(partition, one_way, two_way, max_rows, paired)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self.partition, self.one_way, self.two_way, self.max_rows, self.paired, self.mix, self.weights
        return type(self), parts

    @cached_property
    def scales(self) -> Counts:
        """Return s for every two columns; 1 where it does not matter. Shapes: [F, F]."""
        products = np.outer(self.column_sizes, self.column_sizes)
        steps = math.isqrt(self.two_way**2 // squared_mix(self.mix, self.partition.classes))
        scales = (steps if self.weights is None else steps * self.weights) // products
        within = np.outer(self.column_sizes > 1, self.column_sizes > 1) & self.paired
        if not scales[within].all():
            raise Unsuitable(f"two_way is {self.two_way} steps, fewer than pairs of so many cells need; give more")
        return np.where(within, scales, 1)

    @property
    def squared_norm(self) -> int:
        sizes, total = self.partition.sizes, 0
        for i, j in np.argwhere(np.triu(self.paired)).tolist():
            m, k = sizes[i], sizes[j]
            total += int(self.scales[i, j]) ** 2 * m * k * (m - 1) * (k - 1)
        return len(sizes) * self.one_way**2 + squared_mix(self.mix, self.partition.classes) * total

    @cached_property
    def _columns(self) -> tuple[Counts, Counts]:
        """Return the columns of every pair of cells. Shapes: [P] both."""
        column = np.repeat(np.arange(len(self.column_sizes)), self.column_sizes)
        return column[self.first], column[self.second]

    @cached_property
    def steps(self) -> Counts:
        """Return the lattice steps that a whole number among the features stands for. Shapes: [D + P]."""
        return np.concatenate([np.full(self.cells, self.one_way), self.scales[self._columns]])

    def features(self, counts: Counts) -> Counts:
        """Turn counts into sums of r, mixed over the classes. Shapes: [classes, D + P] both."""
        (m, k), ones = (self.column_sizes[column] for column in self._columns), counts[:, : self.cells]
        records = ones[:, : self.column_sizes[0]].sum(axis=1, keepdims=True)
        sums = m * k * counts[:, self.cells :] - m * ones[:, self.first] - k * ones[:, self.second] + records
        alpha, beta = self.mix
        return np.concatenate([ones, alpha * sums + beta * sums.sum(axis=0)], axis=1)

    def _tables(self, blocks: Floats) -> Floats:
        """Take the blocks of the classes apart again, and return the centered counts."""
        (alpha, beta), mean = self.mix, blocks.mean(axis=0)
        sums = (blocks - mean) / alpha + mean / (alpha + beta * self.partition.classes)
        m, k = (self.column_sizes[column] for column in self._columns)
        tables: Floats = sums / (self.scales[self._columns] * m * k)
        return tables

    def unpack(self, released: Counts) -> tuple[Floats, Floats]:
        """Return noisy counts of cells and of pairs of cells: residuals, with the margins that first moments give.

        A table is its residual, plus how its margins depart from their means, plus the number of records over m k. That
        is (mean of the rows' margin + mean of the columns') / (m + k), which weighs two estimates of it by their noise.
        """
        one_way, tables = super().unpack(released)
        sizes, offsets = self.column_sizes, self.partition.offsets
        means = np.add.reduceat(one_way, offsets[:-1], axis=1) / sizes
        size, mean = np.repeat(sizes, sizes), np.repeat(means, sizes, axis=1)
        sides = (one_way - mean)[:, :, None] / size + mean[:, :, None] / (size[:, None] + size)
        paired = np.repeat(np.repeat(self.paired, sizes, axis=0), sizes, axis=1)
        return one_way, (centered(tables, offsets) + sides + sides.transpose(0, 2, 1)) * paired

    @property
    def table_stddevs(self) -> tuple[Floats, Floats]:
        """Return what noise of one step makes of a pair's table: its standard deviation in a class, and in their sum.

        Shapes: two of [F, F], by the two columns; in records, before rows and columns are centered.
        """
        steps = self.scales * np.outer(self.column_sizes, self.column_sizes)
        factors = math.sqrt(squared_mix(self.mix, self.partition.classes))
        class_stddev, shared_stddev = mixed_stddevs(self.mix, self.partition.classes)
        return class_stddev / factors / steps, shared_stddev / factors / steps

    @property
    def count_stddevs(self) -> tuple[Floats, Floats]:
        """Return the standard deviations of the counts that ``unpack`` returns: centered noise and that of margins."""
        of_class, of_sum = zip(*self.count_variances.values(), strict=True)
        return np.sqrt(np.sum(of_class, axis=0)), np.sqrt(np.sum(of_sum, axis=0))

    @property
    def count_variances(self) -> dict[tuple[bool, bool], tuple[Floats, Floats]]:
        m, k, left = self.column_sizes[:, None], self.column_sizes, 1 - 1 / self.column_sizes
        of_margins = {
            (True, False): left[:, None] / k**2,
            (False, True): left / m**2,
            (False, False): 1 / (m * k * (m + k)),
        }
        margins = {over: one / self.one_way**2 for over, one in of_margins.items()}
        of_class, of_sum = (np.outer(left, left) * each**2 for each in self.table_stddevs)
        parts = {over: (one, self.partition.classes * one) for over, one in margins.items()}
        return {**parts, (True, True): (of_class, of_sum)}

    def group_covariance(self, first: int, second: int, cells: tuple[Counts, Counts]) -> Floats:
        sizes = [float(one.sum()) for one in cells]
        parts = [one / size for one, size in zip(cells, sizes, strict=True)]
        left = [np.diag(one) - np.outer(one, part) for one, part in zip(cells, parts, strict=True)]  # by centering
        squares = [np.outer(part, part) for part in parts]
        both = sizes[0] * sizes[1] / (sizes[0] + sizes[1]) * np.kron(*squares)
        margins = np.kron(left[0], squares[1]) + np.kron(squares[0], left[1]) + both
        residuals = self.table_stddevs[1][first, second] ** 2 * np.kron(*left)
        covariance: Floats = residuals + self.partition.classes / self.one_way**2 * margins
        return covariance
