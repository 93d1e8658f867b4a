"""Where the cells of a column lie on an axis of its values, and the values that are written beneath it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.clock import clock_of
from dpmodels.contract.columns import Continuous, Datetime
from dpmodels.generators.ends import values_at
from dpmodels.report.bins import Bins, written

EXACT = 1e-6
"""Part of a number by which it may be off another that is the same."""
ALMOST = 0.97
"""Part of the least width of a bar that a round one must have."""
YEARS = 1000, 3000
"""From where to before where whole numbers are taken for years."""
BARS = 40
"""Bars of a round and equal width that a density is drawn as, at most."""
FEW = 0.0025
"""Share of the rows at either end that an axis may leave out, where that makes it shorter."""
SHORTER = 1.2
"""By how much shorter it must become."""
MORE, MIDDLE = (0.01, 0.025, 0.05), 0.12
"""What it may leave out where the middle half of the rows would have less than this part of it else."""
LARGE, LONG_TAIL, SPAN = 0.95, 6.0, 30.0
"""The quantile that is so many times the median, and how many times its unit the end is, of a logarithmic axis."""
LEAST_PART, MOST_PART = 0.05, 0.5
"""Part of the rows that lie below its unit, at least and at most."""
WIDTHS = {"D": (1, 2, 5, 7, 10, 14, 20, 30, 50), "h": (1, 2, 3, 6, 12), "m": (1, 2, 5, 10, 15, 30)}
"""Round widths of a bar, in days, hours and minutes."""
TINY = float(np.finfo(np.float64).tiny)
"""The least width of a bar: numbers beneath it are all but 0 to float64."""
TICKS = 5
"""Intervals that an axis is cut into, at most."""
DECADES = 100
"""Times the first value that the last one of a logarithmic axis is for powers of ten to be ticks enough."""
CALENDAR = (("Y", 31556952.0, (100, 50, 20, 10, 5, 2, 1)), ("M", 2629746.0, (6, 3, 1)), ("D", 86400.0, (14, 7, 2, 1)))
CLOCK = (("h", 3600.0, (12, 6, 3, 1)), ("m", 60.0, (30, 10, 5, 1)), ("s", 1.0, (30, 10, 5, 1)))
SECONDS = {unit: seconds for unit, seconds, _ in (*CALENDAR, *CLOCK)}


@dataclass(frozen=True)
class Scale:
    """How distances from a lower bound lie on an axis: in proportion, or by the logarithm of 1 + x / unit.

    The latter is all but proportional to x up to the ``unit``, and all but logarithmic beyond.
    """

    unit: float | None = None

    @classmethod
    def of(cls, column: Continuous) -> "Scale":
        """Return the scale that the schema of a column says."""
        return cls(1.0 if column.log else None)

    def __call__(self, offset: Any) -> Any:
        """Turn distances from the lower bound into lengths on the axis."""
        return offset if self.unit is None else np.log1p(offset / self.unit)


def axis_of(column: Continuous, bins: Bins, synthetic: Floats, seen: Floats) -> dict[str, Any]:
    """Say where bins begin and end on the axis, as parts of what is drawn of it, and what is written beneath.

    Amounts with a long tail have a logarithmic axis, and others end where few rows are beyond, if that shows how the
    others lie. Shapes: synthetic [bins], the synthetic shares; seen [bins], these or the released ones where they stand
    out of their noise, which decide what is left out.
    """
    starts = np.flatnonzero(np.diff(bins.bin_of_cell[: column.cells], prepend=-1))
    values = values_at(column, column.edges)[np.append(starts, column.cells)]
    below, drawn = (np.concatenate([[0.0], np.cumsum(each[: bins.values])]) for each in (seen, synthetic))
    scale = _scale(column, values, below)
    edges = scale(values - column.low)
    begin, end = _ends(edges, below) if below[-1] else (0, len(edges) - 1)
    parts = (edges - edges[begin]) / (edges[end] - edges[begin])
    span = float(values[end] - values[begin])
    least = max(span / BARS, TINY)
    width = least if scale.unit else _round_width(column, least)
    bars, wide = max(span / width, 1.0), "" if scale.unit else _width(column, width)
    return {
        "edges": np.round(parts, 6).tolist(),
        "ticks": ticks(column, float(values[begin]), float(values[end]), scale),
        "bars": round(bars, 6),
        "note": f"share per {wide}" if wide else "share per bar of a logarithmic axis",
        "beyond": round(float(drawn[begin] + drawn[-1] - drawn[end]), 6),
    }


def _scale(column: Continuous, values: Floats, below: Floats) -> Scale:
    """Return a logarithmic scale for amounts of which few are many times as large as half of the others.

    It is all but proportional to what ``LEAST_PART`` of the values lie below, since no bin says how these lie.
    """
    if column.log or _tick(column) or column.low < 0 or not below[-1]:
        return Scale.of(column)
    offsets = values - column.low
    median, large = np.interp([0.5, LARGE], below / below[-1], offsets)
    first = int(np.flatnonzero(below >= LEAST_PART * below[-1])[0])
    unit, is_fine = max(float(offsets[first]), TINY), below[first] <= MOST_PART * below[-1]
    largest = float(offsets[np.flatnonzero(below >= (1 - FEW) * below[-1])[0]])
    return Scale(unit) if is_fine and large > LONG_TAIL * median and largest > SPAN * unit else Scale()


def _ends(edges: Floats, below: Floats) -> tuple[int, int]:
    """Return at which edges the axis begins and ends: where fewest are beyond and the middle half of the rows is wide.

    Of what leaves it narrow all the same, the axis is taken that leaves out ``FEW``, where that makes it shorter.
    """
    middle = float(np.ptp(np.interp([0.25, 0.75], below / below[-1], edges)))
    firsts, lasts = [0], [len(edges) - 1]
    for few in (FEW, *MORE):
        firsts.append(int(np.flatnonzero(below <= few * below[-1])[-1]))
        lasts.append(int(np.flatnonzero(below >= (1 - few) * below[-1])[0]))
    whole = float(edges[-1] - edges[0])
    usual = (firsts[1], lasts[1]) if edges[lasts[1]] - edges[firsts[1]] <= whole / SHORTER else (0, len(edges) - 1)
    further = [(begin, last) for first, last in zip(firsts[2:], lasts[2:], strict=True) for begin in (usual[0], first)]
    return next((one for one in (usual, *further) if middle >= MIDDLE * (edges[one[1]] - edges[one[0]])), usual)


def ticks(column: Continuous, begin: float, end: float, scale: Scale | None = None) -> list[tuple[float, str]]:
    """List the values that are written beneath an axis from ``begin`` to ``end``, with their places, from 0 to 1."""
    scale = scale or Scale.of(column)
    first, last = (float(scale(value - column.low)) for value in (begin, end))
    if isinstance(column, Datetime):
        labelled = _moments(column, begin, end)
    elif (clock := clock_of(column)) and not scale.unit:
        labelled = [(value, written(column, value)) for value in _times(column, clock, begin, end)]
    elif clock:
        labelled = [(value, written(column, value)) for value in _numbers(column, begin, end, scale)]
    else:
        of_years = is_year(column)
        labelled = [(value, _written(value, of_years)) for value in _numbers(column, begin, end, scale)]
    half = 0.0 if column.decimals is None else column.interval.step / 2
    positions = [(float(scale(value + half - column.low)) - first) / (last - first) for value, _ in labelled]
    return [(round(at, 6), label) for at, (_, label) in zip(positions, labelled, strict=True) if 0 <= at <= 1]


def is_year(column: Continuous) -> bool:
    """Tell whether whole numbers may be years, of which nobody marks the thousands."""
    return column.decimals == 0 and column.low >= YEARS[0] and column.high < YEARS[1]


def _numbers(column: Continuous, begin: float, end: float, scale: Scale) -> list[float]:
    """List round values: multiples of 1, 2 or 5 times a power of ten, or on a logarithmic axis 1, 2 and 5 of each."""
    least = max(begin, scale.unit or 1.0)
    if scale.unit and end > TICKS * least:
        times = (1,) if end > DECADES * least else (1, 2, 5)
        powers = range(int(np.floor(np.log10(least))), int(np.log10(end)) + 1)
        values = [10.0**power * one for power in powers for one in times]
        return [*[begin] * (begin == column.low), *(value for value in values if begin < value <= end)]
    about = max((end - begin) / TICKS, TINY)
    power = 10.0 ** np.floor(np.log10(about))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= about * 0.999)
    step = max(step, 1.0 if column.decimals == 0 else 0.0)
    return [float(number * step) for number in range(int(np.ceil(begin / step)), int(np.floor(end / step)) + 1)]


def _moments(column: Datetime, begin: float, end: float) -> list[tuple[float, str]]:
    """List round moments by ticks of the column, with their names: years, months, days, or times of the day."""
    about = (end - begin) * SECONDS[column.tick] / TICKS
    rounds = [
        (unit, times) for unit, seconds, each in (*CALENDAR, *CLOCK) for times in each if times * seconds >= about
    ]
    unit, times = rounds[-1] if rounds else ("Y", 100)
    low, high = (np.datetime64(int(tick), column.tick).astype(f"M8[{unit}]").astype(int) for tick in (begin, end))  # type: ignore[call-overload]
    moments = [np.datetime64(int(number), unit) for number in range(-(-low // times) * times, high + 1, times)]  # type: ignore[call-overload]
    precision = "m" if unit == "h" else unit
    return [
        (
            float(each.astype(f"M8[{column.tick}]").astype(int)),
            str(each.astype(f"M8[{precision}]")).replace("T", " "),
        )
        for each in moments
    ]


def _tick(column: Continuous) -> float:
    """Return how many seconds a column of moments, or of times of day, counts as one; 0 of any other column."""
    if isinstance(column, Datetime):
        return SECONDS[column.tick]
    return 1 / clock if (clock := clock_of(column)) else 0.0


def _times(column: Continuous, clock: int, begin: float, end: float) -> list[float]:
    """List round times of day by parts of a second, of which there are ``clock``: hours, minutes or seconds."""
    about = (end - begin) / clock / TICKS
    steps = [times * seconds for _, seconds, each in CLOCK for times in each if times * seconds >= about]
    step = max((steps[-1] if steps else CLOCK[0][1] * CLOCK[0][2][0]) * clock, column.interval.step)
    return [float(number * step) for number in range(int(np.ceil(begin / step)), int(np.floor(end / step)) + 1)]


def _round_width(column: Continuous, least: float) -> float:
    """Return the least round width of a bar from ``least`` on: of whole numbers one, of moments days or hours."""
    if tick := _tick(column):
        rounds = [times * SECONDS[unit] / tick for unit, each in WIDTHS.items() for times in each]
        fitting = [one for one in rounds if one >= max(least * ALMOST, 1.0)]
        return min(fitting) if fitting else _round_number(least * tick / SECONDS["D"]) * SECONDS["D"] / tick
    step = 0.0 if column.decimals is None else column.interval.step
    return max(_round_number(least, whole_of=step), step)


def _round_number(least: float, whole_of: float = 0.0) -> float:
    """Return the least round number from ``least`` on, a multiple of a step if there is one."""
    power = 10.0 ** np.floor(np.log10(least))
    rounds = [float(f"{times * power:.6g}") for times in (1, 2, 2.5, 3, 4, 5, 10, 20)]
    exact = [one for one in rounds if not whole_of or abs(one / whole_of - round(one / whole_of)) < EXACT]
    return next((one for one in exact if one >= least * ALMOST), least)


def _width(column: Continuous, width: float) -> str:
    """Write the width of a bar in the units of a column."""
    if not (tick := _tick(column)):
        return _written(float(f"{width:.3g}"))
    seconds = width * tick
    unit = next((unit for unit in ("D", "h", "m") if seconds >= SECONDS[unit]), "s")
    name = {"D": "day", "h": "hour", "m": "minute", "s": "second"}[unit]
    number = _written(float(f"{seconds / SECONDS[unit]:.3g}"))
    return name if number == "1" else f"{number} {name}s"


def _written(value: float, years: bool = False) -> str:
    return f"{value:.10g}" if years else f"{value:,.10g}"
