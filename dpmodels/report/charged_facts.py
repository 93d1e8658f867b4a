"""What the charged scores say, with intervals from their known noise: post-processing of one released vector.

The intervals are about noise alone: they hold, 19 times in 20, the score of exactly the rows that were sanitized.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.arrays import Floats
from dpmodels.embeddings.cell_counts import STEP
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.report.charged import AllScores, Scores, Table
from dpmodels.statistics.normal import HALF_NORMAL

NAMES = {"logistic": "logistic regression", "trees": "gradient-boosted trees"}
TWO_SIDED = 1.96
"""Standard deviations either way that hold a normal 19 times in 20."""
TAIL, RECORDS_TAIL = 0.02, 2.58
"""How often an interval of a distance may miss: 2 % by its noise on either side, 1 % by the number of records."""
GRID = np.linspace(0, 1, 10_001)


@dataclass(frozen=True)
class Precision:
    """What is known of the noise: its deviation in a cell, and the released number of records with its own."""

    noise: float
    records: float
    records_stddev: float

    @classmethod
    def of(cls, noisy: Sequence[Floats], noise: float) -> "Precision":
        """Average the number of records over all tables; a table's sum is off by the noise of all its cells."""
        weights = 1 / np.array([len(counts) for counts in noisy])
        records = float(np.average([counts.sum() for counts in noisy], weights=weights))
        return cls(noise, max(1.0, records), noise / math.sqrt(weights.sum()))


@dataclass(frozen=True)
class Counted:
    """The noisy counts of one histogram beside those of the synthetic rows, and the precision of all of its table.

    Shapes: ``real`` and ``synthetic`` [classes, cells].
    """

    table: Table
    real: Floats
    synthetic: Floats
    precision: Precision


def charged_facts(release: Release) -> dict[str, Any]:
    """Turn a released vector of scores into facts of the report."""
    line, scores = release.line, Scores.reading(release.line)
    design = scores.of(line)
    (noise,) = scores.noise(line).values()
    counted = _counted(release, design, noise)
    of_target = counted[design.of_target]
    columns = [one for part in counted for one in part if one.table.kind == "column"]
    with_target = [one for one in columns if one.table.classes > 1]
    name = str(design.parts[design.of_target].schema.target)
    return {
        **line_facts(line),
        "ledger_charge": release.entry,
        "noise_stddev_of_a_count": round(noise, 4),
        "records": round(counted[0][0].precision.records, 1),
        "records_stddev": round(counted[0][0].precision.records_stddev, 4),
        "rows_trained_on": int(release.chosen[0]),
        "synthetic_rows_tested_on": int(release.chosen[1]),
        "target": name if of_target[0].table.classes > 1 else None,
        "classifiers": [
            {"model": NAMES[one.table.kind], "scores": _classifier(one.table, one.real, one.synthetic, noise)}
            for one in of_target
            if one.table.kind != "column"
        ],
        "columns": ([_target(name, of_target)] if with_target else [])
        + [
            {"name": one.table.name}
            | _distance(one.real.sum(axis=0), one.synthetic.sum(axis=0), one.precision, math.sqrt(one.table.classes))
            for one in columns
        ],
        "columns_with_target": [
            {"name": one.table.name} | _distance(one.real.ravel(), one.synthetic.ravel(), one.precision)
            for one in with_target
        ],
    }


def _counted(release: Release, design: AllScores, noise: float) -> list[list[Counted]]:
    """Return the histograms of every table."""
    parts, start = list[list[Counted]](), 0
    real, synthetic = release.vector / STEP, release.chosen[2:] * design.steps / STEP
    for part in design.parts:
        place = slice(start, start := start + sum(part.sizes))
        ends = np.cumsum(part.sizes)[:-1]
        noisy = np.split(real[place], ends)
        precision = Precision.of(noisy, noise)
        parts.append(
            [
                Counted(one, real_counts.reshape(one.classes, -1), counts.reshape(one.classes, -1), precision)
                for one, real_counts, counts in zip(part.tables, noisy, np.split(synthetic[place], ends), strict=True)
            ]
        )
    return parts


def line_facts(line: Line) -> dict[str, Any]:
    """Say what one line of a run's plan asked for and charges."""
    return {
        "target_epsilon": line.budget.epsilon,
        "spent_epsilon": float(spent_epsilon([line.event], line.budget.delta_exact)),
        "delta": line.budget.delta,
        "event": line.event.model_dump(mode="json"),
    }


def _target(name: str, counted: Sequence[Counted]) -> dict[str, Any]:
    """Compare the target's own column: every histogram of its table counts its classes, so they are averaged."""
    weights = [1 / one.table.cells for one in counted]
    real = np.average([one.real.sum(axis=1) for one in counted], axis=0, weights=weights)
    synthetic = counted[-1].synthetic.sum(axis=1)  # a column's: classifiers are tested on few of the synthetic rows
    return {"name": name} | _distance(real, synthetic, counted[0].precision, 1 / math.sqrt(sum(weights)))


def _classifier(table: Table, real: Floats, synthetic: Floats, noise: float) -> list[dict[str, Any]]:
    """Score one classifier. Shapes: counts of label and score bin, or of label and class named."""
    right = np.eye(table.classes)
    if table.classes == 2:
        right = np.repeat(right, table.cells // 2, axis=1)
    scores = [("accuracy", accuracy(real, right, noise), accuracy(synthetic, right, 0.0)[0])]
    if table.classes == 2:
        scores.insert(0, ("AUROC", auroc(real, noise), auroc(synthetic, 0.0)[0]))
    return [
        {
            "score": name,
            "value": _round(at),
            "low": _round(low),
            "high": _round(high),
            "on_synthetic_rows": _round(synthetic_score),
        }
        for name, (at, low, high), synthetic_score in scores
    ]


def accuracy(counts: Floats, right: Floats, noise: float) -> tuple[float, float, float]:
    """Return the share of right answers, and the shares that noise does not refute.

    A share a is not refuted where sum (right - a) counts, which is noise alone if a is the true one, is not large.
    """

    def excess(a: Floats) -> tuple[Floats, Floats]:
        hits, misses = float((counts * right).sum()), float((counts * (1 - right)).sum())
        wide = np.sqrt(right.sum() * (1 - a) ** 2 + (1 - right).sum() * a**2)
        return hits * (1 - a) - misses * a, noise * wide

    return _not_refuted(excess)


def auroc(counts: Floats, noise: float) -> tuple[float, float, float]:
    """Return the area under the ROC curve of binned scores, ties counting half, and the areas noise does not refute.

    An area a is held against sum_ij (s_ij - a) p_i n_j, s_ij = [i > j] + [i = j] / 2: zero at the true counts. The
    noise of both factors adds a first order, estimated from the noisy counts, and a second, known exactly.

    Shapes: counts [2, bins], bins in ascending order of score.
    """
    negative, positive = counts
    bins = len(negative)
    wins = np.tri(bins, k=-1) + np.eye(bins) / 2  # [i, j]: a positive in bin i beats a negative in bin j

    def excess(a: Floats) -> tuple[Floats, Floats]:
        beaten, beating = wins @ negative, positive @ wins
        first = ((beaten[:, None] - a * negative.sum()) ** 2).sum(axis=0)
        first += ((beating[:, None] - a * positive.sum()) ** 2).sum(axis=0)
        second = (wins**2).sum() - 2 * a * wins.sum() + a**2 * bins**2
        value = positive @ wins @ negative - a * positive.sum() * negative.sum()
        return value, np.sqrt(noise**2 * first + noise**4 * second)

    return _not_refuted(excess)


def _not_refuted(excess: Callable[[Floats], tuple[Floats, Floats]]) -> tuple[float, float, float]:
    """Return the share at which the excess is smallest, and the ends of those at which noise explains it."""
    value, stddev = excess(GRID)
    best = int(np.abs(value).argmin())
    accepted = np.flatnonzero(np.abs(value) <= TWO_SIDED * stddev)
    low, high = (accepted[0], accepted[-1]) if len(accepted) else (best, best)
    return float(GRID[best]), float(GRID[min(low, best)]), float(GRID[max(high, best)])


def _distance(real: Floats, synthetic: Floats, precision: Precision, added: float = 1.0) -> dict[str, Any]:
    """Return the total variation of noisy real shares to synthetic ones, what noise adds, and where the true one lies.

    D = 1/2 sum |h / n - q|. By Jensen noise does not lower D on average, and by the triangle inequality it raises it
    by ``noise_alone`` at most. As a function of standard normals D has the Lipschitz constant sqrt(C) sigma / (2 n),
    so it lies within that times sqrt(2 log(1 / tail)) of its mean on either side but for the tail. n itself is a noisy
    number: it moves all shares by its relative error, and so D by half of that. ``added``: sigma over a cell's noise.
    """
    noise, records = added * precision.noise, precision.records
    measured = float(np.abs(real / records - synthetic / max(synthetic.sum(), 1.0)).sum() / 2)
    alone = HALF_NORMAL * noise * len(real) / (2 * records)
    around = math.sqrt(len(real)) * noise / (2 * records) * math.sqrt(2 * math.log(1 / TAIL))
    around += RECORDS_TAIL * precision.records_stddev / (2 * records)
    return {
        "cells": len(real),
        "measured": _round(min(1.0, measured)),
        "noise_alone": _round(min(1.0, alone)),
        "low": _round(min(1.0, max(0.0, measured - alone - around))),
        "high": _round(min(1.0, measured + around)),
    }


def _round(share: float) -> float:
    return round(share, 6)
