"""The released vector of PEARL: features conditional on the class, jointly with the class counts, in one piece.

    s = [ sum_x phi(x) (x) e_y(x) ;  w * sum_x e_y(x) ]

Privacy: under add/remove of one record exactly one class block changes, by phi(x) with ||phi(x)|| <= 1, and one count,
by w; so the L2 sensitivity is sqrt(1 + w^2) whatever the number of classes. With at most m rows a unit it is m times
that (triangle inequality).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.codec.encode import Records
from dpmodels.embeddings.base import Embedding, Layout
from dpmodels.embeddings.characteristic import CharacteristicFunction
from dpmodels.embeddings.kernels import COMPILED_ROWS
from dpmodels.errors import InvalidArgument
from dpmodels.late import Tensor, torch
from dpmodels.mechanisms.lattice import GRAIN_BITS, integer_radius, to_real

BLOCK_ROWS, BLOCK_NUMBERS = 4096, 1 << 22
"""Rows whose features, and coordinates whose values, are held at once; they change no bit of the sum."""


class ConditionalEmbedding(Embedding):
    """``features (x) onehot(class)`` and weighted class counts.

    Shapes: the vector is [classes, 2k + 1] flattened: k cosines, k sines, one count for each class.
    """

    def __init__(self, features: CharacteristicFunction, layout: Layout, count_weight: float, max_rows: int) -> None:
        weight = round(count_weight * 2**GRAIN_BITS)
        if weight < 1:
            raise InvalidArgument("count_weight", count_weight, f"be at least 2**-{GRAIN_BITS}")
        self.parts, self.layout, self.count_step = features, layout, weight
        self.width = features.features + 1
        self.dim = layout.classes * self.width
        self.l2_sensitivity = max_rows * integer_radius(features.squared_norm + weight**2)

    def lattice_sum(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        """Sum the truncated features of a batch; by matrix products where it is small, of images, or on a GPU."""
        if self.parts.sparse and torch.device(device).type == "cpu" and len(records) >= COMPILED_ROWS:
            counts = np.bincount(records.labels(self.layout.class_column), minlength=self.layout.classes)
            sums = self.parts.lattice_sums(records)
            return torch.from_numpy(np.column_stack([sums, counts * self.count_step]).ravel())
        total = torch.zeros(self.layout.classes, self.width, dtype=torch.int64)
        rows = max(1, min(BLOCK_ROWS, BLOCK_NUMBERS // max(1, self.layout.dim)))
        for start in range(0, len(records), rows):
            block = records.take(slice(start, start + rows))
            features = self.parts.lattice_features(self.layout.design(block, device))
            classes = torch.from_numpy(block.labels(self.layout.class_column)).to(features.device)
            for label in range(self.layout.classes):
                members = features[classes == label]
                total[label, :-1] += members.sum(dim=0, dtype=torch.int64).cpu()
                total[label, -1] += len(members) * self.count_step
        return total.flatten()

    def unpack(self, released: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Split a released vector into features and counts (post-processing).

        Shapes: features [classes, 2k] in units of ||phi|| = 1 a record; counts [classes] in records, noisy.
        """
        blocks = released.reshape(self.layout.classes, self.width)
        return to_real(blocks[:, :-1]), blocks[:, -1] / self.count_step

    def coordinates(self) -> dict[str, Any]:
        """Name every coordinate of the vector: its class, its part, and its index within the part."""
        k = self.parts.spec.count
        return {
            "class": [label for label in range(self.layout.classes) for _ in range(self.width)],
            "part": (["cos"] * k + ["sin"] * k + ["count"]) * self.layout.classes,
            "index": ([*range(k), *range(k), 0]) * self.layout.classes,
        }
