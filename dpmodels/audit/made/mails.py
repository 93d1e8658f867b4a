"""Small generated embeddings with a label, and their contract."""

import numpy as np
import pyarrow as pa

from dpmodels.codec.embedded import Embedded, EmbeddedCodec, on_sphere
from dpmodels.contract.documents import Documents

CLASSES = ["offer", "news", "other"]


def make_schema(**changes: object) -> Documents:
    """Return the contract of the mails, with keys replaced."""
    encoder = {"name": "given", "dim": 6}
    content = {"name": "mails", "embedding": "vector", "label": "kind", "classes": CLASSES, "encoder": encoder}
    return Documents.model_validate({**content, **changes})


def make_records(rows: int, seed: int = 0) -> Embedded:
    """Return mails whose class shows in the first coordinates, all of them about a common center."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(CLASSES), rows, p=[0.5, 0.3, 0.2]).astype(np.int32)
    center = np.array([0.3, 0.3, 0.3, 1.0, 0.0, 0.0])
    return Embedded(on_sphere(center + np.eye(6)[labels] + rng.normal(0, 0.2, (rows, 6))), labels)


def make_table(rows: int, seed: int = 0) -> pa.Table:
    """Return mails as their owner has them."""
    table = EmbeddedCodec(make_schema()).decode(make_records(rows, seed))
    ids = pa.array(range(rows), pa.int64())
    return pa.table({"id": ids, "vector": table["embedding"], "kind": table["kind"]})


EXTREMES = {
    "kind": ["other", "offer", "news", "news"],
    "embedding": [[-0.6, 0, 0, -0.8, 0, 0], [0] * 5 + [1], [0] * 6, [1] + [0] * 5],
}
"""Mails at the ends of what the contract allows, or beyond where others lie."""
