"""How far off the mean and the 99 % quantile of a number column are by noise: post-processing of released counts."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.evaluation.pages.page import short
from dpmodels.evaluation.published.fidelity import HALF_NORMAL
from dpmodels.generators.denoise import project
from dpmodels.generators.ends import Ends, values_at
from dpmodels.generators.tails import Pooled
from dpmodels.schema.columns import Integer, Modelled, Number
from dpmodels.synthesizers.marginals import Marginal

HIGH = 0.99
"""The quantile whose error is reckoned."""
STANDS = 4.0
"""Standard deviations by which the number of values must stand out of its noise for anything to be estimated."""


@dataclass(frozen=True)
class Spread:
    """A number column as a release describes it: groups of cells with noise, each spread over parts of one density.

    Attributes:
        edges: where parts begin and end, as values. Shapes: [parts + 1].
        group: of every part; the last group is the zeros that are a state of their own, which has no parts.
        within: share of its group that a part holds.
        noisy: the counts of the groups.
    """

    edges: Floats
    group: Whole
    within: Floats
    noisy: Pooled
    ends: Ends

    @classmethod
    def of(cls, ends: Ends, zeros: float, zeros_stddev: float) -> "Spread":
        """Describe a column by its ends and the noisy number of its zeros."""
        edges, cell, share = ends.parts()
        amounts, group = ends.expected[cell] * share, ends.group[cell]
        sums = np.maximum(np.bincount(group, amounts), 1e-300)
        counts = ends.pooled.grouped(ends.group)
        size = len(counts.counts) + 1
        covariance = np.zeros((size, size))
        covariance[:-1, :-1], covariance[-1, -1] = counts.covariance, zeros_stddev**2
        noisy = Pooled(np.append(counts.counts, zeros), covariance)
        return cls(values_at(ends.column, edges), group, amounts / sums[group], noisy, ends)

    @cached_property
    def total(self) -> float:
        """Return the number of values."""
        return float(self.noisy.counts.sum())

    @property
    def stands(self) -> bool:
        """Tell whether the number of values stands out of its noise."""
        return self.total > STANDS * math.sqrt(float(self.noisy.covariance.sum()))

    @cached_property
    def shares(self) -> Floats:
        """Return the shares of the groups, none of them negative."""
        counts = np.append(project(self.noisy.counts[:-1]), max(float(self.noisy.counts[-1]), 0.0))
        return counts / max(float(counts.sum()), 1e-300)

    @property
    def middles(self) -> Floats:
        """Return the middle value of every part; of a lattice, that of its points."""
        step = 0.0 if self.ends.column.interval.points is None else self.ends.column.interval.step
        return (self.edges[:-1] + self.edges[1:] - step) / 2

    def stddev_of(self, amounts: Floats) -> float:
        """Return the noise_stddev of the mean of amounts, one a group."""
        apart = amounts - amounts @ self.shares
        return math.sqrt(max(float(apart @ self.noisy.covariance @ apart), 0.0)) / self.total

    def mean(self) -> tuple[float, float]:
        """Return the mean and its standard deviation, by noise and by what the counts leave open of the tails."""
        means = np.append(np.bincount(self.group, self.within * self.middles), 0.0)
        squares = [self.stddev_of(means) ** 2]
        upper, lower = self.ends.upper, self.ends.lower
        if upper:
            beyond = self.edges[self.edges >= self.ends.edges[upper.begin]]
            squares.append((self.shares[-2] * upper.mean_stddev(beyond)) ** 2)
        if lower:
            below = self.edges[self.edges <= self.ends.edges[self.ends.column.cells - lower.begin]]
            squares.append((self.shares[0] * lower.mean_stddev(-below[::-1])) ** 2)
        return float(means @ self.shares), math.sqrt(sum(squares))

    def quantile(self, level: float) -> tuple[float, float]:
        """Return a quantile and its standard deviation by noise."""
        order = np.argsort(np.append(self.middles, 0.0), kind="stable")
        masses = np.append(self.shares[self.group] * self.within, self.shares[-1])[order]
        tops = np.append(self.edges[1:], 0.0)[order]
        below = np.cumsum(masses)
        at = min(int((below < level).sum()), len(tops) - 1)
        beyond = np.append(self.edges[:-1] >= tops[at], tops[at] < 0).astype(np.float64)
        above = np.append(np.bincount(self.group, self.within * beyond[:-1]), beyond[-1])
        stddev = self.stddev_of(above)
        low, high = (np.interp(np.clip(each, 0, 1), below, tops) for each in (level - stddev, level + stddev))
        return float(np.interp(level, below, tops)), float(high - low) / 2


def errors_of(column: Modelled, noisy: Marginal) -> dict[str, Any]:
    """Estimate mean and 99 % quantile of a number column from its released counts, with their mean absolute errors.

    Nothing is said of a column that has no numbers, or whose number of values does not stand out of its noise.
    """
    if not isinstance(column, Integer | Number):
        return {}
    cells, zero = column.cells, column.zero_state
    plain = Pooled(noisy.counts[:cells], noisy.stddev**2 * np.eye(cells))
    ends = noisy.ends or Ends(column, plain, np.ones(cells))
    spread = Spread.of(ends, *((0.0, 0.0) if zero is None else (float(noisy.counts[cells + zero - 1]), noisy.stddev)))
    if not spread.stands:
        return {}
    return {"mean": _fact(*spread.mean()), "p99": _fact(*spread.quantile(HIGH))}


def _fact(estimate: float, stddev: float) -> dict[str, float]:
    return {"estimate": float(f"{estimate:.6g}"), "expected_error": float(f"{HALF_NORMAL * stddev:.3g}")}


def doubt(column: Modelled, errors: dict[str, Any]) -> str | None:
    """Say that the expected error of a mean exceeds the mean; None where it does not, or a mean may well be 0."""
    if not isinstance(column, Integer | Number) or not errors or column.low < 0 < column.high:
        return None
    mean = errors["mean"]
    if mean["expected_error"] <= abs(mean["estimate"]):
        return None
    return (
        f"the expected error of its mean, {short(mean['expected_error'])}, exceeds it, {short(mean['estimate'])}: "
        "use no sum and no mean of it. For the next release, declare narrower public bounds or spend more."
    )
