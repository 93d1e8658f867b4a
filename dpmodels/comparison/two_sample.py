"""Can a classifier tell synthetic rows from real ones? The classifier two-sample test, and pMSE."""

from typing import Any

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.comparison.bootstrap import LEAST, interval, weighted_auroc, weights
from dpmodels.comparison.case import Case, Skip
from dpmodels.comparison.features import linear_features, tree_features
from dpmodels.comparison.frame import Frame

ROWS = 20_000
"""Rows of each kind."""


def two_sample_facts(case: Case) -> dict[str, Any]:
    """Train gradient-boosted trees to tell the two tables apart, and test them on rows they have not seen."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.inspection import permutation_importance

    frame, y = _mixed(case)
    x = tree_features(frame)
    rng = np.random.default_rng([case.real.seed, 3])
    halves = [np.array_split(rng.permutation(np.flatnonzero(y == kind)), 2) for kind in (0, 1)]
    train, test = (rng.permutation(np.concatenate(half)) for half in zip(*halves, strict=True))
    model = HistGradientBoostingClassifier(random_state=0, max_iter=60).fit(x[train], y[train])
    score = model.predict_proba(x[test])[:, 1]
    area = weighted_auroc(y[test] == 1, score, weights(len(test), case.real.seed))
    few = test[:4000]
    importance = permutation_importance(model, x[few], y[few], scoring="roc_auc", n_repeats=1, random_state=0)
    names = list(case.schema.modelled)
    telling = np.argsort(-importance.importances_mean[: len(names)])[:5]
    return {
        "auroc": float(area[0]),
        "auroc_interval": interval(area),
        "accuracy": float(((score > 0.5) == (y[test] == 1)).mean()),
        "rows_of_each": len(y) // 2,
        "what_gives_it_away": {names[j]: float(importance.importances_mean[j]) for j in telling},
    }


def pmse_facts(case: Case) -> dict[str, Any]:
    """Return the mean squared distance of a logistic model's propensities from chance (Woo et al. 2009).

    The ratio is to what two independent samples of one population give in expectation: the N fitted propensities then
    have (k - 1) c (1 - c) in squared deviations, c the share of synthetic rows and k the parameters. So 1 is as good as
    a fresh sample, in the main effects that the model sees.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    frame, y = _mixed(case)
    x = linear_features(case.schema, frame)
    x = x[:, np.ptp(x, axis=0) > 0]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e3, max_iter=300))
    propensity = model.fit(x, y).predict_proba(x)[:, 1]
    c = float(y.mean())
    pmse = float(np.mean((propensity - c) ** 2))
    parameters = int(np.linalg.matrix_rank(x - x.mean(axis=0))) + 1
    expected = (parameters - 1) * (1 - c) * c / len(y)
    return {"pmse": pmse, "expected_of_a_fresh_sample": expected, "ratio": pmse / expected if expected else None}


def _mixed(case: Case) -> tuple[Frame, Floats]:
    """Return equally many real and synthetic rows, and which is which (1: synthetic)."""
    rows = min(ROWS, len(case.real.train), len(case.synthetic))
    if rows < LEAST:
        raise Skip("there are too few rows")
    frame = Frame.concat([case.draw(case.real.train, rows, 1), case.draw(case.synthetic, rows, 2)])
    return frame, np.repeat([0.0, 1.0], rows)
