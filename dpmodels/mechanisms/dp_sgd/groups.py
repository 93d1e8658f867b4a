"""Clip groups: a public partition of the coordinates of a gradient, each part clipped to a norm of its own.

    same noise      for every coordinate, sigma S with S**2 = sum_g C_g**2
    scaled noise    for a coordinate of group g, sigma sqrt(G) C_g
    counted         as many coordinates more as there are groups, [record is within C_g] - 1/2 each, in the same noise

Sensitivity: groups are disjoint, so a record's clipped gradient has norm at most sqrt(sum_g C_g**2) = S. Divided by
    what the noise is measured in, N_g = S or sqrt(G) C_g, its norm is at most sqrt(sum_g (C_g / N_g)**2) = 1 either
    way: for scaled noise every group adds 1 / G under the root. So the noise on every divided coordinate has standard
    deviation sigma where a record moves their vector by 1 at most: what SampledGaussian(sigma, q) is charged for.
One group: C = S = N, and both kinds of noise are the plain mechanism.
Counts: with a share w of the squared norm for them, N_g is divided by sqrt(1 - w), so a record's divided gradient has
    norm at most sqrt(1 - w); and a count is released in units of which a record adds or takes at most sqrt(w / G).
    Gradient and G counts are ONE vector of norm at most sqrt(1 - w + G w / G) = 1, and still one SampledGaussian step.
Bounds and groups may differ from step to step if they are chosen from what earlier steps released (adaptive.py).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from dpmodels.errors import InvalidArgument, Unsuitable


@dataclass(frozen=True)
class ClipGroups:
    """What each group is clipped to, and what its noise is measured in; all of it public.

    Attributes:
        members: the places of each group in the flat vector of all parameters.
        clip_norms: C_g; noise_norms: N_g, by which the coordinates of a group are divided.
        share: of a record's squared norm that is left for counting who is within C_g; 0 where nobody is counted.
    """

    members: tuple[Tensor, ...]
    clip_norms: tuple[float, ...]
    noise_norms: tuple[float, ...]
    share: float = 0.0

    @classmethod
    def of(
        cls, members: Sequence[Tensor], clip_norms: Sequence[float], *, scaled: bool = False, share: float = 0.0
    ) -> "ClipGroups":
        """Choose the noise of groups.

        Raises:
            InvalidArgument, Unsuitable: they do not partition the coordinates, or a norm is not positive.
        """
        coordinates = torch.cat([*members]).sort().values
        if not torch.equal(coordinates, torch.arange(len(coordinates))) or not all(len(group) for group in members):
            raise Unsuitable("the groups overlap or leave coordinates out; put each coordinate into one group")
        if len(clip_norms) != len(members) or not all(0 < norm < math.inf for norm in clip_norms):
            raise InvalidArgument("clip_norms", clip_norms, "be one positive number a group")
        ordered = tuple(group.sort().values for group in members)
        return cls(ordered, tuple(clip_norms), _noise_norms(clip_norms, scaled, share), share)

    @classmethod
    def one(cls, parameters: int, clip_norm: float) -> "ClipGroups":
        """Return all coordinates as one group."""
        return cls.of([torch.arange(parameters)], [clip_norm])

    def bounded(self, clip_norms: Sequence[float]) -> "ClipGroups":
        """Return the same groups with other norms and scaled noise."""
        return replace(self, clip_norms=tuple(clip_norms), noise_norms=_noise_norms(clip_norms, True, self.share))

    def count_steps(self, bound: float, step_bits: int) -> int:
        """Return what a record within a norm adds to its count, and one above it takes, in steps of 2**-step_bits."""
        return math.floor(math.ldexp(bound * math.sqrt(self.share / len(self.members)), step_bits))

    @property
    def size(self) -> int:
        """Count the coordinates."""
        return sum(len(group) for group in self.members)

    def units(self) -> Tensor:
        """Return what each coordinate's noise is measured in. Shapes: [parameters] float64."""
        units = torch.empty(self.size, dtype=torch.float64)
        for group, norm in zip(self.members, self.noise_norms, strict=True):
            units[group] = norm
        return units


def _noise_norms(clip_norms: Sequence[float], scaled: bool, share: float) -> tuple[float, ...]:
    whole = clip_norms[0] if len(clip_norms) == 1 else math.hypot(*clip_norms)
    norms = [math.sqrt(len(clip_norms)) * norm if scaled else whole for norm in clip_norms]
    return tuple(norm / math.sqrt(1 - share) for norm in norms)


def counted(norms: Tensor, usable: Tensor, clip_norm: float) -> Tensor:
    """Count the records of a block that are within a norm, less those above it; who adds nothing is neither.

    Privacy: +1, -1 or 0 for a record, a function of its own norm. Shapes: [B], [B] -> [] int64.
    """
    votes = torch.where(norms <= clip_norm, 1, -1).where(usable & norms.isfinite(), 0)
    return votes.sum()


def layer_groups(objective: nn.Module, biases_apart: bool = False) -> list[Tensor]:
    """Return the places of the parameters of each module as a group; with ``biases_apart``, all biases as the last."""
    owner = {id(p): name.rpartition(".") for name, p in objective.named_parameters() if p.requires_grad}
    by_module: dict[str, list[Tensor]] = {}
    biases: list[Tensor] = []
    start = 0
    for parameter in (p for p in objective.parameters() if p.requires_grad):
        indices = torch.arange(start, start + parameter.numel())
        module, _, name = owner[id(parameter)]
        members = biases if biases_apart and name == "bias" else by_module.setdefault(module, [])
        members.append(indices)
        start += parameter.numel()
    return [torch.cat(members) for members in (*by_module.values(), biases) if members]
