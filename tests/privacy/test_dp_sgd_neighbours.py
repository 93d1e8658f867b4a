"""DP-SGD on neighbours: with the randomness coupled, one record moves a step by one clip norm, counted in integers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks.trainings import exact
from dpmodels.audit.made import pictures
from dpmodels.mechanisms.dp_sgd import gradients, training
from dpmodels.mechanisms.dp_sgd.formed import FormedGradients
from dpmodels.mechanisms.dp_sgd.gradients import RecordGradients
from dpmodels.mechanisms.dp_sgd.groups import ClipGroups, layer_groups
from dpmodels.mechanisms.dp_sgd.hooked import HookedGradients
from dpmodels.mechanisms.dp_sgd.places import alike_everywhere
from dpmodels.mechanisms.dp_sgd.randomness import KeyStream
from dpmodels.mechanisms.dp_sgd.spec import Noise, SgdSpec
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from dpmodels.methods.registry import create
from dpmodels.privacy import Sensitive
from tests.kit.dp_sgd import Critic, crosses
from tests.kit.operator_networks import listing
from tests.kit.support import make_records, make_schema

KEY = bytes(range(32))
SENSITIVITY = 2**20
ROWS = 81


class Sharp(nn.Module):
    """An objective that lives by its latent draws: whoever gets other draws gets another gradient."""

    normals = (2, 3)

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 8)
        with torch.no_grad():
            self.net.weight.fill_(0.5), self.net.bias.zero_()

    def forward(self, x: Tensor, xi: Tensor) -> Tensor:
        return 100 * torch.sin(10 * self.net(x[:, None] + xi)).sum(dim=(1, 2))


def sharp() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Sharp(), (torch.randn(ROWS, 3, generator=torch.Generator().manual_seed(0)),)


def system_of(method: str, schema, records, **changes: object) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return the objective of a method and what it reads, with the looks left without noise."""
    parameters = changes if "gan" in changes else {"vae": {"hidden": 8, "imitation_steps": 5}, **changes}
    built = create(method, parameters, {})
    system = built.design(built.settled(schema), schema)
    estimate, data = exact(system, records)
    return system.objective(estimate, 0, start=True), tuple(tensor[:ROWS] for tensor in data.reveal())


def operators(alias: str, gan: dict[str, object]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return a GAN of images whose critic an operator brings; its loss has no gradient of a gradient."""
    rows = pictures.make_schema(), pictures.make_records(ROWS)
    with listing():
        objective, data = system_of("dp-gan", *rows, gan={**gan, "penalty": 0}, critic=alias)
    assert training.way_of(objective) is HookedGradients
    return objective, data


GAN = {"latent": 4, "hidden": 16, "critic_hidden": 16, "channels": 8, "generator_batch": 8, "penalty": 10}

OBJECTIVES: dict[str, Callable[[], tuple[nn.Module, tuple[Tensor, ...]]]] = {
    "sharp": sharp,
    "p3gm": lambda: system_of("p3gm", make_schema(), make_records(ROWS)),
    "p3gm-ae": lambda: system_of("p3gm-ae", make_schema(), make_records(ROWS)),
    "dp-vae": lambda: system_of("dp-vae", make_schema(), make_records(ROWS), latent=4),
    "dp-gan": lambda: system_of("dp-gan", make_schema(), make_records(ROWS), gan={**GAN, "loss": "wgan-gp"}),
    "dpkg, images": lambda: system_of(
        "dpkg", pictures.make_schema(), pictures.make_records(ROWS), clusters=1, gan={**GAN, "penalty": 0}
    ),
    "dpkg, formed images": lambda: system_of(
        "dpkg", pictures.make_schema(), pictures.make_records(ROWS), clusters=1, gan={**GAN, "convolutions": True}
    ),
    "dp-gan, formed by hooks": lambda: operators("convolution", GAN),
    "dpkg, formed by hooks": lambda: operators("recurrent", {**GAN, "loss": "wgan-gp"}),
    "dp-gm, images": lambda: system_of("dp-gm", pictures.make_schema(), pictures.make_records(ROWS), clusters=1),
}


def in_groups(objective: nn.Module, scaled: bool) -> ClipGroups:
    """Return each layer, and all biases, as a group with a norm of its own."""
    members = layer_groups(objective, biases_apart=True)
    return ClipGroups.of(members, [0.2 * 2.0**g for g in range(len(members))], scaled=scaled)


OPTIONS: dict[str, Callable[[nn.Module], dict[str, Any]]] = {
    "dp-vae, in groups": lambda own: {"groups": in_groups(own, scaled=False)},
    "sharp, in scaled groups": lambda own: {"groups": in_groups(own, scaled=True)},
    "sharp, formed": lambda own: {"gradients": FormedGradients},
    "critic, formed in groups": lambda own: {"groups": in_groups(own, scaled=True)},
}
OBJECTIVES |= {name: OBJECTIVES[name.split(",")[0]] for name in OPTIONS if not name.startswith("critic")}
OBJECTIVES["critic, formed in groups"] = lambda: (Critic(), (crosses(ROWS),))
LINEAR = [name for name in OBJECTIVES if "formed" not in name]


def start(name: str, records: float = 1000.0, **spec: float) -> tuple[DpSgd, tuple[Tensor, ...]]:
    torch.manual_seed(0)
    objective, rows = OBJECTIVES[name]()
    options = OPTIONS[name](objective) if name in OPTIONS else {}
    sgd = DpSgd(objective, SgdSpec(**spec), Noise(1.0, records), KEY, **options)
    if not alike_everywhere(sgd.gradients, rows, sgd.block):
        assert name not in LINEAR, "exact products are the same bits on every machine"
        sgd.block = 1
    return sgd, rows


def squared(steps: np.ndarray) -> int:
    """Return a squared norm in Python's integers."""
    return sum(int(step) ** 2 for step in steps)


@pytest.mark.parametrize("who", [0, 20, ROWS - 1])
@pytest.mark.parametrize("records", [100.0, 1000.0])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_record_first_in_the_middle_or_last_adds_its_own_gradient_and_moves_nobody_elses(name, records, who):
    """With 100 records a block is smaller than the batch, so whoever is after it moves, some to another block."""
    sgd, rows = start(name, records, sampling_probability=0.04)
    everybody = np.arange(ROWS)
    units = [
        sum(sgd._block_sum(rows, batch[i : i + sgd.block]) for i in range(0, len(batch), sgd.block))
        for batch in (everybody, np.delete(everybody, who), np.array([who]))
    ]
    assert torch.equal(units[0] - units[1], units[2])
    assert units[2].any()
    sums = [sgd._clipped_sum(rows, batch) for batch in (everybody, np.delete(everybody, who))]
    assert 0 < squared(sums[0] - sums[1]) <= SENSITIVITY**2


@pytest.mark.parametrize("who", [0, 20, ROWS - 1])
def test_a_record_that_overflows_moves_nobody_elses_draws(who):
    sgd, (x,) = start("sharp")
    x[who] = 3e38
    everybody = np.arange(ROWS)
    sums = [sgd._clipped_sum((x,), batch) for batch in (everybody, np.delete(everybody, who))]
    assert np.array_equal(*sums)


@pytest.mark.parametrize("name", [name for name in LINEAR if "groups" not in name])
def test_the_factors_of_a_record_are_the_same_bits_wherever_in_its_block_it_lies(name, monkeypatch):
    seen: list[list[tuple[Tensor, Tensor]]] = []

    def kept(*args, real=gradients.lattice_factors):
        seen.append(real(*args))
        return seen[-1]

    monkeypatch.setattr(gradients, "lattice_factors", kept)
    sgd, rows = start(name, 4000.0)
    order = np.random.default_rng(0).permutation(ROWS)
    for batch in (np.arange(ROWS), np.arange(1, ROWS), order):
        sgd._block_sum(rows, batch)
    for all_of_them, without, shuffled in zip(*seen, strict=True):
        for factor, rest, other in zip(all_of_them, without, shuffled, strict=True):
            assert torch.equal(factor[1:ROWS], rest[: ROWS - 1])
            assert torch.equal(factor[order], other[:ROWS])


@pytest.mark.parametrize("who", [0, 20, ROWS - 1])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("strategy", [RecordGradients, FormedGradients])
def test_a_record_at_the_norm_of_every_group_moves_a_sum_by_what_is_charged_for_and_no_less(strategy, scaled, who):
    """The worst neighbour there is: groups that were each charged as if alone would let it move the sum by sqrt(2)."""
    objective, (x,) = sharp()
    groups = ClipGroups.of(layer_groups(objective, biases_apart=True), [0.5, 3.0], scaled=scaled)
    sgd = DpSgd(objective, SgdSpec(), Noise(1.0, 1000.0), KEY, groups=groups, gradients=strategy)
    everybody = np.arange(ROWS)
    sgd.block = sgd.block if alike_everywhere(sgd.gradients, (x,), sgd.block) else 1
    sums = [sgd._clipped_sum((x,), batch) for batch in (everybody, np.delete(everybody, who))]
    assert 0.99 * SENSITIVITY**2 < squared(sums[0] - sums[1]) <= SENSITIVITY**2


class Aligned(nn.Module):
    """A gradient that is the row itself, so that legal rows can all pull one way."""

    normals = (0,)

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(1, 1, bias=False)

    def forward(self, x: Tensor, xi: Tensor) -> Tensor:
        return self.net(x)[:, 0]


def rows_that_drift(block: int, binade: int, steps: int) -> Tensor:
    """Return rows whose float32 sum drifts, the first of them the neighbour's: no gradient is even clipped.

    The sum is brought to 2**binade. Then blocks of a and blocks of b add a number of units of the last place and .51
    each, so a float32 sum rounds up; one record before them makes every block one of a and b that adds .01 over.
    """
    unit = 2.0 ** (binade - 23)
    whole, fill = round(block / 2 / unit), 2 * block * int(2**binade / 0.9 / (2 * block) + 1)
    one, other = (whole + 0.51) * unit / block, (whole + block // 2 + 0.51) * unit / block
    pattern = torch.tensor([one, other]).repeat_interleave(block).repeat(steps // 2)
    return torch.cat([torch.tensor([0.99]), torch.full((fill,), 0.9), pattern])[:, None]


@pytest.mark.parametrize(("micro_batch", "binade", "steps", "sign"), [(16, 12, 400, -1), (4096, 16, 60, 1)])
def test_thousands_of_records_that_pull_one_way_move_by_their_neighbour_alone(micro_batch, binade, steps, sign):
    """Added up in float32, these very sums differed by 1.1 clip norms."""
    sgd = DpSgd(Aligned(), SgdSpec(micro_batch=micro_batch), Noise(1.0, 5e6), KEY)
    x = rows_that_drift(micro_batch, binade, steps)
    x[0] *= sign
    sums = [sgd._clipped_sum((x,), np.arange(first, len(x))) for first in (0, 1)]
    own = sgd._clipped_sum((x,), np.array([0]))
    assert squared(sums[0] - sums[1]) <= SENSITIVITY**2
    assert abs(int(own[0])) > 0.98 * SENSITIVITY and np.abs(sums[0] - sums[1] - own).max() <= 1


class Coupled(KeyStream):
    """The stream of a step in which one record never is in the batch, and everybody else is as ever."""

    def poisson_batch(self, rows: int, probability: float) -> np.ndarray:
        batch = super().poisson_batch(rows, probability)
        return batch[batch != 0]


def released(sgd: DpSgd, rows: tuple[Tensor, ...], monkeypatch, noisy: list[np.ndarray] | None = None):
    """Train; return what every step summed and released, with the noise drawn, or such that it releases ``noisy``."""
    sums, out = [], []
    real_sum, real_noise = sgd._clipped_sum, sgd._noise

    def clipped_sum(data, batch):
        sums.append(real_sum(data, batch))
        return sums[-1]

    def noise(stream, count):
        drawn = real_noise(stream, count) if noisy is None else noisy[len(out)] - sums[-1]
        out.append(sums[-1] + drawn)
        return drawn

    monkeypatch.setattr(sgd, "_clipped_sum", clipped_sum)
    monkeypatch.setattr(sgd, "_noise", noise)
    list(sgd.train(Sensitive(rows)))
    sgd.load_mean()
    return sums, out


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("steps", [1, 12])
@pytest.mark.nightly_if("1-*")  # the first of twelve steps is one
def test_a_training_on_a_neighbour_released_alike_has_the_same_weights_and_noise_a_clip_norm_apart(
    name, steps, monkeypatch
):
    """The weights are made of the released integers alone, and at every step one record moves these by C at most."""
    spec = {"steps": steps, "sampling_probability": 0.5}
    (one, rows), (two, _) = start(name, 40.0, **spec), start(name, 40.0, **spec)
    sums, noisy = released(one, rows, monkeypatch)
    monkeypatch.setattr(training, "KeyStream", Coupled)
    others, again = released(two, rows, monkeypatch, noisy)
    assert len(sums) == steps and all(np.array_equal(a, b) for a, b in zip(noisy, again, strict=True))
    apart = [squared(a - b) for a, b in zip(sums, others, strict=True)]
    assert max(apart) <= SENSITIVITY**2
    if steps > 1:
        assert max(apart) > 0 and min(apart) == 0  # it is in some batches and not in others
    for a, b in zip(one.parameters, two.parameters, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("count", [0, 1, ROWS])
def test_the_divisor_is_the_released_number_whatever_the_batch_holds(count, monkeypatch):
    """The size of the private batch reaches nothing: not the loss, not the gradient's scale, not an empty batch's."""
    sgd, rows = start("sharp", 73.0, sampling_probability=0.5, steps=1, clip_norm=0.25)
    seen: list[Tensor] = []
    monkeypatch.setattr(sgd.adam, "step", lambda: seen.append(torch.cat([p.grad.flatten() for p in sgd.parameters])))
    _, (noisy,) = released(sgd, tuple(tensor[:count] for tensor in rows), monkeypatch)
    wanted = torch.from_numpy(noisy * 2.0**-20 * 0.25 / (0.5 * 73.0))
    assert torch.allclose(seen[0].double(), wanted, rtol=1e-6, atol=0)
