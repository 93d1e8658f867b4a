"""Whether one column of the real rows gives the target away: then scores of models say little about a table."""

from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.comparison.case import Case, Skip

TRIED = 50_000
"""Real rows that a rule is read off."""
CELLS, TARGET_CELLS = 256, 20
"""Ranges that a column, and a target of many values, are cut into at most."""


def giveaway_facts(case: Case) -> dict[str, Any]:
    """Find the column that alone tells most of the target: by the commonest target of each of its cells.

    The rule is read off some of the real rows and tried on others. It names the target of a share ``right`` of these;
    whoever always named the commonest target would be right for a share ``commonest``.
    """
    names, target = list(case.schema.modelled), case.schema.target
    if target is None:
        raise Skip("the schema names no target")
    if len(names) < 2:
        raise Skip("there is no column beside the target")
    training, tried = (frame.values for frame in case.real.split(TRIED))
    cells = {
        name: _cells(training[:, j], tried[:, j], TARGET_CELLS if name == target else CELLS)
        for j, name in enumerate(names)
    }
    answers = cells.pop(target)
    right = {name: _right(each, answers) for name, each in cells.items()}
    commonest = _right((np.zeros_like(answers[0]), np.zeros_like(answers[1])), answers)
    column = max(right, key=lambda name: right[name])
    return {"column": column, "right": right[column], "commonest": commonest, "rows_tried": len(tried)}


def _cells(training: Floats, tried: Floats, most: int) -> tuple[Whole, Whole]:
    """Number the values of a column, or ranges of them; null is 0."""
    values = training[~np.isnan(training)]
    edges = np.unique(np.quantile(values, np.linspace(0, 1, most + 1))) if len(values) else values
    first, second = (np.where(np.isnan(x), 0, 1 + np.searchsorted(edges, x, side="right")) for x in (training, tried))
    return first, second


def _right(cells: tuple[Whole, Whole], answers: tuple[Whole, Whole]) -> float:
    """Return for what share of tried rows the commonest answer of their cell, among known rows, is theirs."""
    sizes = [int(max(map(np.max, each))) + 1 if len(each[1]) else 1 for each in (cells, answers)]
    counts = np.bincount(cells[0] * sizes[1] + answers[0], minlength=sizes[0] * sizes[1]).reshape(sizes)
    return float((counts.argmax(axis=1)[cells[1]] == answers[1]).mean()) if len(answers[1]) else 0.0
