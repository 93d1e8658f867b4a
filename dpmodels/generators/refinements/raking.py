"""Rows chosen among drawn and spare ones so that single columns keep the numbers of rows in each cell: raking.

Candidates are weighted by iterative proportional fitting (Deming and Stephan 1940) and drawn systematically by these
weights. Drawn rows begin with weight 1, so that they stay where no column speaks against it. No row is taken twice, so
no weight is above 1. Numbers that cannot all be had together are met as nearly as can be: the steps become smaller, so
that no column has the last word.

Privacy: post-processing.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Mask, Whole
from dpmodels.generators.randomness import cumulate, spread

ROUNDS, WHOLE_STEPS = 60, 10
CLOSE = 0.001
"""Share of the rows by which a margin may be off when the rounds end early."""
LEAST_WEIGHT = 1e-9


def choose(margins: Sequence[Whole], group: Whole, fit: Mask, rng: np.random.Generator) -> Whole:
    """Say which row, of the drawn ones and the spare ones behind them, is to lie in the place of each drawn one.

    Drawn rows that are chosen keep their places. A group has its number of rows; where it has too few candidates it
    stays as it was drawn, unfit rows too.

    Shapes: drawn and spare rows' cells in each margin [B + S], and group [B + S]; which drawn ones may be taken [B]
    -> [B], below B + S.
    """
    rows = len(fit)
    candidates = np.flatnonzero(np.concatenate([fit, np.ones(len(group) - rows, dtype=np.bool_)]))
    counts = np.bincount(group[:rows], minlength=group.max() + 1)
    enough = np.bincount(group[candidates], minlength=len(counts)) >= counts
    counts, wanted = np.where(enough, counts, 0), enough[group[:rows]]
    candidates = candidates[enough[group[candidates]]]
    if not len(candidates):
        return np.arange(rows)
    targets = [np.bincount(cells[:rows][wanted], minlength=cells.max() + 1) for cells in margins]
    kind = crossed(candidates < rows, group[candidates], *(cells[candidates] for cells in margins))
    members, one = np.bincount(kind), candidates[np.unique(kind, return_index=True)[1]]  # alike, so of one weight
    begin = np.where(one < rows, 1.0, 0.5)
    weights = rake(begin, members, targets, [cells[one] for cells in margins], counts, group[one])[kind]
    order = rng.permutation(len(candidates))
    order = order[np.lexsort([cells[candidates[order]] for cells in margins])]  # neighbors are alike in a spread draw
    order = order[np.argsort(group[candidates[order]], kind="stable")]
    in_group = np.split(order, np.cumsum(np.bincount(group[candidates], minlength=len(counts)))[:-1])
    chosen = np.arange(rows)
    for label in np.flatnonzero(counts):
        some = in_group[label]
        times = spread(cumulate(weights[some][None]), counts[label : label + 1], rng)[0]
        stays = candidates[some] < rows
        others = candidates[np.repeat(some, times - (stays & (times > 0)))]
        places = np.setdiff1d(np.flatnonzero(group[:rows] == label), candidates[some[stays & (times > 0)]])
        chosen[places] = rng.permutation(others)
    return chosen


def crossed(first: NDArray[Any], *others: NDArray[Any]) -> Whole:
    """Number the values that occur together in columns, from 0 on. Shapes: [B] each -> [B]."""
    numbers = first.astype(np.int64)
    for other in others:
        numbers = np.unique(numbers * (int(other.max()) + 1) + other, return_inverse=True)[1]
    return numbers


def rake(
    begin: Floats, members: Whole, targets: Sequence[Whole], margins: Sequence[Whole], counts: Whole, group: Whole
) -> Floats:
    """Weigh kinds of candidates until each cell of each margin has the weight of its target, or as nearly as can be.

    The weights of each group add up to its count, for it has at least as many candidates.

    Shapes: begin, members of a kind [C]; for each margin, targets [cells] and the kinds' cells [C]; counts [G], group
    [C] -> weight of each member [C] within [0, 1].
    """
    weights = _bounded(begin, members, counts, group)
    for number in range(ROUNDS):
        step, off = min(1.0, WHOLE_STEPS / (number + 1)), 0.0
        for target, cells in zip(targets, margins, strict=True):
            sums = np.bincount(cells, weights * members, minlength=len(target))
            off = max(off, float(np.abs(sums - target).sum()) / 2)
            weights *= (np.divide(target, sums, out=np.ones(len(sums)), where=sums > 0) ** step)[cells]
        weights = _bounded(np.maximum(weights, LEAST_WEIGHT), members, counts, group)
        if off <= CLOSE * counts.sum():
            break
    return weights


def _bounded(weights: Floats, members: Whole, counts: Whole, group: Whole) -> Floats:
    """Scale the weights of each group to its count, with none above 1."""
    for _ in range(ROUNDS):
        full = weights >= 1
        left = counts - np.bincount(group, full * members, minlength=len(counts))
        sums = np.bincount(group, np.where(full, 0, weights * members), minlength=len(counts))
        scale = np.divide(left, sums, out=np.ones(len(sums)), where=sums > 0)
        weights = np.where(full, 1.0, weights * scale.clip(min=0)[group])
        if not (weights > 1).any():
            break
    return np.minimum(weights, 1.0)
