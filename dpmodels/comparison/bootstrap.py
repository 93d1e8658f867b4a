"""Intervals: bootstrap over test rows with the model held fixed, vectorized; and how many guesses chance explains."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats

RESAMPLES = 200
LEAST = 10
"""Rows of a class, and of all others, that a test set must hold for the class to be scored."""


def weights(rows: int, seed: int) -> Floats:
    """Draw how often each row is in each resample; the first is the data itself. Shapes: [RESAMPLES + 1, rows]."""
    resampled = np.random.default_rng([seed, 13]).multinomial(rows, np.full(rows, 1 / rows), size=RESAMPLES)
    return np.concatenate([np.ones((1, rows)), resampled])


def interval(values: Floats) -> list[float]:
    """Return the 95 % percentile interval of resampled values."""
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return [float(low), float(high)]


def weighted_auroc(positive: NDArray[np.bool_], score: Floats, weight: Floats) -> Floats:
    """Return the area under the ROC curve under every row of weights, ties counted half; NaN where a side is empty.

    Shapes: positive and score [n], weight [B, n] -> [B].
    """
    order = np.argsort(score, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(score[order]) > 0])
    ordered = weight[:, order]
    up = np.add.reduceat(ordered * positive[order], starts, axis=1)
    down = np.add.reduceat(ordered * ~positive[order], starts, axis=1)
    below = np.cumsum(down, axis=1) - down / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        area: Floats = (up * below).sum(axis=1) / (up.sum(axis=1) * down.sum(axis=1))
    return area


def macro_auroc(y: Floats, shares: Floats, classes: Floats, weight: Floats) -> Floats | None:
    """Average the area of one class against the rest over the classes that the test rows hold often enough.

    Shapes: y [n]; shares [n, C], column c the score of ``classes[c]``; weight [B, n] -> [B]. A class that the model has
    never seen scores chance.
    """
    areas = []
    for label in np.unique(y):
        positive = y == label
        if LEAST <= positive.sum() <= len(y) - LEAST:
            column = np.flatnonzero(classes == label)
            chance = np.full(len(weight), 0.5)
            areas.append(weighted_auroc(positive, shares[:, column[0]], weight) if len(column) else chance)
    return np.nanmean(areas, axis=0) if areas else None


def r_squared(y: Floats, predicted: Floats, weight: Floats) -> Floats:
    """Return the share of variance explained under every row of weights. Shapes: [n], [n], [B, n] -> [B]."""
    total = weight.sum(axis=1)
    mean = weight @ y / total
    spread = weight @ (y * y) / total - mean**2
    with np.errstate(invalid="ignore", divide="ignore"):
        explained: Floats = 1 - (weight @ ((y - predicted) ** 2) / total) / spread
    return explained


def share_interval(hits: Floats) -> list[float]:
    """Return the 95 % interval of a mean of independent values."""
    half = 1.96 * float(np.std(hits)) / max(len(hits), 1) ** 0.5
    return [float(np.mean(hits)) - half, float(np.mean(hits)) + half]


def largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return, by bisection, the largest value for which a statement that is true up to some value is true."""
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
