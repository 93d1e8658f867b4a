"""One comparison of a synthetic table with the real one: what every metric is given."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from dpmodels.comparison.frame import Frame
from dpmodels.comparison.marginals import Grid, GridTally
from dpmodels.contract.schema import Schema

T = TypeVar("T")
TEST_SHARE = 0.3
"""Share of the real rows that is kept for testing when no rows were held out."""


class Once:
    """Values that several metrics need, made by the first that asks, also when they run at the same time."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._locks: dict[str, Lock] = {}
        self._door = Lock()

    def get(self, key: str, make: Callable[[], T]) -> T:
        """Return the value of a key, making it if nobody has."""
        with self._door:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            if key not in self._values:
                self._values[key] = make()
            value: T = self._values[key]
            return value


@dataclass(frozen=True)
class Real:
    """The real side, which several synthetic tables may be held against.

    Attributes:
        train: a sample of the rows that the synthetic tables were made from.
        held_out: a sample of rows that they were not made from, if there are any.
        tally: counts of all the rows they were made from.
        once: what is computed from the real rows alone.
    """

    schema: Schema
    train: Frame
    held_out: Frame | None
    grid: Grid
    tally: GridTally
    seed: int
    once: Once = field(default_factory=Once)

    def split(self, most: int) -> tuple[Frame, Frame]:
        """Return rows to train a model on and rows to test it on: the held-out ones, or else a part of the real rows.

        At most ``most`` rows to train on, and half as many to test on.
        """
        rng = np.random.default_rng(self.seed)
        order = rng.permutation(len(self.train))
        if self.held_out is not None:
            return self.train.take(order[:most]), self.held_out.take(rng.permutation(len(self.held_out))[: most // 2])
        cut = round(len(order) * (1 - TEST_SHARE))
        return self.train.take(order[:cut][:most]), self.train.take(order[cut:][: most // 2])


@dataclass(frozen=True)
class Case:
    """A synthetic table beside the real side.

    Privacy: holds real rows, so every fact that a metric returns is as sensitive as they are; ``evaluate_table`` alone
        asks metrics, and what it returns is Sensitive.

    Attributes:
        synthetic: a sample of the synthetic rows; tally: counts of all of them.
        once: what is computed for this table alone.
    """

    real: Real
    synthetic: Frame
    tally: GridTally
    once: Once = field(default_factory=Once)

    @property
    def schema(self) -> Schema:
        """The public contract of both tables."""
        return self.real.schema

    def draw(self, frame: Frame, rows: int, salt: int = 0) -> Frame:
        """Draw at most so many rows of a frame, the same ones for the same salt."""
        order = np.random.default_rng([self.real.seed, salt]).permutation(len(frame))
        return frame.take(np.sort(order[:rows]))


class Skip(Exception):
    """A metric says why it does not apply."""
