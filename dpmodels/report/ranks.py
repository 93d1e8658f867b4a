"""How far off the number of rows below a value may be, and so by how much of the rows a quantile may be off.

    F(x)   the released share of rows below x: of whole cells as they were averaged, within a cell by its first counts
    d      the largest distance of the synthetic shares from F
    e      the largest distance of F from the real shares that noise alone leads to expect
    e95    the one that it exceeds in one release of twenty

Privacy: post-processing of released counts, their known noise, and synthetic rows.
"""

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpmodels.arrays import Floats
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.methods.parts.marginals import Marginal
from dpmodels.report.fidelity import LIKELY


def rank_distances(column: Modelled, noisy: Marginal, synthetic: Floats, records: float) -> dict[str, float]:
    """Return both distances of a column whose values have an order; nothing of another.

    Shapes: ``synthetic`` [fine cells], the synthetic shares.
    """
    if not isinstance(column, Continuous):
        return {}
    size, cells = column.cells, noisy.cell_of[: column.cells]
    counts, stddev = noisy.counts[:size], noisy.stddev
    if np.any(np.diff(cells) < 0) or np.isin(noisy.cell_of[size:], cells).any():
        released, whole, narrow = counts, np.full(size, stddev), np.ones(size)
    else:
        used, run = np.unique(cells, return_inverse=True)
        narrow, whole = np.bincount(run).astype(np.float64), noisy.pooled_stddev[used]
        released = counts + ((noisy.pooled[used] - np.bincount(run, counts)) / narrow)[run]
    distance = np.abs(np.cumsum(released) / records - np.cumsum(synthetic[:size])).max()
    noise = expected_of_sums(whole) + stddev * expected_within(narrow)
    likely = sums_95(whole) + stddev * within_95(narrow)
    return {
        "expected_rank_distance": round(min(1.0, noise / records), 8),
        "noise_rank_distance_95": round(min(1.0, likely / records), 8),
        "rank_distance_to_release": round(min(1.0, float(distance)), 8),
    }


def expected_of_sums(stddevs: Floats) -> float:
    """Return how large the largest of all sums from the left is expected to be: of a walk, sqrt(pi/2) times its end."""
    return math.sqrt(math.pi / 2) * math.hypot(*stddevs.tolist())


def expected_within(sizes: Floats) -> float:
    """Return a bound on what is added within the cells, each of so many narrow ones of noise 1, whose sum is known.

    The sums within one are a bridge, whose largest exceeds x sqrt(size) with a probability of about 2 exp(-2 x^2).
    """
    joined = int((sizes > 1).sum())
    return math.sqrt(float(sizes.max()) * math.log(5 * joined) / 2) if joined else 0.0


def sums_95(stddevs: Floats) -> float:
    """Return what the largest of all sums from the left exceeds in one release of twenty.

    A walk exceeds x times its end's standard deviation with a probability of at most 4 (1 - Phi(x)), by reflection.
    """
    return float(ndtri(1 - (1 - LIKELY) / 4)) * math.hypot(*stddevs.tolist())


def within_95(sizes: Floats) -> float:
    """Return the same of what is added within the cells; arguments as of ``expected_within``."""
    joined = int((sizes > 1).sum())
    return math.sqrt(float(sizes.max()) * math.log(2 * joined / (1 - LIKELY)) / 2) if joined else 0.0


def rank_error(column: Any) -> float:
    """Return by how much of the rows a synthetic quantile is off at most in nineteen releases of twenty.

    Reports of layout 8 state the mean of the noise alone.
    """
    noise = column.get("noise_rank_distance_95", column["expected_rank_distance"])
    return min(1.0, float(noise + column["rank_distance_to_release"]))
