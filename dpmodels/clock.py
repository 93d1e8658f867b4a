"""How times of day are written: 08:00, with seconds where a column has them; and how long something is off."""

import math
import re
from collections.abc import Mapping
from typing import Any

TIME = re.compile(r"time(?:32|64)\[(s|ms|us|ns)\]")
"""The types of times of day, with the unit that they are counted in."""
WRITTEN = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
MINUTE, HOUR = 60, 3600
LONG, LONGER = 90, 90 * MINUTE
"""Seconds from which on a length is written in minutes, and in hours."""


def clock_of(column: object) -> int:
    """Return in how many parts of a second a column counts times of day; 0 of any other column."""
    kind = TIME.fullmatch(getattr(column, "dtype", None) or "")
    return TICKS[kind[1]] if kind else 0


def has_seconds(column: object) -> bool:
    """Tell whether a column of times of day is finer than a minute."""
    return getattr(column, "resolution", None) is None


def time_of_day(ticks: float, clock: int, with_seconds: bool = False) -> str:
    """Write a time of day, to the nearest minute or second. Units: ``ticks`` since midnight, ``clock`` a second."""
    seconds = round(ticks / clock) if with_seconds else round(ticks / clock / MINUTE) * MINUTE
    written = f"{seconds // HOUR:02d}:{seconds // MINUTE % MINUTE:02d}"
    return f"{written}:{seconds % MINUTE:02d}" if with_seconds else written


def with_counted_times(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a column of times of day with bounds such as "08:00" in the unit of its type."""
    kind = TIME.fullmatch(dtype) if isinstance(dtype := keys.get("dtype"), str) else None
    counted = dict(keys)
    for key in ("min", "max") if kind else ():
        if isinstance(text := keys.get(key), str) and WRITTEN.fullmatch(text):
            counted[key] = counted_time(text, TICKS[kind[1]])  # type: ignore[index]
    return counted


def counted_time(text: str, clock: int) -> int:
    """Return a time of day such as "08:00" in ticks since midnight. Units: ``clock`` a second.

    Raises:
        ValueError: it is none.
    """
    if (parts := WRITTEN.fullmatch(text)) is None:
        raise ValueError("a time of day is written as 08:00 or 08:00:30")
    hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return (HOUR * hours + MINUTE * minutes + seconds) * clock


def duration(ticks: float, clock: int) -> str:
    """Write a length of time with two figures, rounded up. Units: ``ticks``, ``clock`` a second."""
    seconds = ticks / clock
    unit, size = ("h", HOUR) if seconds >= LONGER else ("min", MINUTE) if seconds >= LONG else ("s", 1)
    number = seconds / size
    step = 10.0 ** (math.floor(math.log10(number)) - 1) if number > 0 else 1.0
    return f"{math.ceil(number / step * (1 - 1e-9)) * step:.3g} {unit}"
