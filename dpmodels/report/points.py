"""A map of synthetic embeddings in the two directions in which the released moments vary most.

Privacy: post-processing of released moments and synthetic documents.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.codec.embedded import BITS, Embedded
from dpmodels.methods.documents.document_moments import Estimate
from dpmodels.statistics.symmetric import principal_directions

POINTS = 600
"""Synthetic documents that the map shows."""


def map_of(estimate: Estimate, documents: Embedded, names: tuple[str, ...]) -> dict[str, Any]:
    """Lay the first documents and the mean of every class out on a map. Units: places from -1 to 1."""
    shares = estimate.counts.clip(min=0) / max(float(estimate.counts.clip(min=0).sum()), 1e-12)
    middle = shares @ estimate.means
    between = np.einsum("c,ci,cj->ij", shares, estimate.means - middle, estimate.means - middle)
    whole = estimate.covariance + between
    directions = principal_directions(whole, 2)
    positions = (np.ldexp(documents.vectors[:POINTS].astype(np.float64), -BITS) - middle) @ directions
    means = (estimate.means - middle) @ directions
    reach = max(float(np.abs(positions).max(initial=0)), float(np.abs(means).max(initial=0)), 1e-12)
    explained = float(np.einsum("ik,ij,jk->", directions, whole, directions) / np.trace(whole))
    return {
        "points": [[*_place(position / reach)] for position in positions],
        "means": [{"name": name, "place": _place(mean / reach)} for name, mean in zip(names, means, strict=False)],
        "explains": round(explained, 4),
    }


def _place(position: NDArray[np.float64]) -> list[float]:
    x, y = [*position, 0.0][:2]
    return [round(float(x), 3), round(float(y), 3)]
