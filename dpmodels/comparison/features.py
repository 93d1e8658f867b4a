"""What classifiers see of a frame: for trees the columns as they are, for linear models and distances one-hot rows."""

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.comparison.frame import Frame, category_count
from dpmodels.contract.schema import Schema

MAX_PIXELS = 64
"""Pixels of an image that a classifier of tables sees, evenly spread: enough to compare, cheap to learn from."""


def tree_features(frame: Frame, without: int | None = None) -> Floats:
    """Return the columns as trees split them: numbers, places of categories, NaN for null. Shapes: [n, features]."""
    values = frame.values if without is None else np.delete(frame.values, without, axis=1)
    if frame.pixels is None:
        return values
    return np.concatenate([values, _spread(frame.pixels)], axis=1)


class Space:
    """Rows as points: a number by its rank among the real ones in [0, 1], a category one-hot.

    Two categories are a distance of 1 apart, as the two ends of a number are, and null is 1 from everything. An image
    is its pixels, whose distance is the root mean square of the differences.
    """

    def __init__(self, schema: Schema, real: Frame) -> None:
        self.columns = list(schema.modelled.values())
        self.sorted = [
            np.sort(real.values[~np.isnan(real.values[:, j]), j]) if column.continuous else np.empty(0)
            for j, column in enumerate(self.columns)
        ]

    def points(self, frame: Frame) -> NDArray[np.float32]:
        """Return rows as points. Shapes: [n, coordinates]."""
        parts: list[Floats] = []
        for j, column in enumerate(self.columns):
            values = frame.values[:, j]
            null = np.isnan(values)
            if column.continuous:
                parts.append(np.where(null, 0.5, self._rank(j, values))[:, None])
                if column.nullable:
                    parts.append(null[:, None] * np.sqrt(0.75))
            else:
                category = np.where(null, category_count(column) + 1, values).astype(np.int64)
                parts.append(np.eye(category_count(column) + 2)[category] / np.sqrt(2))
        if frame.pixels is not None:
            parts.append(frame.pixels / (255 * np.sqrt(frame.pixels.shape[1])))
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def _rank(self, j: int, values: Floats) -> Floats:
        sorted_values = self.sorted[j]
        if not len(sorted_values):
            return np.zeros(len(values))
        ends = np.searchsorted(sorted_values, values, "left") + np.searchsorted(sorted_values, values, "right")
        rank: Floats = ends / (2 * len(sorted_values))
        return rank


def linear_features(schema: Schema, frame: Frame) -> Floats:
    """Return numbers as they are (null as their median here) and categories one-hot, for a model that is scaled later.

    Shapes: [n, features].
    """
    parts: list[Floats] = []
    for j, column in enumerate(schema.modelled.values()):
        values = frame.values[:, j]
        null = np.isnan(values)
        if column.continuous:
            middle = np.median(values[~null]) if (~null).any() else 0.0
            parts += [np.where(null, middle, values)[:, None], null[:, None].astype(np.float64)]
        else:
            category = np.where(null, category_count(column) + 1, values).astype(np.int64)
            parts.append(np.eye(category_count(column) + 2)[category])
    if frame.pixels is not None:
        parts.append(_spread(frame.pixels).astype(np.float64))
    return np.concatenate(parts, axis=1)


def _spread(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a few numbers of each image; in steps that are no multiple of 3, which would see one color alone."""
    step = -(-pixels.shape[1] // MAX_PIXELS)
    return pixels[:, :: step + (step % 3 == 0)]
