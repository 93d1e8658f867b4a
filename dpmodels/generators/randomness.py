"""Seeded randomness for training and sampling, explicit and independent from step to step. Never for noise."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Whole
from dpmodels.late import Tensor, torch


def stream(seed: int, step: int) -> "torch.Generator":
    """Return the generator of one step of one seed.

    The pair is hashed to 32 bits, because torch's CPU generator ignores the upper half of a 64-bit seed.
    """
    state = np.random.SeedSequence([seed, step]).generate_state(1)[0]
    return torch.Generator().manual_seed(int(state))


def cumulate(weights: NDArray[np.floating]) -> Floats:
    """Return each row's running shares, the last of them 1; a row without weight is uniform. Shapes: [G, n]."""
    cumulative: Floats = np.cumsum(weights, axis=1, dtype=np.float64)
    total = cumulative[:, -1:]
    even = np.arange(1, cumulative.shape[1] + 1) / cumulative.shape[1]
    return np.where(total > 0, cumulative / np.where(total > 0, total, 1), even)


def spread(cumulative: Floats, rows: Whole, rng: np.random.Generator) -> Whole:
    """Say how often each outcome is drawn in a group of rows: as often as its share says, up to one row.

    The group's uniforms are evenly spread: one random offset, equal steps (systematic sampling).

    Shapes: cumulative [G, n], rows [G] -> [G, n] of sum ``rows``.
    """
    below = np.ceil(cumulative * rows[:, None] - rng.random(len(rows))[:, None])
    below[:, -1] = rows
    counts: Whole = np.minimum(below, rows[:, None]).astype(np.int64)
    counts[:, 1:] -= counts[:, :-1].copy()
    return counts


def draw_block(cumulative: Floats, rows: int, rng: np.random.Generator) -> Whole:
    """Draw ``rows`` outcomes for each group, spread evenly, in random order. Shapes: [G, n] -> [G, rows]."""
    groups, outcomes = cumulative.shape
    counts = spread(cumulative, np.full(groups, rows), rng)
    outcome_rows = np.repeat(np.tile(np.arange(outcomes), groups), counts.ravel()).reshape(groups, rows)
    return rng.permuted(outcome_rows, axis=1, out=outcome_rows)


def draw_grouped(cumulative: Floats, group: Whole, rng: np.random.Generator) -> Whole:
    """Draw an outcome for every row from its group's shares, spread evenly. Shapes: [G, n], [B] -> [B]."""
    order = rng.permutation(len(group))
    order = order[np.argsort(group[order].astype(np.min_scalar_type(len(cumulative))), kind="stable")]
    counts = spread(cumulative, np.bincount(group, minlength=len(cumulative)), rng)
    outcome_rows = np.empty(len(group), dtype=np.int64)
    outcome_rows[order] = np.repeat(np.tile(np.arange(cumulative.shape[1]), len(cumulative)), counts.ravel())
    return outcome_rows


def categorical(logits: Tensor, uniform: Tensor) -> Tensor:
    """Draw from the softmax over the first dimension by inverting its running sums.

    Shapes: [n, B], [B] -> [B] int32.
    """
    running = torch.exp(logits - logits.amax(dim=0))
    for before, here in pairwise(running):  # a tenth of the time of cumsum along the first dimension
        here += before
    point, index = uniform * running[-1], torch.zeros(len(uniform), dtype=torch.int32, device=uniform.device)
    for bound in running[:-1]:
        index += bound <= point
    return index
