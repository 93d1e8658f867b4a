"""Clip groups: each within its own norm, noise of the scale that is charged, and one group as it always was."""

import hashlib
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.mechanisms.dp_sgd.formed import FormedGradients
from dpmodels.mechanisms.dp_sgd.gradients import RecordGradients
from dpmodels.mechanisms.dp_sgd.groups import ClipGroups, layer_groups
from dpmodels.mechanisms.dp_sgd.randomness import KeyStream
from dpmodels.mechanisms.dp_sgd.spec import Noise, SgdSpec
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from tests.kit.dp_sgd import KEY, NoDraws, Regression, make_rows
from tests.kit.errors import refused
from tests.kit.noise import has_stddev

STRATEGIES = [RecordGradients, FormedGradients]
NORMS = [0.3, 1.0, 4.0]


def make(strategy, scaled: bool, objective: nn.Module | None = None) -> DpSgd:
    """Return a training whose two layers' weights and all biases are three groups."""
    own = objective or Regression()
    groups = ClipGroups.of(layer_groups(own, biases_apart=True), NORMS, scaled=scaled)
    return DpSgd(own, SgdSpec(steps=10), Noise(1.7, 100.0), KEY, groups=groups, gradients=strategy)


def parts(sgd: DpSgd, whole: np.ndarray) -> list[Tensor]:
    """Return a lattice sum as a real vector for each group."""
    real = torch.from_numpy(whole * 2.0**-20) * sgd.groups.units()
    return [real[own] for own in sgd.groups.members]


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [1.0, 1e4, 1e12])
def test_each_group_of_a_record_is_within_its_norm_and_all_of_them_within_one_sensitivity(size, strategy, scaled):
    sgd, rows, reached = make(strategy, scaled), make_rows(12, size), 0
    for who in range(12):
        total = sgd._clipped_sum(rows, np.array([who]))
        assert sum(int(step) ** 2 for step in total) <= 2**40
        norms = [float(part.norm()) for part in parts(sgd, total)]
        assert all(found <= 1.00001 * norm for found, norm in zip(norms, NORMS, strict=True))
        reached += sum(int(step) ** 2 for step in total) > 0.99 * 2**40
    assert reached >= 8 or size == 1.0  # clipped, not lost: what is charged is what a record can do


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_groups_are_the_gradient_clipped_group_by_group(strategy, scaled):
    sgd, (x, y) = make(strategy, scaled, NoDraws()), make_rows(30)
    wanted: list[Tensor] = [torch.zeros(len(own)) for own in sgd.groups.members]
    for i in range(30):
        model = NoDraws()
        loss = model(x[i : i + 1], y[i : i + 1], torch.zeros(1, 0))[0]
        flat = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])
        for part, own, norm in zip(wanted, sgd.groups.members, NORMS, strict=True):
            part += flat[own] * min(1.0, norm * (1 - 2.0**-10) / max(float(flat[own].norm()), 1e-9))
    for found, part in zip(parts(sgd, sgd._clipped_sum((x, y), np.arange(30))), wanted, strict=True):
        assert torch.allclose(found.float(), part, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_group_is_what_a_clip_norm_alone_is(strategy):
    rows, spec = make_rows(50), SgdSpec(clip_norm=0.5)
    one = ClipGroups.of([torch.randperm(21)], [0.5], scaled=True)
    sums = [
        DpSgd(Regression(), spec, Noise(1.0, 100.0), KEY, groups=groups, gradients=strategy)._clipped_sum(
            rows, np.arange(50)
        )
        for groups in (None, one)
    ]
    assert np.array_equal(*sums) and sums[0].any()


@pytest.mark.skipif(not torch.backends.cpu.get_cpu_capability().startswith("AVX"), reason="the bits are of AVX")
def test_one_group_of_linear_layers_has_the_bits_it_had_before_there_were_groups():
    total = DpSgd(NoDraws(), SgdSpec(), Noise(1.0, 100.0), KEY)._clipped_sum(make_rows(50), np.arange(50))
    assert hashlib.sha256(total.astype("<i8").tobytes()).hexdigest()[:16] == "b686bafab2c1689a"


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 3 / 2])
@pytest.mark.parametrize("scaled", [False, True])
def test_the_noise_of_each_group_has_the_scale_that_is_charged(scaled, factor):
    objective = nn.Linear(3000, 2)
    objective.normals = (0,)  # type: ignore[assignment]
    groups = ClipGroups.of([torch.arange(3000), torch.arange(3000, 6002)], [0.5, 3.0], scaled=scaled)
    sgd = DpSgd(objective, SgdSpec(), Noise(1.7, 100.0), KEY, groups=groups, gradients=FormedGradients)
    found = parts(sgd, sgd._noise(KeyStream(KEY, 3), 6002))
    wanted = [1.7 * math.sqrt(2) * norm for norm in (0.5, 3.0)] if scaled else [1.7 * math.hypot(0.5, 3.0)] * 2
    for part, stddev in zip(found, wanted, strict=True):
        assert has_stddev(part.numpy(), factor * stddev) == (factor == 1.0)


def test_a_step_divides_every_group_by_the_expected_batch(monkeypatch):
    sgd, seen = make(RecordGradients, True), list[Tensor]()
    monkeypatch.setattr(sgd.adam, "step", lambda: seen.append(torch.cat([p.grad.flatten() for p in sgd.parameters])))
    sgd._descend(np.arange(21) << 20)
    assert torch.allclose(seen[0].double(), torch.arange(21) * sgd.groups.units() / (0.02 * 100.0), rtol=1e-6)


def test_groups_that_are_no_partition_and_norms_that_are_none_are_refused():
    for members in ([torch.arange(3), torch.arange(2, 5)], [torch.tensor([0, 2])], [torch.arange(3), torch.arange(0)]):
        with pytest.raises(Unsuitable, match="into one group"):
            ClipGroups.of(members, [1.0] * len(members))
    for norms in ([1.0, 1.0], [0.0], [math.inf]):
        with refused(InvalidArgument, name="clip_norms", value=norms):
            ClipGroups.of([torch.arange(3)], norms)
    with pytest.raises(Unsuitable, match="20 coordinates of 21"):
        DpSgd(Regression(), SgdSpec(), Noise(1.0, 1.0), KEY, groups=ClipGroups.one(20, 1.0))


def test_a_part_of_a_weight_is_a_group_of_vectors_but_not_of_linear_layers():
    groups = ClipGroups.of([torch.arange(2), torch.arange(2, 21)], [1.0, 1.0])
    made = [
        DpSgd(Regression(), SgdSpec(), Noise(1.0, 1.0), KEY, groups=groups, gradients=strategy)
        for strategy in STRATEGIES
    ]
    with pytest.raises(Unsuitable, match="part of a weight"):
        made[0]._clipped_sum(make_rows(3), np.arange(3))
    assert made[1]._clipped_sum(make_rows(3), np.arange(3)).any()


def test_groups_of_layers_hold_weights_with_their_bias_or_all_biases_apart():
    assert [len(own) for own in layer_groups(Regression())] == [16, 5]
    assert [len(own) for own in layer_groups(Regression(), biases_apart=True)] == [12, 4, 5]
    assert torch.cat(layer_groups(Regression())).tolist() == list(range(21))
