"""What DP-SGD asks of an objective and of a way to differentiate it."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from dpmodels.errors import Unsuitable
from dpmodels.mechanisms.dp_sgd.groups import ClipGroups

Held = Sequence[tuple[Tensor, ...]]
"""What a way to differentiate keeps of a block until it is added up: tensors with one row a record."""


class Objective(Protocol):
    """A module with one loss a record: what a record's loss reads is that record, its normals and the weights.

    Whatever else it reads is public and held by the module: a generator's samples are a buffer, say. It draws nothing
    itself. A gradient inside the loss is taken by ``slope`` (products.py), which can be differentiated again; or by
    ``torch.func.grad``, where an attribute ``slopes`` of the module is True. What has an attribute ``hooked`` takes
    none.

    Attributes:
        normals: the shape of the standard normals that the loss of one record reads, (0,) for none.
    """

    normals: tuple[int, ...]

    def __call__(self, *rows: Any) -> Tensor:
        """Return the losses of rows, the last of which are their normals. Shapes: [B, ...] each -> [B]."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Return the weights."""


@runtime_checkable
class Follower(Protocol):
    """What follows every step of DP-SGD, such as the step of a generator that learns from the critic it belongs to.

    An objective that has these three methods is told of every step. It sees the weights, which were released, and never
    a record, so what it computes is post-processing.
    """

    def follow(self, step: int) -> None:
        """Compute what follows step number ``step``, the first of which is 1; what is random comes from a seed."""

    def tensors(self) -> dict[str, Tensor]:
        """Return all that a resumed training needs to go on with the same bits, beside the weights."""

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Go back to where ``tensors`` was taken."""


class Gradients(Protocol):
    """A way to differentiate an objective record by record.

    Attributes:
        parameters: what is trained, whose flat gradient is summed; most_rows: of a block, a multiple of 64;
            whole_tensors: whether a group must be made of whole weights and biases.
    """

    objective: nn.Module
    parameters: list[nn.Parameter]
    most_rows: int
    whole_tensors: bool

    def __init__(self, objective: nn.Module) -> None:
        """Take an objective to differentiate."""

    def __call__(self, rows: Sequence[Tensor]) -> tuple[Tensor, Held]:
        """Return the losses of a block and what its gradients are made of."""

    def clipped_sum(self, gradients: Held, usable: Tensor, groups: ClipGroups, bound: float) -> Tensor:
        """Clip and add up a block's gradients, in whole units of N_g 4**-b, and behind them count who is within C_g.

        Shapes: usable [B] -> int64 [parameters], or [parameters + groups] where the groups are counted.

        Privacy: what a record adds is a function of its own row of ``gradients``, checked to have norm at most
            ``bound`` times C_g / N_g 4**b in each group.
        """


def trained(objective: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that are trained.

    Raises:
        Unsuitable: a layer treats rows together or draws at random, or there is nothing to train.
    """
    for layer in objective.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise Unsuitable("the objective has batch normalization, which mixes records; use layers that do not")
        if isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p > 0:
            raise Unsuitable("the objective has dropout, which draws at random; use the normals that it is given")
    parameters = [p for p in objective.parameters() if p.requires_grad]
    if not parameters or any(p.dtype != torch.float32 for p in parameters):
        raise Unsuitable("the objective has weights that are not float32, or none to train; give it some of float32")
    return parameters
