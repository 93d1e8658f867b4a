"""Columns on a bounded interval: integers, numbers and datetimes, their unit scale, lattice and cells."""

import re
from abc import abstractmethod
from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, PrivateAttr

from dpmodels.schema.base import DTYPE, OUTSIDE, Modelled, decimal_digits, overflow, zone_of

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Indices = NDArray[np.int32]
Whole = Annotated[int, Field(ge=-(2**53) + 1, le=2**53 - 1)]  # the integers a float64 tells apart
IntegerType = Literal["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
ClockType = Literal[
    "time32[s]", "time32[ms]", "time64[us]", "time64[ns]", "duration[s]", "duration[ms]", "duration[us]", "duration[ns]"
]
"""Times of day and durations, which are whole numbers of the unit that they are stored in."""


def _one_of(pattern: str, words: str) -> AfterValidator:
    """Hold a dtype that has parts to its form."""

    def check(dtype: str) -> str:
        if not re.fullmatch(pattern, dtype):
            raise ValueError(f"must be {words}")
        return dtype

    return AfterValidator(check)


NumberType = Annotated[
    str, _one_of(r"float32|float64|decimal\(\d+, ?\d+\)", "float32, float64 or decimal(DIGITS, DECIMALS)")
]
MomentType = Annotated[
    str,
    _one_of(
        r"date32|timestamp\[(s|ms|us|ns)(, ?tz=[\w+/-]+)?\]",
        "date32, timestamp[s], [ms], [us] or [ns], or with a zone, as in timestamp[us, tz=Europe/Berlin]",
    ),
]

MIN = "The least value there can be, from public knowledge."
MAX = "The largest value there can be, from public knowledge."
EXACT_STEPS = 2**50  # lattice steps that survive float64 on the unit interval and back
EXACT_LOG_STEPS = 2**40  # the same through log1p and expm1
DEFAULT_CELLS = 32
UNIT_STEPS = 2**31  # equal steps of the unit interval that tell values without a lattice apart
TICK = {"day": "D", "hour": "h", "minute": "m", "second": "s"}


class Continuous(Modelled):
    """A column on a bounded interval: state 0 "has a value", then "zero" if zero-inflated, then null if nullable.

    Values are handled as float64 (datetimes as ticks of their resolution). A value with a lattice (integers,
    datetimes, rounded numbers) survives ``from_unit(to_unit(x))`` exactly.
    """

    continuous: ClassVar[bool] = True
    outside: Annotated[Literal["refuse", "reject-row", "clip"], Field(description=OUTSIDE)] = "refuse"
    # 0 is never left: validation settles the default
    cells: Annotated[int, Field(ge=1, le=4096, description="Ranges of values that are told apart at first.")] = 0
    _cuts: tuple[int, ...] = PrivateAttr(())

    @property
    @abstractmethod
    def low(self) -> float:
        """Return the lower bound as float64."""

    @property
    @abstractmethod
    def high(self) -> float:
        """Return the upper bound as float64."""

    @property
    def decimals(self) -> int | None:
        """Return the decimals kept, or None when the column has no lattice."""
        return 0

    @property
    def log(self) -> bool:
        """Tell whether the unit interval is logarithmic in the distance from the lower bound."""
        return False

    @property
    def zero_state(self) -> int | None:
        """Return the state that stands for exactly zero, if the column is zero-inflated."""
        return None

    @property
    def states(self) -> int:
        """Count "has a value", zero if inflated, and null if allowed."""
        return 1 + (self.zero_state is not None) + self.nullable

    @property
    def size(self) -> int:
        """Count the value cells and the other states."""
        return self.cells + self.states - 1

    def snap(self, x: Floats) -> Floats:
        """Move values to the column's lattice and into its bounds."""
        lattice = x if self.decimals is None else np.round(x, self.decimals)
        return np.clip(lattice, self.low, self.high) + 0.0  # + 0.0 turns -0.0 into 0.0

    def to_unit(self, x: Floats) -> Floats:
        """Map values within the bounds to [0, 1]."""
        span = self._scale(np.float64(self.high - self.low))
        return self._scale(x - self.low) / span if span > 0 else np.zeros_like(x)

    def from_unit(self, u: Floats) -> Floats:
        """Map [0, 1] to values on the lattice and within the bounds."""
        span = self._scale(np.float64(self.high - self.low))
        return self.snap(self.low + self._unscale(np.clip(u, 0.0, 1.0) * span))

    def _scale(self, offset: Any) -> Any:
        return np.log1p(offset) if self.log else offset

    def _unscale(self, scaled: Any) -> Any:
        return np.expm1(scaled) if self.log else scaled

    @property
    def points(self) -> int | None:
        """Count the lattice points that are values (an inflated zero is not), or None without a lattice."""
        if self.decimals is None:
            return None
        steps = round((self.high - self.low) * 10.0**self.decimals)
        return steps + 1 - (self.zero_state is not None)

    def cut(self, edges: Places) -> Self:
        """Return the column with cells of its own: where each begins, then where the last one ends, as ``edges``."""
        column = self.model_copy(update={"cells": len(edges) - 1})
        column._cuts = tuple(edges.tolist())
        return column

    @property
    def edges(self) -> Places:
        """Return where each cell begins and the last one ends: ranks of lattice points, or steps of the unit interval.

        Without a lattice, equal cells that were not cut begin at the nearest step.
        """
        if self.is_cut or self.decimals is not None:
            return self._edges()
        return np.arange(self.cells + 1) * UNIT_STEPS // self.cells

    @property
    def is_cut(self) -> bool:
        """Tell whether the cells are the column's own, which the schema does not say."""
        return bool(self._cuts)

    def _unit_edges(self) -> Floats:
        return np.array(self._cuts or np.arange(self.cells + 1)) / (UNIT_STEPS if self._cuts else self.cells)

    def _edges(self) -> Places:
        """Return the rank of each cell's first lattice point, then the number of points; no cell is empty.

        Ranks number the lattice points upwards. The cuts are those of equal cells on the unit interval, moved to
        the next point where a cell would hold none.
        """
        if self._cuts:
            return np.array(self._cuts)
        points, step, index = self.points or 0, 10.0 ** -(self.decimals or 0), np.arange(self.cells + 1)
        ideal = self._unscale(index / self.cells * self._scale(points * step)) / step
        # Cuts grow no slower than linearly (the scale is concave), so pushing early ones up never passes the last.
        return np.maximum.accumulate(np.rint(ideal).astype(np.int64) - index) + index

    def _zero_rank(self) -> float:
        return np.inf if self.zero_state is None else np.rint(-self.low * 10.0 ** (self.decimals or 0))

    def to_cells(self, u: Floats) -> Indices:
        """Number the value cell of each unit value."""
        if self.decimals is None and self._cuts:
            return np.searchsorted(self._unit_edges()[1:-1], u, side="right").astype(np.int32)
        if self.decimals is None:
            return np.minimum(u * self.cells, self.cells - 1).astype(np.int32)
        rank = np.rint((self.from_unit(u) - self.low) * 10.0**self.decimals)
        rank -= rank > self._zero_rank()
        return np.searchsorted(self._edges()[1:-1], rank, side="right").astype(np.int32)

    def from_cells(
        self, cells: Indices, rng: np.random.Generator, low: float = -np.inf, high: float = np.inf
    ) -> Floats:
        """Draw a unit value uniformly on the unit interval within each cell, on the lattice if there is one.

        With bounds, every value lies between them as well, by the same law; each of the cells must reach there.
        """
        draw = rng.random(len(cells))
        first, last = (part[cells] for part in self._within(low, high))
        if self.decimals is None and self._cuts:
            cuts, place = self._unit_edges(), first + draw * (last - first)
            return self.to_unit(self.from_unit(cuts[cells] + place * (cuts[cells + 1] - cuts[cells])))
        if self.decimals is None:
            return self.to_unit(self.from_unit((cells + first + draw * (last - first)) / self.cells))
        step = 10.0**-self.decimals
        left, right = self._scale(first * step), self._scale((last + 1) * step)
        rank = np.clip(np.floor(self._unscale(left + draw * (right - left)) / step), first, last)
        rank += rank >= self._zero_rank()
        return self.to_unit(self.snap(self.low + rank * step))

    def cell_shares(self, low: float, high: float) -> Floats:
        """Return the probability that a value drawn within each value cell lies between two bounds. Shapes: [cells]."""
        whole, part = self._lengths(-np.inf, np.inf), self._lengths(low, high)
        shares: Floats = np.maximum(part, 0) / whole
        return shares

    def _lengths(self, low: float, high: float) -> Floats:
        first, last = self._within(low, high)
        if self.decimals is None:
            return last - first
        step = 10.0**-self.decimals
        lengths: Floats = self._scale((np.maximum(last, first - 1) + 1) * step) - self._scale(first * step)
        return lengths

    def _within(self, low: float, high: float) -> tuple[Floats, Floats]:
        """Return what of each cell lies between two values: its first and last rank, or the part of it that it is."""
        if self.decimals is None:
            cells, units = np.arange(self.cells), self.to_unit(np.clip(np.array([low, high]), self.low, self.high))
            if self._cuts:
                cuts = self._unit_edges()
                begin, end = (np.clip((unit - cuts[:-1]) / np.diff(cuts), 0.0, 1.0) for unit in units)
                return begin, end
            begin, end = (np.clip(unit * self.cells - cells, 0.0, 1.0) for unit in units)
            return begin, end
        edges, scale, zero = self._edges().astype(np.float64), 10.0**self.decimals, self._zero_rank()
        lowest, highest = np.ceil((low - self.low) * scale), np.floor((high - self.low) * scale)
        lowest, highest = lowest - (lowest > zero), highest - (highest >= zero)
        return np.maximum(edges[:-1], lowest), np.minimum(edges[1:] - 1, highest)

    def cell_bounds(self) -> tuple[Floats, Floats]:
        """Return the values that each value cell begins and ends with. Shapes: [cells] each."""
        if self.decimals is None:
            cuts = self.from_unit(self._unit_edges())
            return cuts[:-1], cuts[1:]
        edges, step = self._edges(), 10.0**-self.decimals
        ranks = [part.astype(np.float64) for part in (edges[:-1], edges[1:] - 1)]
        first, last = (rank + (rank >= self._zero_rank()) for rank in ranks)
        return self.snap(self.low + first * step), self.snap(self.low + last * step)

    def _settle(self) -> Sequence[tuple[str, str]]:
        """Set the default number of cells, or say that a declared one exceeds the lattice."""
        points = self.points if self.points is not None else 4096
        if self.cells > points:
            return [("cells", f"is more than the {points} value(s) the bounds allow")]
        object.__setattr__(self, "cells", self.cells or min(points, DEFAULT_CELLS))
        return []


class Scaled(Continuous):
    """A continuous column of numbers, whose scale may be logarithmic and whose zeros may be a state of their own."""

    scale: Annotated[Literal["linear", "log"], Field(description="Whether ranges grow with their values.")] = "linear"
    zero_inflated: Annotated[bool, Field(description="Whether zero is a value of its own kind.")] = False

    @property
    def log(self) -> bool:
        """Tell whether the unit interval is logarithmic in the distance from the lower bound."""
        return self.scale == "log"

    @property
    def zero_state(self) -> int | None:
        """Return the state that stands for exactly zero, if the column is zero-inflated."""
        return 1 if self.zero_inflated else None

    @property
    def rule(self) -> str:
        """Say in words which values the schema admits."""
        low, high = (f"{bound!r}".removesuffix(".0") for bound in (float(self.low), float(self.high)))
        return f"must lie between {low} and {high}"

    def _zero_faults(self) -> Sequence[tuple[str, str]]:
        if self.zero_inflated and not (self.low <= 0 <= self.high and self.low < self.high):
            return [("zero_inflated", "needs bounds that include zero and something besides")]
        return []


class Integer(Scaled):
    """A column of whole numbers between two public bounds; also of times of day and durations, counted in a unit."""

    type: Annotated[Literal["integer"], Field(description="Whole numbers between two bounds.")]
    min: Annotated[Whole, Field(description=MIN)]
    max: Annotated[Whole, Field(description=MAX)]
    dtype: Annotated[IntegerType | ClockType | None, Field(description=DTYPE)] = None

    @property
    def low(self) -> float:
        """Return the lower bound as float64."""
        return float(self.min)

    @property
    def high(self) -> float:
        """Return the upper bound as float64."""
        return float(self.max)

    @property
    def resolved_dtype(self) -> str:
        """Name the output type, declared or by default."""
        return self.dtype or "int64"

    def _faults(self) -> Sequence[tuple[str, str]]:
        if self.min > self.max:
            return [("min", f"{self.min} is above max {self.max}: the bounds are reversed")]
        if self.max - self.min > (EXACT_LOG_STEPS if self.log else EXACT_STEPS):
            return [("max", "is too far from min for an exact round trip; an identifier is no integer column")]
        if message := overflow(self.resolved_dtype, self.min, self.max):
            return [("dtype", message)]
        return self._zero_faults() or self._settle()


class Number(Scaled):
    """A column of real numbers between two public bounds, optionally rounded to a number of decimals."""

    type: Annotated[Literal["number"], Field(description="Numbers between two bounds.")]
    min: Annotated[float, Field(description=MIN)]
    max: Annotated[float, Field(description=MAX)]
    round: Annotated[int | None, Field(ge=0, le=12, description="Decimals that the numbers keep.")] = None
    dtype: Annotated[NumberType | None, Field(description=DTYPE)] = None

    @property
    def low(self) -> float:
        """Return the lower bound as float64, taken to the precision of the output type."""
        return float(np.float32(self.min)) if self.dtype == "float32" else self.min

    @property
    def high(self) -> float:
        """Return the upper bound as float64, taken to the precision of the output type."""
        return float(np.float32(self.max)) if self.dtype == "float32" else self.max

    @property
    def decimals(self) -> int | None:
        """Return the decimals kept, or None when the column has no lattice."""
        return self.round

    @property
    def resolved_dtype(self) -> str:
        """Name the output type, declared or by default."""
        return self.dtype or "float64"

    def _faults(self) -> Sequence[tuple[str, str]]:
        if not self.min < self.max:
            return [("min", f"{self.min} is not below max {self.max}: a number needs min < max")]
        limit = 3e38 if self.dtype == "float32" else 8e307
        if max(-self.min, self.max) > limit:
            return [("max", f"and min must be at most {limit:g} in size")]
        if not self.low < self.high:
            return [("dtype", "float32 cannot tell min from max")]
        return self._round_faults() or self._decimal_faults() or self._zero_faults() or self._settle()

    def _decimal_faults(self) -> Sequence[tuple[str, str]]:
        if (kept := decimal_digits(self.resolved_dtype)) is None:
            return []
        digits, scale = kept
        if self.round is None or self.round > scale:
            return [("round", f"must be given with {self.dtype}, and be at most {scale}")]
        if not scale < digits <= 38 or max(-self.min, self.max) >= 10.0 ** (digits - scale):
            return [("dtype", f"{self.dtype} cannot hold {self.min} to {self.max}")]
        return []

    def _round_faults(self) -> Sequence[tuple[str, str]]:
        if self.round is None:
            return []
        exact = 2**22 if self.dtype == "float32" else EXACT_LOG_STEPS
        if max(-self.min, self.max) * 10**self.round > exact:
            return [("round", f"keeps more decimals than {self.resolved_dtype} can hold at these bounds")]
        off = [key for key in ("min", "max") if np.round(getattr(self, key), self.round) != getattr(self, key)]
        return [(key, f"has more decimals than `round: {self.round}` keeps") for key in off]


class Datetime(Continuous):
    """A column of dates or times, cut down to a resolution; handled as ticks since 1970.

    Times with a zone are moments: bounds and resolution are those of UTC, and they come back in the zone of ``dtype``.
    """

    type: Annotated[Literal["datetime"], Field(description="Dates or times between two bounds, with a zone in UTC.")]
    min: Annotated[date | datetime, Field(description=MIN)]
    max: Annotated[date | datetime, Field(description=MAX)]
    resolution: Annotated[Literal["day", "hour", "minute", "second"], Field(description="What times are cut to.")] = (
        "day"
    )
    dtype: Annotated[MomentType | None, Field(description=DTYPE)] = None

    @property
    def low(self) -> float:
        """Return the first tick."""
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
        """Name the output type, declared or by default."""
        return self.dtype or ("date32" if self.resolution == "day" else "timestamp[us]")

    @property
    def rule(self) -> str:
        """Say in words which values the schema admits."""
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
