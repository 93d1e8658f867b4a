"""An operator's network as a module, and the trial that it treats each record by itself.

    refused by the validator of Opacus     batch normalization, and layers that hide their gradients by record
    tried out on public random records     shapes; nothing is drawn or remembered; alone as among others; the gradient
                                           of each record, and no record in another's

Privacy: reads no record. The trial finds mistakes and not malice: whoever writes a network writes code that runs beside
    the data, and is trusted with it (docs/operator-networks.md).
"""

import math
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from dpmodels.errors import NacreError, Unsuitable
from dpmodels.generators.operators.network import NetworkShape, OperatorNetwork, OperatorPart, class_of, in_a_line
from dpmodels.generators.randomness import stream
from dpmodels.late import check_installed
from dpmodels.mechanisms.dp_sgd.clipping import FACTOR_BITS
from dpmodels.mechanisms.dp_sgd.groups import ClipGroups
from dpmodels.mechanisms.dp_sgd.hooked import check_layers
from dpmodels.mechanisms.dp_sgd.objective import trained
from dpmodels.mechanisms.dp_sgd.training import way_of

TRIAL_ROWS, TRIAL_SCALES = 6, (1.0, 0.0, 30.0)
"""Records of a trial, and the scales of their numbers; at 0 all records are alike."""
CLOSE = 1e-3
"""Float arithmetic may move a gradient by this share of its norm, and an output by this share of the largest."""
T = TypeVar("T")


class OperatorModule(nn.Module):
    """A network of an operator's; what it is given twice of a record, it is called with twice.

    Shapes: inputs [B, n] or [B, L, n] with n at most ``shape.inputs``, y [B] int64 -> [B, outputs] or [B, L, outputs].
    """

    hooked = True

    def __init__(self, network: OperatorNetwork, shape: NetworkShape, seed: int) -> None:
        super().__init__()
        self.network, self.shape, made = network, shape, class_of(network)
        with torch.random.fork_rng(devices=[]):  # a class sets its first weights as torch does; the seed is public
            torch.default_generator.manual_seed(int(stream(seed, 1).initial_seed()))
            self.net = _worded(network, lambda: made(**shape._asdict()))
        if not isinstance(self.net, nn.Module):
            raise Unsuitable(
                f"the network {network.alias} is no torch.nn.Module; name a class of one in the worker's file"
            )

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        """Call the network."""
        wide = pad(inputs, (0, self.shape.inputs - inputs.shape[-1]))
        parts = wide.unbind(dim=1) if wide.dim() == 3 else (wide,)
        outputs = [self.net(part.contiguous(), y) for part in parts]
        return torch.stack(outputs, dim=1) if wide.dim() == 3 else outputs[0]


class OperatorCritic(OperatorModule):
    """One score a record. Shapes: [B, n] or [B, L, n], [B] -> [B] or [B, L]."""

    def forward(self, inputs: Tensor, y: Tensor) -> Tensor:
        """Score."""
        return super().forward(inputs, y)[..., 0]


class _Trial(nn.Module):
    """Adds up what a network makes of two inputs a record, with public weights; a loss a record."""

    normals = (0,)

    def __init__(self, module: OperatorModule) -> None:
        super().__init__()
        self.module = module

    def forward(self, inputs: Tensor, y: Tensor, weights: Tensor, xi: Tensor) -> Tensor:
        loss: Tensor = (self.module(inputs, y) * weights).flatten(1).sum(dim=1)
        return loss


def check_network(part: OperatorPart) -> None:
    """Refuse a network whose gradients by record would not be each record's own; reads no data.

    Raises:
        NacreError: it is refused, is not there, or Opacus is not installed.
    """
    check_installed(["opacus"])
    (network, shape, _), module = part, OperatorModule(*part)
    check_layers(module.network.alias, module.net, module)
    trained(module)
    for number, scale in enumerate(TRIAL_SCALES):
        rows = _trial_rows(shape, number, scale)
        _worded(network, lambda rows=rows: _check_outputs(module, *rows[:2]))  # type: ignore[misc]
        _worded(network, lambda rows=rows: _check_gradients(module, rows))  # type: ignore[misc]


def _trial_rows(shape: NetworkShape, number: int, scale: float) -> tuple[Tensor, ...]:
    """Return public random inputs, classes, weights of the outputs, and no normals."""
    randomness = stream(0, number)
    inputs = scale * torch.randn(TRIAL_ROWS, 2, shape.inputs, generator=randomness)
    y = torch.arange(TRIAL_ROWS) % shape.classes
    return inputs, y, torch.randn(TRIAL_ROWS, 2, shape.outputs, generator=randomness), torch.zeros(TRIAL_ROWS, 0)


def _check_outputs(module: OperatorModule, inputs: Tensor, y: Tensor) -> None:
    """Refuse wrong shapes, what is drawn or remembered, and what depends on other records."""
    alias, first = module.network.alias, inputs[:, 0]
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    with torch.no_grad():
        outputs = module(first, y)
        module(inputs[:, 1] + 1, y.flip(0))
        again = module(first, y)
        alone = [module(first[row : row + 1], y[row : row + 1]) for row in range(TRIAL_ROWS)]
    if outputs.shape != (TRIAL_ROWS, module.shape.outputs) or outputs.dtype != torch.float32:
        size = f"[records, {module.shape.outputs}] of float32"
        raise Unsuitable(f"the network {alias} returns {outputs.dtype} of {list(outputs.shape)}; return {size}")
    same = all(torch.equal(buffers[name], buffer) for name, buffer in module.named_buffers())
    if not same or not torch.equal(outputs, again):
        raise Unsuitable(
            f"the network {alias} draws at random, or remembers the records that it was given; a network of the "
            "operator's must be a function of its weights and of one record"
        )
    if not _close(torch.cat(alone), outputs):
        raise Unsuitable(
            f"the network {alias} mixes records: its output for one depends on who else is in the batch; have it treat "
            "each by itself, such as by GroupNorm or LayerNorm"
        )


def _check_gradients(module: OperatorModule, rows: tuple[Tensor, ...]) -> None:
    """Hold each record's gradient, as DP-SGD adds it up, to that of a pass with this record alone."""
    trial, weights = _Trial(module), trained(module)
    passes = [torch.autograd.grad(trial(*(tensor[i : i + 1] for tensor in rows)).sum(), weights, allow_unused=True)
              for i in range(TRIAL_ROWS)]  # fmt: skip
    if any(all(single[n] is None for single in passes) for n in range(len(weights))):
        raise Unsuitable(f"the network {module.network.alias} has weights that its output does not use; leave them out")
    pairs = [list(zip(single, weights, strict=True)) for single in passes]
    singles = [torch.cat([(w * 0 if g is None else g).flatten() for g, w in pair]).double() for pair in pairs]
    clip = 2 * max(float(single.norm()) for single in singles) or 1.0
    groups = ClipGroups.one(len(singles[0]), clip)
    for i, single in enumerate(singles):
        gradients = way_of(trial)(trial)
        losses, terms = gradients(rows)
        usable = torch.arange(TRIAL_ROWS) == i
        summed = gradients.clipped_sum(terms, usable & losses.isfinite(), groups, 1.0).double()
        if not _close(summed / 4.0**FACTOR_BITS * clip, single):
            raise Unsuitable(
                f"the network {module.network.alias} has weights whose gradient by record cannot be told: it mixes "
                "records, or uses a weight beside its layer; use layers of torch and opacus.layers as they are"
            )


def _close(one: Tensor, other: Tensor) -> bool:
    norm = float(other.norm())
    return math.isfinite(norm) and float((one - other).norm()) <= CLOSE * norm + 1e-6


def _worded(network: OperatorNetwork, call: Callable[[], T]) -> T:
    """Say what an operator's class raises, on public inputs, in one sentence."""
    try:
        return call()
    except NacreError:
        raise
    except Exception as fault:
        raise Unsuitable(
            f"the network {network.alias} fails on public random records ({type(fault).__name__}: {in_a_line(fault)}); "
            "docs/operator-networks.md says what it is made and called with"
        ) from None
