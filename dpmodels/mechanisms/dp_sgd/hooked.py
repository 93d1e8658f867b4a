"""Each record's gradient by the hooks of Opacus, for networks that an operator brings: any layers, one pass a block.

What a layer was given and what came back is kept by ``GradSampleModule``, which makes each record's gradient of it.
The flat vectors are clipped, rounded and added up as those of formed.py are. Linear layers, those within recurrent ones
too, are multiplied as in products.py, so that they are the same bits wherever in a block a record lies.

Privacy: a record's vector is its own if the network treats each record by itself. That is tried out on public random
    records before anything is charged (generators/operators/modules.py), and bit by bit before the first step
    (places.py); the norm of what a record adds is checked on its integers whatever the network does.
Source: Yousefpour et al., Opacus: User-Friendly Differential Privacy Library in PyTorch, 2021.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dpmodels.errors import Unsuitable, shortened
from dpmodels.mechanisms.dp_sgd.formed import FormedGradients
from dpmodels.mechanisms.dp_sgd.objective import Held
from dpmodels.mechanisms.dp_sgd.products import ExactProducts

_MARKS = ("grad_sample", "_current_grad_sample", "_forward_counter")
"""What the hooks leave at a weight."""


INSTEAD = {
    "BatchNorm": "GroupNorm or LayerNorm",
    "InstanceNorm": "InstanceNorm without running statistics",
    "LSTM": "DPLSTM of opacus.layers",
    "GRU": "DPGRU of opacus.layers",
    "RNN": "DPRNN of opacus.layers",
    "MultiheadAttention": "DPMultiheadAttention of opacus.layers",
}
"""What to use for layers that Opacus refuses, by the beginning of their names."""


class HookedGradients(FormedGradients):
    """Differentiates an objective whose layers Opacus knows, or can map over rows; no gradient of a gradient."""

    def __call__(self, rows: Sequence[Tensor]) -> tuple[Tensor, Held]:
        """Return the losses of the rows and their gradients, flat. Shapes: [B], [B, parameters] float32."""
        with _hooks(self.objective), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of hooks at a layer whose inputs have no gradient
            with ExactProducts((), alone=False):
                losses: Tensor = self.objective(*rows)
            torch.autograd.backward(losses.sum(), inputs=self.parameters)
            parts = [_by_record(weight, len(losses)) for weight in self.parameters]
        return losses.detach(), [(torch.cat(parts, dim=1),)]


def _by_record(weight: nn.Parameter, rows: int) -> Tensor:
    """Return a weight's gradient by record, zeros where no layer that was used has it. Shapes: [B, weights]."""
    gradient: Tensor | None = getattr(weight, "grad_sample", None)
    return weight.new_zeros(rows, weight.numel()) if gradient is None else gradient.flatten(1)


@contextmanager
def _hooks(objective: nn.Module) -> Iterator[None]:
    """Have an objective hooked for one block, so that nobody else who calls it leaves anything there."""
    from opacus.grad_sample import GradSampleModule

    hooks = GradSampleModule(objective, loss_reduction="sum", strict=False)
    try:
        yield
    finally:
        hooks.remove_hooks()
        for module in objective.modules():
            for mark in ("activations", "max_batch_len"):
                module.__dict__.pop(mark, None)
        for weight in objective.parameters():
            weight.grad = None
            for mark in _MARKS:
                weight.__dict__.pop(mark, None)


def check_layers(alias: str, network: nn.Module, module: nn.Module) -> None:
    """Refuse layers whose gradients by record the hooks do not make; ``network`` is what an operator brought.

    Raises:
        Unsuitable: it has such a layer, or weights that no layer takes.
    """
    from opacus.validators import ModuleValidator

    for layer in module.modules():
        validate = ModuleValidator.VALIDATORS.get(type(layer))
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) or (validate and validate(layer)):
            kind = type(layer).__name__
            instead = next((use for name, use in INSTEAD.items() if kind.startswith(name)), "another layer")
            raise Unsuitable(f"the network {alias} has a layer {kind}, which Opacus refuses; use {instead}")
        if isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p > 0:
            raise Unsuitable(f"the network {alias} has dropout, which draws at random; leave it out")
    if next(network.parameters(recurse=False), None) is not None:
        raise Unsuitable(
            f"the network {alias} has weights beside its layers; put them into a layer that takes one tensor"
        )
    if faults := ModuleValidator.validate(module):
        raise Unsuitable(f"Opacus refuses the network {alias}: {shortened(faults[0])}")
