"""The axis that means by groups are drawn on: it reaches every mean and whisker, logarithmic where sizes differ much.

Privacy: post-processing of a publishable report.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpmodels.clock import HOUR, MINUTE
from dpmodels.pages.figures.amounts import amount, error

Facts = Mapping[str, Any]
Ends = tuple[float, float]
SPECK = 3
"""Times that an axis of several pictures is as long as one picture needs, from which on that has one of its own."""
FINE = 1000
"""Parts of an axis of which a figure that is less than one is written as 0."""
LOGARITHMIC = 20
"""Times the smallest mean that the largest is from which on an axis is logarithmic, where all are positive."""
DEEPEST = 10
"""Times the smallest mean that a whisker may be below for a logarithmic axis to reach down to its end."""
ROUND = (1.0, 2.0, 5.0, 10.0)
STEPS = 4
"""Round steps that a linear axis has at least before its ends are rounded to such steps."""
TIMES = (HOUR, 15 * MINUTE, MINUTE)
"""Seconds that axes of times of day have as steps."""
FEW_TICKS = 4
"""Ticks of a logarithmic axis up to which those between powers of ten are written."""
NEAR = 0.16
"""Part of an axis before its end in which no other tick is written."""


@dataclass(frozen=True)
class Axis:
    """Where an axis begins and ends, and whether equal parts of it are equal factors."""

    low: float
    high: float
    is_logarithmic: bool = False

    def part(self, value: float) -> float:
        """Return where a value lies, from 0 to 1."""
        if self.is_logarithmic:
            value = max(value, self.low)
            return min(math.log(value / self.low) / math.log(self.high / self.low), 1.0)
        return min(max((value - self.low) / self.span, 0.0), 1.0)

    @property
    def span(self) -> float:
        """Return how long it is; of a single value 1."""
        return self.high - self.low or 1.0

    def is_nothing(self, value: float) -> bool:
        """Tell whether a figure is so small beside a linear axis that it is written as 0."""
        return not self.is_logarithmic and abs(value) < self.span / FINE

    def ticks(self, column: Facts) -> list[tuple[float, str]]:
        """Return the values that are written beneath it: both ends, or of a logarithmic one its round values."""
        if not self.is_logarithmic:
            ends = (0.0 if self.is_nothing(end) else end for end in (self.low, self.high))
            return [(end, amount(column, end, self.span / 10)) for end in ends]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        every = [(step * 10.0**power, step) for power in powers for step in ROUND[:3]]
        inside = [(value, step) for value, step in every if self.low <= value * 1.001 and value <= self.high * 1.001]
        tens = [value for value, step in inside if step == 1.0]
        shown = sorted({self.low, *([value for value, _ in inside] if len(inside) <= FEW_TICKS else tens)})
        clear = [value for value in shown if 1 - self.part(value) >= NEAR]
        return [(value, amount(column, value)) for value in (*clear, self.high)]


def reach(group: Facts, ends: Ends) -> Ends:
    """Return between what a mean lies: what it is within, cut at what values can be."""
    low, high = (group["released"] + sign * group["within"] for sign in (-1, 1))
    return max(low, min(ends[0], group["released"])), min(high, max(ends[1], group["released"]))


def ends_of(means: Facts) -> Ends:
    """Return between what the values of a column lie; reports of layouts up to 27 do not say, nor where none is cut."""
    low, high = means.get("values_from_to", (None, None))
    return (-math.inf if low is None else low), (math.inf if high is None else high)


def within_in_words(group: Facts, column: Facts, ends: Ends) -> str:
    """Write what a mean is within, and where values begin or end if that cuts it."""
    low, high = (group["released"] + sign * group["within"] for sign in (-1, 1))
    cut = [f"at least {amount(column, ends[0])}"] if low < ends[0] else []
    cut += [f"at most {amount(column, ends[1])}"] if high > ends[1] else []
    return ", ".join([error(column, group["within"]), *cut])


def with_interval(released: str, group: Facts, column: Facts, ends: Ends) -> str:
    """Write a mean with what it is within, or between what it lies where that is cut; that there is none if so."""
    if not released:
        return "not known"
    low, high = reach(group, ends)
    if (low, high) != (group["released"] - group["within"], group["released"] + group["within"]):
        both = (amount(column, end, group["within"]) for end in (low, high))
        return f"{released} ({' to '.join(both)})"
    within = error(column, group["within"])
    return released if within.strip("0.") == "" else f"{released} \N{PLUS-MINUS SIGN} {within}"


def axis_of(means: Facts, column: Facts, some: Sequence[Facts] = ()) -> Axis:
    """Return the axis of means: of all of a column, or of these alone where they would be a speck on it, or asked for.

    Means of which the largest is many times the smallest have a logarithmic one. None begins, or ends, beyond what
    values can be, where that is known.

    Args:
        means: what is drawn.
        column: what they are the means of.
        some: those that share an axis with them, with themselves; none where they have one of their own.
    """
    if logarithmic := _logarithmic(means):
        return _cut(logarithmic, ends_of(means))
    shared = [one for one in some if one["column"] == means["column"] and not _logarithmic(one)]
    low, high = _linear(shared or [means])
    least, most = _linear([means])
    ends = (low, high) if high - low <= SPECK * (most - least) else (least, most)
    return _cut(Axis(*_rounded(*ends, column.get("clock"))), ends_of(means))


def _cut(axis: Axis, ends: Ends) -> Axis:
    """Return an axis that stays within what values can be."""
    return replace(axis, low=max(axis.low, ends[0]), high=min(axis.high, ends[1]))


def _rounded(low: float, high: float, clock: float | None) -> Ends:
    """Return the nearest round values on both sides; of times of day whole hours, quarters or minutes."""
    if high <= low:
        return low, high
    step = _round((high - low) / STEPS, up=False)
    if clock:
        step = clock * next((one for one in TIMES if one * clock * STEPS / 2 <= high - low), TIMES[-1])
    digits = max(-math.floor(math.log10(step)), 0)
    return round(math.floor(low / step) * step, digits), round(math.ceil(high / step) * step, digits)


def _figures(means: Facts) -> Iterator[float]:
    return (one[key] for one in means["groups"] for key in ("released", "synthetic") if one[key] is not None)


def _reached(means: Facts) -> Iterator[Ends]:
    return (reach(one, ends_of(means)) for one in means["groups"] if one["released"] is not None)


def _linear(of_column: Sequence[Facts]) -> Ends:
    """Return between what means lie, with what they are within."""
    values = [value for means in of_column for value in _figures(means)]
    lows, highs = zip(*(ends for means in of_column for ends in _reached(means)), strict=True)
    least = 0.0 if min(values) >= 0 else -math.inf  # of amounts, whatever their means are within
    return min(max(min(lows), least), *values), max(*highs, *values)


def _logarithmic(means: Facts) -> Axis | None:
    """Return a logarithmic axis from a round value to another; None where a linear one serves."""
    values = [*_figures(means)]
    if not min(values) > 0 or max(values) <= LOGARITHMIC * min(values):
        return None
    lows, highs = zip(*_reached(means), strict=True)
    low = min(values + [one for one in lows if one >= min(values) / DEEPEST])
    return Axis(_round(low, up=False), _round(max(*highs, *values), up=True), is_logarithmic=True)


def _round(value: float, up: bool) -> float:
    """Return the nearest of 1, 2 and 5 times a power of ten, at most as large as a value, or at least."""
    power = 10.0 ** math.floor(math.log10(value))
    steps = [step * power for step in ROUND]
    return min(one for one in steps if one >= value) if up else max(one for one in steps if one <= value)
