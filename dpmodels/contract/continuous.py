"""A column on a bounded interval: its values, and the cells that they are counted in."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from dpmodels.arrays import Whole
from dpmodels.contract.base import OUTSIDE, Modelled
from dpmodels.contract.cells import Cells, equal_cells, own_cells
from dpmodels.contract.interval import Interval

MIN = "The least value there can be, from public knowledge."
MAX = "The largest value there can be, from public knowledge."
DEFAULT_CELLS = 32
MOST_CELLS = 4096


class Continuous(Modelled):
    """A column on a bounded interval: state 0 "has a value", then "zero" if zero-inflated, then null if nullable."""

    continuous: ClassVar[bool] = True
    outside: Annotated[Literal["refuse", "reject-row", "clip"], Field(description=OUTSIDE)] = "refuse"
    # 0 is never left: validation settles the default
    cells: Annotated[int, Field(ge=1, le=MOST_CELLS, description="Ranges of values that are told apart at first.")] = 0
    _edges: tuple[int, ...] = PrivateAttr(())

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
    def unit(self) -> int:
        """Return how many of the numbers that it is counted in lie between two neighbors, such as 60 seconds."""
        return 1

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

    @property
    def interval(self) -> Interval:
        """Return the values that the schema admits, apart from null."""
        return Interval(self.low, self.high, self.decimals, self.log, self.zero_state is not None, self.unit)

    @property
    def grid(self) -> Cells:
        """Return the value cells: the column's own if it was cut, or else equal ones."""
        return own_cells(self.interval, self._edges) if self._edges else equal_cells(self.interval, self.cells)

    @property
    def edges(self) -> Whole:
        """Return where each value cell begins and the last one ends."""
        return self.grid.edges

    def cut(self, edges: Whole) -> Self:
        """Return the column with cells of its own: where each begins, then where the last one ends, as ``edges``."""
        column = self.model_copy(update={"cells": len(edges) - 1})
        column._edges = tuple(edges.tolist())
        return column

    @property
    def is_cut(self) -> bool:
        """Tell whether the cells are the column's own, which the schema does not say."""
        return bool(self._edges)

    def _settle(self) -> Sequence[tuple[str, str]]:
        """Set the default number of cells, or say that a declared one exceeds the lattice."""
        points = self.interval.points
        points = MOST_CELLS if points is None else points
        if self.cells > points:
            return [("cells", f"is more than the {points} value(s) the bounds allow")]
        object.__setattr__(self, "cells", self.cells or min(points, DEFAULT_CELLS))
        return []


def decode_numbers(column: Continuous, states: NDArray[np.int32], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return encoded values as the numbers or ticks that are handed over, null as NaN."""
    x = column.interval.from_unit(values)
    if column.zero_state is not None:
        x[states == column.zero_state] = 0.0
    if column.resolved_dtype == "float32":
        x = x.astype(np.float32).astype(np.float64)
    if column.null_state is not None:
        x[states == column.null_state] = np.nan
    return x
