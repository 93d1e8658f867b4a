"""How far off the number of rows below a value may be, and so by how much of the rows a quantile may be off.

    F(x)   the released share of rows below x: of whole cells as they were averaged, within a cell by its first counts
    d      the largest distance of the synthetic shares from F
    e      the largest distance of F from the real shares that noise alone leads to expect
    e95    the one that it exceeds in one release of twenty

The noise of F is a Brownian bridge over the whole cells, whose sum is the number of records, a bridge within each
cell, and what the number of records is off by, which moves all shares at once. The three are independent, and so are
added by squares.

Privacy: post-processing of released counts, their known noise, and synthetic rows.
"""

import math

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.methods.parts.marginals import Marginal
from dpmodels.report.fidelity import LIKELY, NORMAL_95
from dpmodels.report.within import quantiles_within
from dpmodels.statistics.normal import HALF_NORMAL

BRIDGE = math.sqrt(math.pi / 2) * math.log(2)
"""Mean of the largest absolute value of a Brownian bridge whose walk has variance 1."""
BRIDGE_95 = math.sqrt(math.log(2 / (1 - LIKELY)) / 2)
"""What it exceeds in one of twenty at most: it exceeds x with a probability of at most 2 exp(-2 x^2)."""


def rank_distances(
    column: Modelled, noisy: Marginal, synthetic: Floats, records: float, records_stddev: float
) -> dict[str, float]:
    """Return the distances of a column whose values have an order, and within what its quantiles are; else nothing.

    Where the noise within cells is more than there is in them, they count as a whole: a synthetic value may then be
    anywhere in its cell, which puts its share as far off as the fullest cell is full.

    Args:
        column: whose values they are.
        noisy: what was released of it.
        synthetic: the synthetic shares of its fine cells.
        records: the released number of records.
        records_stddev: the noise of this number.
    """
    if not isinstance(column, Continuous):
        return {}
    synthetic, noisy = synthetic[: column.cells], _in_runs(noisy, column.cells)
    used, run = np.unique(noisy.cell_of[: column.cells], return_inverse=True)
    narrow, counts = np.bincount(run).astype(np.float64), noisy.counts[: column.cells]
    whole = noisy.adding_up_to(records)
    released = counts + ((whole.pooled[used] - np.bincount(run, counts)) / narrow)[run]
    apart = np.abs(np.cumsum(released) / records - np.cumsum(synthetic))
    inside = noisy.stddev * expected_inside(narrow), noisy.stddev * inside_95(narrow)
    fullest = float(np.bincount(run, synthetic)[narrow > 1].max(initial=0.0))
    if inside[1] > records * fullest:
        apart, inside = apart[np.flatnonzero(np.diff(run, append=-1))], (0.0, 0.0)
    else:
        fullest = 0.0
    moved = records_stddev * _reach_of_the_number(noisy, whole, records)
    end = math.hypot(*noisy.pooled_stddev.tolist())
    noise = math.hypot(BRIDGE * end, HALF_NORMAL * moved, inside[0]) / records
    likely = math.hypot(BRIDGE_95 * end, NORMAL_95 * moved, inside[1]) / records
    distances = {
        "expected_rank_distance": noise,
        "noise_rank_distance_95": likely,
        "rank_distance_to_release": float(apart.max()),
        **({"rank_distance_in_a_cell": fullest} if fullest else {}),
    }
    figures = {name: round(min(1.0, distance), 8) for name, distance in distances.items()}
    return figures | {"quantiles_within": quantiles_within(figures)}


def _in_runs(noisy: Marginal, size: int) -> Marginal:
    """Return what was released by cells that are runs of narrow ones; by narrow ones, where the cells are no runs."""
    cells, states = noisy.cell_of[:size], noisy.cell_of[size:]
    is_run = bool(np.all(np.diff(cells) >= 0)) and not np.isin(states, cells).any()
    return noisy if is_run else Marginal.plain(noisy.counts, noisy.stddev)


def _reach_of_the_number(noisy: Marginal, whole: Marginal, records: float) -> float:
    """Return by how much the number of records moves the share below a cell at most, for each record it is off by.

    Of what it is off by, the cells below take the part that is theirs of the variance, and should take their share.
    """
    variance = np.cumsum(noisy.pooled_stddev**2)
    return float(np.abs(variance / variance[-1] - np.cumsum(whole.pooled) / records).clip(max=1.0).max())


def expected_inside(sizes: Floats) -> float:
    """Return a bound on what is added within the cells, each of so many narrow ones of noise 1, whose sum is known.

    The sums within one are a bridge, whose largest exceeds x sqrt(size) with a probability of about 2 exp(-2 x^2).
    """
    joined = int((sizes > 1).sum())
    return math.sqrt(float(sizes.max()) * math.log(5 * joined) / 2) if joined else 0.0


def inside_95(sizes: Floats) -> float:
    """Return what this exceeds in one release of twenty; arguments as of ``expected_inside``."""
    joined = int((sizes > 1).sum())
    return math.sqrt(float(sizes.max()) * math.log(2 * joined / (1 - LIKELY)) / 2) if joined else 0.0
