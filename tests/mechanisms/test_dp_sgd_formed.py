"""Gradients formed record by record: convolutions, and a gradient inside the loss, trained to a working result."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dpmodels.errors import Unsuitable
from dpmodels.mechanisms.dp_sgd.formed import FormedGradients
from dpmodels.mechanisms.dp_sgd.gradients import RecordGradients
from dpmodels.mechanisms.dp_sgd.places import alike_everywhere
from dpmodels.mechanisms.dp_sgd.spec import Noise, SgdSpec
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from dpmodels.privacy import Sensitive
from tests.kit.dp_sgd import KEY, Critic, Regression, crosses, make_rows, normals, set_weights


class Logistic(nn.Module):
    """Logistic regression."""

    normals = (0,)

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(5, 1)
        set_weights(self)

    def forward(self, x: Tensor, y: Tensor, xi: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(self.net(x)[:, 0], y, reduction="none")


def test_a_logistic_regression_finds_who_is_who():
    x = torch.randn(4000, 5, generator=torch.Generator().manual_seed(3))
    y = (x @ torch.tensor([2.0, -1.0, 0.5, 0.0, 1.0]) + 0.3 > 0).float()
    spec = SgdSpec(steps=200, sampling_probability=0.05, learning_rate=0.05)
    sgd = DpSgd(Logistic(), spec, Noise(2.0, 4000.0), KEY)
    assert list(sgd.train(Sensitive((x, y))))[-1] == 200 and isinstance(sgd.gradients, RecordGradients)
    sgd.load_mean()
    right = (sgd.gradients.objective.net(x)[:, 0] > 0) == (y > 0.5)
    assert float(right.float().mean()) > 0.95


@pytest.mark.nightly
def test_a_critic_with_a_gradient_in_its_loss_tells_real_from_made_and_keeps_to_its_slope():
    critic, x = Critic(), crosses(2000)
    spec = SgdSpec(steps=150, sampling_probability=0.1, learning_rate=0.02, clip_norm=2.0)
    sgd = DpSgd(critic, spec, Noise(1.0, 2000.0), KEY)
    assert isinstance(sgd.gradients, FormedGradients)
    list(sgd.train(Sensitive((x,))))
    sgd.load_mean()
    fresh, xi = crosses(500, seed=9), normals(500, 17)
    with torch.no_grad():
        real, made = critic.net(fresh), critic.net(critic.made(xi))
    assert float((real > made.median()).float().mean()) > 0.97 and float(real.mean() - made.mean()) > 0.5
    slopes = critic.slope((fresh + critic.made(xi)) / 2).detach().flatten(1).norm(dim=1)
    assert 0.7 < float(slopes.mean()) < 1.3


def test_a_gradient_of_a_gradient_is_that_of_a_loop_over_records_and_of_finite_differences():
    critic, x, xi = Critic().double(), crosses(6).double(), normals(6, 17).double()
    found = {p: [] for p in critic.parameters()}
    for i in range(6):
        between = critic.made(xi[i : i + 1])
        share = torch.sigmoid(2 * xi[i, 16])
        between = (share * x[i : i + 1] + (1 - share) * between).requires_grad_()
        (slope,) = torch.autograd.grad(critic.net(between).sum(), between, create_graph=True)
        penalty = 10 * ((slope.square().sum() + 1e-12).sqrt() - 1) ** 2
        loss = critic.net(critic.made(xi[i : i + 1])).sum() - critic.net(x[i : i + 1]).sum() + penalty
        for weight, gradient in zip(
            critic.parameters(), torch.autograd.grad(loss, list(critic.parameters())), strict=True
        ):
            found[weight].append(gradient.flatten())
    looped = torch.cat([torch.stack(own) for own in found.values()], dim=1)
    _, [(flat,)] = FormedGradients(Critic())([x.float(), xi.float()])
    assert float((flat - looped).norm() / looped.norm()) < 1e-6
    weight, step = critic.net[0].weight, 1e-5
    with torch.no_grad():
        weight[1, 0, 1, 1] += step
        up = critic(x, xi)
        weight[1, 0, 1, 1] -= 2 * step
        down = critic(x, xi)
    assert torch.allclose((up - down) / (2 * step), looped[:, 9 + 4], rtol=1e-4, atol=1e-6)


def test_gradients_of_a_convolution_are_those_of_the_hooks_of_opacus():
    from opacus.grad_sample import GradSampleModule

    critic, x, xi = Critic(penalty=0.0), crosses(20), normals(20, 17)
    _, [(flat,)] = FormedGradients(critic)([x, xi])
    hooked = GradSampleModule(Critic().net, loss_reduction="sum")
    made = critic.made(xi)
    hooked(torch.cat([made, x]).requires_grad_()).sum().backward()
    ours = torch.cat([p.grad_sample.flatten(1) for p in hooked.parameters()], dim=1)
    assert torch.allclose(flat, ours[:20] - ours[20:], rtol=1e-4, atol=1e-6)


def test_both_ways_to_differentiate_clip_alike():
    rows = make_rows(70, 10.0)
    sums = [
        DpSgd(Regression(), SgdSpec(), Noise(1.0, 100.0), KEY, gradients=own)._clipped_sum(rows, np.arange(70))
        for own in (RecordGradients, FormedGradients)
    ]
    assert np.linalg.norm(sums[0] - sums[1]) < 1e-4 * np.linalg.norm(sums[0])


@pytest.mark.parametrize("huge", [1e25, 1e38, float("nan")])
def test_a_record_whose_gradient_overflows_adds_nothing(huge):
    sgd = DpSgd(Regression(), SgdSpec(), Noise(1.0, 1.0), KEY, gradients=FormedGradients)
    x, y = make_rows(9)
    x[4] = huge
    others = np.delete(np.arange(9), 4)
    assert np.array_equal(sgd._clipped_sum((x, y), np.arange(9)), sgd._clipped_sum((x, y), others))
    assert not sgd._clipped_sum((x, y), np.array([4])).any()


def test_a_record_that_rounding_puts_above_the_bound_adds_nothing(monkeypatch):
    monkeypatch.setattr("dpmodels.mechanisms.dp_sgd.formed.TARGET", 1.01)
    sgd = DpSgd(Regression(), SgdSpec(), Noise(1.0, 1.0), KEY, gradients=FormedGradients)
    assert not sgd._clipped_sum(make_rows(9, 1e6), np.arange(9)).any()


def test_a_convolution_is_the_same_bits_wherever_a_record_lies_or_is_found_out():
    """Whichever it is on this machine, a training goes on, and a record put in first moves its own gradient alone."""
    sgd, x = DpSgd(Critic(), SgdSpec(), Noise(1.0, 100.0), KEY), crosses(70)
    sgd.block = sgd.block if alike_everywhere(sgd.gradients, (x,), sgd.block) else 1
    whole, less, own = (sgd._clipped_sum((x,), np.array(batch)) for batch in (range(70), range(1, 70), [0]))
    assert np.abs(whole - less - own).max() <= 1 and own.any()


def test_what_treats_rows_together_or_draws_is_refused_and_memory_bounds_a_block():
    for layer, why in ((nn.BatchNorm1d(3), "batch normalization"), (nn.Dropout(), "dropout")):
        with pytest.raises(Unsuitable, match=why):
            FormedGradients(nn.Sequential(nn.Linear(3, 3), layer))
    assert FormedGradients(nn.Linear(2**10, 2**12, bias=False)).most_rows == 64
    assert FormedGradients(nn.Linear(2**9, 2**9, bias=False)).most_rows == 256
