"""Where the cells of a column lie on an axis of its values, and the values that are written beneath it."""

from typing import Any

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.columns import Continuous, Datetime
from dpmodels.generators.ends import values_at
from dpmodels.report.bins import Bins

BARS = 40
"""Bars of equal width that a density is drawn as."""
FEW = 0.0025
"""Share of the rows at either end that an axis may leave out, where that makes it shorter."""
SHORTER = 1.2
"""By how much shorter it must become."""
TICKS = 5
"""Intervals that an axis is cut into, at most."""
DECADES = 300
"""Times the first value that the last one of a logarithmic axis is for powers of ten to be ticks enough."""
CALENDAR = (("Y", 31556952.0, (100, 50, 20, 10, 5, 2, 1)), ("M", 2629746.0, (6, 3, 1)), ("D", 86400.0, (14, 7, 2, 1)))
CLOCK = (("h", 3600.0, (12, 6, 3, 1)), ("m", 60.0, (30, 10, 5, 1)), ("s", 1.0, (30, 10, 5, 1)))
SECONDS = {unit: seconds for unit, seconds, _ in (*CALENDAR, *CLOCK)}


def axis_of(column: Continuous, bins: Bins, synthetic: Floats, seen: Floats) -> dict[str, Any]:
    """Say where bins begin and end on the axis, as parts of what is drawn of it, and what is written beneath.

    Shapes: synthetic [bins], the synthetic shares; seen [bins], these or the released ones where they stand out of
    their noise, which decide whether ends that hold next to nothing are left out.
    """
    starts = np.flatnonzero(np.diff(bins.bin_of_cell[: column.cells], prepend=-1))
    values = values_at(column, column.edges)[np.append(starts, column.cells)]
    edges = column.interval.scaled(values - column.low)
    below, drawn = (np.concatenate([[0.0], np.cumsum(each[: bins.values])]) for each in (seen, synthetic))
    begin = int(np.flatnonzero(below <= FEW * below[-1])[-1])
    end = int(np.flatnonzero(below >= (1 - FEW) * below[-1])[0])
    if not below[-1] or edges[end] - edges[begin] > (edges[-1] - edges[0]) / SHORTER:
        begin, end = 0, len(edges) - 1
    parts = (edges - edges[begin]) / (edges[end] - edges[begin])
    step = 0.0 if column.decimals is None else column.interval.step
    points = np.inf if not step or column.log else round(float(values[end] - values[begin]) / step)
    bars = int(min(BARS, points))
    wide = "" if column.log else _width(column, float(values[end] - values[begin]) / bars)
    return {
        "edges": np.round(parts, 6).tolist(),
        "ticks": ticks(column, float(values[begin]), float(values[end])),
        "bars": bars,
        "note": f"share per {wide}" if wide else "share per bar of a logarithmic axis",
        "beyond": round(float(drawn[begin] + drawn[-1] - drawn[end]), 6),
    }


def ticks(column: Continuous, begin: float, end: float) -> list[tuple[float, str]]:
    """List the values that are written beneath an axis from ``begin`` to ``end``, with their places, from 0 to 1."""
    scaled = column.interval.scaled
    first, last = (float(scaled(value - column.low)) for value in (begin, end))
    if isinstance(column, Datetime):
        labelled = _moments(column, begin, end)
    else:
        years = column.low >= 1000 and column.high < 10_000
        labelled = [(value, _written(value, years)) for value in _numbers(column, begin, end)]
    half = 0.0 if column.decimals is None else column.interval.step / 2
    positions = [(float(scaled(value + half - column.low)) - first) / (last - first) for value, _ in labelled]
    return [(round(at, 6), label) for at, (_, label) in zip(positions, labelled, strict=True) if 0 <= at <= 1]


def _numbers(column: Continuous, begin: float, end: float) -> list[float]:
    """List round values: multiples of 1, 2 or 5 times a power of ten, or on a logarithmic axis 1, 2 and 5 of each."""
    least = max(begin, 1.0)
    if column.log and end > TICKS * least:
        times = (1,) if end > DECADES * least else (1, 2, 5)
        powers = range(int(np.floor(np.log10(least))), int(np.log10(end)) + 1)
        values = [10.0**power * one for power in powers for one in times]
        return [*[begin] * (begin == column.low), *(value for value in values if begin < value <= end)]
    about = (end - begin) / TICKS
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


def _width(column: Continuous, width: float) -> str:
    """Write the width of a bar in the units of a column."""
    if not isinstance(column, Datetime):
        return _written(float(f"{width:.3g}"))
    seconds = width * SECONDS[column.tick]
    unit = next((unit for unit in ("D", "h", "m") if seconds >= SECONDS[unit]), "s")
    name = {"D": "day", "h": "hour", "m": "minute", "s": "second"}[unit]
    number = _written(float(f"{seconds / SECONDS[unit]:.3g}"))
    return name if number == "1" else f"{number} {name}s"


def _written(value: float, years: bool = False) -> str:
    return f"{value:.10g}" if years else f"{value:,.10g}"
