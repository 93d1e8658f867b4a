"""A trial on the machine at hand: are a record's terms the same bits wherever in a block it lies?"""

import copy
import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from dpmodels.mechanisms.dp_sgd.objective import Gradients, Objective
from dpmodels.mechanisms.dp_sgd.randomness import KEY_BYTES, record_normals


def alike_everywhere(gradients: Gradients, data: Sequence[Tensor], block: int) -> bool:
    """Return whether putting a row in before the others of a block, and dropping the last, leaves their terms' bits.

    Every two neighbouring places of the block are compared on one record, and a record that reads others shows too.

    Privacy: reads the shapes and types of rows, which are public, and no row. Rows are standard normals, or zeros where
        they are whole numbers, which every column of labels or cells has; so are the weights, for those that training
        starts from may be zero, and would hide what comes before them.
    """
    trial = copy.deepcopy(gradients.objective)
    with torch.no_grad():
        for index, weight in enumerate(trial.parameters()):
            weight.copy_(_normals(tuple(weight.shape), index) / math.sqrt(max(1, weight[:1].numel())))
    device = next(trial.parameters()).device
    kinds = [*data, torch.empty(0, *cast(Objective, trial).normals)]
    shapes = [(block + 1, *kind.shape[1:]) for kind in kinds]
    rows = [
        (_normals(shape, 10**6 + index) if kind.is_floating_point() else torch.zeros(shape)).to(device, kind.dtype)
        for index, (shape, kind) in enumerate(zip(shapes, kinds, strict=True))
    ]
    differentiated = type(gradients)(trial)
    _, before = differentiated([tensor[1:] for tensor in rows])
    _, after = differentiated([tensor[:-1] for tensor in rows])
    pairs = [pair for layers in zip(before, after, strict=True) for pair in zip(*layers, strict=True)]
    return all(torch.equal(a[:-1].double().view(torch.int64), b[1:].double().view(torch.int64)) for a, b in pairs)


def _normals(shape: tuple[int, ...], step: int) -> Tensor:
    """Draw under a key that everybody knows."""
    count = math.prod(shape)
    normals = record_normals(bytes(KEY_BYTES), step, np.arange(-(-count // 1024)), 1024)
    return torch.from_numpy(normals.reshape(-1)[:count]).view(shape)
