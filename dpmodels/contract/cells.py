"""The cells of an interval: the ranges that its values are counted in, and how a value is drawn inside one of them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.arrays import Floats, Indices, Whole
from dpmodels.contract.interval import UNIT_STEPS, Interval


@dataclass(frozen=True, eq=False)
class Cells(ABC):
    """Cells that lie side by side, upwards.

    Attributes:
        interval: the values that are cut into cells.
        edges: where each cell begins, then where the last one ends: ranks of lattice points, or steps of the unit
            interval without a lattice.
    """

    interval: Interval
    edges: Whole

    @property
    def count(self) -> int:
        """Count the cells."""
        return len(self.edges) - 1

    @abstractmethod
    def of(self, u: Floats) -> Indices:
        """Number the cell of each unit value."""

    @abstractmethod
    def draw(self, cells: Indices, rng: np.random.Generator, low: float = -np.inf, high: float = np.inf) -> Floats:
        """Draw a unit value uniformly on the unit interval within each cell, on the lattice if there is one.

        With bounds, every value lies between them as well, by the same law; each of the cells must reach there.
        """

    @property
    @abstractmethod
    def bounds(self) -> tuple[Floats, Floats]:
        """Return the values that each cell begins and ends with. Shapes: [cells] each."""

    @abstractmethod
    def _lengths(self, low: float, high: float) -> Floats:
        """Measure what of each cell lies between two values, along the unit interval; negative is none."""

    def shares(self, low: float, high: float) -> Floats:
        """Return the probability that a value drawn within each cell lies between two bounds. Shapes: [cells]."""
        shares: Floats = np.maximum(self._lengths(low, high), 0) / self._lengths(-np.inf, np.inf)
        return shares


class LatticeCells(Cells):
    """Cells of lattice points: each is a run of ranks."""

    def of(self, u: Floats) -> Indices:
        rank = self.interval.rank(self.interval.from_unit(u))
        return np.searchsorted(self.edges[1:-1], rank, side="right").astype(np.int32)

    def draw(self, cells: Indices, rng: np.random.Generator, low: float = -np.inf, high: float = np.inf) -> Floats:
        """Draw a unit value within each cell, on the lattice."""
        interval, step = self.interval, self.interval.step
        draw = rng.random(len(cells))
        first, last = (part[cells] for part in self._within(low, high))
        left, right = interval.scaled(first * step), interval.scaled((last + 1) * step)
        rank = np.clip(np.floor(interval.unscaled(left + draw * (right - left)) / step), first, last)
        return interval.to_unit(interval.value_at(rank))

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Return the first and the last value of each cell."""
        first, last = self.edges[:-1].astype(np.float64), (self.edges[1:] - 1).astype(np.float64)
        return self.interval.value_at(first), self.interval.value_at(last)

    def _lengths(self, low: float, high: float) -> Floats:
        scaled, step = self.interval.scaled, self.interval.step
        first, last = self._within(low, high)
        lengths: Floats = scaled((np.maximum(last, first - 1) + 1) * step) - scaled(first * step)
        return lengths

    def _within(self, low: float, high: float) -> tuple[Floats, Floats]:
        """Return the first and the last rank of each cell that lie between two values."""
        edges, interval, zero = self.edges.astype(np.float64), self.interval, self.interval.zero
        lowest, highest = (
            np.ceil((low - interval.low) * interval.per_unit),
            np.floor((high - interval.low) * interval.per_unit),
        )
        lowest, highest = lowest - (lowest > zero), highest - (highest >= zero)
        return np.maximum(edges[:-1], lowest), np.minimum(edges[1:] - 1, highest)


class UnitCells(Cells):
    """Cells without a lattice: parts of the unit interval."""

    @cached_property
    def cuts(self) -> Floats:
        """Return the edges as unit values."""
        return self.edges / UNIT_STEPS

    def of(self, u: Floats) -> Indices:
        return np.searchsorted(self.cuts[1:-1], u, side="right").astype(np.int32)

    def draw(self, cells: Indices, rng: np.random.Generator, low: float = -np.inf, high: float = np.inf) -> Floats:
        """Draw a unit value within each cell."""
        draw = rng.random(len(cells))
        first, last = (part[cells] for part in self._within(low, high))
        return self.interval.to_unit(self.interval.from_unit(self._at(cells, first, draw * (last - first))))

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Return the values at the ends of each cell."""
        ends = self.interval.from_unit(self.cuts)
        return ends[:-1], ends[1:]

    def _lengths(self, low: float, high: float) -> Floats:
        first, last = self._within(low, high)
        return last - first

    def _within(self, low: float, high: float) -> tuple[Floats, Floats]:
        """Return the shares of each cell at which the part between two values begins and ends."""
        units = self.interval.to_unit(np.clip(np.array([low, high]), self.interval.low, self.interval.high))
        begin, end = (np.clip(self._shares_below(unit), 0.0, 1.0) for unit in units)
        return begin, end

    def _shares_below(self, unit: float) -> Floats:
        """Say how far into each cell a unit value lies, in lengths of that cell."""
        below: Floats = (unit - self.cuts[:-1]) / np.diff(self.cuts)
        return below

    def _at(self, cells: Indices, begin: Floats, more: Floats) -> Floats:
        """Return the unit value that lies so much beyond a share of each cell; both are in lengths of the cell."""
        return self.cuts[cells] + (begin + more) * (self.cuts[cells + 1] - self.cuts[cells])


class EqualCells(UnitCells):
    """Equal parts of the unit interval; their edges are the nearest steps, and nothing is rounded to those."""

    @cached_property
    def cuts(self) -> Floats:
        return np.arange(self.count + 1) / self.count

    def of(self, u: Floats) -> Indices:
        return np.minimum(u * self.count, self.count - 1).astype(np.int32)

    def _shares_below(self, unit: float) -> Floats:
        below: Floats = unit * self.count - np.arange(self.count, dtype=np.float64)
        return below

    def _at(self, cells: Indices, begin: Floats, more: Floats) -> Floats:
        return (cells + begin + more) / self.count  # added up in this order, which the last bit depends on


def equal_cells(interval: Interval, count: int) -> Cells:
    """Cut an interval into so many cells, which are equal on the unit interval as far as its lattice lets them be."""
    if interval.points is None:
        return EqualCells(interval, np.arange(count + 1) * UNIT_STEPS // count)
    index = np.arange(count + 1)
    whole = interval.scaled(interval.points * interval.step)
    ideal = interval.unscaled(index / count * whole) / interval.step
    # No cell is empty: an edge moves to the next point where a cell would hold none. Edges grow no slower than
    # linearly, because the scale is concave, so those that are pushed up never pass the last.
    return LatticeCells(interval, np.maximum.accumulate(np.rint(ideal).astype(np.int64) - index) + index)


def own_cells(interval: Interval, edges: Sequence[int]) -> Cells:
    """Cut an interval at edges of its own."""
    return (UnitCells if interval.points is None else LatticeCells)(interval, np.array(edges))
