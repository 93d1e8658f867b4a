"""Each record's gradient as one flat vector, for objectives of any layers: the gradient of one loss, mapped over rows.

Every record is a call of the objective with one row, so none can read another. Vectors are clipped and rounded group by
group to the units of clipping.py:

    v_g = round(s_g grad_g 4**b),    s_g = min(1 / N_g, bound C_g / (N_g norm))

Exactness: an entry is below 2**39, so float64 holds it and the sum of a block of 2**14 rows. Squares are added up in
    float64: P of them are off by a relative P 2**-53, below the slack of 2**-20 for P up to 2**33, so the norm of the
    integers themselves is checked. A record that is above the bound after all adds nothing to the group.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from dpmodels.mechanisms.dp_sgd.clipping import FACTOR_BITS, MOST_ROWS, SLACK, TARGET
from dpmodels.mechanisms.dp_sgd.groups import ClipGroups
from dpmodels.mechanisms.dp_sgd.objective import Held, trained

_MOST_NUMBERS = 2**26
_UNITS = 4.0**FACTOR_BITS


class FormedGradients:
    """Differentiates any objective that treats records by themselves, at the price of a vector a record.

    Raises:
        InvalidArgument: a layer treats rows together.
    """

    def __init__(self, objective: nn.Module) -> None:
        self.objective, self.parameters = objective, trained(objective)
        size = sum(p.numel() for p in self.parameters)
        self.most_rows = 64 * max(1, min(MOST_ROWS, _MOST_NUMBERS // size) // 64)
        self._names = [name for name, p in objective.named_parameters() if p.requires_grad]

    def __call__(self, rows: Sequence[Tensor]) -> tuple[Tensor, Held]:
        """Return the losses of the rows and their gradients, flat. Shapes: [B], [B, parameters] float32."""
        weights = {name: p.detach() for name, p in zip(self._names, self.parameters, strict=True)}
        of_each = vmap(grad_and_value(self._loss), in_dims=(None, *(0 for _ in rows)), randomness="error")
        gradients, losses = of_each(weights, *rows)
        return losses, [(torch.cat([gradients[name].flatten(1) for name in self._names], dim=1),)]

    def clipped_sum(self, held: Held, usable: Tensor, groups: ClipGroups, bound: float) -> Tensor:
        """Clip and add up a block's gradients."""
        ((flat,),) = held
        total = torch.zeros(flat.shape[1], dtype=torch.int64, device=flat.device)
        for members, clip, noise in zip(groups.members, groups.clip_norms, groups.noise_norms, strict=True):
            places = members.to(flat.device)
            own = flat.double() if len(members) == flat.shape[1] else flat[:, places].double()
            most = bound * (clip / noise)
            norm = own.square().sum(dim=1).sqrt()
            scale = (most * TARGET / norm).clamp(max=1 / noise).where(usable & norm.isfinite(), 0.0)
            whole = own.nan_to_num_(0.0, 0.0, 0.0).mul_(_UNITS * scale[:, None]).round_()
            keep = whole.square().sum(dim=1) <= (most * _UNITS) ** 2 * (1 - SLACK)
            total[places] = whole.where(keep[:, None], 0.0).sum(dim=0).to(torch.int64)
        return total

    def _loss(self, weights: dict[str, Tensor], *row: Tensor) -> Tensor:
        losses = functional_call(self.objective, weights, tuple(tensor[None] for tensor in row))
        return cast(Tensor, losses[0])
