"""Critic and generator: the gradient of a record, the steps of the generator, where a refiner starts, and resuming."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

from dpmodels.audit.made import pictures
from dpmodels.embeddings.vectors import Vectors
from dpmodels.generators.gan import Adversary, Pool
from dpmodels.generators.heads import head_of
from dpmodels.generators.sampling import draw_cells
from dpmodels.generators.sizes import GanSpec
from dpmodels.mechanisms.dp_sgd.formed import FormedGradients
from dpmodels.mechanisms.dp_sgd.gradients import RecordGradients
from dpmodels.mechanisms.dp_sgd.spec import Noise, SgdSpec
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from dpmodels.privacy import Sensitive
from tests.kit import support

SMALL = {
    "latent": 4,
    "hidden": 16,
    "critic_hidden": 16,
    "channels": 8,
    "penalty": 10,
    "generator_batch": 16,
    "critic_steps": 2,
}
DATA = {"ink": pictures, "maps": pictures, "cells": support, "values": support}
SEEN = pytest.mark.parametrize("kind", DATA)


def adversary(kind: str, refines: bool = False, **changes: object) -> tuple[Adversary, tuple[Tensor, ...]]:
    """Return an objective, with a pool of its own records if it refines, and the labels and targets of 70 records."""
    changes |= {"convolutions": kind == "maps"}
    vectors = Vectors(DATA[kind].make_schema(), 8, 1.0, kind if DATA[kind] is support else "auto")
    rows, head = vectors.rows([DATA[kind].make_records(70)]), head_of(vectors, torch.zeros(vectors.dim))
    made = Adversary(vectors, head, torch.tensor([30.0, 40.0]), GanSpec(**{**SMALL, **changes}), refines, SgdSpec())
    label = torch.from_numpy(rows.label)
    if refines:
        made.start_from(Pool.of(rows.target, label, torch.ones(70, dtype=torch.bool), 2))
    return made, (label, rows.target)


def normals(made: Adversary, rows: int = 70) -> Tensor:
    return torch.randn(rows, *made.normals, generator=torch.Generator().manual_seed(1))


def looped(made: Adversary, rows: tuple[Tensor, ...], xi: Tensor) -> Tensor:
    """Return each record's gradient in float64, by a loop that differentiates twice. Shapes: [B, weights]."""
    critic, found = copy.deepcopy(made.critic).double(), []
    weights = list(critic.parameters())
    real, fake = made.head.shown(rows[1]).double(), made.fake(rows[0], xi).double()
    place = torch.special.ndtr(xi[:, SMALL["latent"]]).double()
    for i in range(len(real)):
        y, x, g = rows[0][i : i + 1], real[i : i + 1], fake[i : i + 1]
        at = (place[i] * x + (1 - place[i]) * g).requires_grad_()
        (steep,) = torch.autograd.grad(critic(at, y).sum(), at, create_graph=True)
        told, taken = critic(g, y)[0], critic(x, y)[0]
        loss = told - taken
        if made.spec.loss == "non-saturating":
            loss = torch.log1p(told.exp()) + torch.log1p((-taken).exp())
        loss = loss + made.spec.penalty * ((steep.square().sum() + 1e-12).sqrt() - 1) ** 2
        found.append(torch.cat([own.flatten() for own in torch.autograd.grad(loss, weights, materialize_grads=True)]))
    return torch.stack(found)


@pytest.mark.parametrize("loss", ["wgan-gp", "non-saturating"])
@pytest.mark.parametrize("refines", [False, True])
@SEEN
def test_the_gradient_of_a_record_and_its_penalty_is_that_of_a_loop_over_records(kind, refines, loss):
    made, rows = adversary(kind, refines, loss=loss)
    rows, xi = tuple(tensor[:64] for tensor in rows), normals(made, 64)
    wanted = looped(made, rows, xi)
    _, [(found,)] = FormedGradients(made)([*rows, xi])
    assert float((found - wanted).norm() / wanted.norm()) < 1e-6
    if kind != "maps":
        _, terms = RecordGradients(made)([*rows, xi])
        matrices = [torch.einsum("blo,bli->boi", g, a) for a, g in terms]
        found = torch.cat([own for m in matrices for own in (m[..., :-1].flatten(1), m[..., -1])], dim=1)
        assert float((found - wanted).norm() / wanted.norm()) < 1e-6
    without, _ = adversary(kind, refines, loss=loss, penalty=0)
    assert float((found - looped(without, rows, xi)).norm() / wanted.norm()) > 0.1  # so the penalty is a part of it


@SEEN
def test_the_generator_steps_when_it_is_due_and_moves_nothing_of_the_critic(kind):
    made, _ = adversary(kind)
    before, critic = copy.deepcopy(made.generator.state_dict()), copy.deepcopy(made.critic.state_dict())
    moved = []
    for step in range(1, 7):
        made.follow(step)
        moved.append(made.generator_steps)
        assert all(not weight.requires_grad for weight in made.generator.parameters())
    assert moved == [0, 1, 1, 2, 2, 3]
    assert any(not torch.equal(own, before[name]) for name, own in made.generator.state_dict().items())
    assert all(torch.equal(own, critic[name]) for name, own in made.critic.state_dict().items())
    assert all(weight.grad is None for weight in made.critic.parameters())
    assert any(not torch.equal(*pair) for pair in zip(made.mean.parameters(), made.generator.parameters(), strict=True))


def test_means_of_evenly_spread_steps_of_the_second_half_are_released():
    made, _ = adversary("values", critic_steps=1, snapshots=3)
    means = {}
    for step in range(1, made.sgd.steps + 1):
        made.follow(step)
        means[step] = copy.deepcopy(made.mean.state_dict())
    assert made.snapshot_steps == [600, 500, 400]
    for step, own in zip(made.snapshot_steps, made.released, strict=True):
        assert all(torch.equal(weight, means[step][name]) for name, weight in own.state_dict().items())


@pytest.mark.parametrize("kind", ["ink", "maps"])
def test_a_critic_of_squares_of_pixels_sees_their_means_and_nothing_more(kind):
    made, (y, target) = adversary(kind, critic_pixels=2)
    column = pictures.make_schema().image[1]
    seen = made.head.shown(target)
    wide = seen.view(-1, column.height // 2, 2, column.width // 2, 2)
    means = wide.mean(dim=(2, 4), keepdim=True).expand_as(wide).reshape_as(seen)
    assert not torch.equal(seen, means)
    torch.testing.assert_close(made.critic(seen, y), made.critic(means, y))
    assert not torch.allclose(made.critic(seen, y), made.critic(seen.roll(1, dims=1), y))


def test_a_critic_that_takes_fakes_for_records_gets_twice_the_steps_and_one_that_tells_them_keeps_its_own():
    for bias, paces in ((5.0, {2, 4, 8}), (-5.0, {2})):
        made, _ = adversary("cells", loss="non-saturating", told=0.6, most_critic_steps=8)
        with torch.no_grad():
            made.critic.net[-1].bias.fill_(bias)
        seen = set()
        for step in range(1, 400):
            seen.add(made.every)
            made.follow(step)
        assert seen == paces


@SEEN
def test_a_refiner_starts_at_the_records_of_its_class_that_it_refines(kind):
    made, (y, target) = adversary(kind, refines=True)
    fakes, seen = made.fake(y, normals(made)), made.head.shown(target)
    for fake, own in zip(fakes, y, strict=True):
        apart = (seen[y == own] - fake).abs().amax(dim=1)
        assert float(apart.min()) < 1e-3  # but for one cell in ten thousand
    assert len({tuple(fake.tolist()) for fake in fakes}) > 20


def test_an_anchor_holds_a_refiner_near_what_it_refines():
    moved = []
    for anchor in (0.0, 100.0):
        made, (y, _) = adversary("ink", refines=True, anchor=anchor)
        for step in range(1, 41):
            made.follow(step)
        moved.append(float((made.fake(y, normals(made)) - made.base(y, normals(made))).square().mean()))
    assert 0 < 10 * moved[1] < moved[0]


def test_a_class_that_a_cluster_lacks_is_refined_from_other_clusters():
    label, target = torch.tensor([0, 0, 1, 1]), torch.arange(4)[:, None]
    pool = Pool.of(target, label, torch.tensor([True, False, False, False]), 3)
    parts = [
        pool.target[first : first + number, 0].tolist() for first, number in zip(pool.first, pool.number, strict=True)
    ]
    assert parts == [[0], [2, 3], [0, 1, 2, 3]]


@SEEN
def test_what_is_drawn_for_a_critic_has_the_shares_of_the_softmax_and_a_gradient(kind):
    made, _ = adversary(kind)
    out = torch.randn(1, made.head.outputs, generator=torch.Generator().manual_seed(0)).requires_grad_()
    uniform = torch.rand(20_000, made.head.outputs, generator=torch.Generator().manual_seed(0)).clamp(1e-6, 1 - 1e-6)
    seen = made.head.faked(out.expand(20_000, -1), uniform, 0.7)
    if kind == "cells":
        wanted = torch.cat([torch.softmax(own, dim=1) for own in torch.split(out, made.head.sizes, dim=1)], dim=1)
        assert torch.allclose(seen.detach().mean(dim=0), wanted.detach()[0], atol=0.015)
        assert torch.allclose(seen.detach(), seen.detach().round(), atol=1e-5)
    else:
        assert seen.min() >= -1e-6 and seen.max() <= 1 + 1e-6
    torch.autograd.backward((seen * torch.linspace(0, 1, seen.shape[1])).sum())
    assert out.grad is not None and float(out.grad.abs().sum()) > 0


@pytest.mark.parametrize("refines", [False, True])
@SEEN
def test_a_training_that_goes_on_is_the_training_in_one_go(kind, refines):
    spec = SgdSpec(steps=9, sampling_probability=0.3)
    changes = {"loss": "non-saturating", "told": 0.99, "most_critic_steps": 3, "critic_steps": 1}
    changes |= {"snapshots": 3, "critic_pixels": 2}

    def begun() -> tuple[Adversary, DpSgd, Sensitive]:
        made, rows = adversary(kind, refines, **changes)
        return made, DpSgd(made, spec, Noise(1.0, 70.0), bytes(32)), Sensitive(rows)

    whole, sgd, rows = begun()
    list(sgd.train(rows))
    _, first, rows = begun()
    for step in first.train(rows):
        if step == 5:
            break
    state = {name: tensor.clone() for name, tensor in first.tensors().items()}
    again, second, rows = begun()
    second.restore(state)
    list(second.train(rows))
    assert whole.generator_steps == again.generator_steps > 2 and (kind == "maps" or whole.every > 1)
    for name in ("generator", "released", "critic"):
        one, two = (getattr(each, name).state_dict() for each in (whole, again))
        assert all(torch.equal(one[key], two[key]) for key in one)


COUNTS = [
    [[5.0, -3.0], [4.0, -9.0], [0.0, 11.0]],  # the second adds up to less than nothing
    [[-2.0, 1.0], [0.0, 0.0], [3.0, 0.0]],
    [[-1.0, -1.0], [-1.0, 7.0], [-4.0, 0.0]],
]


@pytest.mark.parametrize("counts", COUNTS)
def test_networks_and_classes_are_drawn_by_their_counts_and_those_without_never(counts):
    released = torch.tensor(counts, dtype=torch.float64)
    kept = released.clamp_min(0) * (released.sum(dim=1, keepdim=True) > 0)
    for seed in range(50):
        which, y = draw_cells(released, 997, torch.Generator().manual_seed(seed))
        drawn = torch.bincount(which * 2 + y, minlength=6).view(3, 2)
        assert not drawn[kept == 0].any()
        assert (drawn - 997 * kept / kept.sum()).abs().max() <= 1


def test_where_nothing_is_left_to_draw_by_every_cell_is():
    which, y = draw_cells(torch.full((2, 2), -1.0, dtype=torch.float64), 8, torch.Generator().manual_seed(0))
    assert np.bincount((which * 2 + y).numpy()).tolist() == [2, 2, 2, 2]
