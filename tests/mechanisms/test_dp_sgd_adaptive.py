"""Groups and bounds that follow a training: one sensitivity with counts, nothing private, the same when resumed."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from dpmodels.errors import Unsuitable
from dpmodels.mechanisms.dp_sgd.adaptive import FollowingGroups
from dpmodels.mechanisms.dp_sgd.density import clusters, weight_units
from dpmodels.mechanisms.dp_sgd.formed import FormedGradients
from dpmodels.mechanisms.dp_sgd.gradients import RecordGradients
from dpmodels.mechanisms.dp_sgd.groups import ClipGroups
from dpmodels.mechanisms.dp_sgd.randomness import KeyStream
from dpmodels.mechanisms.dp_sgd.spec import Noise, SgdSpec
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from dpmodels.privacy import Sensitive
from dpmodels.releases.state import DrawState
from tests.kit.dp_sgd import KEY, Critic, Regression, crosses, make_rows
from tests.kit.noise import has_stddev

STRATEGIES = [RecordGradients, FormedGradients]
KINDS = [
    (groups, bounds)
    for groups in ("one", "layers", "layers-biases", "density")
    for bounds in ("fixed", "quantile", "noised")
    if (groups, bounds) != ("one", "noised")
]
WORST = ["spread", "one layer", "one coordinate", "huge", "none", "not a number", "infinite"]


class Linear(nn.Module):
    """Layers whose gradient is the row itself: a record chooses any gradient that it likes."""

    normals = (0,)

    def __init__(self, sizes: tuple[int, ...] = (5, 1, 9)) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(size, 1) for size in sizes)
        self.sizes = [size + 1 for size in sizes]

    def forward(self, x: Tensor, xi: Tensor) -> Tensor:
        parts = zip(self.layers, torch.split(x, self.sizes, dim=1), strict=True)
        return torch.stack([layer.weight[0] @ own[:, :-1].mT + layer.bias * own[:, -1] for layer, own in parts]).sum(0)


class Layered(Linear):
    """The same of layers that are called, whose biases get a gradient of 1."""

    def forward(self, x: Tensor, xi: Tensor) -> Tensor:
        parts = zip(self.layers, torch.split(x, self.sizes, dim=1), strict=True)
        return torch.stack([layer(own[:, :-1])[:, 0] * own[:, -1] for layer, own in parts]).sum(0)


def worst(kind: str, width: int) -> Tensor:
    """Return the one row of a record that does its worst. Shapes: [1, width]."""
    row = torch.randn(1, width, generator=torch.Generator().manual_seed(4)) * 50
    if kind in ("one layer", "one coordinate", "none"):
        row[:, {"one layer": 6, "one coordinate": 1, "none": 0}[kind] :] = 0
    return row * {"huge": 1e30, "not a number": math.nan, "infinite": math.inf}.get(kind, 1.0)


def training(strategy, groups: str, bounds: str, **changes) -> DpSgd:
    objective = Linear() if strategy is FormedGradients else Layered()
    spec = SgdSpec(
        **{"steps": 12, "groups": groups, "bounds": bounds, "form_every": 4, "quantile_share": 0.3} | changes
    )
    return DpSgd(objective, spec, Noise(1.0, 200.0), KEY, gradients=strategy)


def squared(steps: np.ndarray) -> int:
    return sum(int(step) ** 2 for step in steps)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("groups", "bounds"), KINDS)
@pytest.mark.nightly_if(
    "layers-noised-*",
    "layers-biases-fixed-*",
    "layers-biases-noised-RecordGradients",
    "density-noised-FormedGradients",
    "density-fixed-*",
)  # beside each of groups, bounds and strategies
def test_the_worst_record_moves_gradient_and_counts_by_one_sensitivity(groups, bounds, strategy):
    """Counted on integers, at the start and after bounds and groups have moved; added first, in the middle or last."""
    sgd = training(strategy, groups, bounds)
    others = torch.randn(80, 18, generator=torch.Generator().manual_seed(7)) * torch.logspace(-2, 2, 80)[:, None]
    for _ in range(2):
        without = sgd._clipped_sum((others,), np.arange(80))
        assert len(without) == 18 + (len(sgd.groups.members) if bounds == "quantile" else 0)
        for kind, where in product(WORST, (0, 40, 80)):
            rows = torch.cat([others[:where], worst(kind, 18), others[where:]])
            assert squared(sgd._clipped_sum((rows,), np.arange(81)) - without) <= 2**40
        list(sgd.train(Sensitive((others,))))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("groups", ["one", "layers", "layers-biases"])
def test_a_record_above_every_bound_uses_the_whole_sensitivity_and_one_that_is_dropped_nothing(groups, strategy):
    sgd = training(strategy, groups, "quantile")
    own = [sgd._clipped_sum((worst(kind, 18),), np.array([0])) for kind in ("spread", "not a number", "none")]
    assert 0.99 * 2**40 < squared(own[0]) <= 2**40
    assert set(own[0][18:]) == {-sgd.following.half} and not own[1].any()
    assert set(own[2][18:]) == {sgd.following.half}


@pytest.mark.parametrize("share", [1e-3, 0.05, 0.5])
@pytest.mark.parametrize("number", [1, 7, 4000])
def test_counts_and_gradients_together_are_one_sensitivity_for_any_share_and_number_of_groups(share, number):
    groups = ClipGroups.of([torch.tensor([i]) for i in range(number)], [0.1 + i for i in range(number)], share=share)
    bound = 1 - 2.0**-10
    for one in (groups, groups.bounded([3.0 / (1 + i) for i in range(number)])):
        gradient = sum((bound * clip / noise) ** 2 for clip, noise in zip(one.clip_norms, one.noise_norms, strict=True))
        counts = number * (one.count_steps(bound, 20) * 2.0**-20) ** 2
        assert gradient <= bound**2 * (1 - share) * (1 + 2.0**-40) and counts <= bound**2 * share
        assert gradient + counts > 0.99 * bound**2


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 3 / 2])
def test_the_noise_of_counts_has_the_scale_that_is_charged(factor):
    """Over steps: what is released of a count, less what records add to it, which is nothing without records."""
    sgd, released = training(FormedGradients, "layers", "quantile", steps=1500, bound_rate=1e-9), list[np.ndarray]()
    follow = sgd.following.follow
    sgd.following.follow = lambda taken, noisy: (released.append(noisy[18:]), follow(taken, noisy))  # type: ignore
    list(sgd.train(Sensitive((torch.zeros(0, 18),))))
    assert sgd.following.half == math.floor(2**20 * sgd.bound * math.sqrt(0.3 / 3))
    assert has_stddev(np.concatenate(released) * 2.0**-20, factor) == (factor == 1.0)


def test_noise_of_gradients_grows_by_what_the_counts_take():
    plain, counting = (training(FormedGradients, "layers", bounds).groups for bounds in ("fixed", "quantile"))
    assert np.allclose(np.divide(counting.noise_norms, plain.noise_norms), 1 / math.sqrt(1 - 0.3))
    assert math.isclose(math.hypot(*plain.clip_norms), 1.0) and plain.clip_norms == counting.clip_norms


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("quantile", [0.3, 0.8])
@pytest.mark.nightly_if("0.3-*")
def test_bounds_find_the_quantile_of_each_layers_norms(quantile, strategy):
    objective = Linear() if strategy is FormedGradients else Layered()
    randomness = torch.Generator().manual_seed(2)
    rows = torch.randn(3000, 18, generator=randomness) * torch.tensor([0.1] * 6 + [1.0] * 2 + [40.0] * 10)
    spec = SgdSpec(
        steps=80, sampling_probability=0.2, groups="layers", bounds="quantile", quantile=quantile, bound_rate=0.7
    )
    sgd = DpSgd(objective, spec, Noise(0.05, 3000.0), KEY, gradients=strategy)
    list(sgd.train(Sensitive((rows,))))
    parts = torch.split(rows, [6, 2, 10], dim=1)
    if strategy is RecordGradients:
        parts = [torch.cat([own[:, :-1], torch.ones(3000, 1)], dim=1) * own[:, -1:] for own in parts]
    found = [
        float((own.norm(dim=1) <= clip).float().mean()) for own, clip in zip(parts, sgd.groups.clip_norms, strict=True)
    ]
    assert np.abs(np.array(found) - quantile).max() < 0.05


@pytest.mark.parametrize(("groups", "bounds"), KINDS)
@pytest.mark.nightly_if("layers-noised", "layers-biases-quantile", "density-fixed", "density-quantile")
def test_nothing_but_what_was_released_is_in_groups_and_bounds(groups, bounds, monkeypatch):
    """Two trainings on data that share no record, made to release the same: their groups and bounds are the same."""
    spec = SgdSpec(steps=9, sampling_probability=0.3, groups=groups, bounds=bounds, form_every=3, density_points=1)
    released, seen = list[np.ndarray](), list[list[tuple]]()
    for which, x in enumerate((crosses(150), -5 * torch.rand(30, 1, 8, 8))):
        sgd, own = DpSgd(Critic(), spec, Noise(1.0, 150.0), KEY), list[tuple]()
        first = sgd._clipped_sum

        def total(data, batch, sgd=sgd, first=first, which=which, own=own):
            exact = first(data, batch)
            noise = sgd._noise(KeyStream(KEY, sgd.step), len(exact))
            if which == 0:
                released.append(exact + noise)
            own.append((sgd.groups.clip_norms, [places.tolist() for places in sgd.groups.members]))
            monkeypatch.setattr(sgd, "_noise", lambda stream, count: released[sgd.step] - exact)
            return exact

        monkeypatch.setattr(sgd, "_clipped_sum", total)
        real_noise = sgd._noise
        for _ in range(9):
            monkeypatch.setattr(sgd, "_noise", real_noise)
            next(iter(sgd.train(Sensitive((x,)))))
        seen.append(own)
    assert seen[0] == seen[1] and len(seen[0]) == 9
    assert (len({str(own) for own in seen[0]}) > 1) == (bounds != "fixed" or groups == "density")


@pytest.mark.parametrize("stop", [5, 6])
@pytest.mark.parametrize(("groups", "bounds"), KINDS)
@pytest.mark.nightly_if("layers-noised-*", "layers-fixed-*", "layers-biases-*", "density-fixed-*", "*-5")
def test_a_training_that_is_killed_resumes_with_the_same_bits_groups_and_bounds(groups, bounds, stop, tmp_path):
    state = DrawState(tmp_path, "key", "hash")
    rows = Sensitive((crosses(120),))
    spec = SgdSpec(steps=14, sampling_probability=0.3, groups=groups, bounds=bounds, form_every=3, density_points=1)
    straight = DpSgd(Critic(), spec, Noise(1.0, 120.0), KEY)
    for step in straight.train(rows):
        if step == stop:
            state.keep_training(0, straight.tensors())
    resumed = DpSgd(Critic(), spec, Noise(1.0, 120.0), bytes(32))
    resumed.restore(DrawState(tmp_path, "key", "hash").training(0))
    list(resumed.train(rows))
    for a, b in zip(straight.mean + straight.parameters, resumed.mean + resumed.parameters, strict=True):
        assert torch.equal(a, b)
    assert straight.groups.clip_norms == resumed.groups.clip_norms
    assert all(map(torch.equal, straight.groups.members, resumed.groups.members))
    assert {name: float(value.sum()) for name, value in straight.tensors().items()} == {
        name: float(value.sum()) for name, value in resumed.tensors().items()
    }


def followed(objective: nn.Module, **spec) -> FollowingGroups:
    own = SgdSpec(**{"form_every": 1} | spec)
    return FollowingGroups(objective, own, Noise(1.0, 100.0), 0.99, whole_tensors=False)


def test_units_of_similar_size_are_a_group_and_biases_one_of_their_own():
    net = nn.Sequential(nn.Conv2d(1, 4, 5), nn.Conv2d(4, 4, 5), nn.Linear(100, 2))
    units, biases = weight_units(net, whole_tensors=False)
    assert [len(own) for own in units] == [25] * 4 + [100] * 6 and [len(own) for own in biases] == [10]
    assert [len(own) for own in weight_units(net, whole_tensors=True)[0]] == [100, 400, 200]
    following = followed(net, groups="density", density_radius=0.5)
    assert [len(own) for own in following.current.members] == [700, 10]
    noisy = np.random.default_rng(0).normal(0, 2**20, 710)
    noisy[: 4 * 25] *= 40
    noisy[units[-1].numpy()] *= 4000  # the one that lies alone
    for _ in range(3):
        following.follow(1, np.rint(noisy).astype(np.int64))
        assert sorted(len(own) for own in following.current.members) == [10, 100, 100, 500]
    assert torch.equal(following.current.members[-1], biases[0])


def test_clusters_are_chains_of_neighbours_whatever_the_order_they_lie_in():
    units, sizes = [torch.tensor([i]) for i in range(8)], np.array([0.0, 5.0, 0.4, 5.2, 0.8, 99.0, 5.4, -50.0])
    found = [sorted(own.tolist()) for own in clusters(units, sizes, 0.5, 2)]
    assert found == [[5, 7], [0, 2, 4], [1, 3, 6]]
    assert found == [sorted(own.tolist()) for own in clusters(units, sizes, 0.5, 2)]


def test_noise_alone_forms_one_group_of_weights_and_even_bounds():
    net = nn.Sequential(nn.Linear(50, 40), nn.Linear(40, 3))
    following = followed(net, groups="density", bounds="noised")
    noise = np.random.default_rng(1).normal(0, 2**20, following.current.size)
    following.follow(1, np.rint(noise).astype(np.int64))
    assert [len(own) for own in following.current.members] == [2120, 43]


@pytest.mark.parametrize(("size", "apart"), [(30, 10), (2, 4)])
def test_noised_bounds_hand_the_clip_norm_out_by_what_the_gradients_are(size, apart):
    """A gradient of the size of the noise counts by itself: were the noise not taken off, bounds were 2 times apart."""
    net = nn.Sequential(nn.Linear(30, 30), nn.Linear(30, 30))
    following = followed(net, groups="layers", bounds="noised", clip_norm=2.0)
    noisy = np.random.default_rng(1).normal(0, 2**20, 1860)
    noisy[:930] *= size
    following.follow(1, np.rint(noisy).astype(np.int64))
    first, second = following.current.clip_norms
    assert math.isclose(math.hypot(first, second), 2.0) and first > apart * second > 0


def test_bounds_are_formed_after_so_many_steps_and_of_a_group_that_noise_hides_by_its_error():
    """Squares of n draws of noise are off by sqrt(2 / n) of their variance; what is within twice that is hidden."""
    net, steps, loud = nn.Sequential(nn.Linear(29, 1), nn.Linear(9, 1)), 4, 100.0
    following = followed(net, groups="layers", bounds="noised", form_every=steps, clip_norm=1.0)
    begun, half = following.current.clip_norms, 2.0**20
    released = np.repeat([round(loud * half), 0], [30, 10])
    for taken in range(1, steps):
        following.follow(taken, released)
        assert following.current.clip_norms == begun
    following.follow(steps, released)
    first, second = following.current.clip_norms
    hidden = 2 * math.sqrt(2 / steps) * steps * math.sqrt(10)
    assert (second / first) ** 2 == pytest.approx(hidden / (steps * (loud**2 - 1) * 30))


@pytest.mark.parametrize("bounds", ["quantile", "noised"])
@pytest.mark.parametrize("size", [0, 2**62, -(2**62)])
def test_whatever_is_released_bounds_stay_positive_and_finite(bounds, size):
    following = followed(Linear(), groups="density", bounds=bounds, bound_rate=1.0, density_points=1)
    for _ in range(60):
        following.follow(1, np.full(following.current.size + len(following.current.members), size))
        assert all(2.0**-20 <= norm <= 2.0**20 for norm in following.current.clip_norms)
        assert all(0 < norm < math.inf for norm in following.current.noise_norms)


def test_schedules_are_the_numbers_they_are_named_for():
    names = ("cosine", "constant", "late", "dpkg")
    cosine, constant, late, dpkg = (SgdSpec(schedule=name, steps=2000) for name in names)
    assert [constant.rate(taken) for taken in (0, 999, 1999)] == [2e-3] * 3
    assert cosine.rate(0) == 2e-3 and math.isclose(cosine.rate(2000), 2e-4)
    assert [late.rate(taken) for taken in (0, 1400)] == [2e-3] * 2
    assert math.isclose(late.rate(1700), 1.1e-3) and math.isclose(late.rate(2000), 2e-4)
    for step in (1, 2, 50, 999):
        assert math.isclose(dpkg.rate(step - 1), 0.1 / step + 2e-3)
    assert [dpkg.rate(step - 1) for step in (1000, 2000)] == [1e-3, 1e-3]
    sgd = DpSgd(Regression(), SgdSpec(schedule="dpkg", steps=3), Noise(1.0, 50.0), KEY)
    seen = [sgd.adam.param_groups[0]["lr"] for _ in sgd.train(Sensitive(make_rows(50)))]
    assert np.allclose(seen, [0.102, 0.052, 0.1 / 3 + 2e-3])


def test_a_plan_that_names_nothing_new_is_written_as_it_always_was():
    assert list(SgdSpec().model_dump()) == [
        "sampling_probability", "steps", "clip_norm", "learning_rate", "average", "micro_batch",
    ]  # fmt: skip
    named = SgdSpec(bounds="quantile")
    assert named.model_dump().keys() == SgdSpec.model_fields.keys() and SgdSpec(**named.model_dump()) == named
    assert SgdSpec.model_validate_json(named.model_dump_json()) == named


def test_bounds_that_have_nothing_to_follow_are_refused():
    with pytest.raises(ValidationError, match="name groups"):
        SgdSpec(bounds="noised")
    only_biases = nn.Linear(3, 3)
    only_biases.weight.requires_grad_(False)
    with pytest.raises(Unsuitable, match="trains no weights"):
        followed(only_biases, groups="density")
    with pytest.raises(Unsuitable, match="leave one of the two out"):
        DpSgd(Regression(), SgdSpec(groups="layers"), Noise(1.0, 9.0), KEY, groups=ClipGroups.one(21, 1.0))
