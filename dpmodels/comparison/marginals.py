"""One- and two-way marginals over every row: counts that add up batch by batch, and their total variation distances.

Numbers are cut into 20 quantile cells of the real rows, categories are their own cells, null is one more. The judge of
the benchmarks uses the same cells, so it gives the same figures wherever no number is null.
"""

from dataclasses import dataclass
from functools import partial, reduce
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Indices, Whole
from dpmodels.comparison.frame import Frame, Rows, category_count, category_names
from dpmodels.contract.schema import Schema

QUANTILES = 20
MOST_PAIRS = 2000
"""Pairs of columns counted; of a wider table a fixed random sample."""
RARE = 0.05
"""A category of at most this share is rare."""


def histogram(cells: Indices, size: int) -> NDArray[np.float64]:
    """Return the shares of one column's cells. Shapes: cells [n] -> [size]."""
    counts = np.bincount(cells, minlength=size).astype(np.float64)
    shares: NDArray[np.float64] = counts / max(len(cells), 1)
    return shares


class Grid:
    """The cells of every column, cut by a sample of the real rows: as sensitive as they are."""

    def __init__(self, schema: Schema, real: Frame) -> None:
        self.columns = list(schema.modelled.items())
        self.names = list(schema.modelled)
        self.edges = [
            _edges(real.values[:, j]) if column.continuous else None for j, (_, column) in enumerate(self.columns)
        ]
        self.sizes = [
            len(edges) + 2 if edges is not None else category_count(column) + 2
            for edges, (_, column) in zip(self.edges, self.columns, strict=True)
        ]
        pairs = list(combinations(range(len(self.names)), 2))
        if len(pairs) > MOST_PAIRS:
            picks = np.random.default_rng(0).choice(len(pairs), MOST_PAIRS, replace=False)
            pairs = [pairs[index] for index in sorted(picks)]
        self.pairs = pairs

    def cells(self, frame: Frame) -> Indices:
        """Number the cells of rows; null has the last. Shapes: [F, n]."""
        cells = np.empty(frame.values.T.shape, dtype=np.int32)
        for j, (edges, size) in enumerate(zip(self.edges, self.sizes, strict=True)):
            column = frame.values[:, j]
            cell = column if edges is None else np.searchsorted(edges, column, side="right")
            cells[j] = np.where(np.isnan(column), size - 1, cell)
        return cells


def _edges(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inner cuts between at most ``QUANTILES`` cells of equal mass."""
    present = column[~np.isnan(column)]
    if not len(present):
        return np.empty(0)
    cuts: NDArray[np.float64] = np.unique(np.quantile(present, np.linspace(0, 1, QUANTILES + 1)))[1:-1]
    return cuts


@dataclass(frozen=True)
class GridTally:
    """Counts of a table on a grid: of every column's cells and of the cells of every pair."""

    rows: int
    one: list[Whole]
    two: list[Whole]

    @classmethod
    def of(cls, grid: Grid, rows: Rows) -> "GridTally":
        """Count a table batch by batch."""
        return reduce(cls.__add__, rows.each(partial(cls.of_frame, grid)))

    @classmethod
    def of_frame(cls, grid: Grid, frame: Frame) -> "GridTally":
        """Count some rows."""
        cells, sizes = grid.cells(frame), grid.sizes
        one = [np.bincount(column, minlength=size) for column, size in zip(cells, sizes, strict=True)]
        two = [np.bincount(cells[a] * sizes[b] + cells[b], minlength=sizes[a] * sizes[b]) for a, b in grid.pairs]
        return cls(len(frame), one, two)

    def __add__(self, other: "GridTally") -> "GridTally":
        one, two = (
            [mine + theirs for mine, theirs in zip(*both, strict=True)]
            for both in ((self.one, other.one), (self.two, other.two))
        )
        return GridTally(self.rows + other.rows, one, two)


def distance(first: Whole, second: Whole) -> float:
    """Return the total variation distance between two histograms of counts."""
    p, q = (counts / max(counts.sum(), 1) for counts in (first, second))
    return float(np.abs(p - q).sum() / 2)


def chance(real: Whole, synthetic: Whole) -> float:
    """Return what the total variation distance of two samples of one population is in expectation, at these sizes."""
    shares = real / max(real.sum(), 1)
    variance = shares * (1 - shares) * (1 / max(real.sum(), 1) + 1 / max(synthetic.sum(), 1))
    return float(np.sqrt(2 / np.pi * variance).sum() / 2)


def compare_marginals(grid: Grid, real: GridTally, synthetic: GridTally) -> dict[str, Any]:
    """Return the total variation distance of every one-way marginal, and of the two-way ones in mean and at worst."""
    one = {name: distance(*counts) for name, *counts in zip(grid.names, real.one, synthetic.one, strict=True)}
    pairs = list(zip(real.two, synthetic.two, strict=True))
    two = [distance(*counts) for counts in pairs]
    by_chance = {name: chance(*both) for name, *both in zip(grid.names, real.one, synthetic.one, strict=True)}
    worst = [
        {"columns": [grid.names[j] for j in grid.pairs[index]], "total_variation": two[index]}
        for index in np.argsort(two)[::-1][:10]
    ]
    return {
        "total_variation_1_way": one,
        "chance_1_way": by_chance,
        "mean_chance_1_way": float(np.mean(list(by_chance.values()))),
        "mean_chance_2_way": float(np.mean([chance(*counts) for counts in pairs])) if pairs else None,
        "mean_total_variation_1_way": float(np.mean(list(one.values()))),
        "mean_total_variation_2_way": float(np.mean(two)) if two else None,
        "pairs_compared": len(two),
        "worst_pairs": worst,
        "null_share": {
            name: [float(counts[-1] / max(counts.sum(), 1)) for counts in both]
            for name, *both in zip(grid.names, real.one, synthetic.one, strict=True)
            if any(counts[-1] for counts in both)
        },
    }


def compare_categories(grid: Grid, real: GridTally, synthetic: GridTally) -> dict[str, Any]:
    """Say which rare categories a table kept, and which of them it should hold and does not."""
    rare: list[dict[str, Any]] = []
    outside = {}
    for j, (name, column) in enumerate(grid.columns):
        if column.continuous:
            continue
        labels = category_names(column)
        for label, real_count, synthetic_count in zip(labels, real.one[j], synthetic.one[j], strict=True):
            share = float(real_count / real.rows)
            if label == labels[-2]:
                outside[name] = int(synthetic_count)
            elif 0 < share <= RARE:
                facts = {"column": name, "value": label, "real_share": share}
                rare.append(
                    {**facts, "share": float(synthetic_count / synthetic.rows), "expected_rows": share * synthetic.rows}
                )
    covered = [one for one in rare if one["share"] > 0]
    return {
        "rare_categories": len(rare),
        "kept": len(covered),
        "coverage": len(covered) / len(rare) if rare else None,
        "missing": sorted((one for one in rare if not one["share"]), key=_expected, reverse=True),
        "rows_outside_the_schema": {name: count for name, count in outside.items() if count},
    }


def _expected(category: dict[str, Any]) -> float:
    return float(category["expected_rows"])


def group_distances(grid: Grid, real: GridTally, synthetic: GridTally, target: str) -> list[dict[str, Any]]:
    """Return, for every category of every column, how far the target's distribution within it is off."""
    t = grid.names.index(target)
    distances = []
    for (a, b), *both in zip(grid.pairs, real.two, synthetic.two, strict=True):
        if t not in (a, b) or grid.edges[other := a if b == t else b] is not None:
            continue
        tables = [_facing(counts.reshape(grid.sizes[a], grid.sizes[b]), a == other) for counts in both]
        for label, *rows in zip(category_names(grid.columns[other][1]), *tables, strict=True):
            if rows[0].sum() and rows[1].sum():
                group = {"column": grid.names[other], "value": label, "real_rows": int(rows[0].sum())}
                distances.append({**group, "rows": int(rows[1].sum()), "total_variation": distance(*rows)})
    return distances


def _facing(table: Whole, upright: bool) -> Whole:
    return table if upright else table.T
