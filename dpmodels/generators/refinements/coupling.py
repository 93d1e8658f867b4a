"""Couple the values of two numbers within their cells, which a mixture draws independently of each other.

A mixture says in which cells two columns fall together. Within a wide cell, as at the end of a long tail, values of
two columns that rise together do so still. So the values of the rows in a cell change places among each other:

    m(x)     the line through the means of the following column in the cells of the leading one, x
    s        how far values lie from that line, in the cells around
    y        drawn from  N(m(x), s^2)  between the ends of the cell that the following column is in
             the values of this cell and class are given to its rows in the order of y

Nothing else changes: neither the counts of cells and of pairs of cells nor the values of a class in a cell. Columns are
coupled along a maximum spanning tree of the correlations that the rows' cells show: a column follows one other at most.

Source: Chow and Liu, "Approximating discrete probability distributions with dependence trees" (1968), for the tree.
Privacy: post-processing.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtr, ndtri

from dpmodels.arrays import Floats, Mask, Whole
from dpmodels.codec.encode import Records
from dpmodels.contract.columns import Continuous
from dpmodels.embeddings.partition import Partition
from dpmodels.late import torch

MOST_VALUES, MOST_ROWS = 2**22, 2**16
"""Values, and rows, that correlations and lines are read off."""
MOST_LINES = 64
"""Lines along which columns are coupled: each sorts all rows of a batch."""
LEAST_ROWS = 30
"""Rows of a cell of which a mean is taken."""
MOST = 0.999
"""Bound on a correlation: means of cells can show more than there is."""
LEAST_LEFT = 0.02
"""Part of a cell's variance that no line explains, at least."""
UNLIKELY = 1e-12
"""Probability of a cell, given the leading value, below which the nearer end of the cell is taken."""


@dataclass(frozen=True)
class Line:
    """How a column follows another one, which have these places among the columns that have cells.

    Shapes: ``knots`` [3, cells]: for some cells of the leading column its mean, the other's mean there, and the
    standard deviation from the line through these means. Units: values in [0, 1] of a column's interval.
    """

    leading: int
    following: int
    knots: Floats

    def center(self, x: Floats) -> Floats:
        """Return the mean at ``x``; beyond the ends the line goes on as it came. Shapes: [rows] both."""
        (at, mean), place = self.knots[:2], np.clip(np.searchsorted(self.knots[0], x), 1, self.knots.shape[1] - 1)
        slope = np.diff(mean) / np.diff(at)
        center: Floats = mean[place - 1] + slope[place - 1] * (x - at[place - 1])
        return center

    def spread(self, x: Floats) -> Floats:
        """Return the standard deviation from the line at the nearest knot. Shapes: [rows] both."""
        between = (self.knots[0, 1:] + self.knots[0, :-1]) / 2
        spread: Floats = self.knots[2, np.searchsorted(between, x)]
        return spread


@dataclass(frozen=True)
class Coupling:
    """Which columns follow which, in an order in which a column that leads has its values already."""

    lines: tuple[Line, ...]

    def applied(self, records: Records, partition: Partition, rng: np.random.Generator) -> Records:
        """Let values change places within their cells and classes; states stay as they are."""
        cells, values, label = partition.cells(records), records.values, records.labels(partition.class_column)
        places = places_of(partition)
        for line in self.lines:
            leading, following = places[line.leading], places[line.following]
            rows = np.flatnonzero((records.states[:, [leading, following]] == 0).all(axis=1))
            x, given, cell = values[rows, leading], values[rows, following], cells[rows, line.following]
            wish = _between(*_ends(cell, given), line.center(x), line.spread(x), rng)
            group = label[rows].astype(np.int64) * (int(cell.max(initial=0)) + 1) + cell
            values[rows[np.lexsort((wish, group))], following] = given[np.lexsort((given, group))]
        return records

    def tensors(self) -> dict[str, Any]:
        """Name the arrays, as a model's file holds them."""
        return {f"line/{one.leading}/{one.following}": torch.from_numpy(one.knots) for one in self.lines} | {
            "lines": torch.tensor([(one.leading, one.following) for one in self.lines]).reshape(-1, 2)
        }

    @classmethod
    def of(cls, tensors: Mapping[str, Any]) -> "Coupling | None":
        """Read what ``tensors`` wrote, or None of a file in which no columns are coupled."""
        if "lines" not in tensors:
            return None
        return cls(tuple(Line(a, b, tensors[f"line/{a}/{b}"].numpy()) for a, b in tensors["lines"].tolist()))


def coupling_of(partition: Partition, records: Records, least: float) -> Coupling | None:
    """Return how columns of drawn rows follow each other, or None: along a forest of those that correlate most.

    ``least``: the correlation from which on two columns are coupled.
    """
    return _coupled(partition, records, least, _forest)


def coupling_with(partition: Partition, records: Records, least: float, drawn: Collection[str]) -> Coupling | None:
    """Return the same where some columns are ``drawn`` given the others: each follows the one that it correlates with
    most among those given and those drawn before it.
    """
    names = [
        name for name, column in zip(partition.names, partition.columns, strict=True) if isinstance(column, Continuous)
    ]
    order = [index for index, name in enumerate(names) if name not in drawn]

    def edges(rho: Floats) -> Iterator[tuple[int, int]]:
        for index in (index for index, name in enumerate(names) if name in drawn):
            best = max(order, key=partial(_strength, rho, index), default=None)
            if best is not None and rho[best, index]:
                yield best, index
            order.append(index)

    return _coupled(partition, records, least, edges)


def _strength(rho: Floats, column: int, other: int) -> float:
    return abs(float(rho[other, column]))


def _coupled(
    partition: Partition, records: Records, least: float, edges: Callable[[Floats], Iterable[tuple[int, int]]]
) -> Coupling | None:
    cells, places = partition.cells(records), places_of(partition)
    numbers = [index for index, column in enumerate(partition.columns) if isinstance(column, Continuous)]
    valued = records.states[:, [places[index] for index in numbers]] == 0
    scores = [_scores(cells[:, index], valued[:, at]) for at, index in enumerate(numbers)]
    rho = _correlations(np.stack(scores, axis=1), valued) if len(numbers) > 1 else np.zeros((1, 1))
    lines = []
    for a, b in edges(np.where(np.abs(rho) >= least, rho, 0.0)):
        both, leading, following = valued[:, a] & valued[:, b], numbers[a], numbers[b]
        knots = _knots(cells[both, leading], records.values[both][:, [places[leading], places[following]]])
        if knots.shape[1] > 1:
            lines.append(Line(leading, following, knots))
    return Coupling(tuple(lines)) if lines else None


def places_of(partition: Partition) -> list[int]:
    """Return the place among those of a record of every column that has cells."""
    return [index for index in range(len(partition.codec.columns)) if index != partition.class_column]


def _scores(cells: Whole, valued: Mask) -> Floats:
    """Return the mean normal score of each row's cell, as of a normal that is cut where the cells are."""
    counts = np.bincount(cells[valued], minlength=int(cells.max(initial=0)) + 1)
    running = np.concatenate([[0.0], np.cumsum(counts)]) / max(int(counts.sum()), 1)
    density = np.exp(-np.square(ndtri(np.clip(running, 0.0, 1.0))) / 2) / math.sqrt(2 * math.pi)
    scores: Floats = (-np.diff(density) / np.maximum(np.diff(running), UNLIKELY))[cells]
    return scores


def _correlations(scores: Floats, valued: Mask) -> Floats:
    """Return rho of bivariate normals of which means of cells are known: their covariances over their variances.

    Of every two columns over the rows in which both have a value; 0 on the diagonal. Shapes: [rows, C] both -> [C, C].
    """
    ones, known = valued.astype(np.float64), np.where(valued, scores, 0.0)
    rows = np.maximum(ones.T @ ones, 1.0)
    means = known.T @ ones / rows  # of a row's column, where that of the column has a value too
    variances = np.square(known).T @ ones / rows - np.square(means)
    covariances = known.T @ known / rows - means * means.T
    sound = (rows >= LEAST_ROWS) & (variances > 0) & (variances.T > 0) & ~np.eye(len(rows), dtype=bool)
    rho = np.divide(covariances, variances * variances.T, out=np.zeros_like(rows), where=sound)
    return np.clip(rho, -MOST, MOST)


def _forest(rho: Floats) -> Iterator[tuple[int, int]]:
    """Yield the edges of a maximum spanning forest, each from the column that was reached before; 0 is no edge.

    Of more than ``MOST_LINES`` the largest are kept.
    """
    tree = sparse.csgraph.minimum_spanning_tree(sparse.csr_matrix(np.where(rho != 0, 2 - np.abs(rho), 0.0))).tocoo()
    kept, reached = np.argsort(tree.data, kind="stable")[:MOST_LINES], set[int]()
    forest = sparse.csr_matrix((tree.data[kept], (tree.row[kept], tree.col[kept])), shape=tree.shape)
    for root in range(len(rho)):
        if root not in reached:
            order, before = sparse.csgraph.breadth_first_order(forest, root, directed=False)
            reached |= set(order.tolist())
            yield from ((int(before[each]), int(each)) for each in order[1:])


def _knots(cell: Whole, values: Floats) -> Floats:
    """Return where the line goes through, and how far values lie from it; the end cells take that of their neighbors.

    Shapes: the leading column's cells [rows]; the values of both [rows, 2].
    """
    sizes = np.bincount(cell)
    enough = sizes[cell] >= LEAST_ROWS
    values, cell = values[enough], np.unique(cell[enough], return_inverse=True)[1]
    sizes = sizes[sizes >= LEAST_ROWS]
    means, squares = (
        np.stack([np.bincount(cell, side, minlength=len(sizes)) for side in table.T]) / sizes
        for table in (values, np.square(values))
    )
    variances, order = np.maximum(squares - np.square(means), 0.0), np.argsort(means[0])  # rounding leaves less
    (x, y), (of_x, of_y) = means[:, order], variances[:, order]
    if len(x) < 2 or not np.diff(x).min() > 0:
        return np.zeros((3, 0))
    # within a cell the mixture draws y without regard to x: what the line explains there is part of its variance
    spread = np.sqrt(np.maximum(of_y - np.square(np.gradient(y, x)) * of_x, LEAST_LEFT * of_y))
    if len(x) > 3:
        spread[[0, -1]] = spread[[1, -2]]
    return np.stack([x, y, np.maximum(spread, UNLIKELY)])


def _ends(cell: Whole, values: Floats) -> tuple[Floats, Floats]:
    """Return between which values the cell of each row lies. Shapes: [rows] all."""
    low, high = np.full(int(cell.max(initial=0)) + 1, np.inf), np.full(int(cell.max(initial=0)) + 1, -np.inf)
    np.minimum.at(low, cell, values)
    np.maximum.at(high, cell, values)
    return low[cell], high[cell]


def _between(low: Floats, high: Floats, center: Floats, spread: Floats, rng: np.random.Generator) -> Floats:
    """Draw from N(center, spread^2) between ``low`` and ``high``. Shapes: [rows] all."""
    upper: Mask = low > center  # there a normal's lower tail is the more exact one
    ends = (low - center) / spread, (high - center) / spread
    begin, end = (np.where(upper, -b, a) for a, b in (ends, ends[::-1]))
    below, above = ndtr(begin), ndtr(end)
    drawn = ndtri(below + rng.random(len(center)) * (above - below))
    drawn = np.where(above - below > UNLIKELY, drawn, end)  # the end that is nearer to the center
    return center + spread * np.where(upper, -drawn, drawn)
