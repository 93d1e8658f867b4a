"""By how much two columns depend on each other, of a table of their shares."""

import numpy as np

from dpmodels.arrays import Floats

LEAST = 0.5
"""What shares add up to at least for their dependence to be told; without noise that is 1."""


def dependence(shares: Floats) -> float:
    """Return the share of rows that would have to be elsewhere for two columns to be independent.

    It is the total variation between the table and the product of its sums. Shapes: [groups, groups]; some shares may
    be below 0, and where noise leaves hardly any at all, it is 0.
    """
    whole = float(shares.sum())
    if whole < LEAST:
        return 0.0
    alone = np.outer(shares.sum(axis=1), shares.sum(axis=0)) / whole
    return min(1.0, float(np.abs(shares - alone).sum() / 2))
