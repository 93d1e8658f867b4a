"""The most likely counts of a table: none is below 0, and they add up to the rows that each cell of its columns has.

A release counts a column many times, so all its tables together tell better how many rows a cell of it has than the
cells of one table do. Let c be the counts of a table, v the variances of their noise, and r and q the rows of the cells
of its two columns, t those of q. What is stated is the x of no count below 0 that adds up to r, and has the least
sum (x - c)^2 / v + sum (q - its sums)^2 / t. That is x = max(c + v (a + b), 0) with one number a for each cell of one
column and b for each of the other (Karush, Kuhn and Tucker), and these are found in turns; so it is for more columns
than two. The rows of categories are held to as r is, so that what is said of them by different columns agrees; those of
ranges of numbers as q.

The noise of x is taken to be that of c. It is less, by a half where nothing is in a cell, but x is too large there.

Privacy: post-processing of released counts and public noise scales.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.methods.parts.marginals import NoisyTable

TURNS, NOTHING = 200, 1e-5
"""How often sums are mended in turns, at most; and part of the largest noise that is nothing."""


class Side(NamedTuple):
    """How many rows each cell has that a table has of a column, as all tables tell it.

    Attributes:
        rows: the most likely numbers.
        variances: of their noise.
        are_exact: whether the table is held to them, or they are as uncertain as that.
    """

    rows: Floats
    variances: Floats
    are_exact: bool


def side_of(table: NoisyTable, one: NoisyTable, records: float, are_exact: bool) -> Side | None:
    """Return how many rows each cell that a table has of a column holds; None where the column has other cells.

    Args:
        table: of the column and others.
        one: of the column alone.
        records: what they are scaled to add up to, so that they have the shares that are listed.
        are_exact: whether the table is held to them.
    """
    axis, (fine,) = table.names.index(one.names[0]), one.cells_of
    merge, size = table.cells_of[axis], table.counts.shape[axis]
    place = np.zeros(one.counts.size, dtype=np.int64)
    place[fine] = merge
    if (place[fine] != merge).any():
        return None
    noise: Floats = np.broadcast_to(np.square(one.stddev), one.counts.shape)
    counts, variances = (np.bincount(place, each, size).astype(np.float64) for each in (one.counts, noise))
    rows = np.maximum(counts, 0.0)
    return Side(rows * records / max(float(rows.sum()), 1e-300), variances, are_exact)


def spread(side: Floats, axes: Sequence[int], table: NoisyTable) -> Floats:
    """Spread what each cell of some columns has evenly over the cells of a table beside it; ``axes``: in their order.

    Shapes: ``side`` [cells of these columns] -> [cells of the table].
    """
    shape = [size if axis in axes else 1 for axis, size in enumerate(table.counts.shape)]
    even: Floats = np.broadcast_to(side.reshape(shape), table.counts.shape).ravel() * side.size / table.counts.size
    return even


def likely(table: NoisyTable, sides: Mapping[int, Side]) -> NoisyTable:
    """Return a table of the most likely counts; cells without noise stay as they are. ``sides``: by axis."""
    variances = np.broadcast_to(np.square(table.stddev), table.counts.shape)
    shifts = {axis: np.zeros(len(sides[axis].rows)) for axis in sorted(sides, key=lambda axis: sides[axis].are_exact)}
    for _ in range(TURNS):
        before = {**shifts}
        for axis in shifts:
            rows, loose, are_exact = sides[axis]
            others = _shifted(table.counts, variances, {**shifts, axis: np.zeros(len(rows))})
            along = [np.moveaxis(each, axis, 0).reshape(len(rows), -1) for each in (others, variances)]
            shifts[axis] = _shifts(along[0], along[1], rows, np.zeros(len(rows)) if are_exact else loose)
        moved = max((float(np.abs(shifts[axis] - before[axis]).max()) for axis in shifts), default=0.0)
        if moved * np.sqrt(variances.max(initial=0.0)) < NOTHING:
            break
    counts = np.maximum(_shifted(table.counts, variances, shifts), 0.0)
    return replace(table, counts=np.where(variances > 0, counts, table.counts))


def _shifted(counts: Floats, variances: Floats, shifts: Mapping[int, Floats]) -> Floats:
    """Return c + v (a + b)."""
    for axis, shift in shifts.items():
        counts = counts + variances * shift.reshape([-1 if each == axis else 1 for each in range(counts.ndim)])
    return counts


def _shifts(counts: Floats, variances: Floats, sums: Floats, loose: Floats) -> Floats:
    """Return the a of each row with which max(counts + a variances, 0) adds up to its sum less a times ``loose``.

    The more a is, the more cells are above 0, in the order of counts / variances: of each number of them it is known
    which a they add up with, and the largest number whose cells are all above 0 is the one. It is 0 where no cell has
    noise. Shapes: counts and variances [rows, cells], sums and loose [rows].
    """
    is_noisy = variances > 0
    ratios = np.where(is_noisy, counts / np.maximum(variances, 1e-300), -np.inf)
    order = np.argsort(-ratios, axis=1, kind="stable")
    values, weights = (np.take_along_axis(np.where(is_noisy, each, 0.0), order, 1) for each in (counts, variances))
    left = sums - np.where(is_noisy, 0.0, counts).sum(axis=1)
    shifts = (left[:, None] - values.cumsum(axis=1)) / np.maximum(weights.cumsum(axis=1) + loose[:, None], 1e-300)
    above = ((weights > 0) & (values + shifts * weights > 0)).sum(axis=1)
    found = np.take_along_axis(shifts, np.maximum(above - 1, 0)[:, None], axis=1)[:, 0]
    return np.where(is_noisy.any(axis=1), found, 0.0)
