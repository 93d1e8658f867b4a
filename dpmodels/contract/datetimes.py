"""Columns of dates and times between two public bounds."""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from pydantic import BeforeValidator, Field

from dpmodels.contract.base import DTYPE, of_form, zone_of
from dpmodels.contract.continuous import MAX, MIN, Continuous

MomentType = Annotated[
    str,
    of_form(
        r"date32|timestamp\[(s|ms|us|ns)(, ?tz=[\w+/-]+)?\]",
        "date32, timestamp[s], [ms], [us] or [ns], or with a zone, as in timestamp[us, tz=Europe/Berlin]",
    ),
]

ISO = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?")
"""Dates and times as text, of which YAML makes values where no quotation marks stand round them."""
TICK = {"day": "D", "hour": "h", "minute": "m", "second": "s"}


def _of_text(moment: Any) -> Any:
    """Read an ISO date or time that is text, as a dictionary has it; whatever else is given is judged as it is."""
    if not isinstance(moment, str) or not ISO.fullmatch(moment):
        return moment
    kind = date if len(moment) == len("2020-01-31") else datetime
    with suppress(ValueError):  # there is no such day
        return kind.fromisoformat(moment)
    return moment


Bound = Annotated[date | datetime, BeforeValidator(_of_text)]


class Datetime(Continuous):
    """A column of dates or times, cut down to a resolution; handled as ticks since 1970.

    Times with a zone are moments: bounds and resolution are those of UTC, and they come back in the zone of ``dtype``.
    """

    type: Annotated[Literal["datetime"], Field(description="Dates or times between two bounds, with a zone in UTC.")]
    min: Annotated[Bound, Field(description=MIN)]
    max: Annotated[Bound, Field(description=MAX)]
    resolution: Annotated[Literal["day", "hour", "minute", "second"], Field(description="What times are cut to.")] = (
        "day"
    )
    dtype: Annotated[MomentType | None, Field(description=DTYPE)] = None

    @property
    def low(self) -> float:
        return self._ticks(self.min)

    @property
    def high(self) -> float:
        """Return the last tick; a plain date means the whole of that day."""
        if isinstance(self.max, datetime):
            return self._ticks(self.max)
        return float((np.datetime64(self.max) + 1).astype(f"datetime64[{self.tick}]").astype(np.int64)) - 1

    @property
    def tick(self) -> str:
        """Return numpy's unit of the resolution."""
        return TICK[self.resolution]

    @property
    def resolved_dtype(self) -> str:
        return self.dtype or ("date32" if self.resolution == "day" else "timestamp[us]")

    @property
    def rule(self) -> str:
        return f"must lie between {self.min} and {self.max}"

    def _ticks(self, moment: date | datetime) -> float:
        return float(np.datetime64(moment).astype(f"datetime64[{self.tick}]").astype(np.int64))

    def _faults(self) -> Sequence[tuple[str, str]]:
        zoned = [key for key in ("min", "max") if getattr(getattr(self, key), "tzinfo", None)]
        if zoned:
            return [(key, "must be written without a time zone") for key in zoned]
        if self.low > self.high:
            return [("min", f"{self.min} is after max {self.max}: the bounds are reversed")]
        if self.dtype == "date32" and self.resolution != "day":
            return [("dtype", f"date32 cannot hold the resolution {self.resolution}")]
        if (zone := zone_of(self.resolved_dtype)) and (message := _zone_fault(zone, self.resolution)):
            return [("dtype", message)]
        if (self.dtype or "").startswith("timestamp[ns") and not 1678 <= self.min.year <= self.max.year <= 2261:
            return [("dtype", "timestamp[ns] holds only the years 1678 to 2261")]
        return self._settle()


def _zone_fault(zone: str, resolution: str) -> str:
    """Say why moments cannot be told in a zone, or return an empty text."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"{zone} is no time zone that this machine knows, such as UTC or Europe/Berlin"
    if resolution == "day" and zone != "UTC":
        return f"has a zone, where a day of UTC is no day of {zone}: write `resolution: hour`, minute or second"
    return ""
