"""Columns of numbers between two public bounds: whole ones, and real ones that may be rounded."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from dpmodels.clock import clock_of, has_seconds, time_of_day, with_counted_times
from dpmodels.contract.base import DTYPE, UNITS, FormulaText, decimal_digits, of_form, overflow
from dpmodels.contract.continuous import MAX, MIN, Continuous

ExactInteger = Annotated[int, Field(ge=-(2**53) + 1, le=2**53 - 1)]  # the integers a float64 tells apart
IntegerType = Literal["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
ClockType = Literal[
    "time32[s]", "time32[ms]", "time64[us]", "time64[ns]", "duration[s]", "duration[ms]", "duration[us]", "duration[ns]"
]
"""Times of day and durations, which are whole numbers of the unit that they are stored in."""


NumberType = Annotated[
    str, of_form(r"float32|float64|decimal\(\d+, ?\d+\)", "float32, float64 or decimal(DIGITS, DECIMALS)")
]
SECONDS = {"minute": 60, "hour": 3600}
EXACT_STEPS = 2**50  # lattice steps that survive float64 on the unit interval and back
EXACT_LOG_STEPS = 2**40  # the same through log1p and expm1


class Scaled(Continuous):
    """A continuous column of numbers, whose scale may be logarithmic and whose zeros may be a state of their own."""

    scale: Annotated[Literal["linear", "log"], Field(description="Whether ranges grow with their values.")] = "linear"
    zero_inflated: Annotated[bool, Field(description="Whether zero is a value of its own kind.")] = False
    computed: Annotated[  # left out where there is none, so that a schema keeps the hash it had before this key existed
        FormulaText | None,
        Field(
            exclude_if=lambda given: given is None,
            description="What it is of the file's columns, where the file does not have it.",
        ),
    ] = None
    keep: Annotated[  # left out likewise
        Literal["drop"] | None,
        Field(
            exclude_if=lambda given: given is None,
            description="Whether a computed column is modeled and yet not handed over.",
        ),
    ] = None

    @property
    def log(self) -> bool:
        return self.scale == "log"

    @property
    def zero_state(self) -> int | None:
        return 1 if self.zero_inflated else None

    @property
    def rule(self) -> str:
        clock, bounds = clock_of(self), (float(self.low), float(self.high))
        low, high = (time_of_day(one, clock, has_seconds(self)) if clock else f"{one!r}" for one in bounds)
        low, high = low.removesuffix(".0"), high.removesuffix(".0")
        return f"must lie between {low} and {high}" + f" (it is `{self.computed}`)" * bool(self.computed)

    def _joint_faults(self) -> Sequence[tuple[str, str]]:
        if self.keep and self.computed is None:
            return [("keep", "goes with `computed`; to leave out a column of the file, write `type: identifier`")]
        if self.zero_inflated and not (self.low <= 0 <= self.high and self.low < self.high):
            return [("zero_inflated", "needs bounds that include zero and something besides")]
        return []


class Integer(Scaled):
    """A column of whole numbers between two public bounds; also of times of day and durations, counted in a unit."""

    type: Annotated[Literal["integer"], Field(description="Whole numbers between two bounds.")]
    min: Annotated[ExactInteger, Field(description=MIN)]
    max: Annotated[ExactInteger, Field(description=MAX)]
    dtype: Annotated[IntegerType | ClockType | None, Field(description=DTYPE)] = None
    resolution: Annotated[  # left out likewise
        Literal["minute", "hour"] | None,
        Field(exclude_if=lambda given: given is None, description="What times of day and durations are cut to."),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _count_times(cls, keys: Any) -> Any:
        return with_counted_times(keys) if isinstance(keys, Mapping) else keys

    @property
    def unit(self) -> int:
        return UNITS[self.resolved_dtype.split("[")[1][:-1]] * SECONDS[self.resolution] if self.resolution else 1

    @property
    def low(self) -> float:
        return float(self.min // self.unit * self.unit)

    @property
    def high(self) -> float:
        return float(self.max // self.unit * self.unit)

    @property
    def resolved_dtype(self) -> str:
        return self.dtype or "int64"

    def _faults(self) -> Sequence[tuple[str, str]]:
        if self.resolution and not (self.dtype or "").startswith(("time", "duration")):
            return [("resolution", 'goes with a time of day or a duration, such as `dtype: "time32[s]"`')]
        if self.min > self.max:
            return [("min", f"{self.min} is above max {self.max}: the bounds are reversed")]
        if self.max - self.min > (EXACT_LOG_STEPS if self.log else EXACT_STEPS):
            return [("max", "is too far from min for an exact round trip; an identifier is no integer column")]
        if message := overflow(self.resolved_dtype, self.min, self.max):
            return [("dtype", message)]
        return self._joint_faults() or self._settle()


class Number(Scaled):
    """A column of real numbers between two public bounds, optionally rounded to a number of decimals."""

    type: Annotated[Literal["number"], Field(description="Numbers between two bounds.")]
    min: Annotated[float, Field(description=MIN)]
    max: Annotated[float, Field(description=MAX)]
    round: Annotated[
        int | None, Field(ge=0, le=12, description="Decimals that the numbers keep; those with more are rounded.")
    ] = None
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
        return self.round

    @property
    def resolved_dtype(self) -> str:
        return self.dtype or "float64"

    def _faults(self) -> Sequence[tuple[str, str]]:
        if not self.min < self.max:
            return [("min", f"{self.min} is not below max {self.max}: a number needs min < max")]
        limit = 3e38 if self.dtype == "float32" else 8e307
        if max(-self.min, self.max) > limit:
            return [("max", f"and min must be at most {limit:g} in size")]
        if not self.low < self.high:
            return [("dtype", "float32 cannot tell min from max")]
        return self._round_faults() or self._decimal_faults() or self._joint_faults() or self._settle()

    def _decimal_faults(self) -> Sequence[tuple[str, str]]:
        if (precision := decimal_digits(self.resolved_dtype)) is None:
            return []
        digits, scale = precision
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
