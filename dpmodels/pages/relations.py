"""Which columns depend on each other by more than noise shows, and which of these relations the synthetic rows keep.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scipy.special import gammaincinv

LISTED = 10
"""What a report lists of two columns: their places, four distances, and four figures of how they depend."""
KEPT = 0.8
"""Part of the released dependence, without its noise, from which on two columns depend on each other as they did."""
NORMAL_95 = 1.645
"""Standard deviations above its mean that a normal exceeds in one of twenty."""


@dataclass(frozen=True)
class Relation:
    """How two columns depend on each other: the share of rows that would have to move for them not to.

    Attributes:
        columns: their places in the report.
        released: as released, with its noise.
        synthetic: in the synthetic rows.
        likely: what noise and chance make of independent columns, exceeded in one release of twenty.
        most: what they make of any pair of the report in one report of twenty.
    """

    columns: tuple[int, int]
    released: float
    synthetic: float
    likely: float
    most: float

    @property
    def is_certain(self) -> bool:
        """Tell whether the columns depend on each other by more than noise and chance show of any pair."""
        return self.released > self.most

    @property
    def is_weakened(self) -> bool:
        """Tell whether a certain relation is weaker in the synthetic rows.

        The real dependence is no less than the released one without its noise, since both are sums of absolute values.
        """
        return self.is_certain and self.synthetic < KEPT * (self.released - self.likely)

    @property
    def is_kept(self) -> bool:
        """Tell whether a certain relation is not weaker in the synthetic rows."""
        return self.is_certain and not self.is_weakened


def relations(report: Mapping[str, Any]) -> dict[tuple[int, int], Relation]:
    """Return how every two columns that were counted together depend on each other, by their places.

    Reports up to layout 12 do not say.
    """
    distances = (report.get("pairs") or {}).get("distances", ())
    listed = [one for one in distances if len(one) == LISTED]
    return {(one[0], one[1]): _relation(one, len(listed)) for one in listed}


def _relation(listed: list[Any], number: int) -> Relation:
    first, second, *_, released, synthetic, noise, likely = listed
    return Relation((first, second), released, synthetic, likely, most_by_noise(noise, likely, number))


def most_by_noise(mean: float, likely: float, number: int) -> float:
    """Return what noise and chance make of the dependence of one pair in .05 releases by the number of pairs.

    The relations that a reader looks at are the strongest of all, so each may exceed it that seldom.

    Args:
        mean: what it makes on average.
        likely: what it exceeds in one release of twenty. Mean and quantile give a gamma distribution.
        number: how many pairs there are.
    """
    if not likely > mean > 0:
        return max(mean, likely)
    shape = (NORMAL_95 * mean / (likely - mean)) ** 2
    return min(1.0, mean * float(gammaincinv(shape, 1 - 0.05 / number)) / shape)
