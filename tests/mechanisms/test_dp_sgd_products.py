"""Matrix products of DP-SGD: exact sums of rounded rows, so the same bits in any order, forward and backward."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dpmodels.errors import Unsuitable
from dpmodels.mechanisms.dp_sgd import products
from dpmodels.mechanisms.dp_sgd.formed import FormedGradients
from dpmodels.mechanisms.dp_sgd.gradients import RecordGradients
from dpmodels.mechanisms.dp_sgd.places import alike_everywhere
from dpmodels.mechanisms.dp_sgd.products import ExactProducts, slope
from dpmodels.mechanisms.dp_sgd.spec import Noise, SgdSpec
from dpmodels.mechanisms.dp_sgd.training import DpSgd

SHAPES = [(13, 8), (8, 30), (100, 240), (784, 100), (1, 1), (3, 2000)]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def multiplied(x: Tensor, weight: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return the product and what comes back for x."""
    x = x.clone().requires_grad_()
    with ExactProducts([]):
        out = functional.linear(x, weight)
    return out.detach(), torch.autograd.grad(out, x, g)[0]


@pytest.mark.parametrize(("inputs", "outputs"), SHAPES)
def test_rows_in_another_order_among_others_or_alone_are_the_same_bits(inputs, outputs):
    x, weight, g = drawn(130, inputs), drawn(outputs, inputs, seed=1), drawn(130, outputs, seed=2)
    whole, order = multiplied(x, weight, g), torch.randperm(130, generator=torch.Generator().manual_seed(3))
    for rows in (order, torch.arange(1, 130), torch.tensor([77])):
        for found, wanted in zip(multiplied(x[rows], weight, g[rows]), whole, strict=True):
            assert torch.equal(found, wanted[rows])


@pytest.mark.parametrize(("inputs", "outputs"), SHAPES)
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e20])
def test_the_product_is_the_exact_sum_rounded_once(inputs, outputs, scale):
    """Held against Python's integers: rows and weights are whole multiples, and no addition rounds."""
    x, weight = scale * drawn(3, inputs), drawn(outputs, inputs, seed=1)
    bits, terms = products._bits(weight), products._terms(weight)
    rows, matrix = products._rounded(x, bits).double(), products._rounded_weight(weight, bits)
    units = [2.0 ** (math.frexp(float(row.abs().max()))[1] - bits) for row in rows]
    unit = 2.0 ** (math.frexp(float(weight.abs().max()))[1] - min(22, 53 - terms - bits))
    whole = [[int(v) for v in row / own] for row, own in zip(rows.numpy(), units, strict=True)]
    whole_weight = [[int(v) for v in row] for row in matrix.numpy() / unit]
    assert all((row / own == (row / own).round()).all() for row, own in zip(rows, units, strict=True))
    assert all(sum(abs(a * b) for a, b in zip(row, out, strict=True)) <= 2**53 for row in whole for out in whole_weight)
    exact = [[sum(a * b for a, b in zip(row, out, strict=True)) for out in whole_weight] for row in whole]
    wanted = np.array([np.array(sums, dtype=float) * own * unit for sums, own in zip(exact, units, strict=True)])
    assert np.array_equal(multiplied(x, weight, torch.zeros(3, outputs))[0].numpy(), wanted.astype(np.float32))


@pytest.mark.parametrize(("inputs", "outputs"), SHAPES)
def test_rounding_costs_less_than_a_millionth(inputs, outputs):
    x, weight, g = drawn(50, inputs), drawn(outputs, inputs, seed=1), drawn(50, outputs, seed=2)
    wide, narrow = x.double() @ weight.double().mT, g.double() @ weight.double()
    for found, wanted in zip(multiplied(x, weight, g), (wide, narrow), strict=True):
        assert float((found - wanted).norm() / wanted.norm()) < 2e-6


@pytest.mark.parametrize("huge", [float("nan"), float("inf"), 3e38])
def test_a_row_that_overflows_spoils_nobody_elses(huge):
    x, weight, g = drawn(20, 13), drawn(8, 13, seed=1), drawn(20, 8, seed=2)
    whole = multiplied(x, weight, g)
    x[4, 3], g[4, 3] = huge, huge
    for found, wanted in zip(multiplied(x, weight, g), whole, strict=True):
        assert torch.equal(torch.cat([found[:4], found[5:]]), torch.cat([wanted[:4], wanted[5:]]))
        assert not found[4].isfinite().any()


class Net(nn.Module):
    """An objective of one layer and whatever is done with it."""

    normals = (0,)

    def __init__(self, loss) -> None:
        super().__init__()
        self.net, self.other, self.loss = nn.Linear(3, 3), nn.Linear(3, 3, bias=False), loss
        self.other.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.loss(self, x).sum(dim=-1)


@pytest.mark.parametrize(
    "loss",
    [
        lambda own, x: own.net(x) @ own.other.weight.mT + own.net.bias,
        lambda own, x: torch.matmul(own.net(x), own.other.weight),
        lambda own, x: own.other(own.net(x)[:, None].expand(-1, 2, -1)).mean(dim=1),
    ],
)
def test_products_with_other_matrices_are_exact_as_well(loss, monkeypatch):
    seen = []
    monkeypatch.setattr(
        products, "_rounded_weight", lambda w, bits, real=products._rounded_weight: seen.append(w) or real(w, bits)
    )
    _, [(a, g)] = RecordGradients(Net(loss))([drawn(5, 3)])
    assert len(seen) == 2 and a.shape == (5, 1, 4) and g.shape == (5, 1, 3)


def by_other_means(net: nn.Module, x: Tensor) -> Tensor:
    """Return a gradient that cannot be differentiated again."""
    at = x.clone().requires_grad_()
    return torch.autograd.grad(net(at).sum(), at)[0]


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        (lambda own, x: torch.einsum("bi,bi->b", own.net(x), x)[:, None], "einsum"),
        (lambda own, x: (own.net(x)[:, None] @ x[:, :, None])[:, 0], "matmul"),
        (lambda own, x: torch.bmm(own.net(x)[:, None], x[:, :, None])[:, 0], "bmm"),
        (lambda own, x: own.net(by_other_means(own.net, x)), "other means"),
        (lambda own, x: own.net.bias * x, "does not use"),
    ],
)
def test_what_is_no_product_with_weights_or_takes_gradients_by_itself_is_refused(loss, why):
    with pytest.raises(Unsuitable, match=why):
        RecordGradients(Net(loss))([drawn(5, 3)])


class Steep(nn.Module):
    """A critic of linear layers that is used on a record and its mirror, with a penalty on its slope between them."""

    normals = (1,)

    def __init__(self, act: nn.Module) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(7, 12), act, nn.Linear(12, 9), act, nn.Linear(9, 1))

    def forward(self, x: Tensor, xi: Tensor) -> Tensor:
        steepness = slope(self.net, torch.sigmoid(xi) * x).square().sum(dim=1)
        return (self.net(x) - self.net(-x))[:, 0] + 10 * ((steepness + 1e-12).sqrt() - 1) ** 2


def looped(objective: Steep, x: Tensor, xi: Tensor) -> Tensor:
    """Return each record's gradient in float64, by a loop that differentiates twice. Shapes: [B, parameters]."""
    net, found = copy.deepcopy(objective.net).double(), []
    for row, place in zip(x.double(), torch.sigmoid(xi.double()), strict=True):
        at = (place * row).requires_grad_()
        (steep,) = torch.autograd.grad(net(at).sum(), at, create_graph=True)
        loss = (net(row) - net(-row))[0] + 10 * ((steep.square().sum() + 1e-12).sqrt() - 1) ** 2
        gradients = torch.autograd.grad(loss, list(net.parameters()), allow_unused=True, materialize_grads=True)
        found.append(torch.cat([own.flatten() for own in gradients]))
    return torch.stack(found)


@pytest.mark.parametrize("act", [nn.SiLU(), nn.LeakyReLU(0.2), nn.Tanh(), nn.Softplus()])
def test_a_gradient_of_slopes_is_that_of_a_loop_over_records_and_of_vectors(act):
    torch.manual_seed(0)
    objective, x, xi = Steep(act), 3 * drawn(64, 7), drawn(64, 1, seed=5)
    _, terms = RecordGradients(objective)([x, xi])
    matrices = [torch.einsum("blo,bli->boi", g, a) for a, g in terms]
    found = torch.cat([own for m in matrices for own in (m[..., :-1].flatten(1), m[..., -1])], dim=1)
    _, [(formed,)] = FormedGradients(objective)([x, xi])
    wanted = looped(objective, x, xi)
    assert float((found - wanted).norm() / wanted.norm()) < 1e-6
    assert float((formed - wanted).norm() / wanted.norm()) < 1e-6


def test_slopes_are_the_same_bits_wherever_a_record_lies():
    objective = Steep(nn.SiLU())
    assert alike_everywhere(RecordGradients(objective), (drawn(3, 7),), 128)
    sgd = DpSgd(objective, SgdSpec(groups="layers-biases", bounds="quantile"), Noise(1.0, 1000.0), bytes(32))
    assert isinstance(sgd.gradients, RecordGradients)
    x = 3 * drawn(90, 7)
    whole, less, own = (sgd._clipped_sum((x,), np.array(batch)) for batch in (range(90), range(1, 90), [0]))
    assert np.abs(whole - less - own).max() <= 1 and sum(int(step) ** 2 for step in whole - less) <= 2**40
