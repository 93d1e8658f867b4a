"""One-way counts that a release states, with their known noise; each system's ``marginals`` method returns its own.

Privacy: post-processing of released vectors and public noise scales.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.products import Products
from dpmodels.generators.ends import Ends
from dpmodels.generators.targets import column_estimates, with_fine_counts
from dpmodels.releases.steps import NoisySum

FINE_CELLS = 256


@dataclass(frozen=True)
class Marginal:
    """What a release says about the counts of one column.

    Attributes:
        counts, stddev: the released counts of its fine cells, and the noise_stddev of each. Shapes: [fine cells].
        cell_of: the cell that each fine cell belongs to. Shapes: [fine cells].
        pooled, pooled_stddev: the counts of its cells, averaged over everything that was released about them, and the
            noise_stddev of these averages. Shapes: [cells].
        by_class: the same by class of the target, counts and their noise_stddev, in a release that counts by class.
            Shapes: [classes, cells] both.
        ends: all that was measured of the values of a column that has many; None where the counts are all there is.
    """

    counts: Floats
    stddev: float
    cell_of: NDArray[np.int64]
    pooled: Floats
    pooled_stddev: Floats
    ends: Ends | None = None
    by_class: tuple[Floats, Floats] | None = None

    @classmethod
    def plain(cls, counts: Floats, stddev: float) -> "Marginal":
        """Return a marginal that was measured once, in its fine cells."""
        return cls(counts, stddev, np.arange(len(counts)), counts, np.full(len(counts), stddev))

    @classmethod
    def of_classes(cls, counts: Floats, stddev: float) -> "Marginal":
        """Return one that was measured once, in its fine cells, by class. Shapes: ``counts`` [classes, fine cells]."""
        once = cls.plain(counts.sum(axis=0), math.sqrt(len(counts)) * stddev)
        return replace(once, by_class=(counts, np.full(counts.shape, stddev)))

    def without_classes(self) -> "Marginal":
        """Return the same without counts by class, as where there is one class, of all records."""
        return replace(self, by_class=None)

    def adding_up_to(self, records: float) -> "Marginal":
        """Return the averages as they are once their sum is known: each takes its part of what the noise adds up to.

        The part of a cell is that of its variance v in the variance V of the sum; what is left is v (1 - v / V).
        """
        variance = self.pooled_stddev**2
        part = variance / max(float(variance.sum()), 1e-300)
        averages = self.pooled + part * (records - self.pooled.sum())
        return replace(self, pooled=averages, pooled_stddev=self.pooled_stddev * np.sqrt(1 - part))


@dataclass(frozen=True)
class Marginals:
    """What a release says about one-way counts, without any smoothing.

    Attributes:
        codec: the codec whose cells are counted.
        columns: the marginals by column; a column that the release says nothing direct about is left out.
        pair_stddev: noise_stddev of the count of one pair of cells of two columns, if pairs were released.
        pair_cells: number of cells that a column has in these pairs, on average.
    """

    codec: Codec
    columns: dict[str, Marginal]
    pair_stddev: float | None = None
    pair_cells: float | None = None

    @property
    def records(self) -> float:
        """Return the number of records, estimated from the column whose noisy counts add up with the least noise."""
        return max(float(self._best.counts.sum()), 1.0)

    @property
    def records_stddev(self) -> float:
        """Return the noise_stddev of this number."""
        return self._best.stddev * math.sqrt(len(self._best.counts))

    @property
    def _best(self) -> Marginal:
        noise = {name: one.stddev**2 * len(one.counts) for name, one in self.columns.items()}
        return self.columns[min(noise, key=lambda name: noise[name])]


@dataclass(frozen=True)
class NoisyTable:
    """Counts of the combinations of cells of one or several columns, as they were released.

    Attributes:
        names: the columns; cells_of: for each of them the cell that each fine cell of the codec belongs to.
        counts: one axis a column. Shapes: [cells of the first column, cells of the second, ...].
        stddev: the noise_stddev of each count, or of all of them.
        independent: whether the noise of each count is independent of that of all others, and counts may be added up.
        by_class: whether the first column is the target, over whose classes counts may be added up.
        variances: of the parts of the noise of a count, which are independent of each other: each adds up to nothing
            over the columns that it is named by, and is the same along all others. Empty where every count has noise of
            its own.
    """

    names: tuple[str, ...]
    cells_of: tuple[NDArray[np.int64], ...]
    counts: Floats
    stddev: Floats | float
    independent: bool = False
    by_class: bool = False
    variances: Mapping[frozenset[str], Floats | float] = field(default_factory=dict)

    def over(self, names: Sequence[str]) -> "NoisyTable | None":
        """Return the counts of some of the columns, in their order; None if others are there of unknown total noise."""
        if not set(names) <= set(self.names):
            return None
        kept = [self.names.index(name) for name in names]
        dropped = [axis for axis in range(len(self.names)) if axis not in kept]
        if dropped and not self.independent and not (self.by_class and dropped == [0]):
            return None
        size = math.prod(self.counts.shape[axis] for axis in dropped)

        def added_up(values: Floats | float) -> Floats:
            turned = np.transpose(np.broadcast_to(values, self.counts.shape), [*kept, *dropped])
            total: Floats = turned.reshape(*turned.shape[: len(kept)], -1).sum(axis=-1)
            return total

        left = {over: size * added_up(one) for over, one in self.variances.items() if over <= {*names}}
        variance = sum(left.values()) if left else added_up(np.square(self.stddev))
        merges = tuple(self.cells_of[axis] for axis in kept)
        return NoisyTable(tuple(names), merges, added_up(self.counts), np.sqrt(variance), variances=left)

    def compared(self, along: Collection[str]) -> "NoisyTable":
        """Return counts that are to be compared along some columns, by sums whose weights add up to nothing.

        Of n counts along these let each have noise of the variance v, of which it shares w with all others, while the
        rest adds up to nothing. The sum has the noise that it would have of independent noise of (v - w) n / (n - 1).
        """
        size = math.prod(self.counts.shape[self.names.index(name)] for name in along)
        if not self.variances or size < 2:
            return self
        variance = (np.square(self.stddev) - self._shared(along)) * size / (size - 1)
        return replace(self, stddev=np.sqrt(np.maximum(variance, 0.0)))

    def total_variance(self, along: Collection[str]) -> Floats:
        """Return the variance of the noise of counts that are added up along some columns. Shape: of all others."""
        axes = tuple(self.names.index(name) for name in along)
        size = math.prod(self.counts.shape[axis] for axis in axes)
        each = size * self._shared(along) if self.variances else np.square(self.stddev)
        total: Floats = np.broadcast_to(each, self.counts.shape).sum(axis=axes)
        return total

    def _shared(self, along: Collection[str]) -> Floats | float:
        """Return the variance of the noise that a count has in common with all others along some columns."""
        return sum((one for over, one in self.variances.items() if over.isdisjoint(along)), start=0.0)


def fine_codec(schema: Schema) -> Codec:
    """Return an encoder with cells fine enough to draw from."""
    return Partition.fine(schema, FINE_CELLS, conditional=False).codec


def of_classes(schema: Schema, counts: Floats, stddev: float) -> Marginals | None:
    """Return the counts of the target's classes, from a release that counts nothing else; None without classes."""
    if not len(counts) == schema.classes > 1:
        return None
    one = Marginal.plain(counts.astype(np.float64), stddev)
    return Marginals(fine_codec(schema), {str(schema.target): one})


def of_moments(embedding: Moments, vector: NDArray[np.int64], steps: float) -> Marginals:
    """Add every column's counts up over the classes; weight the columns' totals of a class by inverse variances."""
    partition, noise = embedding.partition, steps / embedding.one_way
    counts = embedding.unpack(vector)[0]
    parts = [counts[:, a:b] for a, b in zip(partition.offsets[:-1], partition.offsets[1:], strict=True)]
    columns = [Marginal.of_classes(part, noise) for part in parts]
    if partition.class_column is None:
        columns = [column.without_classes() for column in columns]
    else:
        weights = np.array([1 / part.shape[1] for part in parts])
        label = np.average([part.sum(axis=1) for part in parts], axis=0, weights=weights)
        columns.insert(partition.class_column, Marginal.plain(label, noise / math.sqrt(weights.sum())))
    return Marginals(partition.codec, dict(zip(partition.codec.columns, columns, strict=True)))


def moment_tables(once: NoisySum) -> Iterator[NoisyTable]:
    """Yield the tables that noisy moments are made of: of each column and each pair of columns, by class."""
    moments: Moments = once.embedding
    partition, codec = moments.partition, moments.partition.codec
    names = [name for index, name in enumerate(codec.columns) if index != partition.class_column]
    label = () if partition.class_column is None else (list(codec.columns)[partition.class_column],)
    classes = () if partition.class_column is None else (np.arange(partition.classes),)
    one_way, pairs = moments.unpack(once.vector)
    stddevs = once.noise_stddev * moments.count_stddevs[0] if moments.paired.any() else np.empty(0)
    cells = [slice(a, b) for a, b in pairwise(partition.offsets)]

    def table(counts: Floats, columns: tuple[int, ...], stddev: float) -> NoisyTable:
        shape, is_one = counts.shape if label else counts.shape[1:], len(columns) == 1
        column_names, merges = tuple(names[i] for i in columns), tuple(partition.merge[i] for i in columns)
        variances = {} if is_one else _variances(once, columns[0], columns[1], column_names, label)
        all_names, all_merges = label + column_names, classes + merges
        return NoisyTable(all_names, all_merges, counts.reshape(shape), stddev, is_one, bool(label), variances)

    for i in range(len(names)):
        yield table(one_way[:, cells[i]], (i,), once.noise_stddev / moments.one_way)
    if isinstance(moments, Products):
        yield from _tables_of_halves(moments, once, names)
        return
    for i in range(len(names)):
        for j in (i + 1 + np.flatnonzero(moments.paired[i, i + 1 :])).tolist():
            yield table(pairs[:, cells[i], cells[j]], (i, j), float(stddevs[i, j]))


def _variances(
    once: NoisySum, first: int, second: int, names: tuple[str, ...], label: tuple[str, ...] = ()
) -> dict[frozenset[str], float]:
    """Return the parts of the noise of the counts of two columns, by the classes of the target or of all together."""
    classes, variances = once.embedding.partition.classes, dict[frozenset[str], float]()
    for over, parts in once.embedding.count_variances.items():
        of_class, of_sum = (float(one[first, second]) * once.noise_stddev**2 for one in parts)
        columns = frozenset(name for name, is_over in zip(names, over, strict=True) if is_over)
        variances[columns] = of_sum / classes**2 if label else of_sum
        if label:
            variances[columns | {*label}] = max(of_class - of_sum / classes**2, 0.0)
    return variances


def _tables_of_halves(moments: Products, once: NoisySum, names: Sequence[str]) -> Iterator[NoisyTable]:
    """Yield the counts of the halves of every two columns, which their margins and one product give."""
    (sums, _), (margins, records) = moments.unpack_products(once.vector), moments.unpack_halves(once.vector)
    signs = np.array([-1.0, 1.0])
    stddevs = once.noise_stddev * moments.count_stddevs[0]
    cells = zip(moments.halves, moments.partition.merge, strict=True)
    halves = [(half[merge] > 0).astype(np.int64) for half, merge in cells]
    for i, j in np.stack(moments.pairs, axis=1).tolist():
        sides = signs[:, None] * margins[i] + signs * margins[j] + np.outer(signs, signs) * sums[i, j]
        counts = ((records[i] + records[j]) / 2 + sides) / 4
        pair, variances = (names[i], names[j]), _variances(once, i, j, (names[i], names[j]))
        yield NoisyTable(pair, (halves[i], halves[j]), counts, float(stddevs[i, j]), variances=variances)


def with_pairs(
    marginals: Marginals,
    first: Moments,
    fine: NDArray[np.int64],
    moments: Moments,
    vector: NDArray[np.int64],
    steps: float,
) -> Marginals:
    """Average all estimates of a column's merged cells: from fine cells, own counts, and every table they are in."""
    partition = moments.partition
    parts = first.unpack(fine)[0], *moments.unpack(vector)
    names = [name for index, name in enumerate(marginals.codec.columns) if index != partition.class_column]
    columns = dict(marginals.columns)
    for index, name in enumerate(names):
        averages = list[tuple[Floats, Floats]]()
        for fine_counts, one_way, pairs in zip(*parts, strict=True):
            once_more = column_estimates(moments, one_way, pairs, index)
            averages.append(pooled(*with_fine_counts(once_more, first, moments, fine_counts, index)))
        by_class, deviations = (np.stack(each) for each in zip(*averages, strict=True))
        once, stddevs = marginals.columns[name], steps * deviations
        together = by_class.sum(axis=0), np.sqrt((stddevs**2).sum(axis=0))
        one = Marginal(once.counts, once.stddev, partition.merge[index], *together, None, (by_class, stddevs))
        columns[name] = one if once.by_class is not None else one.without_classes()
    pair_stddev = steps * float(moments.count_stddevs[1][moments.paired].mean()) if moments.paired.any() else None
    cells = 2.0 if isinstance(moments, Products) else float(np.mean(partition.sizes))
    return Marginals(marginals.codec, columns, pair_stddev, cells)


def pooled(estimates: Sequence[Floats], variances: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Average estimates of the same cells by inverse variances; return the averages and their standard deviations."""
    weights = 1 / np.stack(variances)
    return np.average(np.stack(estimates), axis=0, weights=weights), 1 / np.sqrt(weights.sum(axis=0))
