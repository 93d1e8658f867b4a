"""Each record's gradient, never formed: what went into every linear layer and what came back."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dpmodels.errors import Unsuitable
from dpmodels.mechanisms.dp_sgd.products import ExactProducts

Term = tuple[Tensor, Tensor]
"""One layer: a [B, L, in + 1] with 1 for the bias, and g [B, L, out]; record i's gradient is sum_l g_il a_il'."""


class RecordGradients:
    """Differentiates an objective that returns one loss a row and is made of linear layers, each used once.

    Raises:
        InvalidArgument: rows would be treated together, or something other than linear layers is trained.
    """

    def __init__(self, objective: nn.Module) -> None:
        if any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in objective.modules()):
            raise Unsuitable("the objective has batch normalization, which mixes records; use layers that do not")
        self.objective = objective
        self.parameters = [p for p in objective.parameters() if p.requires_grad]
        self.layers = [m for m in objective.modules() if type(m) is nn.Linear and m.weight.requires_grad]
        own = {id(p) for layer in self.layers for p in layer.parameters() if p.requires_grad}
        pieces = sum(len(list(layer.parameters())) for layer in self.layers)
        if not own or len(own) != pieces or own != {id(p) for p in self.parameters}:
            raise Unsuitable("the objective trains more than whole linear layers of their own; freeze the rest")

    def __call__(self, rows: Sequence[Tensor]) -> tuple[Tensor, list[Term]]:
        """Return the losses of the rows and the terms of every layer, in float64."""
        with ExactProducts(layer.weight for layer in self.layers) as products:
            losses: Tensor = self.objective(*rows)
        torch.autograd.grad(losses.sum(), self.parameters, allow_unused=True)
        return losses.detach(), [self._term(products.terms[id(layer.weight)]) for layer in self.layers]

    def flat(self, products: Sequence[Tensor]) -> Tensor:
        """Put one matrix [out, in + 1] a layer into the order of the parameters."""
        parts: dict[int, Tensor] = {}
        for layer, product in zip(self.layers, products, strict=True):
            parts[id(layer.weight)] = product[:, : layer.in_features]
            parts[id(layer.bias)] = product[:, layer.in_features :]
        return torch.cat([parts[id(p)].flatten() for p in self.parameters])

    def _term(self, held: list[Tensor]) -> Term:
        """Give a layer's term one dimension for whatever lies between the records and the features."""
        if len(held) != 2:
            raise Unsuitable("the objective trains a layer that it does not use; freeze it")
        a, g = (rows.reshape(len(rows), -1, rows.shape[-1]) for rows in held)
        return a, g
