"""A client of a federation: its records as vectors with a class, its public negatives, and its contract."""

from typing import Any

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Whole
from dpmodels.contract.federation import Federation
from dpmodels.embeddings.frozen import digest_of
from dpmodels.statistics.component_moments import Z_BITS, Points

CLASSES, SIZE = 3, 6
INPUTS = ("age", "pulse", "fever")
NEGATIVES = 20


def whole_vectors(directions: Any) -> Whole:
    """Return whole vectors in these directions, no longer than what the sensitivity is proved for."""
    points = np.atleast_2d(np.asarray(directions, dtype=np.float64))
    lengths = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1.0)
    whole: Whole = np.trunc(np.ldexp(points / lengths * (1 - 1e-9), Z_BITS)).astype(np.int64)
    return whole


def make_negatives() -> Whole:
    """Return the vectors of public records, which all point away from the client's."""
    return whole_vectors(-np.eye(SIZE)[np.zeros(NEGATIVES, dtype=np.int64)])


def make_points(number: int, label: int = 0, seed: int = 0) -> Points:
    """Return records of one class that all point one way: what another record does then shows most."""
    rng = np.random.default_rng(seed)
    directions = np.eye(SIZE)[0] + 0.01 * rng.standard_normal((number, SIZE))
    return Points(whole_vectors(directions), np.full(number, label, dtype=np.int64))


def make_contract(records: int, public: bool) -> Federation:
    """Return the contract of a client with so many records, whose number is public or not."""
    content = {
        "name": "clinics",
        "clients": [{"name": "north", "size": records if public else None}],
        "features": SIZE,
        "classes": [f"class {number}" for number in range(CLASSES)],
        "extractor": "0" * 64,
        "negatives": NEGATIVES,
        "auxiliary": digest_of(make_negatives()),
        "most_records": 2 * records,
    }
    return Federation.model_validate(content).of("north")


def make_table(number: int, seed: int = 0) -> pa.Table:
    """Return labeled records of a few numbers, whose class shows in them."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, number)
    values = label[:, None] + 0.3 * rng.standard_normal((number, len(INPUTS)))
    columns = {name: values[:, index] for index, name in enumerate(INPUTS)}
    return pa.table({**columns, "label": [f"class {each}" for each in label]})
