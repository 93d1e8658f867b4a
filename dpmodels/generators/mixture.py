"""A generator that is a mixture of product distributions for each class, and how to sample records from it.

    p(x | class) = 1/K sum_k prod_columns p_k(x_column),      p_k = softmax(b + z_k U + e_k)

z_k are fixed points of a normal, b and U are shared by a class, and e_k is free: the components start as a smooth
family and leave it only where the release says so. The first two moments are closed form: training samples nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dpmodels.embeddings.partition import Counts, Partition
from dpmodels.errors import InvalidArgument
from dpmodels.generators.model_file import write_model
from dpmodels.generators.randomness import invert, refine, systematic
from dpmodels.schema.encode import Records
from dpmodels.schema.schema import Schema

SAMPLE_ROWS = 16_384
"""Rows sampled at a time."""

Floats = NDArray[np.float64]


class Mixture(nn.Module):
    """Component probabilities as a function of trainable logits.

    Shapes: forward returns [classes, K, D]; within a component every column's cells sum to 1.
    """

    points: Tensor

    def __init__(self, log_shares: Tensor, sizes: list[int], components: int, directions: int, seed: int) -> None:
        super().__init__()
        randomness = torch.Generator().manual_seed(seed)
        classes, cells = log_shares.shape
        spread = 0.3 / directions**0.5
        self.sizes = sizes
        self.register_buffer("points", torch.randn(components, directions, generator=randomness))
        self.bias = nn.Parameter(log_shares[:, None, :].clone())
        self.directions = nn.Parameter(spread * torch.randn(classes, directions, cells, generator=randomness))
        self.offsets = nn.Parameter(torch.zeros(classes, components, cells))

    def forward(self) -> Tensor:
        """Return the probabilities of every component."""
        logits = self.bias + self.points @ self.directions + self.offsets
        return torch.cat([torch.softmax(part, dim=2) for part in torch.split(logits, self.sizes, dim=2)], dim=2)


@dataclass
class MixtureModel:
    """Draws the class by its released share, a component, a cell a column, a fine cell within it, a value within that.

    All but the last two are drawn systematically (one random offset, equal steps), so that a batch holds each class,
    component and cell as often as its probability says, up to one row.

    Shapes:
        probabilities [classes, K, D] float32; detail: for each column [classes, fine cells], of sum 1 within each cell;
        class_counts [classes] float64, noisy and possibly negative as released.
    """

    schema: Schema
    most_cells: int
    partition: Partition
    probabilities: Tensor
    detail: list[Floats]
    class_counts: Tensor
    release_entry: str

    def default_rows(self) -> int:
        """Return the released number of records, at least 1."""
        return max(1, round(float(self.class_counts.sum())))

    def sample(self, rows: int, seed: int, device: str = "cpu") -> Iterator[Records]:
        """Yield batches of synthetic records; the same (rows, seed) gives the same records, whatever the device."""
        if rows < 1:
            raise InvalidArgument("rows", rows, "be at least 1")
        for batch, start in enumerate(range(0, rows, SAMPLE_ROWS)):
            yield self._sample_batch(min(SAMPLE_ROWS, rows - start), np.random.default_rng([seed, batch]))

    def _sample_batch(self, rows: int, rng: np.random.Generator) -> Records:
        shares = self.class_counts.clamp_min(0).numpy()
        shares = shares if shares.sum() > 0 else np.ones_like(shares)
        labels = invert(np.broadcast_to(shares, (rows, len(shares))), systematic(np.zeros(rows, dtype=np.int64), rng))
        cells = np.zeros((rows, len(self.detail)), dtype=np.int64)
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            cells[members] = self._sample_class(int(label), len(members), rng)
        if self.partition.class_column is not None:
            cells = np.insert(cells, self.partition.class_column, labels, axis=1)
        return self.partition.codec.from_cells(cells[rng.permutation(rows)].astype(np.int32), rng)

    def _sample_class(self, label: int, rows: int, rng: np.random.Generator) -> Counts:
        """Draw fine cells of one class. Shapes: [rows, F]."""
        probabilities, offsets = self.probabilities[label].numpy(), self.partition.offsets
        component = (np.arange(rows) + rng.integers(len(probabilities))) % len(probabilities)
        columns = []
        for index, merge in enumerate(self.partition.merge):
            p = probabilities[component, offsets[index] : offsets[index + 1]]
            cell = invert(p, systematic(component, rng))
            columns.append(refine(merge, self.detail[index][label], cell, rng))
        return np.stack(columns, axis=1)

    def save(self, path: Path) -> None:
        """Write mixture, counts and cells to one file."""
        tensors = {"probabilities": self.probabilities, "class_counts": self.class_counts}
        for index, (merge, detail) in enumerate(zip(self.partition.merge, self.detail, strict=True)):
            tensors |= {f"merge/{index}": torch.from_numpy(merge), f"detail/{index}": torch.from_numpy(detail)}
        facts = {"most_cells": self.most_cells, "release_entry": self.release_entry}
        write_model(path, "mixture", self.schema, tensors, **facts)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "MixtureModel":
        """Rebuild what ``save`` wrote."""
        schema, probabilities = facts["schema"], tensors["probabilities"]
        fine = Partition.fine(schema, facts["most_cells"], conditional=len(probabilities) > 1)
        merge = tuple(tensors[f"merge/{index}"].numpy() for index in range(len(fine.merge)))
        detail = [tensors[f"detail/{index}"].numpy() for index in range(len(fine.merge))]
        partition = Partition(fine.codec, merge, fine.classes, fine.class_column)
        counts, entry = tensors["class_counts"], facts["release_entry"]
        return cls(schema, facts["most_cells"], partition, probabilities, detail, counts, entry)
