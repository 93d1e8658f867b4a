"""Classifiers trained on synthetic rows whose answer to a record depends on that record alone, to the last bit.

A sum of floats can end in other bits for another batch size, and one record's bits must not move another's cell. So the
linear model has whole weights on whole inputs, which any order adds up to the same; a tree only compares, and the trees
of one model are added up one after the other, row by row.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import VALUE_BITS, Layout

WEIGHT_BITS = 12
"""A weight of the linear model is a whole number of 2**-12."""
BLOCK_ROWS = 4096
PIXEL_STEPS = 1 << (VALUE_BITS - 8)

Margins = Callable[[Records], Floats]


@dataclass(frozen=True)
class Scorer:
    """A trained classifier of the target.

    Attributes:
        margins: of two classes one number a record, [B, 1], at least 0 for the second; of more one a class, [B, K].
        labels: the classes that it was trained on, in the order of its margins.
        edges: cuts between the score bins of two classes; the middle one is 0.
    """

    margins: Margins
    labels: Whole
    edges: Floats

    def cells(self, records: Records) -> Whole:
        """Number what is said of each record: the bin of its score for two classes, the class named for more."""
        blocks = [slice(at, at + BLOCK_ROWS) for at in range(0, len(records), BLOCK_ROWS)]
        numbers = [self._said(records.take(block)) for block in blocks]
        return np.concatenate([np.zeros(0, dtype=np.int64), *numbers])

    def _said(self, records: Records) -> Whole:
        margins = self.margins(records)
        if len(self.edges):
            return np.searchsorted(self.edges, margins[:, 0], side="right").astype(np.int64)
        classes: Whole = self.labels[margins.argmax(axis=1)]
        return classes


def fit_scorer(kind: str, records: Records, schema: Schema, bins: int) -> Scorer:
    """Train a classifier on synthetic rows; ``bins`` even, half of them on either side of its threshold.

    Privacy: post-processing; the synthetic rows are all it reads.
    """
    label = records.labels(schema.class_index)
    classes, two = np.unique(label), schema.classes == 2
    if len(classes) == 1:
        side = float(2 * classes[0] - 1) if two else 0.0
        margins: Margins = lambda rows: np.full((len(rows), 1), side)  # noqa: E731 - beside its two siblings
    else:
        margins = _linear(records, label, schema) if kind == "logistic" else _trees(records, label, schema)
    return Scorer(margins, classes, _edges(margins(records)[:, 0], bins // 2) if two else np.zeros(0))


def _linear(records: Records, label: Whole, schema: Schema) -> Margins:
    """Fit a logistic regression and round its weights: |weights| . |inputs| stays below 2^53, so floats add exactly."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    layout = Layout.of(schema)
    x = _inputs(layout, records)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a rough fit will do: the score that is shown is its own
        model = LogisticRegression(max_iter=100).fit(np.ldexp(x, -VALUE_BITS), label)
    most = 2**52 // ((x.shape[1] + 1) << VALUE_BITS)

    def whole(numbers: Floats) -> Floats:
        return np.rint(np.ldexp(numbers, WEIGHT_BITS)).clip(-most, most)

    weights, start = whole(model.coef_.T), np.ldexp(whole(model.intercept_), VALUE_BITS)
    return lambda rows: _inputs(layout, rows) @ weights + start


def _trees(records: Records, label: Whole, schema: Schema) -> Margins:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(random_state=0, early_stopping=False)
    model.fit(_plain(records, schema), label)
    return lambda rows: model.decision_function(_plain(rows, schema)).reshape(len(rows), -1)


def _inputs(layout: Layout, records: Records) -> Floats:
    """Return whole inputs of at most 2**VALUE_BITS: the design vector, then the pixels. Shapes: [B, dim]."""
    design: Floats = layout.design(records).numpy()
    if records.pixels is None:
        return design
    return np.concatenate([design, records.pixels.astype(np.float64) * PIXEL_STEPS], axis=1)


def _plain(records: Records, schema: Schema) -> Floats:
    """Return one number a column but the target: its value, or its state below all values; then the pixels."""
    parts = []
    for index, column in enumerate(schema.modelled.values()):
        if index != schema.target_index:
            states = records.states[:, index].astype(np.float64)
            parts.append(np.where(states == 0, records.values[:, index], -states) if column.continuous else states)
    pixels = [] if records.pixels is None else [records.pixels.astype(np.float64)]
    return np.concatenate([np.stack(parts, axis=1) if parts else np.zeros((len(records), 0)), *pixels], axis=1)


def _edges(scores: Floats, half: int) -> Floats:
    """Cut the scores on either side of 0 into ``half`` bins of equal mass. Shapes: [2 half - 1], in order."""
    inner = np.arange(1, half) / half
    sides = [scores[scores < 0], scores[scores >= 0]]
    low, high = (np.quantile(side, inner) if len(side) else np.zeros(half - 1) for side in sides)
    return np.concatenate([low, [0.0], high])
