"""Each record's gradient as one flat vector, for objectives of any layers: the gradient of one loss, mapped over rows.

Every record is a call of the objective with one row, so none can read another. Vectors are clipped and rounded group by
group to the units of clipping.py:

    v_g = round(s_g grad_g 4**b),    s_g = min(1 / N_g, bound C_g / (N_g norm))

Exactness: an entry is below 2**39, so float64 holds it and the sum of a block of 2**14 rows. Squares are added up in
    float64: P of them are off by a relative P 2**-53, and a root and its square by 2**-51, which is below the slack of
    2**-20 for P up to 2**32, so the norm of the integers themselves is checked. A record that is above the bound after
    all adds nothing to the group.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from dpmodels.mechanisms.dp_sgd.clipping import FACTOR_BITS, MOST_ROWS, SLACK, TARGET
from dpmodels.mechanisms.dp_sgd.groups import ClipGroups, counted
from dpmodels.mechanisms.dp_sgd.objective import Held, trained

_MOST_NUMBERS = 2**26
_CLOSE_NUMBERS, _CHUNK = 2**17, 64
"""What a processor keeps close to it: numbers that are clipped, and rows that are differentiated, at once."""
_UNITS = 4.0**FACTOR_BITS


class FormedGradients:
    """Differentiates any objective that treats records by themselves, at the price of a vector a record.

    Raises:
        InvalidArgument: a layer treats rows together.
    """

    whole_tensors = False

    def __init__(self, objective: nn.Module) -> None:
        self.objective, self.parameters = objective, trained(objective)
        size = sum(p.numel() for p in self.parameters)
        self.most_rows = 64 * max(1, min(MOST_ROWS, _MOST_NUMBERS // size) // 64)
        self._names = [name for name, p in objective.named_parameters() if p.requires_grad]

    def __call__(self, rows: Sequence[Tensor]) -> tuple[Tensor, Held]:
        """Return the losses of the rows and their gradients, flat. Shapes: [B], [B, parameters] float32."""
        weights = {name: p.detach() for name, p in zip(self._names, self.parameters, strict=True)}
        axes = None, *(0 for _ in rows)
        of_each = vmap(
            grad_and_value(self._loss), in_dims=axes, randomness="error", chunk_size=_CHUNK if rows[0].is_cpu else None
        )
        gradients, losses = of_each(weights, *rows)
        return losses, [(torch.cat([gradients[name].flatten(1) for name in self._names], dim=1),)]

    def clipped_sum(self, gradients: Held, usable: Tensor, groups: ClipGroups, bound: float) -> Tensor:
        """Clip and add up a block's gradients, as many rows at once as a processor keeps close to it."""
        ((flat,),) = gradients
        votes = len(groups.members) if groups.share else 0
        total = torch.zeros(flat.shape[1] + votes, dtype=torch.int64, device=flat.device)
        close = next(2**k for k in range(6, -1, -1) if 2**k * flat.shape[1] <= _CLOSE_NUMBERS or k == 0)
        rows = close if flat.is_cpu else len(flat)
        columns = [
            slice(None) if len(members) == flat.shape[1] else members.to(flat.device) for members in groups.members
        ]
        for start in range(0, len(flat), rows):
            part, able = flat[start : start + rows], usable[start : start + rows]
            for g, column in enumerate(columns):
                clip, noise = groups.clip_norms[g], groups.noise_norms[g]
                sums, norm = _clipped_rows(part[:, column], able, noise, bound * (clip / noise))
                total[: flat.shape[1]][column] += sums
                if votes:
                    total[flat.shape[1] + g] += counted(norm, able, clip)
        return total

    def _loss(self, weights: dict[str, Tensor], *row: Tensor) -> Tensor:
        losses = functional_call(self.objective, weights, tuple(tensor[None] for tensor in row))
        return cast(Tensor, losses[0])


def _clipped_rows(rows: Tensor, usable: Tensor, noise: float, most: float) -> tuple[Tensor, Tensor]:
    """Clip rows, round them and add them up; return each one's norm as well. Shapes: [B, n], [B] -> [n] int64, [B]."""
    double_rows = rows.double()
    norm = torch.linalg.vector_norm(double_rows, dim=1)
    scale = (most * TARGET / norm).clamp(max=1 / noise).where(usable & norm.isfinite(), 0.0)
    if not norm.isfinite().all():
        double_rows.nan_to_num_(0.0, 0.0, 0.0)
    whole = double_rows.mul_(_UNITS * scale[:, None]).round_()
    keep = torch.linalg.vector_norm(whole, dim=1).square() <= (most * _UNITS) ** 2 * (1 - SLACK)
    if not keep.all():
        whole.masked_fill_(~keep[:, None], 0.0)
    return whole.sum(dim=0).to(torch.int64), norm
