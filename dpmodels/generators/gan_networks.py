"""The networks of a generative adversarial network: convolutional for images, of linear layers for tables.

None of them mixes records: convolutional layers are normalized within one image. Layers that draw or start at random
do so from a public seed. A generator of a warm start is a refiner: it adds to a sampled record what its network says,
which is nothing before the first step.
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from dpmodels.embeddings.vectors import Vectors
from dpmodels.generators.heads import Head, InkHead
from dpmodels.generators.networks import initialise, linear
from dpmodels.generators.randomness import stream
from dpmodels.generators.sizes import GanSpec

KEPT_LOGIT = 14.0
"""Of the category that a sampled record has: a refiner that says nothing changes one cell in ten thousand."""
SLOPE = 0.2


def one_hot(y: Tensor, classes: int) -> Tensor:
    """Return one-hots of classes. Shapes: [B] -> [B, classes]."""
    return (y[:, None] == torch.arange(classes, device=y.device)).to(torch.float32)


class Features(nn.Sequential):
    """The layers of a critic before its scores: what it sees of a record, to ``size`` numbers."""

    def __init__(self, vectors: Vectors, head: Head, spec: GanSpec) -> None:
        if isinstance(head, InkHead):
            shape, wide = _shape(vectors), spec.channels
            layers = [
                nn.Unflatten(1, (1, *shape)),
                *(_conv(1, max(1, wide // 2), 5, 2), nn.LeakyReLU(SLOPE)),
                *(_conv(max(1, wide // 2), wide, 5, 2), nn.LeakyReLU(SLOPE)),
                nn.Flatten(),
            ]
            self.size = wide * (-(-shape[0] // 4)) * (-(-shape[1] // 4))
        else:
            first, second = linear(head.outputs + vectors.classes, spec.hidden), linear(spec.hidden, spec.hidden)
            layers, self.size = [first, nn.LeakyReLU(SLOPE), second, nn.LeakyReLU(SLOPE)], spec.hidden
        super().__init__(*layers)


class Critic(nn.Module):
    """One score a record, given its class.

    Of images it is linear in their features, with weights of the class beside. Of tables the class goes in with the
    record, so that the critic is made of linear layers, whose gradients DP-SGD need not form.

    Shapes: seen [B, outputs], y [B] -> [B].
    """

    def __init__(self, vectors: Vectors, head: Head, spec: GanSpec) -> None:
        super().__init__()
        self.features = Features(vectors, head, spec)
        self.last, self.classes = linear(self.features.size, 1), vectors.classes
        of_class = torch.zeros(vectors.classes, self.features.size)
        self.of_class = nn.Parameter(of_class) if isinstance(head, InkHead) else None
        initialise(self, stream(spec.seed, 1))

    def forward(self, seen: Tensor, y: Tensor) -> Tensor:
        """Score."""
        given = one_hot(y, self.classes).to(seen.dtype)
        if self.of_class is None:
            return cast(Tensor, self.last(self.features(torch.cat([seen, given], dim=1)))[:, 0])
        found = self.features(seen)
        score: Tensor = self.last(found)[:, 0] + (found * (given @ self.of_class)).sum(dim=1)
        return score


class Generator(nn.Module):
    """z and the class, and a sampled record if it is a refiner, to what a head draws records from.

    Shapes: z [B, latent], y [B], base [B, outputs] as a critic sees it -> [B, outputs].
    """

    values: Tensor

    def __init__(self, vectors: Vectors, head: Head, spec: GanSpec, refines: bool) -> None:
        super().__init__()
        self.classes, self.refines, self.reach, self.images = (
            vectors.classes,
            refines,
            spec.reach,
            vectors.kind == "ink",
        )
        values = torch.from_numpy(vectors.values) if vectors.kind == "values" else torch.tensor(self.images)
        self.register_buffer("values", values.expand(head.outputs).clone(), persistent=False)
        inputs, wide = spec.latent + vectors.classes, spec.channels
        if self.images:
            height, width = _shape(vectors)
            self.small = -(-height // 4), -(-width // 4)
            self.size = height, width
            self.grow = nn.Sequential(
                linear(inputs, wide * self.small[0] * self.small[1]),
                nn.Unflatten(1, (wide, *self.small)),
                *(nn.GroupNorm(1, wide), nn.ReLU()),
                *(_grown(wide, max(1, wide // 2)), nn.GroupNorm(1, max(1, wide // 2)), nn.ReLU()),
                *(_grown(max(1, wide // 2), max(1, wide // 4)), nn.GroupNorm(1, max(1, wide // 4)), nn.ReLU()),
            )
            self.net = nn.Sequential(
                _conv(max(1, wide // 4) + refines, max(1, wide // 4), 3, 1),
                nn.ReLU(),
                _conv(max(1, wide // 4), 1, 3, 1),
            )
        else:
            first = linear(inputs + refines * head.outputs, spec.hidden)
            layers = first, nn.ReLU(), linear(spec.hidden, spec.hidden), nn.ReLU(), linear(spec.hidden, head.outputs)
            self.net = nn.Sequential(*layers)
        initialise(self, stream(spec.seed, 0))
        if refines:
            nn.init.zeros_(cast(Tensor, self.net[-1].weight))
            nn.init.zeros_(cast(Tensor, self.net[-1].bias))

    def forward(self, z: Tensor, y: Tensor, base: Tensor | None = None) -> Tensor:
        """Generate."""
        given = torch.cat([z, one_hot(y, self.classes)], dim=1)
        beside = [] if base is None else [base]
        if self.images:
            height, width = self.size
            maps = [
                self.grow(given)[:, :, :height, :width],
                *(each.view(-1, 1, height, width) for each in beside),
            ]
            out = self.net(torch.cat(maps, dim=1)).flatten(1)
        else:
            out = self.net(torch.cat([given, *beside], dim=1))
        if base is None:
            return torch.where(self.values, torch.sigmoid(out), out)
        return torch.where(self.values, base + self.reach * torch.tanh(out), KEPT_LOGIT * base + out)


def _shape(vectors: Vectors) -> tuple[int, int]:
    column = vectors.schema.image[1] if vectors.schema.image else None
    return (column.height, column.width) if column else (0, 0)


def _conv(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Conv2d:
    layer: nn.Conv2d = skip_init(nn.Conv2d, inputs, outputs, kernel, stride=stride, padding=kernel // 2)  # type: ignore[no-untyped-call]
    return layer


def _grown(inputs: int, outputs: int) -> nn.ConvTranspose2d:
    layer: nn.ConvTranspose2d = skip_init(nn.ConvTranspose2d, inputs, outputs, 4, stride=2, padding=1)  # type: ignore[no-untyped-call]
    return layer
