"""Counts of the records in the cells of several tables: a record is in one cell of each.

    phi(x) = [ STEP * onehot(cell_t(x)) ]_t

Privacy: the cell of a record in table t is a function of that record and public parameters alone. So exactly one
coordinate of each of the T tables is not zero, and it is STEP: ||phi(x)||^2 = T STEP^2 for *every* record, an equality
between integers. With at most m rows a unit it is m times that (triangle inequality).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.encode import Records
from dpmodels.embeddings.base import VALUE_BITS, Embedding
from dpmodels.late import Tensor, torch
from dpmodels.mechanisms.lattice import integer_radius

STEP = 1 << VALUE_BITS
"""Lattice steps of one record: so many that neither rounding the sensitivity up nor discrete noise costs anything."""


class CellCounts(Embedding):
    """One histogram a table, all in one vector.

    Shapes: ``read`` numbers each record's cells, [B, T] with table t below ``sizes[t]``; the vector is [sum sizes].
    """

    def __init__(self, sizes: Sequence[int], max_rows: int, read: Callable[[Records], Whole]) -> None:
        self.sizes, self.read = tuple(sizes), read
        self.dim = sum(self.sizes)
        self.l2_sensitivity = max_rows * integer_radius(len(self.sizes) * STEP**2)

    def lattice_sum(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        return self.weighed_sum(records, device, 1)

    def weighed_sum(self, records: Records, device: "str | torch.device", share: int) -> Tensor:
        """Sum the features of a batch with every step divided by ``share``, rounded down."""
        cells = self.read(records)
        parts = [np.bincount(cells[:, t], minlength=size) for t, size in enumerate(self.sizes)]
        return torch.from_numpy(np.concatenate(parts)) * (STEP // share)

    def unpack(self, vector: Whole) -> list[Floats]:
        """Split a vector of lattice steps into the counts of each table, in records (post-processing)."""
        return np.split(vector / STEP, np.cumsum(self.sizes)[:-1])

    def coordinates(self) -> dict[str, Any]:
        """Name every coordinate of the vector: its table and its cell."""
        return {
            "table": np.repeat(np.arange(len(self.sizes)), self.sizes),
            "cell": np.concatenate([np.arange(size) for size in self.sizes]),
        }
