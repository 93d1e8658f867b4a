"""The networks of a generative adversarial network: convolutional for images, of linear layers for tables.

None of them mixes records: convolutional layers are normalized within one image. Layers that draw or start at random
do so from a public seed. A generator of a warm start is a refiner: it adds to a sampled record what its network says,
which is nothing before the first step.
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from dpmodels.embeddings.vectors import Vectors
from dpmodels.generators.heads import Head, InkHead
from dpmodels.generators.networks import initialise, linear, unset
from dpmodels.generators.randomness import stream
from dpmodels.generators.sizes import GanSpec

KEPT_LOGIT = 14.0
"""Of the category that a sampled record has: a refiner that says nothing changes one cell in ten thousand."""
SLOPE = 0.2


def one_hot(y: Tensor, classes: int) -> Tensor:
    """Return one-hots of classes. Shapes: [B] -> [B, classes]."""
    return (y[:, None] == torch.arange(classes, device=y.device)).to(torch.float32)


class Critic(nn.Module):
    """One score a record: of as many scores as there are classes, that of its own.

    Made of linear layers alone, its gradients need not be formed by DP-SGD; convolutions take about ten times as long.

    Shapes: seen [B, ..., outputs], y [B] -> [B, ...].
    """

    def __init__(self, vectors: Vectors, head: Head, spec: GanSpec) -> None:
        super().__init__()
        self.classes, self.images = vectors.classes, isinstance(head, InkHead)
        self.pixels, self.shape = spec.critic_pixels, _shape(vectors)
        layers: list[nn.Module] = []
        height, width = (-(-side // self.pixels) for side in self.shape)
        size = height * width if self.images else head.outputs
        if spec.convolutions and self.images:
            layers += [nn.Unflatten(1, (1, height, width))]
            for inputs, outputs in ((1, spec.channels // 2), (spec.channels // 2, spec.channels)):
                layers += [_conv(inputs, outputs, 5, 2), nn.LeakyReLU(SLOPE)]
            layers += [nn.Flatten()]
            size = spec.channels * (-(-height // 4)) * (-(-width // 4))
        else:
            for _ in range(spec.critic_layers):
                layers += [linear(size, spec.critic_hidden), nn.LeakyReLU(SLOPE)]
                size = spec.critic_hidden
        self.net = nn.Sequential(*layers, linear(size, vectors.classes))
        initialise(self, stream(spec.seed, 1))

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        """Score."""
        features = 2 * self._coarse(inputs) - 1 if self.images else inputs
        if isinstance(self.net[0], nn.Unflatten):
            scores = self.net(features.flatten(0, -2)).view(*inputs.shape[:-1], self.classes)
        else:
            scores = self.net(features)
        class_mask = one_hot(y, self.classes).to(inputs.dtype).view(len(y), *(1,) * (inputs.dim() - 2), self.classes)
        return cast(Tensor, (scores * class_mask).sum(dim=-1))

    def _coarse(self, inputs: Tensor) -> Tensor:
        """Return the means of squares of pixels, added up in one order wherever a record lies. Beyond the edge is 0."""
        height, width = self.shape
        wide = pad(inputs.view(*inputs.shape[:-1], height, width), (0, -width % self.pixels, 0, -height % self.pixels))
        parts = [wide[..., i :: self.pixels, j :: self.pixels] for i in range(self.pixels) for j in range(self.pixels)]
        return cast(Tensor, sum(parts)).flatten(-2) / len(parts)


class Generator(nn.Module):
    """z and the class, and a sampled record if it is a refiner, to what a head draws records from.

    Shapes: z [B, latent], y [B], base [B, outputs] as a critic sees it -> [B, outputs].
    """

    values: Tensor

    def __init__(self, vectors: Vectors, head: Head, spec: GanSpec, refines: bool) -> None:
        super().__init__()
        self.classes, self.reach, self.size = vectors.classes, spec.reach, _shape(vectors)
        values = torch.from_numpy(vectors.values) if vectors.kind == "values" else torch.tensor(vectors.kind == "ink")
        self.register_buffer("values", values.expand(head.outputs).clone(), persistent=False)
        inputs = spec.latent + vectors.classes
        self.grow: nn.Module | None = None
        self.net = _perceptron(inputs + refines * head.outputs, spec.hidden, head.outputs)
        if spec.convolutions and vectors.kind == "ink":
            self.grow, self.net = _grown(inputs, spec.channels, self.size), _last(spec.channels // 4, refines)
        initialise(self, stream(spec.seed, 0))
        if refines:
            nn.init.zeros_(cast(Tensor, self.net[-1].weight))
            nn.init.zeros_(cast(Tensor, self.net[-1].bias))

    def forward(self, z: Tensor, y: Tensor, base: Tensor | None = None) -> Tensor:
        """Generate."""
        code = torch.cat([z, one_hot(y, self.classes)], dim=1)
        beside = [] if base is None else [base]
        if self.grow is not None:
            height, width = self.size
            maps = [self.grow(code)[:, :, :height, :width], *(image.view(-1, 1, height, width) for image in beside)]
            out = self.net(torch.cat(maps, dim=1)).flatten(1)
        else:
            out = self.net(torch.cat([code, *beside], dim=1))
        if base is None:
            return torch.where(self.values, torch.sigmoid(out), out)
        return torch.where(self.values, base + self.reach * torch.tanh(out), KEPT_LOGIT * base + out)


def _shape(vectors: Vectors) -> tuple[int, int]:
    return vectors.image or (0, 0)


def _conv(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Conv2d:
    return unset(nn.Conv2d, inputs, outputs, kernel, stride=stride, padding=kernel // 2)


def _perceptron(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Return two hidden layers, each normalized within a record."""
    layers: list[nn.Module] = []
    for size in (inputs, hidden):
        layers += [linear(size, hidden), nn.LayerNorm(hidden), nn.ReLU()]
    return nn.Sequential(*layers, linear(hidden, outputs))


def _grown(inputs: int, channels: int, size: tuple[int, int]) -> nn.Sequential:
    """Return layers that grow maps of a quarter of the channels, at least as large as an image."""
    small = -(-size[0] // 4), -(-size[1] // 4)
    layers: list[nn.Module] = [linear(inputs, channels * small[0] * small[1]), nn.Unflatten(1, (channels, *small))]
    for wide in (channels, channels // 2):
        up = unset(nn.ConvTranspose2d, wide, wide // 2, 4, stride=2, padding=1)
        layers += [nn.GroupNorm(1, wide), nn.ReLU(), up]
    return nn.Sequential(*layers, nn.GroupNorm(1, channels // 4), nn.ReLU())


def _last(channels: int, refines: bool) -> nn.Sequential:
    return nn.Sequential(_conv(channels + refines, channels, 3, 1), nn.ReLU(), _conv(channels, 1, 3, 1))
