"""Groups of weights whose released gradients are of similar size, found by density; biases are a group of their own.

Privacy: post-processing of what was released.
Source: the grouping of weights in DPKG, whose gradients were not yet noised; these are.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


def weight_units(objective: nn.Module, whole_tensors: bool) -> tuple[list[Tensor], list[Tensor]]:
    """Return the places of what is clustered, each output unit's weights or each weight tensor, and of the biases."""
    units, biases = list[Tensor](), list[Tensor]()
    start = 0
    for name, parameter in objective.named_parameters():
        if parameter.requires_grad:
            indices = torch.arange(start, start + parameter.numel())
            start += parameter.numel()
            if name.rpartition(".")[2] == "bias":
                biases.append(indices)
            else:
                units += (
                    [indices] if whole_tensors or parameter.dim() < 2 else indices.view(len(parameter), -1).unbind()
                )
    return units, [torch.cat(biases)] if biases else []


def clusters(units: Sequence[Tensor], sizes: NDArray[np.float64], radius: float, points: int) -> list[Tensor]:
    """Join units whose sizes lie densely; those that lie alone are one group too. Shapes: sizes [units]."""
    from sklearn.cluster import DBSCAN

    labels = DBSCAN(eps=radius, min_samples=points).fit(sizes[:, None]).labels_
    return [
        torch.cat([unit for unit, of in zip(units, labels, strict=True) if of == label]) for label in np.unique(labels)
    ]
