"""Who loses by the synthetic data: the errors of the target's model, and its distribution, in every group of rows."""

from typing import Any

import numpy as np

from dpmodels.comparison.case import Case
from dpmodels.comparison.frame import category_names
from dpmodels.comparison.marginals import group_distances
from dpmodels.comparison.utility import errors, predict_target

LEAST_ROWS = 50
"""Real rows that a group must have; of fewer the error says little."""


def group_facts(case: Case) -> dict[str, Any]:
    """Compare the two models' errors, and the target's distribution, within every category of every column."""
    predictions = predict_target(case)
    synthetic, real = errors(predictions)
    groups = []
    for j, (name, column) in enumerate(case.schema.modelled.items()):
        if column.continuous or name == case.schema.target:
            continue
        values = predictions.test.values[:, j]
        if len(values) != len(real):  # rows whose number to predict is null are not tested
            values = values[~np.isnan(predictions.test.values[:, case.schema.target_index or 0])]
        for value, label in enumerate(category_names(column)):
            member = np.isnan(values) if label == "null" else values == value
            if member.sum() >= LEAST_ROWS:
                groups.append({"column": name, "value": label, **_errors(synthetic[member], real[member])})
    distances = [
        group
        for group in group_distances(case.real.grid, case.real.tally, case.tally, str(case.schema.target))
        if group["real_rows"] >= LEAST_ROWS
    ]
    return {
        "error": "mean distance" if predictions.continuous else "share of wrong classes",
        "overall": _errors(synthetic, real),
        "groups": sorted(groups, key=lambda group: -group["excess"]),
        "distributions": sorted(distances, key=lambda group: -group["total_variation"]),
    }


def _errors(synthetic: np.ndarray[Any, np.dtype[np.float64]], real: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return mean errors, by how much training on synthetic rows adds, and the standard error of that."""
    excess = synthetic - real
    return {
        "rows": len(real),
        "tstr_error": float(synthetic.mean()),
        "trtr_error": float(real.mean()),
        "excess": float(excess.mean()),
        "standard_error": float(excess.std() / len(excess) ** 0.5),
    }
