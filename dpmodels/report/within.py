"""Within what the figures of a report are in nineteen releases of twenty, by the distances that it states.

Privacy: post-processing of a publishable report.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dpmodels.statistics.normal import HALF_NORMAL, NORMAL_95

DIGITS = 6
"""Digits of a figure of two columns."""
DRAWN, MOST_ASKED = 6, 24
"""Pairs that a report draws beside those that a workload asks for, and how many of these it draws."""
MOST_RATES = 20
"""Categories by each of which the rate of a target is stated; more are joined to groups."""
MOST_CLASSES = 6
"""Classes of the target whose rates are stated, where there are more than two: the largest."""
OF_A_CLASS = ("released", "stddev", "synthetic", "within")
"""What is stated of the rate of a further class in each group of a column, whose shares stand with the first class."""
NAMED = 12
"""Categories of a group that are named."""
SPREAD = math.sqrt(1 - 2 / math.pi)
"""Standard deviation of the absolute value of a standard normal."""


def within_95(expected: float, likely: float, distance: float) -> float:
    """Return what the total variation of synthetic from real rows stays below in nineteen releases of twenty.

    Let t be the real figures, r = t + n the released ones, and s = f(r) the synthetic ones. Then |s - t|^2 = |s - r|^2
    - |n|^2 + 2 <s - t, n>. Where f moves no more than r does, <f(r) - f(t), n> is |n|^2 at most; what is left is the
    noise along f(t) - t, which does not depend on it, and is taken to be as long as s - r. So |s - t|^2 is at most
    |s - r|^2 + |n|^2 + 2 |s - r| times the noise along one direction. How often that holds of sums of differences:
    ``python -m benchmarks.coverage``.

    Args:
        expected: the mean of |n|.
        likely: what it exceeds in one of twenty. It is the mean and 1.645 standard deviations; one of |n| is
            ``SPREAD`` times one of n along a direction.
        distance: of the synthetic rows from the release.
    """
    return math.sqrt(distance**2 + likely**2 + 2 * distance * (likely - expected) / SPREAD)


def quantiles_within(figures: Mapping[str, float]) -> float:
    """Return within what the quantiles of a column are, by the distances that its report states.

    By squares: the noise is that of the largest of many sums, and the fit is seldom off at the same one.
    """
    noise, distance = figures["noise_rank_distance_95"], figures["rank_distance_to_release"]
    return round(min(1.0, math.hypot(noise, distance) + figures.get("rank_distance_in_a_cell", 0.0)), 8)


def shares_within(column: Mapping[str, Any]) -> float:
    """Return within what the shares of a column's cells are, by the distances that its report states.

    Of values that have an order the cells are the ranges that are told apart: how values lie in these is in what their
    quantiles are within. Categories that are counted together are told apart by the first histogram alone, whose noise
    is another, and so is added by squares.
    """
    together = {} if column["ordered"] else column.get("counted_together", {})
    noise = column["expected_distance"], column["noise_distance_95"]
    whole = within_95(*noise, column["distance_to_release"])
    return round(min(1.0, math.hypot(whole, together.get("distance_within", 0.0))), 8)


def pair_within(figures: Sequence[float]) -> float:
    """Return within what two columns together are, by the distances e, d and e95 that a report states.

    As ``within_95`` has it, |s - t|^2 = |s - r|^2 - |n|^2 + 2 <s - t, n>. A generator that is fitted to all pairs at
    once follows little of the noise of one: where it is half at most, <s - t, n> is half of |n|^2, and d is left. One
    that follows more leaves less of a distance, and is as far off as the noise. So d^2 or the square of the mean of the
    noise is taken, whichever is larger, and with it what the noise exceeds its mean by. What d is larger than the noise
    has nothing to do with it, as where few rows are drawn: along that there is noise besides. See decision 0061.
    """
    expected, distance, likely = figures[:3]
    along = (likely - expected) / SPREAD
    apart = math.sqrt(max(distance**2 - expected**2, 0.0))
    square = max(distance, expected) ** 2 + likely**2 - expected**2 + 2 * along * apart
    return round(min(1.0, math.sqrt(square)), DIGITS)


def rate_within(released: float, stddev: float, synthetic: float) -> float:
    """Return within what a rate of the synthetic rows is, as ``pair_within`` has it: one normal is its noise."""
    return pair_within([HALF_NORMAL * stddev, abs(released - synthetic), NORMAL_95 * stddev])


def asked_first(places: Sequence[tuple[int, int]], asked: Collection[tuple[int, int]]) -> int:
    """Return how many of the pairs that a report draws stand first because a workload asks for them."""
    return next((number for number, one in enumerate(places) if one not in asked), len(places))


def drawn(
    distances: Sequence[Sequence[float]],
    asked: Collection[tuple[int, int]] = (),
    target: int | None = None,
    ruled: Collection[tuple[int, int]] = (),
    dropped: Collection[int] = (),
) -> list[tuple[int, int]]:
    """Return the places of the pairs that a report draws, of all that it lists.

    These are the pairs that a workload asks for by name, those that depend most on each other as released, beyond what
    noise and chance make of it on average, and the one that may be farthest off. Of the others those with the target
    come first where they stand out of the noise, and last those that a rule of the schema relates. A pair with a column
    at one of the places in ``dropped``, which nobody receives, is there if it is asked for: a mean by groups is stated
    by it.
    """
    every = {(int(one[0]), int(one[1])): one for one in distances}
    pairs = {pair: one for pair, one in every.items() if pair in asked or not {*dropped} & {*pair}}
    strength = {pair: one[6] - one[8] for pair, one in pairs.items()}
    first = {pair for pair, one in pairs.items() if target in pair and one[6] > one[9]}
    drawable = [one for one in strength if strength[one] > 0 or one in asked]
    related = sorted(drawable, key=lambda one: (one not in asked, one in ruled, one not in first, -strength[one]))
    most = DRAWN + min(sum(one in asked for one in related), MOST_ASKED)
    farthest = [one for one in sorted(pairs, key=lambda one: -pairs[one][5])[:1] if one not in related[: most - DRAWN]]
    return [one for one in related if one not in farthest][: most - len(farthest)] + farthest
