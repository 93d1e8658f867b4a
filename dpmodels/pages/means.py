"""Within what the means, and the large quantiles, of the columns of a report are, as parts of themselves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpmodels.pages.glance import error_of, has_few_values, relative_error, unresolved
from dpmodels.statistics.normal import NORMAL_95

Facts = Mapping[str, Any]
CLOSE = 0.05
"""Within what a figure is for it to be of use."""
FIGURES = {"mean": ("means", "totals"), "p99": ("99 % quantiles",)}


@dataclass(frozen=True)
class PartOff:
    """Within what a mean or a quantile is, as a part of itself: as its values thin out, and with what noise may hide.

    It is good for what it is within at the ``farthest``, and to be used with care for the other, which is less.
    """

    within: float
    farthest: float
    is_cut: bool = False
    """Whether values were set to a discovered bound, so that it says what was left, and is to be used with care."""

    @property
    def counted(self) -> float:
        """Return what it counts as."""
        is_close = self.farthest <= CLOSE and not self.is_cut
        return self.farthest if is_close else max(self.within, math.nextafter(CLOSE, 1))


def errors_of(report: Facts, figure: str) -> dict[str, PartOff]:
    """Return by column within what its mean, or its large quantile, is, where an error of it is known."""
    judged = (one for one in report["columns"] if figure == "mean" or not has_few_values(one))
    stated = [one for one in judged if _is_known(one, figure)]
    likely = {one["name"]: NORMAL_95 * relative_error(one, figure) for one in stated}
    return {
        one["name"]: PartOff(
            within := likely[one["name"]], max(within, _hidden(one, figure)), bool(one.get("discovered_bounds"))
        )
        for one in stated
    }


def _hidden(column: Facts, figure: str) -> float:
    """Return how far values that noise may hide can put a mean off, as a part of it; 0 where a report warns of none."""
    unseen, mean = column.get("unseen", {}), abs(float(column["mean"]["estimate"]))
    if figure != "mean" or "means" not in unseen or not mean:
        return 0.0
    return float(max(abs(end - column["mean"]["estimate"]) for end in unseen["means"]) / mean)


def _is_known(column: Facts, figure: str) -> bool:
    """Tell whether the error of a mean or a quantile is known."""
    known = figure in column and figure not in column.get("avoid", ()) and not unresolved(column)
    return known and error_of(column, figure) is not None
