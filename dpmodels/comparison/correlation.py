"""How columns go together, one measure a kind of pair, on the real and on the synthetic rows.

Two numbers: Spearman's rank correlation. A number and a category: the correlation ratio of the number's ranks. Two
categories: Cramer's V, corrected for its bias (Bergsma 2013).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.comparison.case import Case
from dpmodels.comparison.frame import Frame, category_count
from dpmodels.comparison.marginals import MOST_PAIRS
from dpmodels.contract.schema import Schema

ROWS = 50_000
MOST_COLUMNS = 40
"""Columns of a table whose whole matrix is shown."""


def correlation_facts(case: Case) -> dict[str, Any]:
    """Compare the associations of all pairs of columns; beside it, held-out real rows with the real ones."""
    schema, real = case.schema, case.real
    names = list(schema.modelled)
    pairs = real.grid.pairs
    truth = real.once.get("association", lambda: association(schema, case.draw(real.train, ROWS), pairs))
    synthetic = association(schema, case.draw(case.synthetic, ROWS), pairs)
    difference = np.abs(truth - synthetic)

    def described(k: int) -> dict[str, Any]:
        values = {"real": float(truth[k]), "synthetic": float(synthetic[k]), "difference": float(difference[k])}
        return {"columns": [names[j] for j in pairs[k]], "measure": _measure(schema, pairs[k]), **values}

    half = np.flatnonzero(2 * difference > np.maximum(np.abs(truth), np.abs(synthetic)))
    facts: dict[str, Any] = {
        "pairs": len(pairs),
        "mean_difference": float(difference.mean()) if len(pairs) else None,
        "largest_difference": float(difference.max()) if len(pairs) else None,
        "largest_difference_by_chance": _by_chance(len(pairs), len(real.train), len(case.synthetic)),
        "largest": [described(k) for k in np.argsort(-difference)[:20]],
        "half_gone": described(half[difference[half].argmax()]) if len(half) else None,
    }
    if real.held_out is not None:
        fresh = real.once.get("held association", lambda: association(schema, real.held_out or real.train, pairs))
        facts["mean_difference_of_held_out_rows"] = float(np.abs(truth - fresh).mean()) if len(pairs) else None
        facts["largest_difference_of_held_out_rows"] = float(np.abs(truth - fresh).max(initial=0))
    if len(names) <= MOST_COLUMNS and len(pairs) < MOST_PAIRS:
        facts |= {"columns": names, "real": _square(truth, pairs, names), "synthetic": _square(synthetic, pairs, names)}
    return facts


def _by_chance(pairs: int, *rows: int) -> float:
    """Bound how far apart samples of one population are in the pair that differs most, where no columns go together.

    An association that is 0 has a standard error of about 1/√n; of so many normal ones the largest is about √(2 ln 2p)
    standard errors off.
    """
    error = sum(1 / max(min(number, ROWS), 1) for number in rows) ** 0.5
    return float(error * np.sqrt(2 * np.log(2 * max(pairs, 1))))


def association(schema: Schema, frame: Frame, pairs: list[tuple[int, int]]) -> Floats:
    """Return one association a pair; 0 where a column is constant. Shapes: [pairs]."""
    columns = list(schema.modelled.values())
    ranks = {j: _ranks(frame.values[:, j]) for j, column in enumerate(columns) if column.continuous}
    categories = {
        j: np.where(np.isnan(values := frame.values[:, j]), category_count(column) + 1, values).astype(np.int64)
        for j, column in enumerate(columns)
        if not column.continuous
    }
    measures = np.zeros(len(pairs))
    for k, (a, b) in enumerate(pairs):
        if a in ranks and b in ranks:
            measures[k] = _pearson(ranks[a], ranks[b])
        elif a in categories and b in categories:
            measures[k] = _cramer(categories[a], categories[b])
        else:
            measures[k] = _ratio(*((ranks[a], categories[b]) if a in ranks else (ranks[b], categories[a])))
    return measures


def _ranks(column: Floats) -> Floats:
    """Return ranks between 0 and 1, ties in the middle, null as NaN."""
    from scipy.stats import rankdata

    ranks: Floats = rankdata(column, nan_policy="omit") / max((~np.isnan(column)).sum(), 1)
    return ranks


def _pearson(x: Floats, y: Floats) -> float:
    both_present = ~(np.isnan(x) | np.isnan(y))
    if both_present.sum() < 2 or np.ptp(x[both_present]) == 0 or np.ptp(y[both_present]) == 0:
        return 0.0
    return float(np.corrcoef(x[both_present], y[both_present])[0, 1])


def _ratio(number: Floats, category: NDArray[np.int64]) -> float:
    """Return the square root of the share of a number's variance that lies between the categories."""
    present = ~np.isnan(number)
    x, group = number[present], category[present]
    if not len(x) or np.ptp(x) == 0:
        return 0.0
    rows = np.bincount(group)
    means = np.bincount(group, weights=x) / np.maximum(rows, 1)
    return float(np.sqrt((rows * (means - x.mean()) ** 2).sum() / ((x - x.mean()) ** 2).sum()))


def _cramer(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    table = np.bincount(a * (b.max() + 1) + b, minlength=(a.max() + 1) * (b.max() + 1)).reshape(a.max() + 1, -1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    rows, columns = table.shape
    n = len(a)
    if min(rows, columns) < 2 or n < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi = ((table - expected) ** 2 / expected).sum() / n
    corrected = max(0.0, phi - (rows - 1) * (columns - 1) / (n - 1))
    sides = [size - (size - 1) ** 2 / (n - 1) for size in (rows, columns)]
    return float(np.sqrt(corrected / max(min(sides) - 1, 1e-9)))


def _measure(schema: Schema, pair: tuple[int, int]) -> str:
    kinds = [list(schema.modelled.values())[j].continuous for j in pair]
    return "Spearman" if all(kinds) else "correlation ratio" if any(kinds) else "Cramer's V"


def _square(values: Floats, pairs: list[tuple[int, int]], names: list[str]) -> list[list[float]]:
    matrix = np.eye(len(names))
    for (a, b), value in zip(pairs, values, strict=True):
        matrix[a, b] = matrix[b, a] = round(float(value), 4)
    return [[float(value) for value in row] for row in matrix]
