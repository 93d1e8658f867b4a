"""What the cells of a column of numbers or dates stand for: mean and standard deviation of the values that lie in each.

Within a cell values lie as the generator draws them: as the fine counts say where these stand out of their noise, at
either end as the shape of the tail says, and evenly over a fine cell. So a cell that reaches up to the bound of a long
tail stands for far less than its middle.

Privacy: post-processing of released counts and public noise scales.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.generators.ends import Ends, values_at
from dpmodels.generators.refinements.tails import Pooled
from dpmodels.methods.parts.marginals import Marginal

Moments = tuple[Floats, Floats]
"""Mean and standard deviation of the values in each cell. Shapes: [cells] each."""


@dataclass(frozen=True)
class FineCells:
    """Where values lie within the fine cells of a number column.

    Attributes:
        ends: all that was measured of the column.
        counts, stddev: of the fine cells of values, and the noise_stddev of each. Shapes: [n].
    """

    ends: Ends
    counts: Floats
    stddev: float

    @classmethod
    def of(cls, column: Continuous, noisy: Marginal) -> "FineCells":
        """Describe a column by its released counts; where they are all there is, its ends follow from them."""
        counts = noisy.counts[: column.cells]
        pooled = Pooled(counts, noisy.stddev**2 * np.eye(column.cells))
        return cls(noisy.ends or Ends(column, pooled, np.ones(column.cells)), counts, noisy.stddev)

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Return the mean and the variance of the values in every fine cell. Shapes: [n] each."""
        edges, cell, within = self.ends.parts()
        interval = self.ends.column.interval
        step = 0.0 if interval.points is None else interval.step
        values = values_at(self.ends.column, edges)
        middles, variances = (values[:-1] + values[1:] - step) / 2, np.maximum(np.diff(values) ** 2 - step**2, 0) / 12
        means = _sums(cell, within * middles)
        return means, _sums(cell, within * ((middles - means[cell]) ** 2 + variances))

    def merged(self, merge: Whole) -> Moments:
        """Return the same of cells that join fine ones, and standard deviations. Shapes: merge [n] -> [cells] each."""
        shares = self.ends.shares(merge, self.counts[None], self.stddev)[0]
        means, variances = self.moments
        merged_means = _sums(merge, shares * means)
        apart = (means - merged_means[merge]) ** 2 + variances
        return merged_means, np.sqrt(_sums(merge, shares * apart))


def _sums(group: Whole, amounts: Floats) -> Floats:
    """Add up amounts group by group."""
    return np.bincount(group, amounts).astype(np.float64)


@dataclass(frozen=True)
class CellValues:
    """What the cells of columns of numbers or dates (in ticks) stand for; each merge of a column is worked out once."""

    columns: Mapping[str, Modelled]
    marginals: Mapping[str, Marginal]
    _fine: dict[str, FineCells] = field(default_factory=dict)
    _merged: dict[tuple[str, bytes], Moments] = field(default_factory=dict)

    def joined(self, name: str, merge: Whole) -> Whole | None:
        """Return the same cells with those joined at either end in which values do not stand out of their noise.

        None where nothing is joined: of categories, and where values share a cell with null or 0. What is said of the
        joined cell follows from the shape of the tail (generators/ends.py), where the counts of its cells are noise.

        Shapes: merge [fine cells and states] -> the same.
        """
        column = self.columns[name]
        if not isinstance(column, Continuous):
            return None
        values, states = merge[: column.cells], merge[column.cells :]
        last = int(values.max())
        if states.size and int(states.min()) <= last:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            joined = self._described(name).ends.joined(values)
        fewer = last - int(joined.max())
        return np.concatenate([joined[values], states - fewer]) if fewer else None

    def _described(self, name: str) -> FineCells:
        column = self.columns[name]
        if name not in self._fine and isinstance(column, Continuous):
            self._fine[name] = FineCells.of(column, self.marginals[name])
        return self._fine[name]

    def of(self, name: str, merge: Whole) -> Moments | None:
        """Return mean and standard deviation of the cells of values; None of categories.

        Shapes: merge [fine cells and states] -> [cells of values].
        """
        column = self.columns[name]
        if not isinstance(column, Continuous):
            return None
        values = merge[: column.cells]
        key = name, values.tobytes()
        if key not in self._merged:
            with np.errstate(over="ignore", invalid="ignore"):  # squares beyond what a number can be
                self._merged[key] = self._described(name).merged(values)
        return self._merged[key]
