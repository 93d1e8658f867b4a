"""Where a quantile of a number column may lie, by the released counts and their known noise: post-processing.

The share of the values beyond a place is a sum of counts, so its noise is normal with a variance that is known. The
quantile lies beyond a place where that share exceeds its level; so likely is it that it does. Whether a group of
values far from the others is more than that share, or less, is in this distribution as any other place is.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from dpmodels.arrays import Floats
from dpmodels.generators.ends import Ends, values_at


@dataclass(frozen=True)
class Places:
    """Places of a column, ascending, and how clearly more than a share of its values lies beyond each.

    Attributes:
        values: the places.
        clear: by how many standard deviations of the noise the share beyond is too large for the quantile to lie
            there or further down; it never rises from one place to the next.
        step: the distance of neighbors on the column's lattice; 0 without one.
    """

    values: Floats
    clear: Floats
    step: float

    @classmethod
    def of(cls, values: Floats, excess: Floats, stddev: Floats, step: float) -> "Places":
        """Return places by the number of records beyond, less those of the share, and the noise of this number."""
        clear = excess / np.maximum(stddev, 1e-300)
        return cls(values, np.maximum.accumulate(clear[::-1])[::-1], step)

    def error(self, value: float) -> float:
        """Return the root mean squared distance of a value from the quantile."""
        beyond = np.append(ndtr(self.clear), 0.0)
        weights = np.append(1 - beyond[0], -np.diff(beyond))
        ends = np.append(self.values[:1], self.values), np.append(self.values, self.values[-1:])
        first, last = ends[0] - value, np.maximum(ends[1] - self.step, ends[0]) - value
        return math.sqrt(float(weights @ (first**2 + first * last + last**2)) / 3)

    def reach(self, deviations: float) -> tuple[float, float]:
        """Return between what the quantile lies, by so many standard deviations of noise either way."""
        low, high = (int((self.clear >= limit).sum()) for limit in (deviations, -deviations))
        return float(self.values[max(low - 1, 0)]), float(self.values[min(high, len(self.values) - 1)])


def places(ends: Ends, zeros: tuple[float, float], share: float, shaped: bool) -> Places:
    """Return where the quantile may lie beyond which a share of all values lies.

    Args:
        ends: of the column, with its counts.
        share: of the values, that lies beyond the quantile.
        zeros: the number of zeros that are a state of their own, and its variance.
        shaped: whether the values of the upper tail lie as its shape says, and not as their counts do.
    """
    edges, cell, part = ends.parts()
    values, cells = values_at(ends.column, edges), np.arange(len(ends.group))
    before = np.cumsum(part) - part
    weights = (cells > cell[:, None]).astype(np.float64)
    weights[np.arange(len(cell)), cell] = 1 - before + before[np.searchsorted(cell, cell)]
    if shaped and ends.upper:
        tail, beyond = cell >= ends.upper.begin, cells >= ends.upper.begin
        expected = np.where(beyond, ends.expected, 0.0)
        by_shape = weights[tail] @ expected / max(float(expected.sum()), 1e-300)
        weights[np.ix_(tail, beyond)] = by_shape[:, None]
    weights = np.vstack([weights, np.zeros(len(cells))]) - share
    of_zeros = (values < 0).astype(np.float64) - share
    excess = weights @ ends.pooled.counts + of_zeros * zeros[0]
    variance = ((weights @ ends.pooled.covariance) * weights).sum(axis=1) + of_zeros**2 * zeros[1]
    interval = ends.column.interval
    step = 0.0 if interval.points is None else interval.step
    return Places.of(values, excess, np.sqrt(np.maximum(variance, 0.0)), step)
