"""A uniform sample of rows that arrive in batches, without knowing how many there are."""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Floats
from dpmodels.codec.encode import Records
from dpmodels.codec.tree import TreeRecords
from dpmodels.errors import DataError

Batch = TypeVar("Batch", Records, TreeRecords, pa.RecordBatch)


def draw(batches: Iterable[Batch], rows: int, seed: int) -> list[Batch]:
    """Draw the rows with the smallest of random keys, in the order of the table, without knowing how many there are.

    Raises:
        DataError: there are no rows.
    """
    rng = np.random.default_rng(seed)
    parts: list[tuple[Batch, Floats]] = []
    threshold, row_count = 1.0, 0
    for batch in batches:
        keys = rng.random(len(batch))
        indices = np.flatnonzero(keys < threshold)
        if len(indices):
            parts.append((batch.take(indices), keys[indices]))
            row_count += len(indices)
        if row_count > 2 * rows:
            parts, threshold = _smallest(parts, rows)
            row_count = rows
    if not row_count:
        raise DataError("", "a table without rows cannot be compared")
    return [batch for batch, _ in _smallest(parts, rows)[0]]


def _smallest(parts: list[tuple[Batch, Floats]], rows: int) -> tuple[list[tuple[Batch, Floats]], float]:
    """Keep the rows with the smallest keys, and return the key that the next one must be below."""
    keys = np.concatenate([keys for _, keys in parts])
    if len(keys) <= rows:
        return parts, 1.0
    bound = float(np.partition(keys, rows)[rows])
    below_bound = [(batch.take(np.flatnonzero(keys < bound)), keys[keys < bound]) for batch, keys in parts]
    return [part for part in below_bound if len(part[1])], bound
