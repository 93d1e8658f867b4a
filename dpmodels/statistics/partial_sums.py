"""Exact sums of several parties, on their way to whoever adds them up under one noise.

A file of such a sum is as sensitive as the records: it lies in the sensitive zone and is deleted after the draw.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from dpmodels.arrays import Whole
from dpmodels.artifact import write_whole
from dpmodels.errors import Unsuitable
from dpmodels.privacy import Sensitive


def transform_keep(total: Sensitive[Whole], path: Path) -> None:
    """Write a party's exact sum, whole or not at all. Privacy: Sensitive -> Sensitive."""
    vector = total.reveal()

    def write(part: Path) -> None:
        with open(part, "xb") as file:
            np.save(file, vector, allow_pickle=False)

    write_whole(path, write)


def load_sums(paths: Sequence[Path], dim: int) -> Sensitive[Sequence[Whole]]:
    """Read the exact sums of parties. Shapes: each [dim].

    Raises:
        Unsuitable: a file is missing or is no sum of this size.
    """
    return Sensitive([_load(path, dim) for path in paths])


def transform_added(vectors: Sensitive[Iterable[Whole]], dim: int) -> Sensitive[Whole]:
    """Add the exact sums of several parties up.

    Privacy: Sensitive -> Sensitive. A record is in the sum of one party and in no other, so adding, removing or
        replacing it moves the total by exactly what it moves that party's sum: the sensitivity is that of one record,
        however many parties there are.
    """
    total = np.zeros(dim, dtype=np.int64)
    for vector in vectors.reveal():
        total += vector
    return Sensitive(total)


def _load(path: Path, dim: int) -> Whole:
    try:
        vector = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        vector = None
    if not isinstance(vector, np.ndarray) or vector.shape != (dim,) or vector.dtype != np.int64:
        raise Unsuitable("the exact sum of a party is missing, or is not of the size that was planned")
    return vector
