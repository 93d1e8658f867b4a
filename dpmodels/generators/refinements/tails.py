"""The ends of a number column: what little lies there follows a falling shape, and noise puts nothing there.

All that was measured of a column's cells is pooled. From an end inwards, the tail goes as far as the first cell at
which the pooled sum of all cells so far stands out of its noise. How the records of a tail spread over it is not read
from single cells: it is a generalized Pareto distribution, averaged over what the counts leave open of it.

Source: Pickands, "Statistical inference using extreme order statistics" (1975); Martins and Stedinger, "Generalized
maximum-likelihood generalized extreme-value quantile estimators" (2000), for a prior of the index.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmodels.arrays import Floats, Whole

SIGNIFICANT = 4.0
"""Standard deviations by which the sum of a tail stands out of its noise."""
PLAUSIBLE = 3.0
"""The same where no sum stands out as far: a shape that falls is then still likelier than values up to the bound."""
FITTED = 10.0
"""Standard deviations of the sum of the cells that the shape is fitted to."""
LEAST_CELLS = 4
"""Cells that the shape is fitted to, at least."""
INDEX_MEAN, INDEX_STDDEV = 0.1, 0.125
"""Prior of the index, as in the source: at 0 the density falls exponentially; from .5 on it has no variance."""
DOUBTED_MEAN, DOUBTED_STDDEV = 0.25, 0.4
"""The same where an error is reckoned, chosen while looking at ``benchmarks.tails``: long tails need the room."""
INDICES = np.linspace(-0.9, 0.9, 19)
SCALES = 60
"""Number of scales, from a fraction of a cell to all that lies beyond."""
LIKELY = 1e-4
"""Probability, by that of the best shape, from which a shape is averaged over."""
PART = 0.2
"""Width of the parts that a cell of a tail is cut into, by the distance over which the density falls by e."""
WIDEST = 1e300
"""Width, in quarters, from which on an interval has no tails: arithmetic ends there."""
PARTS = 64
"""Bound on the parts of a cell."""


@dataclass(frozen=True)
class Pooled:
    """Counts of a column's value cells, by all that was measured. Shapes: [n], covariance [n, n]; in records."""

    counts: Floats
    covariance: Floats

    @classmethod
    def of(cls, looks: Sequence[tuple[Whole, Floats, float]]) -> "Pooled":
        """Pool looks by generalized least squares.

        Args:
            looks: each is the coarse cell of every fine one, the coarse counts, and their noise_stddev. One of them has
                the fine cells themselves.
        """
        precision = sum((cell[:, None] == cell) / noise**2 for cell, _, noise in looks)
        weighed = sum(counts[cell] / noise**2 for cell, counts, noise in looks)
        covariance = np.linalg.inv(precision)
        return cls(covariance @ weighed, covariance)

    @property
    def mirrored(self) -> "Pooled":
        """Return the same cells from the last to the first."""
        return Pooled(self.counts[::-1], self.covariance[::-1, ::-1])

    @property
    def upper(self) -> tuple[Floats, Floats]:
        """Return the sum of every cell and all after it, and its standard deviation. Shapes: [n] both."""
        squares = self.covariance[::-1, ::-1].cumsum(axis=0).cumsum(axis=1).diagonal()[::-1]
        return self.counts[::-1].cumsum()[::-1], np.sqrt(squares)

    def grouped(self, group: Whole) -> "Pooled":
        """Add up groups of cells, numbered from 0 on."""
        ones = (group == np.arange(group.max() + 1)[:, None]).astype(np.float64)
        return Pooled(ones @ self.counts, ones @ self.covariance @ ones.T)


@dataclass(frozen=True)
class Tail:
    """The upper end of a column, as an average over generalized Pareto distributions.

    Attributes:
        fitted: first cell that the shape says something of.
        begin: first cell of which nothing but the shape is believed; ``fitted`` or later.
        origin: the value at which the shape begins.
        last: the value at which the column ends.
        index, scale, weights: of the distributions; doubts: their weights where an error is reckoned, by a wider prior
            of the index, since no column is bound to keep the other. Shapes: [m] each.
    """

    fitted: int
    begin: int
    origin: float
    last: float
    index: Floats
    scale: Floats
    weights: Floats
    doubts: Floats

    @classmethod
    def of(cls, pooled: Pooled, edges: Floats) -> "Tail | None":
        """Fit the upper end of a column; None where nothing stands out of its noise, or the last cells do and rise.

        Shapes: edges [n + 1], the values at which cells begin and the last one ends, ascending.
        """
        sums, stddevs = pooled.upper
        stands = sums / stddevs
        if len(stands) < LEAST_CELLS or stands.max() < PLAUSIBLE or edges[-1] / 4 - edges[0] / 4 > WIDEST:
            return None
        begin = int(np.flatnonzero(stands >= min(SIGNIFICANT, stands.max()))[-1])
        clear = sums / np.maximum.accumulate(stddevs[::-1])[::-1]  # a merged cell's sum has less noise than its parts'
        fitted = int(np.flatnonzero(clear >= min(FITTED, clear.max()))[-1])
        last = len(stands) - LEAST_CELLS
        for first in range(min(begin, fitted, last), min(begin, last) + 1):
            tail = cls.between(pooled, edges, first, begin)
            if tail._explains(pooled, edges):  # else the counts rise before they fall
                return tail
        return tail if begin <= last else None

    @classmethod
    def between(
        cls, pooled: Pooled, edges: Floats, fitted: int, begin: int, scale_prior: float | None = None
    ) -> "Tail":
        """Fit the cells from ``fitted`` on.

        With a prior for the scale, it is about that, up to a factor of e or so, and the density falls exponentially at
        least: for counts of which too little is known to let them reach far.
        """
        index, scale = (each.ravel() for each in np.meshgrid(INDICES, _scales(edges[fitted:] - edges[fitted])))
        even = np.ones(len(index))
        whole = cls(fitted, begin, float(edges[fitted]), float(edges[-1]), index, scale, even, even)
        apart = whole._apart(pooled, edges)
        weights = whole._weigh(apart, INDEX_MEAN, INDEX_STDDEV)
        doubts = whole._weigh(apart, DOUBTED_MEAN, DOUBTED_STDDEV)
        if scale_prior is not None:
            weights = weights * np.exp(-(np.log(scale / scale_prior) ** 2) / 2) * (index <= 1e-9)
        weights = np.where(weights > LIKELY * weights.max(), weights, 0.0)
        likely = (weights > 0) | (doubts > LIKELY * doubts.max())
        likely_terms = (each[likely] for each in (index, scale, weights, doubts))
        return cls(fitted, begin, whole.origin, whole.last, *likely_terms)

    def _apart(self, pooled: Pooled, edges: Floats) -> Floats:
        """Return how far the counts are from every distribution, squared and in standard deviations."""
        begin = self.fitted
        whitener = np.linalg.inv(np.linalg.cholesky(pooled.covariance[begin:, begin:]))
        observation, models = whitener @ pooled.counts[begin:], self._shares(edges[begin:]) @ whitener.T
        mass = np.maximum(models @ observation, 0) / np.maximum((models**2).sum(axis=1), 1e-300)
        apart: Floats = ((observation - mass[:, None] * models) ** 2).sum(axis=1)
        return apart

    def _weigh(self, apart: Floats, mean: float, stddev: float) -> Floats:
        """Weigh every distribution by how well it explains the counts, and by a prior of the index."""
        apart = apart + ((self.index - mean) / stddev) ** 2
        weights: Floats = np.exp(-(apart - apart.min()) / 2)
        return weights

    def _explains(self, pooled: Pooled, edges: Floats) -> bool:
        """Tell whether the counts differ from the shape by no more than noise; they may also rise towards the end."""
        shape, counts = self.shares(edges[self.fitted :]), pooled.counts[self.fitted :]
        whitener = np.linalg.inv(np.linalg.cholesky(pooled.covariance[self.fitted :, self.fitted :]))
        observation, model = whitener @ counts, whitener @ shape
        rest = observation - max(float(model @ observation), 0.0) / max(float(model @ model), 1e-300) * model
        return float(rest @ rest) <= len(counts) + SIGNIFICANT * math.sqrt(2 * len(counts))

    def _shares(self, edges: Floats) -> Floats:
        """Return what each distribution, cut off at the end of the column, gives to cells. Shapes: [m, cells]."""
        beyond = np.append(edges, self.last) - self.origin
        index = np.where(np.abs(self.index) < 1e-6, 1e-6, self.index)[:, None]
        above = np.maximum(1 + index * beyond / self.scale[:, None], 0) ** (-1 / index)
        cells: Floats = -np.diff(above[:, :-1]) / np.maximum(1 - above[:, -1:], 1e-300)
        return cells

    def shares(self, edges: Floats) -> Floats:
        """Return what the tail gives to cells beyond its origin, by their edges, which are values."""
        shares: Floats = self.weights @ self._shares(edges) / self.weights.sum()
        return shares

    def mean_stddev(self, edges: Floats) -> float:
        """Return by how much the mean of what lies in cells beyond the origin differs between likely shapes."""
        shares = self._shares(edges)
        return self._stddev(shares @ ((edges[:-1] + edges[1:]) / 2) / np.maximum(shares.sum(axis=1), 1e-300))

    def quantile_stddev(self, edges: Floats, level: float) -> float:
        """Return by how much a quantile of what lies in cells beyond the origin differs between likely shapes."""
        below = np.cumsum(np.pad(self._shares(edges), ((0, 0), (1, 0))), axis=1)
        return self._stddev(np.array([np.interp(np.clip(level, 0, 1) * each[-1], each, edges) for each in below]))

    def _stddev(self, amounts: Floats) -> float:
        """Return the standard deviation of an amount over shapes that may be, about what their average says."""
        average = self.weights @ amounts / self.weights.sum()
        return float(np.sqrt(self.doubts @ (amounts - average) ** 2 / self.doubts.sum()))

    def parts(self, edges: Floats) -> list[Floats]:
        """Cut cells into parts in which the density hardly falls: for each cell, the values that cut it."""
        scale = float(np.exp(self.weights @ np.log(self.scale) / self.weights.sum()))
        logs = np.log1p((edges - self.origin) / scale)
        numbers = np.clip(np.ceil(np.diff(logs) / PART), 1, PARTS).astype(np.int64)
        cells = zip(logs[:-1].tolist(), logs[1:].tolist(), numbers.tolist(), strict=True)
        return [
            self.origin + scale * np.expm1(np.linspace(begin, end, number + 1)[1:-1]) for begin, end, number in cells
        ]


def _scales(beyond: Floats) -> Floats:
    least = max(beyond[1] / 8, beyond[-1] * 1e-9, np.finfo(float).tiny)
    return np.geomspace(least, max(beyond[-1], least), SCALES)
