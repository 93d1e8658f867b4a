"""One unsigned integer a row and column: the form in which encoded rows are stored, and in which kernels read them.

A category's code is its state. A number's code is its place on the column's lattice, or the nearest of 2**31 equal
steps where there is none; the codes after those stand for the other states. So a code says what states and values say,
bit for bit on a lattice and to 2**-32 of the interval without one, in one to four bytes.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Indices, Whole
from dpmodels.contract.base import Modelled
from dpmodels.contract.continuous import Continuous
from dpmodels.errors import DataError

Codes = NDArray[np.unsignedinteger[Any]]


def value_codes(column: Modelled) -> int:
    """Count the codes that stand for values of a continuous column, or all codes of another."""
    return column.interval.places if isinstance(column, Continuous) else column.states


def code_count(column: Modelled) -> int:
    """Count a column's codes."""
    return value_codes(column) + (column.states - 1 if isinstance(column, Continuous) else 0)


def code_type(column: Modelled) -> np.dtype[Any]:
    """Return the smallest type that holds a column's codes."""
    return np.min_scalar_type(code_count(column) - 1)


def number_codes(column: Continuous, states: Indices, x: Floats) -> Codes:
    """Return the codes of states and, where the state is "has a value", of numbers on the lattice and in bounds."""
    index = column.interval.place(x)
    if column.states == 1:
        return index.astype(code_type(column))
    return np.where(states == 0, index, value_codes(column) - 1.0 + states).astype(code_type(column))


def to_codes(column: Modelled, states: Indices, values: Floats) -> Codes:
    """Return the codes of states and unit values.

    Raises:
        DataError: a state or a value that the column does not have.
    """
    if states.size and not 0 <= states.min() <= states.max() < column.states:
        raise DataError("", "the encoded data does not belong to this schema")
    if isinstance(column, Continuous):
        return number_codes(column, states, column.interval.from_unit(values))
    return states.astype(code_type(column))


def from_codes(column: Modelled, codes: Codes) -> tuple[Indices, Floats]:
    """Return the states and unit values that codes stand for."""
    if not isinstance(column, Continuous):
        return codes.astype(np.int32), np.zeros(len(codes))
    count = value_codes(column)
    valued = codes < count
    states = np.where(valued, 0, codes.astype(np.int64) - (count - 1)).astype(np.int32)
    return states, np.where(valued, column.interval.unit_at(codes.astype(np.float64)), 0.0)


def check_codes(column: Modelled, codes: NDArray[Any]) -> Codes:
    """Refuse codes that the column does not have: kernels trust them as addresses."""
    if codes.dtype != code_type(column) or (codes.size and int(codes.max()) >= code_count(column)):
        raise DataError("", "the encoded data does not belong to this schema")
    return codes


@lru_cache(maxsize=1024)
def first_codes(column: Modelled) -> Whole:
    """Return the first code of each cell: cells are runs of codes, value cells first, then the other states.

    ``Cells.of`` alone says where a cell begins; it never decreases, so bisection finds it.
    """
    if not isinstance(column, Continuous):
        return np.arange(column.states)
    count, grid = value_codes(column), column.grid
    low = np.zeros(column.cells, dtype=np.int64)
    high = np.full(column.cells, count)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        below = grid.of(from_codes(column, middle.astype(code_type(column)))[1]) < np.arange(column.cells)
        low, high = np.where(open_ & below, middle + 1, low), np.where(open_ & ~below, middle, high)
    return np.concatenate([low, count + np.arange(column.states - 1)])
