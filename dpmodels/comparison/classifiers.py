"""Four classifiers of a two-sided target, by their scores: the protocol that published tables are compared by (P3GM).

Logistic regression, AdaBoost, gradient boosting and XGBoost at their defaults, on numbers as they are and one-hot
categories; every figure is the mean of the four. XGBoost comes with ``nacre[bench]``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.comparison.case import Case, Skip
from dpmodels.comparison.frame import Frame, category_names

ROWS = 50_000
NULL = -1.0
"""What stands for a number that is null."""


def classifier_facts(case: Case) -> dict[str, Any]:
    """Train on synthetic and on real rows, test on held-out real ones; the target's rarest class against the rest."""
    target, test = case.schema.target_index, case.real.held_out
    if target is None or list(case.schema.modelled.values())[target].continuous or case.schema.image:
        raise Skip("the schema names no target with classes beside other columns")
    if test is None:
        raise Skip("it needs real rows that were held out (--test)")
    train, synthetic_rows = case.draw(case.real.train, ROWS), case.draw(case.synthetic, ROWS)
    labels, counts = np.unique(train.values[:, target], return_counts=True)
    rare = labels[counts.argmin()]
    categories = _places(case, train, test)

    def scores(rows: Frame) -> tuple[float, float]:
        x, x_test = (_features(case, frame, categories) for frame in (rows, test))
        return _mean_scores(x, rows.values[:, target] == rare, x_test, test.values[:, target] == rare)

    real = case.real.once.get("four classifiers", lambda: scores(train))
    synthetic = scores(synthetic_rows)
    names = ("tstr_auroc", "tstr_auprc", "trtr_auroc", "trtr_auprc")
    return dict(zip(names, (*synthetic, *real), strict=True))


def _mean_scores(
    x: NDArray[np.float32], y: NDArray[np.bool_], x_test: NDArray[np.float32], y_test: NDArray[np.bool_]
) -> tuple[float, float]:
    from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import average_precision_score, roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    try:
        from xgboost import XGBClassifier
    except ImportError:
        raise Skip("it needs XGBoost: pip install 'nacre[bench]'") from None
    if y.all() or not y.any():
        return 0.5, float(y_test.mean())
    scores = []
    for model in (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        AdaBoostClassifier(random_state=0),
        GradientBoostingClassifier(random_state=0),
        XGBClassifier(n_jobs=1, random_state=0),
    ):
        probabilities = model.fit(x, y.astype(int)).predict_proba(x_test)[:, 1]
        scores.append((roc_auc_score(y_test, probabilities), average_precision_score(y_test, probabilities)))
    auroc, auprc = np.mean(scores, axis=0)
    return float(auroc), float(auprc)


def _places(case: Case, train: Frame, test: Frame) -> dict[int, list[int]]:
    """Return the categories that the real rows have, in the order of their names."""
    both = np.concatenate([train.values, test.values])
    categories = {}
    for j, column in enumerate(case.schema.modelled.values()):
        if not column.continuous:
            names = category_names(column)
            cells = np.where(np.isnan(both[:, j]), len(names) - 1, both[:, j]).astype(int)
            by_name = sorted((names[cell], int(cell)) for cell in np.unique(cells))
            categories[j] = [cell for _, cell in by_name]
    return categories


def _features(case: Case, frame: Frame, categories: dict[int, list[int]]) -> NDArray[np.float32]:
    parts = []
    for j, column in enumerate(case.schema.modelled.values()):
        values = frame.values[:, j]
        null = np.isnan(values)
        if j == case.schema.target_index:
            continue
        if column.continuous:
            parts.append(np.where(null, NULL, values)[:, None])
        else:
            cells = np.where(null, len(category_names(column)) - 1, values)
            parts.append((cells[:, None] == np.array(categories[j])[None]).astype(np.float64))
    return np.concatenate(parts, axis=1).astype(np.float32)
