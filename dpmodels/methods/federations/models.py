"""Small classifiers of several architectures: a feature extractor and a linear head, normalized by groups of channels.

Nothing in them is a statistic of a batch, so a record's features depend on it alone, and weights can be averaged.
Architectures after He et al. (2016, ResNet-8), Sandler et al. (2018, MobileNetV2) and Zhang et al. (2018, ShuffleNet).
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dpmodels.frozen import Frozen
from dpmodels.generators.checkpoint import filled

Architecture = Literal["resnet8", "mobilenet", "shufflenet", "mlp"]
State = Mapping[str, Tensor]
"""Weights by name."""


class ModelSpec(Frozen):
    """The records' shape and the models' size.

    Attributes:
        inputs: shape of a record: channels, height, width of an image, or the number of columns.
        width: channels of the first stage, or an eighth of a table's hidden units; the features are eight times that.
    """

    inputs: Annotated[tuple[Annotated[int, Field(ge=1, le=2**20)], ...], Field(min_length=1, max_length=3)]
    classes: Annotated[int, Field(ge=2, le=2**16)]
    width: Annotated[int, Field(ge=4, le=256, multiple_of=4)] = 16

    @property
    def features(self) -> int:
        """Count the features."""
        return 8 * self.width


class Classifier(nn.Module):
    """``head(extractor(x))``. Shapes: [n, ...] -> [n, classes]."""

    def __init__(self, extractor: nn.Module, features: int, classes: int) -> None:
        super().__init__()
        self.extractor, self.head = extractor, nn.Linear(features, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        logits: Tensor = self.head(self.extractor(x))
        return logits


class Residual(nn.Module):
    """Add what a body makes of its input to the input, which is fitted to the body's output where sizes differ."""

    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum."""
        both: Tensor = self.body(x) + self.shortcut(x)
        return both


class Features(nn.Sequential):
    """Layers whose output is averaged over its places. Shapes: [n, channels, h, w] -> [n, features]."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the means of the last layer's channels."""
        y: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
        return y.mean(dim=(2, 3))


def build(architecture: Architecture, spec: ModelSpec, seed: int) -> Classifier:
    """Make a model with weights drawn from a seed, leaving everybody's random state as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Classifier(_EXTRACTORS[architecture](spec), spec.features, spec.classes)


def extractor_of(architecture: Architecture, spec: ModelSpec, state: State) -> nn.Module:
    """Make the extractor of a model with given weights, which are copied.

    Raises:
        ValueError: they are those of an extractor of other sizes.
    """
    with torch.random.fork_rng(devices=[]):
        return filled(lambda: _EXTRACTORS[architecture](spec), state)


def loaded(architecture: Architecture, spec: ModelSpec, state: State, device: torch.device | str = "cpu") -> Classifier:
    """Make a model with given weights, which are copied."""
    model = build(architecture, spec, 0)
    model.load_state_dict(dict(state))
    return model.to(device)


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of a model's weights, on the CPU."""
    return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}


def _convolution(
    inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1, relu: bool = True
) -> nn.Module:
    layers = [
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.GroupNorm(4, outputs),
        *([nn.ReLU()] if relu else []),
    ]
    return nn.Sequential(*layers)


def _resnet8(spec: ModelSpec) -> nn.Module:
    """One convolution, then three stages of one block of two: eight layers with the head."""
    layers, inputs = [_convolution(spec.inputs[0], spec.width, 3)], spec.width
    for outputs, stride in ((spec.width, 1), (2 * spec.width, 2), (8 * spec.width, 2)):
        body = nn.Sequential(_convolution(inputs, outputs, 3, stride), _convolution(outputs, outputs, 3, relu=False))
        shortcut = None if inputs == outputs else _convolution(inputs, outputs, 1, stride, relu=False)
        layers += [nn.Sequential(Residual(body, shortcut), nn.ReLU())]
        inputs = outputs
    return Features(*layers)


def _mobilenet(spec: ModelSpec) -> nn.Module:
    """Inverted residuals: widen, filter each channel by itself, narrow without a nonlinearity."""
    layers, inputs = [_convolution(spec.inputs[0], spec.width, 3)], spec.width
    for outputs, stride in ((spec.width, 1), (2 * spec.width, 2), (2 * spec.width, 1), (4 * spec.width, 2)):
        wide = 3 * inputs
        body = nn.Sequential(
            _convolution(inputs, wide, 1),
            _convolution(wide, wide, 3, stride, groups=wide),
            _convolution(wide, outputs, 1, relu=False),
        )
        layers += [Residual(body) if (inputs, stride) == (outputs, 1) else body]
        inputs = outputs
    return Features(*layers, _convolution(inputs, spec.features, 1))


def _shufflenet(spec: ModelSpec) -> nn.Module:
    """Grouped convolutions of size 1, whose groups exchange channels, around one that filters channels one by one."""
    layers, inputs = [_convolution(spec.inputs[0], spec.width, 3)], spec.width
    for outputs, stride in ((2 * spec.width, 2), (2 * spec.width, 1), (4 * spec.width, 2), (4 * spec.width, 1)):
        body = nn.Sequential(
            _convolution(inputs, outputs, 1, groups=4),
            nn.ChannelShuffle(4),
            _convolution(outputs, outputs, 3, stride, groups=outputs, relu=False),
            _convolution(outputs, outputs, 1, groups=4, relu=False),
        )
        shortcut = None if inputs == outputs else _convolution(inputs, outputs, 1, stride, groups=4, relu=False)
        layers += [nn.Sequential(Residual(body, shortcut), nn.ReLU())]
        inputs = outputs
    return Features(*layers, _convolution(inputs, spec.features, 1))


def _mlp(spec: ModelSpec) -> nn.Module:
    """Two hidden layers, for tables and for anything that is small."""
    hidden, inputs = spec.features, torch.Size(spec.inputs).numel()
    layers = [nn.Flatten(), nn.Linear(inputs, hidden), nn.LayerNorm(hidden), nn.ReLU(), nn.Linear(hidden, hidden)]
    return nn.Sequential(*layers, nn.ReLU())


_EXTRACTORS = {"resnet8": _resnet8, "mobilenet": _mobilenet, "shufflenet": _shufflenet, "mlp": _mlp}
