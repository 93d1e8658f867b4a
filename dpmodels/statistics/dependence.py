"""By how much two columns depend on each other, of a table of their shares."""

import numpy as np

from dpmodels.arrays import Floats


def dependence(shares: Floats) -> float:
    """Return the share of rows that would have to be elsewhere for two columns to be independent.

    It is the total variation between the table and the product of its sums. Shapes: [groups, groups]; some shares may
    be below 0.
    """
    alone = np.outer(shares.sum(axis=1), shares.sum(axis=0)) / max(float(shares.sum()), 1e-300)
    return float(np.abs(shares - alone).sum() / 2)
