"""Train on synthetic, test on real (TSTR), beside train on real, test on real (TRTR)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.privacy import Sensitive
from dpmodels.schema.encode import Records
from dpmodels.schema.schema import Schema

HELD_OUT = 0.3
MAX_ROWS = 50_000
MAX_PIXELS = 64
"""Pixels of an image that the classifier sees, evenly spread: enough to compare, cheap to learn from."""


@dataclass(frozen=True)
class Task:
    """Predict the target column from the others; NaN where a column has no value.

    Shapes: x [n, columns of the layout] float64; y [n].
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]


def evaluate_utility(
    real: Sensitive[Records], synthetic: Records, schema: Schema, seed: int
) -> Sensitive[dict[str, object]]:
    """Score a gradient-boosted model trained on synthetic and on real rows, on the same held-out real rows.

    Privacy: exact scores on real data, so the result stays Sensitive.
    """
    if schema.target is None:
        return Sensitive({"skipped": "the schema names no target"})
    records = real.reveal()
    order = np.random.default_rng(seed).permutation(len(records))[:MAX_ROWS]
    cut = round(len(order) * (1 - HELD_OUT))
    train, test = (_task(records.take(rows), schema) for rows in (order[:cut], order[cut:]))
    rows = np.random.default_rng(seed).permutation(len(synthetic))[: len(train.y)]
    made = _task(synthetic.take(rows), schema)
    metric, score = ("r2", _regression_score) if _continuous(schema) else ("auroc", _class_score)
    return Sensitive({"metric": metric, "tstr": score(made, test), "trtr": score(train, test)})


def _continuous(schema: Schema) -> bool:
    return schema.target is not None and schema.modelled[schema.target].continuous


def _task(records: Records, schema: Schema) -> Task:
    features = []
    for j, (name, column) in enumerate(schema.modelled.items()):
        states, values = records.states[:, j], records.values[:, j]
        if name == schema.target:
            y = values if column.continuous else states.astype(np.float64)
        elif column.continuous:
            features.append(np.where(states == 0, values, np.nan))
            if column.states > 1:
                features.append(states.astype(np.float64))
        else:
            features.append(states.astype(np.float64))
    if records.pixels is not None:
        features += list(records.pixels[:, :: -(-records.pixels.shape[1] // MAX_PIXELS)].T.astype(np.float64))
    return Task(np.stack(features, axis=1), y)


def _class_score(train: Task, test: Task) -> float | None:
    """Macro one-against-rest AUROC over the classes that occur in both; None if there are fewer than two."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    if len(np.unique(train.y)) < 2:
        return None
    model = HistGradientBoostingClassifier(random_state=0).fit(train.x, train.y)
    shares = model.predict_proba(test.x)
    scores = [
        roc_auc_score(test.y == label, shares[:, i])
        for i, label in enumerate(model.classes_)
        if 0 < (test.y == label).sum() < len(test.y)
    ]
    return float(np.mean(scores)) if scores else None


def _regression_score(train: Task, test: Task) -> float | None:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.metrics import r2_score

    if len(train.y) < 2 or len(test.y) < 2:
        return None
    model = HistGradientBoostingRegressor(random_state=0).fit(train.x, train.y)
    return float(r2_score(test.y, model.predict(test.x)))
