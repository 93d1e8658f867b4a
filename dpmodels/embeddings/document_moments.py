"""The moments of embedded documents: their mean, then count and mean of each class about it, and one covariance.

    first look    s = sum_x [ a ; b x ]
    second look   s = sum_x [ a ; b z ] (x) e_class ; z z'        z = clip_R(x - centre)        all whole numbers

Privacy: x is a whole vector of norm at most 2**BITS and a function of its own document alone, whitened or not
(``whitening``), and so is z, since centre and R were released earlier. One document moves the first sum by at most
sqrt(a^2 + (b 2^BITS)^2) in L2 norm, and the second, which it enters with one count, one sum and one matrix, by at most
sqrt(a^2 + (b 2^BITS)^2 + (D 2^(2 BITS))^2) (statistics/class_moments.py); m documents of a user, m times that (triangle
inequality).
"""

from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.embedded import BITS, Embedded
from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.whitening import Whitening
from dpmodels.late import Tensor, torch
from dpmodels.mechanisms.lattice import integer_radius
from dpmodels.statistics.class_moments import ClassMoments

BLOCK_ROWS = 4096


class DocumentMean(Embedding):
    """The count and the sum of all embedded documents, which are what tells their mean."""

    def __init__(self, dim: int, count_weight: float, max_rows: int, whitening: Whitening | None = None) -> None:
        self.whitening = whitening
        self.count_step, self.dim = max(1, round(count_weight * 2**BITS)), 1 + dim
        self.l2_sensitivity = integer_radius(self.count_step**2 + 4**BITS) * max_rows

    def lattice_sum(self, records: Embedded, device: "str | torch.device" = "cpu") -> Tensor:
        """Count and sum a batch; exact."""
        records = self.whitening(records) if self.whitening else records
        total = [len(records) * self.count_step, *records.vectors.sum(axis=0, dtype=np.int64)]
        return torch.tensor(total, dtype=torch.int64)

    def unpack(self, released: Whole) -> tuple[float, Floats]:
        """Split a released vector into the number of documents and their sum, where they have norm 1."""
        return float(released[0]) / self.count_step, np.ldexp(released[1:].astype(np.float64), -BITS)

    def coordinates(self) -> dict[str, Any]:
        return {"part": np.repeat(["count", "sum"], [1, self.dim - 1]), "row": np.arange(self.dim).clip(1) - 1}


class DocumentMoments(ClassMoments, Embedding):
    """The count and the sum of each class, and the second moment of all, of documents about a common center.

    Shapes: ``centre`` [dim]. Units: ``centre`` and ``radius`` in steps.
    """

    def __init__(
        self,
        classes: int,
        centre: Whole,
        radius: int,
        weights: tuple[float, float],
        max_rows: int,
        whitening: Whitening | None = None,
    ) -> None:
        super().__init__(classes, len(centre), *weights, bits=BITS)
        self.centre, self.radius, self.whitening = centre, radius, whitening
        self.l2_sensitivity *= max_rows

    def lattice_sum(self, records: Embedded, device: "str | torch.device" = "cpu") -> Tensor:
        """Sum the moments of a batch; exact on the CPU, where it is done."""
        total = np.zeros(self.dim, dtype=np.int64)
        for start in range(0, len(records), BLOCK_ROWS):
            block = records.take(slice(start, start + BLOCK_ROWS))
            block = self.whitening(block) if self.whitening else block
            total += self.total(self.bounded(block), block.labels.astype(np.int64))
        return torch.from_numpy(total)

    def bounded(self, records: Embedded) -> Whole:
        """Take off the center and clip.

        Privacy: the norm of every result is at most ``2**BITS``: squares and their sum are whole and exact below 2**53;
            scaling loses a relative 2**-40, more than its roundings can add; truncating shortens every coordinate.

        Shapes: [B, dim].
        """
        centred = (records.vectors - self.centre).astype(np.float64)
        norm = np.sqrt((centred * centred).sum(axis=1))
        scale = np.ldexp(1 - 2.0**-40, BITS) / np.maximum(norm, self.radius)
        clipped: Whole = np.trunc(centred * scale[:, None]).astype(np.int64)
        return clipped

    def coordinates(self) -> dict[str, Any]:
        """Name every coordinate of the vector: its class (-1: all), its part, and its place within the part."""
        rows, columns = np.triu_indices(self.size)
        index = np.tile([0, *range(self.size)], self.classes)
        parts = np.tile(np.repeat(["count", "sum"], [1, self.size]), self.classes)
        return {
            "class": np.concatenate([np.repeat(np.arange(self.classes), 1 + self.size), np.full(len(rows), -1)]),
            "part": np.concatenate([parts, np.full(len(rows), "moment")]),
            "row": np.concatenate([index, rows]),
            "column": np.concatenate([index, columns]),
        }
