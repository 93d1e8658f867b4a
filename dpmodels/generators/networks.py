"""The generator network of PEARL for tables: FC-BN-ReLU-FC-BN-ReLU-FC, softmax for states, sigmoid for values."""

from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init
from torch.nn.utils.fusion import fuse_linear_bn_eval

from dpmodels.embeddings.base import Layout, ProductRows
from dpmodels.generators.sizes import NetworkSpec

Layer = TypeVar("Layer", bound=nn.Module)


class TabularGenerator(nn.Module):
    """Map a latent and a class to a proposed row: ``G_theta(z, y)``.

    The weights are left unset, so that no global randomness is used: `initialise` them, or load them.

    Shapes: z [B, latent_dim], y [B] int64 -> ProductRows of B rows.
    """

    def __init__(self, spec: NetworkSpec, layout: Layout) -> None:
        super().__init__()
        self.spec, self.layout = spec, layout
        hidden = spec.hidden_dim
        self.net = nn.Sequential(
            linear(spec.latent_dim + layout.classes, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            linear(hidden, layout.dim),
        )

    def forward(self, z: Tensor, y: Tensor) -> ProductRows:
        """Propose rows."""
        logits = self.net(self.inputs(z, y))
        return ProductRows(
            [torch.softmax(logits[:, b.start : b.value], dim=1) if b.one_hot else None for b in self.layout.blocks],
            [torch.sigmoid(logits[:, b.value]) if b.continuous else None for b in self.layout.blocks],
        )

    def inputs(self, z: Tensor, y: Tensor) -> Tensor:
        """Return what goes into the first layer. Shapes: [B, latent_dim + classes]."""
        return torch.cat([z, nn.functional.one_hot(y, self.layout.classes).to(z.dtype)], dim=1)

    def folded(self) -> nn.Sequential:
        """Return the layers for sampling: each normalization is part of the layer before it."""
        first, normal_1, _, second, normal_2, _, last = cast(Any, self.net.eval())
        ones = (fuse_linear_bn_eval(first, normal_1), fuse_linear_bn_eval(second, normal_2))
        return nn.Sequential(ones[0], nn.ReLU(inplace=True), ones[1], nn.ReLU(inplace=True), last)


def unset(layer: type[Layer], *sizes: int, **how: int) -> Layer:
    """Return a layer whose weights are left unset."""
    fresh: Layer = skip_init(layer, *sizes, **how, device=torch.get_default_device())  # type: ignore[no-untyped-call]
    return fresh


def linear(inputs: int, outputs: int) -> nn.Linear:
    """Return a linear layer whose weights are left unset."""
    return unset(nn.Linear, inputs, outputs)


def initialise(network: nn.Module, generator: torch.Generator) -> None:
    """Set linear and convolutional layers by Kaiming's uniform rule from an explicit generator."""
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            bound = module.weight[0].numel() ** -0.5
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.uniform_(-bound, bound, generator=generator)
