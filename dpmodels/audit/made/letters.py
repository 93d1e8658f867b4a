"""Small letters, each a few sentences that came with their vectors, and public letters of which candidates are made."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from dpmodels.contract.documents import Documents
from dpmodels.privacy import PrivacyBudget
from dpmodels.text.candidates import Candidates, Recipe, Sketching, make_candidates
from dpmodels.text.encoders import Vectors
from dpmodels.text.passages import Passages

DIM = 8
SMALL = Recipe(
    candidates=12,
    least_sentences=3,
    clusters=2,
    hidden=(8, 6),
    projections=5,
    sketch=Sketching(epsilon=10.0, numbers=4, hidden=8, steps=50),
)


def make_contract(**changes: Any) -> Documents:
    """Return the contract of the letters, in which a sentence is protected."""
    encoder = {"name": "given", "dim": DIM}
    content = {"name": "letters", "embedding": "vectors", "protects": "sentence", "encoder": encoder}
    return Documents.model_validate({**content, **changes})


def make_budget(epsilon: float) -> PrivacyBudget:
    """Return a pure budget for one sentence."""
    contract = make_contract()
    return PrivacyBudget(epsilon=epsilon, delta=0.0, adjacency=contract.adjacency, unit=contract.unit)


def make_passages(number: int, seed: int = 0, sentences: int = 6) -> Passages:
    """Return letters about two subjects in turn, whose sentences lie about the middle of their subject."""
    rng = np.random.default_rng(seed)
    middles = np.eye(DIM)[np.arange(number * sentences) // sentences % 2]
    vectors = middles + 0.3 * rng.standard_normal(middles.shape)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ends = np.arange(number + 1, dtype=np.int64) * sentences
    ids = [f"letter {index}" for index in range(number)]
    return Passages(ids, np.full(number, -1, dtype=np.int32), vectors.astype(np.float32), ends)


def with_sentence(letters: Passages, row: int, vector: Vectors) -> Passages:
    """Return the letters with one sentence replaced."""
    vectors = letters.vectors.copy()
    vectors[row] = vector
    return Passages(letters.ids, letters.labels, vectors, letters.ends)


@cache
def make_public() -> Candidates:
    """Make candidates, directions and a sketch of public letters."""
    return make_candidates([make_passages(30, seed=1)], make_contract().encoder, SMALL)


def make_table(passages: Passages) -> pa.Table:
    """Return letters as their owner has them: an id, and the vectors of their sentences."""
    vectors = [part.tolist() for part in np.split(passages.vectors, passages.ends[1:-1])]
    return pa.table({"id": list(passages.ids), "vectors": pa.array(vectors, pa.list_(pa.list_(pa.float32())))})
