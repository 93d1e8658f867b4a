"""Within what the figures of a report are in nineteen releases of twenty, by the distances that it states.

Privacy: post-processing of a publishable report.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

DIGITS = 6
"""Digits of a figure of two columns."""


def within_95(noise: float, *distances: float) -> float:
    """Return what the distance of synthetic from real rows stays below in nineteen releases of twenty.

    Args:
        noise: what the distance of the release from the real rows stays below.
        distances: of the synthetic rows from the release; what is added by where a release knows less.

    By squares. Let t be the real figures, r = t + n the released ones, and s = f(r) the synthetic ones. Then |s - t|^2
    = |s - r|^2 - |n|^2 + 2 <s - t, n>. Where f moves no more than r does, <f(r) - f(t), n> is |n|^2 at most, and the
    mean of <f(t) - t, n> is 0, for t does not depend on the noise. So the mean of |s - t|^2 is at most that of
    |s - r|^2 plus that of |n|^2. How often it holds of sums of differences too: ``python -m benchmarks.coverage``.
    """
    return math.hypot(noise, *distances)


def quantiles_within(figures: Mapping[str, float]) -> float:
    """Return within what the quantiles of a column are, by the distances that its report states."""
    noise, distance = figures["noise_rank_distance_95"], figures["rank_distance_to_release"]
    return round(min(1.0, within_95(noise, distance) + figures.get("rank_distance_in_a_cell", 0.0)), 8)


def shares_within(column: Mapping[str, Any]) -> float:
    """Return within what the shares of a column's cells are, by the distances that its report states.

    They are few, so the noise may point where the fit does, and both are added. Of values that have an order the cells
    are the ranges that are told apart: how values lie in these is in what their quantiles are within. Categories that
    are counted together are told apart by the first histogram alone, whose noise is another.
    """
    together = {} if column["ordered"] else column.get("counted_together", {})
    noise = math.hypot(column["noise_distance_95"], together.get("distance_within", 0.0))
    return round(min(1.0, noise + float(column["distance_to_release"])), 8)


def pair_within(figures: Sequence[float]) -> float:
    """Return within what two columns together are, by the distances e, d and e95 that a report states."""
    return round(min(1.0, within_95(figures[2], figures[1])), DIGITS)
