"""The values between two bounds: where they lie on the unit interval, and the whole numbers that stand for them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmodels.arrays import Floats

UNIT_STEPS = 2**31  # equal steps of the unit interval that tell values without a lattice apart


@dataclass(frozen=True)
class Interval:
    """The values of a column, as float64 (datetimes as ticks of their resolution).

    Integers, datetimes and rounded numbers lie on a lattice; such a value survives ``from_unit(to_unit(x))`` exactly.
    A value's *place* numbers the lattice upwards from the lower bound, or the steps of the unit interval where there
    is none. Its *rank* numbers the lattice too, and leaves out a zero that is a state of its own.

    Attributes:
        decimals: those that values keep, or None without a lattice.
        log: whether the unit interval is logarithmic in the distance from the lower bound.
        zero_apart: whether zero is a state of its own.
        unit: the whole number that all values are multiples of, as those of times that are cut to the minute are.
    """

    low: float
    high: float
    decimals: int | None
    log: bool
    zero_apart: bool
    unit: int = 1

    def snap(self, x: Floats) -> Floats:
        """Move values to the lattice and into the bounds."""
        lattice = x if self.decimals is None else np.round(x, self.decimals)
        lattice = np.rint(x / self.unit) * self.unit if self.unit > 1 else lattice
        return np.clip(lattice, self.low, self.high) + 0.0  # + 0.0 turns -0.0 into 0.0

    def to_unit(self, x: Floats) -> Floats:
        """Map values within the bounds to [0, 1]."""
        span = self.scaled(np.float64(self.high - self.low))
        return self.scaled(x - self.low) / span if span > 0 else np.zeros_like(x)

    def from_unit(self, u: Floats) -> Floats:
        """Map [0, 1] to values on the lattice and within the bounds."""
        span = self.scaled(np.float64(self.high - self.low))
        return self.snap(self.low + self.unscaled(np.clip(u, 0.0, 1.0) * span))

    def scaled(self, offset: Any) -> Any:
        """Turn distances from the lower bound into lengths that are in proportion to those of the unit interval."""
        return np.log1p(offset) if self.log else offset

    def unscaled(self, length: Any) -> Any:
        """Turn such lengths back into distances."""
        return np.expm1(length) if self.log else length

    @property
    def step(self) -> float:
        """Return the distance of two neighbors on the lattice."""
        return self.unit * 10.0 ** -(self.decimals or 0)

    @property
    def per_unit(self) -> float:
        """Count the lattice points of a distance of one; ``1 / step`` may differ from it in its last bit."""
        return 10.0 ** (self.decimals or 0) / self.unit

    @property
    def places(self) -> int:
        """Count the places."""
        return 1 + (UNIT_STEPS if self.decimals is None else round((self.high - self.low) * self.per_unit))

    @property
    def points(self) -> int | None:
        """Count the ranks, or return None without a lattice."""
        return None if self.decimals is None else self.places - self.zero_apart

    def place(self, x: Floats) -> Floats:
        """Return the place of each value within the bounds, or the nearest one without a lattice."""
        if self.decimals is None:
            return np.rint(self.to_unit(x) * UNIT_STEPS)
        return np.rint((x - self.low) * self.per_unit)

    def unit_at(self, index: Floats) -> Floats:
        """Return the unit value of each place."""
        if self.decimals is None:
            return index / UNIT_STEPS
        return self.to_unit(self.snap(self.low + index * self.step))

    @property
    def zero(self) -> float:
        """Return the place of a zero that is a state of its own; it lies beyond all places when there is none."""
        return float(np.rint(-self.low * self.per_unit)) if self.zero_apart else np.inf

    def rank(self, x: Floats) -> Floats:
        """Return the rank of each lattice value."""
        index = self.place(x)
        return index - (index > self.zero)

    def value_at(self, rank: Floats) -> Floats:
        """Return the lattice value of each rank."""
        return self.snap(self.low + (rank + (rank >= self.zero)) * self.step)
