"""Two columns together, in groups of their values: as a release counted them, and as the synthetic rows have them.

Privacy: post-processing of released counts, public noise scales and synthetic rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.columns import Modelled
from dpmodels.pages.figures.relations import chance_of
from dpmodels.report.bins import group_labels
from dpmodels.report.fidelity import absolute_95
from dpmodels.report.within import DIGITS, pair_within
from dpmodels.statistics.dependence import dependence
from dpmodels.statistics.normal import HALF_NORMAL

FIGURES = (
    "expected_distance",
    "distance_to_release",
    "noise_distance_95",
    "distance_within",
    "released_dependence",
    "synthetic_dependence",
    "noise_dependence",
    "noise_dependence_95",
)
"""What the figures of a pair are called, in the order in which a report lists them."""


def _of_noise(covariance: Floats) -> tuple[float, float]:
    """Return half of sum |noise| on average, and what it exceeds in one release of twenty.

    Absolute values of two normals with correlation r have at most r^2 of the covariance that they have for r = 1:
    exactly for r = 0 and r = 1.
    """
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    total = float(deviations.sum())
    squares = float((covariance**2 / np.maximum(np.outer(deviations, deviations), 1e-300)).sum())
    return HALF_NORMAL * total / 2, float(absolute_95(total, squares)) / 2


def _share(value: float) -> float:
    return round(min(1.0, float(value)), DIGITS)


@dataclass(frozen=True)
class Grouped:
    """A column whose fine cells are put together in groups. Shapes: ``group`` one number a fine cell, from 0."""

    name: str
    column: Modelled
    group: Whole


@dataclass(frozen=True)
class Pair:
    """The shares of two columns in groups.

    Shapes: ``released`` and ``synthetic`` [groups of the first, groups of the second]; ``covariance`` of the noise of
    the released shares, row by row, [shares, shares]. Units: ``records`` that were released.
    """

    columns: tuple[Grouped, Grouped]
    released: Floats
    synthetic: Floats
    covariance: Floats
    records: float
    finer: tuple["Pair", ...] = ()
    """The same with the categories of one column by themselves, where these groups join several."""
    single: "Callable[[], Pair] | None" = None
    """Makes the same with the categories of both by themselves as they were counted; None of numbers."""

    @property
    def stddev(self) -> Floats:
        """Return the standard deviation of the noise of each share."""
        deviations: Floats = np.sqrt(np.diag(self.covariance)).reshape(self.released.shape)
        return deviations

    @property
    def turned(self) -> "Pair":
        """Return the same with the second column first."""
        first, second = self.columns
        places = np.arange(self.released.size).reshape(self.released.shape).T.ravel()
        covariance = self.covariance[np.ix_(places, places)]
        finer = tuple(one.turned for one in self.finer)
        single = (lambda: made().turned) if (made := self.single) else None
        return Pair((second, first), self.released.T, self.synthetic.T, covariance, self.records, finer, single)

    @cached_property
    def figures(self) -> list[float]:
        """Return what a report states: e, d and e95 of ``dpmodels.report.pairs``, and what they come to; then by how
        much the columns depend on each other as released and in the synthetic rows, and what noise and chance make of
        that where they do not: on average, and exceeded in one release of twenty. Of several groupings that one says
        how much they depend in which noise and chance explain least of it.
        """
        expected, likely = _of_noise(self.covariance)
        figures = [_share(each) for each in (expected, np.abs(self.released - self.synthetic).sum() / 2, likely)]
        clearest = min((self, *self.finer), key=lambda one: one.chance)
        return [*figures, pair_within(figures), *map(_share, clearest.dependences)]

    @cached_property
    def dependences(self) -> tuple[float, float, float, float]:
        """Return how much the columns depend on each other in these groups, as above."""
        return dependence(self.released), dependence(self.synthetic), *_of_noise(self._by_chance)

    @property
    def chance(self) -> float:
        """Return how probable it is that noise and chance make as much of independent columns."""
        released, _, mean, likely = self.dependences
        return chance_of(released, mean, likely)

    @property
    def _by_chance(self) -> Floats:
        """Return the covariance of what shares of independent columns are beyond the product of their sums.

        The noise is one part, and that the records are so many independent rows the other.
        """
        shares = np.maximum(self.released, 0.0) / max(float(np.maximum(self.released, 0.0).sum()), 1e-300)
        sums = shares.sum(axis=1), shares.sum(axis=0)
        product = np.outer(*sums).ravel()
        rows = (np.diag(product) - np.outer(product, product)) / self.records
        beyond = np.kron(*[np.eye(len(each)) - each[:, None] for each in sums])
        covariance: Floats = beyond @ (self.covariance + rows) @ beyond.T
        return covariance

    def facts(self, is_asked: bool = False) -> dict[str, Any]:
        """Return the shares as a report lists them, with what the groups are called.

        A pair that was asked for has each category by itself, and the distances of these finer shares.
        """
        if is_asked and self.single:
            one = self.single()
            return {**one.facts(), "distances": one.figures[:4]}
        tables = {"released": self.released, "synthetic": self.synthetic, "stddev": self.stddev}
        return {
            "labels": [group_labels(one.column, one.group) for one in self.columns],
            **{name: (np.round(table, DIGITS) + 0.0).tolist() for name, table in tables.items()},  # and no -0
        }
