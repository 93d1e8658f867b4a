"""A small mixture, and a small generator network."""

from pathlib import Path

import numpy as np
import torch

from dpmodels.embeddings.base import Layout
from dpmodels.embeddings.partition import Partition
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.networks import NetworkSpec, TabularGenerator, initialise
from dpmodels.generators.tabular import TabularModel
from tasks.run.store import Handle
from tests.kit.support import make_schema


def model(counts: tuple[float, float] = (600.0, 400.0)) -> MixtureModel:
    """Return a mixture over the clinic in which ages 0-49 go with not smoking, whatever the class."""
    fine = Partition.fine(make_schema(), 10)  # age 10 cells, ward 3, dose 10 + zero + null, smoker 2
    age = np.repeat([0, 1], 5)
    partition = Partition(fine.codec, (age, np.arange(3), np.array([0] * 10 + [1, 2]), np.arange(2)), 2, 4)
    one = torch.tensor([1, 0, 0.2, 0.3, 0.5, 0.5, 0.25, 0.25, 1, 0])
    other = torch.tensor([0, 1, 0.2, 0.3, 0.5, 0.5, 0.25, 0.25, 0, 1])
    detail = [np.ones((2, size)) for size in fine.sizes]
    detail[0][:] = np.tile([0.5, 0.5, 0, 0, 0], 2)  # only the first two of five fine ages occur
    detail[2][:, :10] = 0.1
    return MixtureModel(
        make_schema(), 10, partition, torch.stack([torch.stack([one, other])] * 2), detail, torch.tensor(counts), "e"
    )


def saved(folder: Path) -> Handle:
    model().save(folder / "generator.safetensors")
    return Handle(path=folder / "generator.safetensors", sha256="its hash")


def network() -> TabularModel:
    generator = TabularGenerator(NetworkSpec(hidden_dim=16), Layout.of(make_schema()))
    initialise(generator, torch.Generator().manual_seed(3))
    return TabularModel(make_schema(), generator.eval(), torch.tensor([30.0, -5.0], dtype=torch.float64), "entry")
