"""A trained tabular generator: a network, the released class counts, and how to sample records from both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpmodels.embeddings.base import Layout
from dpmodels.errors import InvalidArgument
from dpmodels.generators.model_file import write_model
from dpmodels.generators.networks import NetworkSpec, TabularGenerator
from dpmodels.generators.randomness import stream
from dpmodels.schema.encode import Records
from dpmodels.schema.schema import Schema

SAMPLE_ROWS = 16_384
"""Rows sampled at a time."""


@dataclass
class TabularModel:
    """Draws ``y`` from the released class counts, ``z`` from a normal, and categories from the softmax (never arg max).

    Shapes: ``class_counts`` [classes] float64, noisy and possibly negative as released.
    """

    schema: Schema
    network: TabularGenerator
    class_counts: Tensor
    release_entry: str

    def default_rows(self) -> int:
        """Return the released number of records, at least 1."""
        return max(1, round(float(self.class_counts.sum())))

    def class_probabilities(self) -> Tensor:
        """Return the share of each class; negative noisy counts become 0, all-negative ones uniform."""
        counts = self.class_counts.clamp_min(0)
        return counts / counts.sum() if counts.sum() > 0 else torch.full_like(counts, 1 / len(counts))

    def sample(self, rows: int, seed: int, device: str = "cpu") -> Iterator[Records]:
        """Yield batches of synthetic records; the same (rows, seed, device) gives the same records."""
        if rows < 1:
            raise InvalidArgument("rows", rows, "be at least 1")
        network = self.network.to(device).eval()
        for batch, start in enumerate(range(0, rows, SAMPLE_ROWS)):
            yield self._sample_batch(network, min(SAMPLE_ROWS, rows - start), stream(seed, batch, device))

    @torch.no_grad()
    def _sample_batch(self, network: TabularGenerator, rows: int, randomness: torch.Generator) -> Records:
        layout, device = network.layout, randomness.device
        probabilities = self.class_probabilities().to(device)
        y = torch.multinomial(probabilities, rows, replacement=True, generator=randomness)
        z = torch.randn(rows, network.spec.latent_dim, generator=randomness, device=device)
        proposed = network(z, y)
        columns = len(self.schema.modelled)
        states = torch.zeros(rows, columns, dtype=torch.int32)
        values = torch.zeros(rows, columns, dtype=torch.float64)
        if layout.class_column is not None:
            states[:, layout.class_column] = y.to("cpu", torch.int32)
        for block, p, v in zip(layout.blocks, proposed.probabilities, proposed.values, strict=True):
            if p is not None:
                states[:, block.column] = torch.multinomial(p, 1, generator=randomness)[:, 0].to("cpu", torch.int32)
            if v is not None:
                values[:, block.column] = torch.where(states[:, block.column] == 0, v.cpu().double(), 0.0)
        return Records(states=states.numpy(), values=values.numpy().astype(np.float64))

    def save(self, path: Path) -> None:
        """Write network and counts to one file."""
        tensors = {f"network/{key}": value for key, value in self.network.state_dict().items()}
        facts = {"network": self.network.spec.model_dump(mode="json"), "release_entry": self.release_entry}
        write_model(path, "network", self.schema, {**tensors, "class_counts": self.class_counts}, **facts)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "TabularModel":
        """Rebuild what ``save`` wrote."""
        network = TabularGenerator(NetworkSpec.model_validate(facts["network"]), Layout.of(facts["schema"]))
        state = {key.removeprefix("network/"): t for key, t in tensors.items() if key.startswith("network/")}
        network.load_state_dict(state)
        return cls(facts["schema"], network.eval(), tensors["class_counts"], facts["release_entry"])
