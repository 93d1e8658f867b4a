"""Within what the means, and the large quantiles, of the columns of a report are, as parts of themselves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpmodels.pages.glance import (
    Yardstick,
    error_of,
    has_few_values,
    not_handed_over,
    relative_error,
    unresolved,
    with_figures,
    yardstick,
)
from dpmodels.statistics.normal import NORMAL_95

Facts = Mapping[str, Any]
CLOSE, FAR = 0.05, 0.2
"""Within what a figure is for it to be of use, and beyond what it is of none."""
FIGURES = {"mean": ("means", "totals"), "p99": ("99 % quantiles",)}


@dataclass(frozen=True)
class PartOff:
    """Within what a mean or a quantile is, as a part of ``of``: as its values thin out, and with what noise may hide.

    It is good for what it is within at the ``farthest``, and to be used with care for the other, which is less.
    """

    within: float
    farthest: float
    of: str = ""
    """What these are parts of, as ``yardstick`` names it; nothing where it is the figure itself."""
    is_cut: bool = False
    """Whether values were set to a discovered bound, so that it says what was left, and is to be used with care."""

    @property
    def counted(self) -> float:
        """Return what it counts as."""
        is_close = self.farthest <= CLOSE and not self.is_cut
        return self.farthest if is_close else max(self.within, math.nextafter(CLOSE, 1))

    @property
    def stated(self) -> float:
        """Return what is written of it: that it is within, or the farthest where even that is good."""
        return self.farthest if self.counted == self.farthest else self.within


def errors_of(report: Facts, figure: str) -> dict[str, PartOff]:
    """Return by column within what its mean, or its large quantile, is, where an error of it is known."""
    judged = (one for one in with_figures(report) if figure == "mean" or not has_few_values(one))
    stated = [one for one in judged if _is_known(one, figure)]
    return {one["name"]: _part_off(one, figure) for one in stated}


def far_figures(report: Facts) -> dict[str, list[str]]:
    """Name by figure the columns of which it is stated, handed over, and farther off than it is of any use."""
    dropped = not_handed_over(report)
    far = {
        figure: [name for name, error in errors_of(report, figure).items() if error.counted > FAR] for figure in FIGURES
    }
    return {figure: some for figure, names in far.items() if (some := [one for one in names if one not in dropped])}


def _part_off(column: Facts, figure: str) -> PartOff:
    within, measure = NORMAL_95 * relative_error(column, figure), yardstick(column, figure)
    farthest = max(within, _hidden(column, figure, measure))
    return PartOff(within, farthest, measure.name, bool(column.get("discovered_bounds")))


def _hidden(column: Facts, figure: str, measure: Yardstick) -> float:
    """Return how far values that noise may hide can put a mean off, as a part; 0 where a report warns of none."""
    unseen, mean = column.get("unseen", {}), float(column["mean"]["estimate"])
    if figure != "mean" or "means" not in unseen or not measure.size:
        return 0.0
    return float(max(abs(end - mean) for end in unseen["means"]) / measure.size)


def _is_known(column: Facts, figure: str) -> bool:
    """Tell whether the error of a mean or a quantile is known."""
    known = figure in column and figure not in column.get("avoid", ()) and not unresolved(column)
    return known and error_of(column, figure) is not None
