"""One- and two-way marginals of encoded tables, and their total variation distances."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpmodels.privacy import Sensitive

Cells = NDArray[np.int32]


def histogram(cells: Cells, size: int) -> NDArray[np.float64]:
    """Return the shares of one column's cells. Shapes: cells [n] -> [size]."""
    counts = np.bincount(cells, minlength=size).astype(np.float64)
    shares: NDArray[np.float64] = counts / max(len(cells), 1)
    return shares


def evaluate_marginals(
    real: Sensitive[Cells], synthetic: Cells, sizes: Sequence[int], names: Sequence[str]
) -> Sensitive[dict[str, object]]:
    """Compare all one- and two-way marginals by total variation distance.

    Shapes: both tables are [n, F] cell indices; ``sizes`` and ``names`` have length F.
    Privacy: exact statistics of the real data, so the result stays Sensitive.
    """
    cells = real.reveal()
    one = {
        name: _distance(histogram(cells[:, j], size), histogram(synthetic[:, j], size))
        for j, (name, size) in enumerate(zip(names, sizes, strict=True))
    }
    two = [_pair_distance(cells, synthetic, a, b, sizes) for a, b in combinations(range(len(sizes)), 2)]
    return Sensitive(
        {
            "total_variation_1_way": one,
            "mean_total_variation_1_way": float(np.mean(list(one.values()))),
            "mean_total_variation_2_way": float(np.mean(two)) if two else None,
        }
    )


def _pair_distance(real: Cells, synthetic: Cells, a: int, b: int, sizes: Sequence[int]) -> float:
    size = sizes[a] * sizes[b]
    joint = [t[:, a].astype(np.int64) * sizes[b] + t[:, b] for t in (real, synthetic)]
    return _distance(*(np.bincount(cells, minlength=size) / max(len(cells), 1) for cells in joint))


def _distance(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    return float(np.abs(p - q).sum() / 2)
