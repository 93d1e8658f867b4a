"""Contrastive pre-training of a feature extractor on public, unlabeled records (SimCLR; Chen et al., 2020).

    two views of each record; the features of both, through a small projection, should find each other in the batch

Views of images are shifted, cropped, mirrored and changed in brightness; in views of tables some columns are taken from
other records (SCARF; Bahri et al., 2022). All of it is public: no client's record is read.
"""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dpmodels.frozen import Frozen
from dpmodels.generators.loop import Progress
from dpmodels.generators.randomness import stream
from dpmodels.methods.federations.models import Architecture, ModelSpec, build, state_of


class PretrainingSpec(Frozen):
    """Settings of pre-training.

    Attributes:
        mirror: whether an image and its mirror image mean the same, as digits do not.
        crop: least side of a crop, as a share of the image's; brightness: most relative change.
        columns: share of a table's columns that a view takes from other records.
    """

    steps: Annotated[int, Field(ge=1)] = 1000
    batch_size: Annotated[int, Field(ge=2)] = 512
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    temperature: Annotated[float, Field(gt=0)] = 0.5
    projection: Annotated[int, Field(ge=2)] = 64
    mirror: bool = True
    crop: Annotated[float, Field(gt=0, le=1)] = 0.6
    brightness: Annotated[float, Field(ge=0, lt=1)] = 0.4
    columns: Annotated[float, Field(gt=0, lt=1)] = 0.4


def pretrain(
    architecture: Architecture,
    spec: ModelSpec,
    auxiliary: Tensor,
    settings: PretrainingSpec,
    seed: int,
    progress: Progress | None = None,
) -> dict[str, Tensor]:
    """Train an extractor on public records; return the weights of a model with it and a new head.

    Shapes: auxiliary [n, ...].
    """
    model, features = build(architecture, spec, seed), spec.features
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        projection = nn.Sequential(nn.Linear(features, features), nn.ReLU(), nn.Linear(features, settings.projection))
    network = nn.Sequential(model.extractor, projection).to(auxiliary.device).train()
    optimizer = torch.optim.Adam(network.parameters(), settings.learning_rate)
    for step in range(settings.steps):
        draw = stream(seed, step)
        rows = auxiliary[torch.randint(len(auxiliary), (settings.batch_size,), generator=draw)]
        views = torch.cat([view(rows, settings, draw), view(rows, settings, draw)])
        loss = contrast(network(views), settings.temperature)
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimizer.step()
        if progress is not None:
            progress(step + 1, settings.steps, loss.item())
    return state_of(model)


def contrast(projected: Tensor, temperature: float) -> Tensor:
    """Return the cross-entropy of finding each row's other view among all rows but itself (NT-Xent).

    Shapes: [2 n, d], of which row i + n is the other view of row i.
    """
    unit = functional.normalize(projected, dim=1)
    alike = unit @ unit.T / temperature
    alike = alike.masked_fill(torch.eye(len(unit), dtype=torch.bool, device=unit.device), -torch.inf)
    other = torch.arange(len(unit), device=unit.device).roll(len(unit) // 2)
    return functional.cross_entropy(alike, other)


def view(rows: Tensor, settings: PretrainingSpec, draw: torch.Generator) -> Tensor:
    """Return a view of each record. Shapes: those of ``rows``."""
    number = len(rows)
    if rows.dim() == 2:
        others = rows[torch.randint(number, (number,), generator=draw)]
        swaps = torch.rand(rows.shape, generator=draw) < settings.columns
        return torch.where(swaps.to(rows.device), others, rows)
    uniform = torch.rand(number, 5, generator=draw).to(rows.device)
    side = settings.crop + (1 - settings.crop) * uniform[:, 0]
    mirrored = 1 - 2 * (settings.mirror * (uniform[:, 1] < 0.5).float())
    zero = torch.zeros_like(side)
    shift = (2 * uniform[:, 2:4] - 1) * (1 - side)[:, None]
    affine = torch.stack([side * mirrored, zero, shift[:, 0], zero, side, shift[:, 1]], dim=1).view(number, 2, 3)
    grid = functional.affine_grid(affine, list(rows.shape), align_corners=False)
    cropped = functional.grid_sample(rows, grid, align_corners=False)
    bright = 1 + settings.brightness * (2 * uniform[:, 4] - 1)
    return cropped * bright.view(-1, 1, 1, 1)
