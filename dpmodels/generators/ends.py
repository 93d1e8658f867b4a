"""Both ends of a number column that has many values, and the cells that its synthetic values are drawn from."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.columns import Continuous
from dpmodels.contract.interval import UNIT_STEPS
from dpmodels.generators.denoise import correlated, independent, split_by_halves
from dpmodels.generators.refinements.tails import LEAST_CELLS, Pooled, Tail

DIFFERENT = 6.0
"""By how much better, in variances of the noise, a class's own shape must explain its counts at an end."""


@dataclass(frozen=True)
class Ends:
    """A column, what was measured of its value cells, and what is expected of them.

    Shapes: even [n], the shares of its cells that are expected where there is no tail.
    """

    column: Continuous
    pooled: Pooled
    even: Floats

    @cached_property
    def edges(self) -> Floats:
        """Return the values at which cells begin, and at which the last one ends."""
        return values_at(self.column, self.column.edges)

    @cached_property
    def upper(self) -> Tail | None:
        """Return the tail of large values."""
        return Tail.of(self.pooled, self.edges)

    @cached_property
    def lower(self) -> Tail | None:
        """Return the tail of small values; its cells are counted from the first one on as if that were the last.

        Where both tails would be all that is believed of some cells, as counts are few, there is the upper one alone.
        """
        tail = Tail.of(self.pooled.mirrored, -self.edges[::-1])
        overlaps = tail and self.upper and self.column.cells - 1 - tail.begin > self.upper.begin
        return None if overlaps else tail

    @cached_property
    def group(self) -> Whole:
        """Number what is told apart by counts: cells, and at either end all cells of a tail together. Shapes: [n]."""
        cells = self.column.cells
        first = cells - 1 - self.lower.begin if self.lower else 0
        last = self.upper.begin if self.upper else cells - 1
        return np.clip(np.arange(cells), min(first, last), last) - min(first, last)

    @cached_property
    def expected(self) -> Floats:
        """Return the shares of the cells that are expected, those of tails by their shapes. Shapes: [n]."""
        shares = self.even / self.even.sum()
        shares = _with_tail(shares, self.pooled, self.edges, self.upper)
        return _with_tail(shares[::-1], self.pooled.mirrored, -self.edges[::-1], self.lower)[::-1]

    def joined(self, merge: Whole) -> Whole:
        """Return for every merged cell of values the one that it becomes: those that are all tail join the next.

        Shapes: merge [n] -> [merged cells].
        """
        joined = np.arange(merge.max() + 1)
        for group in (0, self.group.max()):
            ends = np.unique(merge[self.group == group])
            joined[ends] = ends[0] if group else ends[-1]
        return np.unique(joined, return_inverse=True)[1]

    def shares(self, merge: Whole, fine: Floats, noise: float) -> Floats:
        """Estimate how each class spreads over the cells of every merged cell.

        Shapes: merge [n], fine [classes, n] in records -> [classes, n], of sum 1 within a merged cell.
        """
        shares = np.empty_like(fine)
        for cell in range(merge.max() + 1):
            inside = np.flatnonzero(merge == cell)
            group = np.unique(self.group[inside], return_inverse=True)[1]
            pooled = Pooled(self.pooled.counts[inside], self.pooled.covariance[np.ix_(inside, inside)]).grouped(group)
            expected, cells = _sums(group, self.expected[inside]), _sums(group, np.ones(len(group)))
            shape = split_by_halves(pooled.counts, expected, correlated(pooled.covariance))
            spread, within = independent(noise**2 * cells), _within(group, self.expected[inside], 1 / cells[group])
            for label, counts in enumerate(fine[:, inside]):
                shape_of_class = self._class_shape(inside, counts, noise, shape[group] * within)
                split = split_by_halves(_sums(group, counts), _sums(group, shape_of_class), spread)
                shares[label, inside] = split[group] * _within(group, shape_of_class, within)
        return shares

    def _class_shape(self, inside: Whole, counts: Floats, noise: float, shape: Floats) -> Floats:
        """Return the shape of one class in a merged cell at an end: that of all, unless the class has clearly another.

        Shapes: inside, counts and shape [cells of the merged cell].
        """
        sides = inside[-1] == self.column.cells - 1, inside[0] == 0
        if len(inside) < LEAST_CELLS or sides[0] == sides[1] or not (self.upper if sides[0] else self.lower):
            return shape
        edges, way = self.edges[inside[0] : inside[-1] + 2], slice(None)
        if sides[1]:
            edges, way = -edges[::-1], slice(None, None, -1)
        excess = float(shape[way] @ (edges[:-1] + edges[1:])) / 2 / max(float(shape.sum()), 1e-300) - float(edges[0])
        tail = Tail.between(Pooled(counts[way], noise**2 * np.eye(len(counts))), edges, 0, 0, max(excess, 1e-300))
        tail_shape = tail.shares(edges)[way]
        return tail_shape if _misfit(counts, shape) - _misfit(counts, tail_shape) > DIFFERENT * noise**2 else shape

    def parts(self) -> tuple[Whole, Whole, Floats]:
        """Cut the cells of tails into parts: their edges, and the cell and the share of it of each part."""
        edges, cells = self.column.edges, self.column.cells
        cuts = [np.zeros(0)] * cells
        if self.upper:
            cuts[self.upper.fitted :] = self.upper.parts(self.edges[self.upper.fitted :])
        if self.lower:
            last = cells - self.lower.fitted
            cuts[:last] = [-cut for cut in self.lower.parts(-self.edges[last::-1])[::-1]]
        finer = np.unique(np.concatenate([edges, *(steps_at(self.column, cut) for cut in cuts)]))
        cell = np.searchsorted(edges, finer[:-1], side="right") - 1
        shares = np.diff(finer) / np.diff(edges)[cell]
        values = values_at(self.column, finer)
        if self.upper:
            beyond = cell >= self.upper.fitted
            shares[beyond] = self.upper.shares(values[np.flatnonzero(beyond)[0] :])
        if self.lower:
            below = cell <= cells - 1 - self.lower.fitted
            shares[below] = self.lower.shares(-values[np.flatnonzero(below)[-1] + 1 :: -1])[::-1]
        return finer, cell, _within(cell, shares, np.diff(finer) / np.diff(edges)[cell])


def _sums(group: Whole, amounts: Floats) -> Floats:
    """Add up amounts group by group."""
    return np.bincount(group, amounts).astype(np.float64)


def _within(group: Whole, amounts: Floats, otherwise: Floats) -> Floats:
    """Return amounts by the sum of their group, and other shares where that is nothing."""
    sums = _sums(group, amounts)[group]
    return np.where(sums > 0, amounts / np.maximum(sums, 1e-300), otherwise)


def _misfit(counts: Floats, shape: Floats) -> float:
    """Return the least square distance of counts from a multiple of a shape."""
    multiple = max(float(counts @ shape), 0.0) / max(float(shape @ shape), 1e-300)
    return float(((counts - multiple * shape) ** 2).sum())


def _with_tail(shares: Floats, pooled: Pooled, edges: Floats, tail: Tail | None) -> Floats:
    """Expect of a tail's cells what its shape gives them, and of the others what is left."""
    if tail is None:
        return shares
    begin = tail.fitted
    mass = float(np.clip(pooled.counts[begin:].sum() / max(float(pooled.counts.sum()), 1e-12), 0.0, 1.0))
    body = shares[:begin] * (1 - mass) / max(float(shares[:begin].sum()), 1e-300)
    return np.concatenate([body, mass * tail.shares(edges[begin:])])


def values_at(column: Continuous, edges: Whole) -> Floats:
    """Return the values that edges of cells stand for; beyond the last lattice value lies one step more."""
    interval = column.interval
    if interval.points is None:
        return interval.from_unit(edges / UNIT_STEPS)
    within = np.minimum(edges, interval.points - 1).astype(np.float64)
    return interval.value_at(within) + interval.step * (edges - within)


def steps_at(column: Continuous, values: Floats) -> Whole:
    """Return the edges that are nearest to values."""
    interval = column.interval
    return interval.rank(interval.snap(values)).astype(np.int64)
