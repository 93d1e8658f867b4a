"""A trained tabular generator: a network, the released class counts, and how to sample records from both."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import Layout
from dpmodels.generators.checkpoint import filled, under
from dpmodels.generators.model_file import write_model
from dpmodels.generators.randomness import categorical
from dpmodels.generators.sampling import Sampler
from dpmodels.generators.sizes import NetworkSpec
from dpmodels.late import Tensor, torch

if TYPE_CHECKING:
    from dpmodels.generators.networks import TabularGenerator

CHUNK_ROWS = 2048
"""Rows that go through the network together on a CPU: their activations stay in its cache."""


@dataclass
class TabularModel(Sampler):
    """Draws ``y`` from the released class counts, ``z`` from a normal, and categories from the softmax (never arg max).

    Shapes: ``class_counts`` [classes] float64, noisy and possibly negative as released.
    """

    batch_rows: ClassVar[int] = 16_384
    schema: Schema
    network: "TabularGenerator"
    class_counts: Tensor
    release_entry: str

    def class_probabilities(self) -> Tensor:
        """Return the share of each class; negative noisy counts become 0, all-negative ones uniform."""
        counts = self.class_counts.clamp_min(0)
        return counts / counts.sum() if counts.sum() > 0 else torch.full_like(counts, 1 / len(counts))

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        """Draw one batch; the random numbers are the same on every device."""
        layout = self.network.layout
        sizes = rng.multinomial(rows, self.class_probabilities().numpy())
        y = torch.from_numpy(rng.permutation(np.repeat(np.arange(len(sizes)), sizes)))
        z = torch.from_numpy(rng.standard_normal((rows, self.network.spec.latent_dim), dtype=np.float32))
        logits = self._logits(z.to(device), y.to(device))
        states = np.zeros((rows, len(self.schema.modelled)), dtype=np.int32, order="F")
        values = np.zeros(states.shape, order="F")
        if layout.class_column is not None:
            states[:, layout.class_column] = y
        for block in layout.blocks:
            if block.one_hot:
                uniform = torch.from_numpy(rng.random(rows, dtype=np.float32)).to(device)
                states[:, block.column] = categorical(logits[block.start : block.value], uniform).cpu()
            if block.continuous:
                value = torch.sigmoid(logits[block.value]).cpu().numpy()
                values[:, block.column] = np.where(states[:, block.column] == 0, value, 0)
        return Records(states, values)

    def _logits(self, z: Tensor, y: Tensor) -> Tensor:
        """Propose rows, one a column. Shapes: [dim, B]."""
        layers = self.network.folded().to(z.device)
        logits = torch.empty(self.network.layout.dim, len(z), device=z.device)
        step = CHUNK_ROWS if z.device.type == "cpu" else len(z)
        for start in range(0, len(z), step):
            chunk = slice(start, start + step)
            with torch.no_grad():
                logits[:, chunk] = layers(self.network.inputs(z[chunk], y[chunk])).T
        return logits

    def save(self, path: Path) -> None:
        tensors = {f"network/{key}": value for key, value in self.network.state_dict().items()}
        facts = {"network": self.network.spec.model_dump(mode="json"), "release_entry": self.release_entry}
        write_model(path, "network", self.schema, {**tensors, "class_counts": self.class_counts}, **facts)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "TabularModel":
        """Rebuild what ``save`` wrote."""
        from dpmodels.generators.networks import TabularGenerator

        spec, layout = NetworkSpec.model_validate(facts["network"]), Layout.of(facts["schema"])
        network = filled(lambda: TabularGenerator(spec, layout), under("network/", tensors))
        return cls(facts["schema"], network.eval(), tensors["class_counts"], facts["release_entry"])
