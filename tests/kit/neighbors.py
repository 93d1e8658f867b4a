"""Records of the clinic that are the worst neighbors of a sum over pairs of columns, and how far they move it."""

import numpy as np

from dpmodels.codec.encode import Records
from tests.kit.support import make_schema

SCHEMA = make_schema()


def random_weights(columns: int, seed: int = 0) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).integers(1, 11, (columns, columns)), 1)
    return upper + upper.T + np.eye(columns, dtype=np.int64)


def squared(vector: np.ndarray) -> int:
    return sum(int(v) ** 2 for v in vector)


def extremes() -> list[Records]:
    """Return records at the ends of every column, of each class."""
    states = np.array([[column.states - 1 for column in SCHEMA.modelled.values()]], dtype=np.int32)
    return [Records(state, np.where(state, 0.0, value)) for state in (0 * states, states) for value in (0.0, 1.0)]
