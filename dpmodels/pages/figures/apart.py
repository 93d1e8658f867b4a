"""Whether groups differ, by the intervals of their figures: one rule for means and for rates.

Two groups differ for certain if the intervals of two figures that nothing speaks against do not meet, widened as so
many comparisons need (Bonferroni). Where intervals do not meet as they are printed, and these do, groups lie apart and
it is not certain. Only where all printed intervals meet is it said that no two groups differ.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

NONE_APART = "no two groups differ for certain"
NOT_CERTAIN = "groups lie apart, but not for certain"


class Interval(NamedTuple):
    """A figure of a group, what it is within, and whether something speaks against it."""

    figure: float
    within: float
    is_pale: bool = False


def apart_in_words(intervals: Sequence[Interval]) -> str:
    """Say that no two groups differ for certain, or that some may; empty where two do, and of a single one."""
    if len(intervals) < 2 or are_certain([one for one in intervals if not one.is_pale]):
        return ""
    return NOT_CERTAIN if _do_not_meet(intervals) else NONE_APART


def are_certain(intervals: Sequence[Interval], pairs: int = 1) -> bool:
    """Tell whether two intervals do not meet, widened for all of them in so many ``pairs`` of columns."""
    compared = max(len(intervals) * (len(intervals) - 1) // 2 * pairs, 1)
    return _do_not_meet(intervals, NormalDist().inv_cdf(1 - 0.025 / compared) / NormalDist().inv_cdf(0.975))


def _do_not_meet(intervals: Sequence[Interval], wider: float = 1.0) -> bool:
    """Tell whether two intervals do not meet that are so many times as wide."""
    highest = max((one.figure - wider * one.within for one in intervals), default=0.0)
    return bool(highest > min((one.figure + wider * one.within for one in intervals), default=0.0))
