"""The trial before a training: blocks are the same bits here, and an objective whose rows read others is found out."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dpmodels.mechanisms.dp_sgd import DpSgd, Noise, SgdSpec
from dpmodels.mechanisms.dp_sgd.places import alike_everywhere
from dpmodels.privacy import Sensitive

ELEMENTWISE = [torch.relu, torch.sigmoid, torch.tanh, torch.exp, functional.silu, functional.softplus, functional.gelu]


class Net(nn.Module):
    """Two layers of odd sizes, such as float kernels end with, about something done to each number or each block."""

    normals = (2,)

    def __init__(self, between) -> None:
        super().__init__()
        self.net, self.last, self.between = nn.Linear(13, 7), nn.Linear(7, 1), between

    def forward(self, x: Tensor, label: Tensor, xi: Tensor) -> Tensor:
        return (self.last(self.between(self.net(x)))[:, 0] - label + xi.sum(dim=1)) ** 2


def by_place(out: Tensor) -> Tensor:
    return out * (1 + torch.arange(len(out))[:, None] * 2.0**-20)


def by_others(out: Tensor) -> Tensor:
    return out - out.mean(dim=0)


def rows(count: int = 90) -> tuple[Tensor, Tensor]:
    return torch.randn(count, 13, generator=torch.Generator().manual_seed(0)), torch.arange(count) % 3


@pytest.mark.parametrize("between", ELEMENTWISE)
@pytest.mark.parametrize("block", [64, 704])
def test_blocks_of_whole_64s_are_the_same_bits_wherever_a_record_lies(between, block):
    assert alike_everywhere(Net(between), rows(), block)


@pytest.mark.parametrize("between", [by_place, by_others])
def test_an_objective_that_reads_places_or_others_is_differentiated_one_record_at_a_time(between):
    assert not alike_everywhere(Net(between), rows(), 64)
    sgd = DpSgd(Net(between), SgdSpec(steps=1), Noise(1.0, 100.0), bytes(32))
    with pytest.warns(UserWarning, match="each record by itself"):
        next(sgd.train(Sensitive(rows())))
    assert sgd.block == 1
    whole, less, own = (sgd._clipped_sum(rows(), np.array(batch)) for batch in (range(9), range(1, 9), [0]))
    assert np.abs(whole - less - own).max() <= 1


def test_the_trial_reads_no_row_and_leaves_the_objective_alone():
    objective, before = Net(torch.relu), torch.random.get_rng_state()
    weights = [p.clone() for p in objective.parameters()]
    assert alike_everywhere(objective, tuple(tensor[:0] for tensor in rows()), 64)
    assert all(torch.equal(a, b) for a, b in zip(weights, objective.parameters(), strict=True))
    assert torch.equal(before, torch.random.get_rng_state())
