"""Seeded randomness for training and sampling, explicit and independent from step to step. Never for noise."""

import numpy as np
import torch
from numpy.typing import NDArray


def stream(seed: int, step: int, device: str | torch.device = "cpu") -> torch.Generator:
    """Return the generator of one step of one seed.

    The pair is hashed to 32 bits, because torch's CPU generator ignores the upper half of a 64-bit seed.
    """
    state = np.random.SeedSequence([seed, step]).generate_state(1)[0]
    return torch.Generator(device).manual_seed(int(state))


def systematic(group: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a uniform a row that is evenly spread, in random order, within each group. Shapes: [B]."""
    order = np.lexsort((rng.random(len(group)), group))
    size = np.bincount(group)
    rank = np.empty(len(group))
    rank[order] = np.arange(len(group)) - (np.cumsum(size) - size)[group[order]]
    result: NDArray[np.float64] = (rank + rng.random(len(size))[group]) / size[group]
    return result


def invert(weights: NDArray[np.floating], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """Invert each row's cumulative weights. Shapes: [B, n], [B] -> [B] in 0..n-1."""
    cumulative = np.cumsum(weights, axis=1, dtype=np.float64)
    index: NDArray[np.int64] = (uniform[:, None] * cumulative[:, -1:] >= cumulative).sum(axis=1)
    return index.clip(max=weights.shape[1] - 1)


def refine(
    merge: NDArray[np.int64], detail: NDArray[np.float64], cell: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a fine cell within each merged one.

    Shapes: merge and detail [n], detail of sum 1 within each merged cell; cell [B] -> [B] in 0..n-1.
    """
    # the running sum over fine cells passes `cell` where the cell begins
    order = np.argsort(merge, kind="stable")
    running = np.cumsum(detail[order])
    last = np.searchsorted(merge[order], cell, side="right") - 1
    place = np.searchsorted(running, cell + rng.random(len(cell)), side="right")
    fine: NDArray[np.int64] = order[np.minimum(place, last)]
    return fine
