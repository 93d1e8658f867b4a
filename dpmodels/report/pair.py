"""Two columns together, in groups of their values: as a release counted them, and as the synthetic rows have them.

Privacy: post-processing of released counts, public noise scales and synthetic rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.columns import Modelled
from dpmodels.report.bins import group_labels
from dpmodels.report.fidelity import HALF_NORMAL, absolute_95
from dpmodels.report.within import DIGITS, pair_within
from dpmodels.statistics.dependence import dependence


@dataclass(frozen=True)
class Grouped:
    """A column whose fine cells are put together in groups. Shapes: ``group`` one number a fine cell, from 0."""

    name: str
    column: Modelled
    group: Whole


@dataclass(frozen=True)
class Pair:
    """The shares of two columns in groups.

    Shapes: ``released``, ``synthetic`` and ``stddev`` (of the noise) [groups of the first, groups of the second].

    Attributes:
        as_one: whether one noise moves all shares together; otherwise each has its own.
    """

    columns: tuple[Grouped, Grouped]
    released: Floats
    synthetic: Floats
    stddev: Floats
    as_one: bool = False

    @property
    def turned(self) -> "Pair":
        """Return the same with the second column first."""
        first, second = self.columns
        return Pair((second, first), self.released.T, self.synthetic.T, self.stddev.T, self.as_one)

    @property
    def figures(self) -> list[float]:
        """Return what a report states: e, d and e95 of ``dpmodels.report.pairs``, and what they come to."""
        total = float(self.stddev.sum())
        squares = total**2 if self.as_one else float((self.stddev**2).sum())
        distance = float(np.abs(self.released - self.synthetic).sum())
        halves = HALF_NORMAL * total / 2, distance / 2, float(absolute_95(total, squares)) / 2
        figures = [round(min(1.0, half), DIGITS) for half in halves]
        return [*figures, pair_within(figures)]

    @property
    def strength(self) -> float:
        """Return by how much the two columns depend on each other as released, beyond what noise makes of it."""
        return dependence(self.released) - self.figures[0]

    def facts(self) -> dict[str, Any]:
        """Return the shares as a report lists them, with what the groups are called."""
        tables = {"released": self.released, "synthetic": self.synthetic, "stddev": self.stddev}
        return {
            "labels": [group_labels(one.column, one.group) for one in self.columns],
            **{name: np.round(table, DIGITS).tolist() for name, table in tables.items()},
        }
