"""Points of bounded norm."""

import numpy as np

from dpmodels.statistics.component_moments import Z_BITS

R = 1 << Z_BITS


def clipped(points: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.trunc(points * (R * (1 - 1e-9) / np.maximum(lengths, 1e-9))).astype(np.int64)
