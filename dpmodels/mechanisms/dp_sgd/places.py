"""A trial on the machine at hand: are a record's terms the same bits wherever in a block it lies?"""

import copy
import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from dpmodels.mechanisms.dp_sgd.gradients import RecordGradients


def alike_everywhere(objective: nn.Module, data: Sequence[Tensor], block: int) -> bool:
    """Return whether putting a row in before the others of a block, and dropping the last, leaves their terms' bits.

    Every two neighbouring places of the block are compared on one record, and a record that reads others shows too.

    Privacy: reads the shapes and types of rows, which are public, and no row. Rows are standard normals, or zeros where
        they are whole numbers, which every column of labels or cells has; so are the weights, for those that training
        starts from may be zero, and would hide what comes before them.
    """
    randomness = torch.Generator().manual_seed(0)
    trial = copy.deepcopy(objective)
    with torch.no_grad():
        for weight in trial.parameters():
            weight.copy_(torch.randn(weight.shape, generator=randomness) / math.sqrt(weight.shape[-1]))
    device = next(trial.parameters()).device
    kinds = [*data, torch.empty(0, *cast(tuple[int, ...], trial.normals))]
    rows = [_rows((block + 1, *own.shape[1:]), own.dtype, randomness).to(device) for own in kinds]
    _, before = RecordGradients(trial)([tensor[1:] for tensor in rows])
    _, after = RecordGradients(trial)([tensor[:-1] for tensor in rows])
    pairs = [pair for layers in zip(before, after, strict=True) for pair in zip(*layers, strict=True)]
    return all(torch.equal(a[:-1].view(torch.int64), b[1:].view(torch.int64)) for a, b in pairs)


def _rows(shape: tuple[int, ...], kind: torch.dtype, randomness: torch.Generator) -> Tensor:
    if not kind.is_floating_point:
        return torch.zeros(shape, dtype=kind)
    return torch.randn(shape, generator=randomness, dtype=kind)
