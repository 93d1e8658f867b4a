"""Train on synthetic, test on real (TSTR), beside train on real, test on real (TRTR); for the target and every column.

Both models are tested on the same real rows; intervals resample those rows with the models held fixed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.comparison.bootstrap import interval, macro_auroc, r_squared, weights
from dpmodels.comparison.case import Case, Skip
from dpmodels.comparison.features import tree_features
from dpmodels.comparison.frame import Frame, category_count

TARGET_ROWS = 50_000
COLUMN_ROWS = 10_000
TREES = 40


@dataclass(frozen=True)
class Predictions:
    """What two models say of the same real test rows.

    Shapes: y [n]; per model a score [n, classes], or [n, 1] of a number; ``classes`` are the models' own.
    """

    test: Frame
    y: Floats
    continuous: bool
    synthetic: tuple[Floats, Floats]
    real: tuple[Floats, Floats]


def target_facts(case: Case) -> dict[str, Any]:
    """Score a gradient-boosted model of the target trained on synthetic and on real rows."""
    predictions = predict_target(case)
    facts = _scores(predictions, case.real.seed)
    facts |= {"rows_to_train": min(TARGET_ROWS, len(case.real.train)), "rows_to_test": len(predictions.y)}
    if not predictions.continuous and len(np.unique(predictions.y)) == 2:
        facts |= _average_precision(predictions)
    return facts


def column_facts(case: Case, name: str) -> dict[str, Any]:
    """Score randomized trees that predict one column from the others, trained on synthetic and on real rows."""
    return _scores(_predict(case, name, COLUMN_ROWS, boosted=False), case.real.seed)


def predict_target(case: Case) -> Predictions:
    """Train the two models of the target, once for all the metrics that look at them."""
    target = case.schema.target
    if target is None:
        raise Skip("the schema names no target")
    return case.once.get("target", lambda: _predict(case, target, TARGET_ROWS, boosted=True))


def _predict(case: Case, name: str, most: int, boosted: bool) -> Predictions:
    index = list(case.schema.modelled).index(name)
    train, test = case.real.split(most)
    synthetic = case.draw(case.synthetic, len(train))
    continuous = case.schema.modelled[name].continuous
    x, y = _task(case, test, index)

    def trained(rows: Frame) -> tuple[Floats, Floats]:
        return _fit(*_task(case, rows, index), x, continuous, boosted)

    real = case.real.once.get(f"real model of {name} {most}", lambda: trained(train))
    return Predictions(test, y, continuous, trained(synthetic), real)


def _task(case: Case, frame: Frame, index: int) -> tuple[Floats, Floats]:
    """Return features and a column to predict; null is a class of its own, and a row without a number is left out."""
    column = case.schema.modelled[list(case.schema.modelled)[index]]
    y = frame.values[:, index]
    if column.continuous:
        present = ~np.isnan(y)
        return tree_features(frame, index)[present], y[present]
    return tree_features(frame, index), np.where(np.isnan(y), category_count(column) + 1, y)


def _fit(x: Floats, y: Floats, test: Floats, continuous: bool, boosted: bool) -> tuple[Floats, Floats]:
    """Train one model; return its scores of the test rows and its classes."""
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )

    classes = np.empty(0) if continuous else np.unique(y)
    if len(y) < 2 or len(classes) == 1:
        return np.full((len(test), 1), y.mean() if continuous and len(y) else 1.0), classes
    trees: dict[str, Any] = {"n_estimators": TREES, "min_samples_leaf": 3, "random_state": 0}
    if continuous:
        number = HistGradientBoostingRegressor(random_state=0) if boosted else ExtraTreesRegressor(**trees)
        return number.fit(x, y).predict(test)[:, None], classes
    model = HistGradientBoostingClassifier(random_state=0) if boosted else ExtraTreesClassifier(**trees)
    return model.fit(x, y).predict_proba(test), classes


def _scores(predictions: Predictions, seed: int) -> dict[str, Any]:
    """Return both scores and their difference, with paired intervals; None where the test rows cannot tell."""
    y, weight_rows = predictions.y, weights(len(predictions.y), seed)
    if predictions.continuous:
        values = [r_squared(y, score[:, 0], weight_rows) for score, _ in (predictions.synthetic, predictions.real)]
    else:
        areas = [macro_auroc(y, *model, weight_rows) for model in (predictions.synthetic, predictions.real)]
        values = [one for one in areas if one is not None]
    facts: dict[str, Any] = {"metric": "r2" if predictions.continuous else "auroc", "tstr": None, "trtr": None}
    if len(values) == 2 and np.isfinite([value[0] for value in values]).all():
        synthetic, real = values
        for name, value in (("tstr", synthetic), ("trtr", real), ("difference", synthetic - real)):
            facts |= {name: float(value[0]), f"{name}_interval": interval(value)}
    return facts


def _average_precision(predictions: Predictions) -> dict[str, Any]:
    """Add the area under the precision-recall curve of the rarer class."""
    from sklearn.metrics import average_precision_score

    labels, counts = np.unique(predictions.y, return_counts=True)
    rare = labels[counts.argmin()]
    facts = {}
    for name, (score, classes) in (("tstr", predictions.synthetic), ("trtr", predictions.real)):
        column = np.flatnonzero(classes == rare)
        probabilities = score[:, column[0]] if len(column) else np.zeros(len(score))
        facts[f"{name}_auprc"] = float(average_precision_score(predictions.y == rare, probabilities))
    return facts


def errors(predictions: Predictions) -> tuple[Floats, Floats]:
    """Return each test row's error under both models: 0 or 1 for a class, the distance for a number. Shapes: [n]."""
    errors_of_models = []
    for score, classes in (predictions.synthetic, predictions.real):
        if predictions.continuous:
            errors_of_models.append(np.abs(predictions.y - score[:, 0]))
        else:
            predicted: NDArray[np.float64] = classes[score.argmax(axis=1)]
            errors_of_models.append((predicted != predictions.y).astype(np.float64))
    return errors_of_models[0], errors_of_models[1]
