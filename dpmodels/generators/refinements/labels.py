"""Labels drawn anew: the target of a synthetic row, from a log-linear model of the row's other columns.

    p(y | row)  ~  exp( b_y + sum_j w_y(merged cell of column j) )  prod_j p(fine cell | merged cell, y)

How such a model is fitted, and when it is used, is said in label_fit.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Mask, Whole
from dpmodels.late import torch

LEAST = 1e-300
"""Probability below which those of classes that are left count as this, so that one can be divided by them."""


@dataclass(frozen=True)
class LabelModel:
    """The logits of a label. Shapes: ``bias`` [classes]; ``weights``: for each column [classes, fine cells]."""

    bias: Floats
    weights: list[Floats]

    def probabilities(self, cells: Whole) -> Floats:
        """Return the probability of each class. Shapes: [F, rows] fine cells -> [classes, rows]."""
        logits = np.repeat(self.bias[:, None], cells.shape[1], axis=1)
        for weights, fine in zip(self.weights, cells, strict=True):
            logits += weights[:, fine]
        odds = np.exp(logits - logits.max(axis=0))
        shares: Floats = odds / odds.sum(axis=0)
        return shares

    def draw(self, cells: Whole, rng: np.random.Generator) -> Whole:
        """Draw a label for each row, systematically: rows of like probability hold each class as often as it says.

        Shapes: [F, rows] fine cells -> [rows].
        """
        shares = self.probabilities(cells)
        labels, rows = np.full(cells.shape[1], len(shares) - 1), np.arange(cells.shape[1])
        for label in range(len(shares) - 1):  # this class, or one of those after it
            rest = shares[label:, rows]
            chosen = _systematic(rest[0] / np.maximum(rest.sum(axis=0), LEAST), rng)
            labels[rows[chosen]] = label
            rows = rows[~chosen]
        return labels

    def tensors(self) -> dict[str, Any]:
        """Name the arrays, as a model's file holds them."""
        arrays = {"label": self.bias, **{f"label/{index}": weights for index, weights in enumerate(self.weights)}}
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    @classmethod
    def of(cls, tensors: Mapping[str, Any], columns: int) -> "LabelModel | None":
        """Read what ``tensors`` wrote, or None of a file without labels."""
        if "label" not in tensors:
            return None
        return cls(tensors["label"].numpy(), [tensors[f"label/{index}"].numpy() for index in range(columns)])


def _systematic(probability: Floats, rng: np.random.Generator) -> Mask:
    """Choose each with its probability, so that of any run in the order of probability the expected number is chosen.

    The expected number of a run is met up to one.
    """
    order, chosen = np.argsort(probability, kind="stable"), np.zeros(len(probability), dtype=bool)
    running = np.cumsum(probability[order]) + rng.random()
    chosen[order] = np.diff(np.floor(running), prepend=0.0) > 0
    return chosen
