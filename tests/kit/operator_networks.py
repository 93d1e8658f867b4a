"""Networks as an operator writes them: some that treat each record by itself, and some that do not."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
from opacus.layers import DPLSTM, DPMultiheadAttention
from torch import Tensor, nn

from dpmodels.generators.operators import network as operator_network


@contextmanager
def listing(**targets: str) -> Iterator[None]:
    """List the networks of this module, and others, as the operator's file would."""
    ours = {alias: f"{__name__}:{network.__name__}" for alias, network in NETWORKS.items()}
    with patch.object(operator_network, "listing", lambda: {**ours, **targets}):
        yield


def laid_out(inputs: int, image: tuple[int, int] | None) -> tuple[int, int]:
    """Return the height and width of an image that a critic sees, or a column of numbers."""
    return image if image and inputs == image[0] * image[1] else (inputs, 1)


class Convolution(nn.Module):
    """Maps over the pixels of an image, or over the numbers of a row, normalized within a record."""

    def __init__(self, inputs: int, outputs: int, classes: int, image: tuple[int, int] | None) -> None:
        super().__init__()
        self.size, self.classes = laid_out(inputs, image), classes
        self.maps = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.GroupNorm(2, 4), nn.LeakyReLU(0.2), nn.Flatten())
        numbers = 4 * (-(-self.size[0] // 2)) * (-(-self.size[1] // 2))
        self.last = nn.Linear(numbers + classes, outputs)

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        features = self.maps(inputs.view(-1, 1, *self.size))
        one_hot = nn.functional.one_hot(y, self.classes).to(features.dtype)
        return self.last(torch.cat([features, one_hot], dim=1))


class Recurrent(nn.Module):
    """Reads the rows of an image, or the numbers of a row, one after the other; the class is an embedding."""

    def __init__(self, inputs: int, outputs: int, classes: int, image: tuple[int, int] | None) -> None:
        super().__init__()
        self.size = laid_out(inputs, image)
        self.classes = nn.Embedding(classes, 6)
        self.steps = DPLSTM(self.size[1], 6, batch_first=True)
        self.last = nn.Linear(6, outputs)

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        steps, _ = self.steps(inputs.view(-1, *self.size))
        return self.last(steps[:, -1] + self.classes(y))


class Layers(nn.Module):
    """Linear layers alone."""

    def __init__(self, inputs: int, outputs: int, **_: object) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, outputs))

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        return self.net(inputs)


class Normalized(Layers):
    """With batch normalization that trains nothing, which the validator of Opacus does not look at."""

    def __init__(self, inputs: int, outputs: int, **_: object) -> None:
        super().__init__(inputs, outputs)
        self.net.insert(1, nn.BatchNorm1d(8, affine=False))


class Centered(Layers):
    """Takes the batch's mean off."""

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        return self.net(inputs - inputs.mean(dim=0))


class CenteredWhenLarge(Layers):
    """Takes the batch's mean off where some number is large."""

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        return self.net(inputs - inputs.mean(dim=0) if inputs.abs().max() > 20 else inputs)


class Running(Layers):
    """Keeps a running mean in a buffer."""

    def __init__(self, inputs: int, outputs: int, **_: object) -> None:
        super().__init__(inputs, outputs)
        self.register_buffer("mean", torch.zeros(inputs))

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * inputs.mean(dim=0)
        return self.net(inputs)


class Remembering(Layers):
    """Adds what it was given before, which no buffer shows."""

    before = 0.0

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        outputs, self.before = self.net(inputs + self.before), float(inputs.detach().mean())
        return outputs


class Drawing(Layers):
    """Draws at random."""

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        return self.net(inputs + torch.randn_like(inputs))


class Secret(Layers):
    """Couples gradients alone: outputs are each record's own."""

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        outputs = self.net(inputs)
        return outputs + (outputs.mean(dim=0) - outputs.mean(dim=0).detach())


class Beside(Layers):
    """Uses the weight of a layer beside the layer, where hooks do not see it."""

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        return self.net(inputs) + self.net[0].weight.square().sum()


class Unused(Layers):
    """Has weights that nothing depends on."""

    def __init__(self, inputs: int, outputs: int, **_: object) -> None:
        super().__init__(inputs, outputs)
        self.spare = nn.Conv1d(1, 1, 1)


class Lstm(Layers):
    """Has torch's own LSTM, whose gradients by record hooks do not see."""

    def __init__(self, inputs: int, outputs: int, **_: object) -> None:
        super().__init__(inputs, outputs)
        self.steps = nn.LSTM(inputs, inputs, batch_first=True)

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        return self.net(self.steps(inputs[:, None])[0][:, 0])


class Attention(nn.Module):
    """Attends to the numbers of a record; linear layers, and products of what they say."""

    def __init__(self, inputs: int, outputs: int, **_: object) -> None:
        super().__init__()
        self.numbers, self.last = nn.Linear(1, 8), nn.Linear(8, outputs)
        self.attention = DPMultiheadAttention(8, 2, batch_first=True)

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        numbers = self.numbers(inputs[..., None])
        return self.last(self.attention(numbers, numbers, numbers)[0].mean(dim=1))


class Bare(Layers):
    """Has weights of its own beside its layers."""

    def __init__(self, inputs: int, outputs: int, **_: object) -> None:
        super().__init__(inputs, outputs)
        self.shift = nn.Parameter(torch.ones(outputs))

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        return self.net(inputs) + self.shift


class Dropped(Layers):
    """Has dropout."""

    def __init__(self, inputs: int, outputs: int, **_: object) -> None:
        super().__init__(inputs, outputs)
        self.net.insert(1, nn.Dropout(0.5))


class Wide(Layers):
    """Returns more numbers than it is asked for."""

    def __init__(self, inputs: int, outputs: int, **_: object) -> None:
        super().__init__(inputs, outputs + 1)


class Failing(Layers):
    """Fails at once."""

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        raise RuntimeError("no such layer")


NETWORKS: dict[str, type[nn.Module]] = {
    "convolution": Convolution,
    "recurrent": Recurrent,
    "layers": Layers,
    "attention": Attention,
    "bare": Bare,
    "dropped": Dropped,
    "normalized": Normalized,
    "centered": Centered,
    "centered-when-large": CenteredWhenLarge,
    "running": Running,
    "remembering": Remembering,
    "drawing": Drawing,
    "secret": Secret,
    "beside": Beside,
    "unused": Unused,
    "lstm": Lstm,
    "wide": Wide,
    "failing": Failing,
}
