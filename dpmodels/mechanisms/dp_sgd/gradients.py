"""Each record's gradient, never formed: what went into every linear layer and what came back, by Opacus' hooks."""

import warnings
from collections.abc import Sequence

from dpmodels.errors import InvalidArgument
from dpmodels.late import Tensor, nn, torch

Term = tuple[Tensor, Tensor]
"""One layer: a [B, L, in + 1] with 1 for the bias, and g [B, L, out]; record i's gradient is sum_l g_il a_il'."""


class RecordGradients:
    """Differentiates an objective that returns one loss a row and is made of linear layers, each used once.

    Raises:
        InvalidArgument: rows would be treated together, or something other than linear layers is trained.
    """

    def __init__(self, objective: "nn.Module") -> None:
        from opacus.grad_sample import GradSampleModuleFastGradientClipping

        if any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in objective.modules()):
            raise InvalidArgument("objective", "with batch normalisation", "treat every record by itself")
        self.parameters = [p for p in objective.parameters() if p.requires_grad]
        self.layers = [m for m in objective.modules() if type(m) is nn.Linear and m.weight.requires_grad]
        own = {id(p) for layer in self.layers for p in layer.parameters() if p.requires_grad}
        pieces = sum(len(list(layer.parameters())) for layer in self.layers)
        if not own or len(own) != pieces or own != {id(p) for p in self.parameters}:
            raise InvalidArgument("objective", "with other parameters", "train whole linear layers, each by itself")
        self.asked = [layer.weight if layer.bias is None else layer.bias for layer in self.layers]
        self.wrapped = GradSampleModuleFastGradientClipping(objective, loss_reduction="sum")
        self.wrapped.NORM_SAMPLERS = {nn.Linear: self._collect}
        self._terms: dict[nn.Linear, Term] = {}

    def __call__(self, rows: Sequence[Tensor]) -> tuple[Tensor, list[Term]]:
        """Return the losses of the rows and the terms of every layer, in float64."""
        self._terms = {}
        losses: Tensor = self.wrapped(*rows)
        with warnings.catch_warnings():  # rows need no gradient, and the hooks of the first layer say so
            warnings.filterwarnings("ignore", "Full backward hook is firing")
            # asked for the biases alone, autograd goes through every layer and forms the gradient of no weight
            torch.autograd.grad(losses.sum(), self.asked)
        return losses.detach(), [self._terms[layer] for layer in self.layers]

    def flat(self, products: Sequence[Tensor]) -> Tensor:
        """Put one matrix [out, in + 1] a layer into the order of the parameters."""
        parts: dict[int, Tensor] = {}
        for layer, product in zip(self.layers, products, strict=True):
            parts[id(layer.weight)] = product[:, : layer.in_features]
            parts[id(layer.bias)] = product[:, layer.in_features :]
        return torch.cat([parts[id(p)].flatten() for p in self.parameters])

    def _collect(self, layer: "nn.Linear", activations: list[Tensor], backprops: Tensor) -> dict[Tensor, Tensor]:
        """Keep a layer's term; Opacus asks for norms, which are found later, from all layers at once."""
        a, g = (rows.reshape(len(rows), -1, rows.shape[-1]) for rows in (activations[0], backprops))
        factor = a.new_ones((*a.shape[:2], layer.in_features + (layer.bias is not None)), dtype=torch.float64)
        factor[..., : layer.in_features] = a
        self._terms[layer] = factor, g.double()
        return {parameter: g.new_zeros(len(g)) for parameter in layer.parameters()}
