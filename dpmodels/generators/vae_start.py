"""Where a decoder of cells starts: what the inverse of the released projection says about each column."""

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.columns import Continuous
from dpmodels.embeddings.base import Layout
from dpmodels.embeddings.partition import Partition
from dpmodels.late import Tensor, torch

LEAST_SHARE, VALUE_STDDEV = 0.003, 0.15
"""Floor of a category's share, and how widely a value is spread over its cells, on the unit interval."""


def inverse_log_shares(design: Floats, layout: Layout, partition: Partition) -> Tensor:
    """Return log shares of every cell from a design vector as the inverse projection gives it (post-processing).

    One-hot parts are floored and brought to a sum of 1; a value spreads normally over the value cells.

    Shapes: [B, layout.dim] in units of one -> [B, cells].
    """
    parts = []
    for block, column in zip(layout.blocks, partition.columns, strict=True):
        shares = np.ones((len(design), 1))
        if block.one_hot:
            shares = np.maximum(design[:, block.start : block.value], LEAST_SHARE)
            shares = shares / shares.sum(axis=1, keepdims=True)
        if isinstance(column, Continuous):
            value = np.clip(design[:, block.value] / shares[:, 0], 0, 1)
            centres = (np.arange(column.cells) + 0.5) / column.cells
            density = np.exp(-((value[:, None] - centres) ** 2) / (2 * VALUE_STDDEV**2)) + LEAST_SHARE / column.cells
            density = density / density.sum(axis=1, keepdims=True)
            shares = np.concatenate([shares[:, :1] * density, shares[:, 1:]], axis=1)
        parts.append(shares)
    return torch.from_numpy(np.log(np.concatenate(parts, axis=1))).float()
