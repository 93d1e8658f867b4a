"""Gradients by the hooks of Opacus: those of a loop over records, and clipped as all others are."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpmodels.mechanisms.dp_sgd.formed import FormedGradients
from dpmodels.mechanisms.dp_sgd.gradients import RecordGradients
from dpmodels.mechanisms.dp_sgd.hooked import HookedGradients
from dpmodels.mechanisms.dp_sgd.spec import Noise, SgdSpec
from dpmodels.mechanisms.dp_sgd.training import DpSgd, way_of
from dpmodels.privacy import Sensitive
from tests.kit.dp_sgd import KEY
from tests.kit.operator_networks import Convolution, Layers, Recurrent

SHAPE = {"inputs": 20, "outputs": 3, "classes": 2, "image": (4, 5)}


class Told(nn.Module):
    """A loss that gives each record to a network twice, as that of a critic does."""

    normals, hooked = (0,), True

    def __init__(self, network: type[nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = network(**SHAPE)

    def forward(self, x: Tensor, y: Tensor, xi: Tensor) -> Tensor:
        return nn.functional.softplus(self.net(x, y) - self.net(x.flip(1), y)).sum(dim=1)


def rows(count: int) -> tuple[Tensor, Tensor]:
    return torch.randn(count, 20, generator=torch.Generator().manual_seed(1)), torch.arange(count) % 2


@pytest.mark.parametrize("network", [Convolution, Recurrent, Layers])
def test_gradients_of_hooks_are_those_of_a_loop_over_records(network):
    objective, (x, y) = Told(network), rows(9)
    losses, [(flat,)] = HookedGradients(objective)([x, y, torch.zeros(9, 0)])
    weights = list(objective.parameters())
    for i in range(9):
        loss = objective(x[i : i + 1], y[i : i + 1], torch.zeros(1, 0))[0]
        single = torch.cat([g.flatten() for g in torch.autograd.grad(loss, weights)])
        assert float(losses[i]) == pytest.approx(float(loss.detach()), rel=1e-5)
        assert float((flat[i] - single).norm()) < 1e-5 * float(single.norm())


def test_hooks_leave_nothing_behind_for_whoever_calls_the_network_next():
    objective, (x, y) = Told(Recurrent), rows(9)
    gradients = HookedGradients(objective)
    first = gradients([x, y, torch.zeros(9, 0)])[1][0][0]
    before = {name: set(vars(module)) for name, module in Told(Recurrent).named_modules()}
    assert {name: set(vars(module)) for name, module in objective.named_modules()} == before
    assert all(weight.grad is None and not vars(weight) for weight in objective.parameters())
    torch.autograd.backward(objective(x, y, torch.zeros(9, 0)).sum())
    assert not any(hasattr(weight, "grad_sample") for weight in objective.parameters())
    assert torch.equal(first, gradients([x, y, torch.zeros(9, 0)])[1][0][0])


@pytest.mark.parametrize(("network", "plain"), [(Layers, RecordGradients), (Convolution, FormedGradients)])
def test_hooks_are_for_what_says_so_and_for_nothing_else(network, plain):
    objective = Told(network)
    assert way_of(objective) is way_of(nn.Sequential(objective)) is HookedGradients
    objective.hooked = False
    assert way_of(objective) is plain


@pytest.mark.parametrize("huge", [1e38, float("nan"), float("inf")])
def test_a_record_whose_gradient_is_not_finite_adds_nothing(huge):
    sgd, (x, y) = DpSgd(Told(Convolution), SgdSpec(), Noise(1.0, 1.0), KEY), rows(9)
    x[4] = huge
    others = np.delete(np.arange(9), 4)
    assert np.array_equal(sgd._clipped_sum((x, y), np.arange(9)), sgd._clipped_sum((x, y), others))
    assert not sgd._clipped_sum((x, y), np.array([4])).any()


def test_a_training_learns_and_goes_on_with_the_same_bits():
    x, y = rows(600)
    y = (x[:, :10].sum(dim=1) > 0).long()

    class Telling(Told):
        def forward(self, x: Tensor, y: Tensor, xi: Tensor) -> Tensor:
            return nn.functional.cross_entropy(self.net(x, y * 0), y, reduction="none")

    def training() -> DpSgd:
        spec = SgdSpec(steps=100, sampling_probability=0.2, learning_rate=0.03, average=0.5)
        return DpSgd(Telling(Convolution), spec, Noise(1.0, 600.0), KEY)

    whole, cut, resumed = training(), training(), training()
    list(whole.train(Sensitive((x, y))))
    for step in cut.train(Sensitive((x, y))):
        if step == 7:
            break
    resumed.restore(cut.tensors())
    list(resumed.train(Sensitive((x, y))))
    assert all(torch.equal(*pair) for pair in zip(whole.mean, resumed.mean, strict=True))
    whole.load_mean()
    right = whole.gradients.objective.net(x, y * 0).argmax(dim=1) == y
    assert float(right.float().mean()) > 0.8
