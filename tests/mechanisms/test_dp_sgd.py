"""DP-SGD: sampling, clipping, noise and divisor, each as it is charged for; and a resume that changes nothing."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.mechanisms.dp_sgd import training
from dpmodels.mechanisms.dp_sgd.gradients import RecordGradients
from dpmodels.mechanisms.dp_sgd.noise import rounded_gaussian
from dpmodels.mechanisms.dp_sgd.randomness import KeyStream, record_normals
from dpmodels.mechanisms.dp_sgd.spec import Noise, SgdSpec
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from dpmodels.privacy import Sensitive
from tests.kit.dp_sgd import KEY, NoDraws, Regression, make_rows
from tests.kit.errors import refused
from tests.kit.noise import has_stddev


def make(spec: SgdSpec | None = None, multiplier: float = 1.0, records: float = 100.0) -> DpSgd:
    return DpSgd(Regression(), spec or SgdSpec(steps=10), Noise(multiplier, records), KEY)


def clipped_sum(sgd: DpSgd, rows: tuple[Tensor, ...], batch) -> Tensor:
    """Return the lattice sum as a real vector."""
    return torch.from_numpy(sgd._clipped_sum(rows, np.asarray(batch)) * 2.0**-20 * sgd.spec.clip_norm)


def clipped_by_hand(rows: tuple[Tensor, Tensor], clip: float, draws: Tensor) -> Tensor:
    """Clip each record's gradient in a loop, from the same latent draws."""
    total = 0
    for x, y, xi in zip(*rows, draws, strict=True):
        model = Regression()
        loss = ((model.net(x + 0.1 * xi)[..., 0] - y) ** 2).mean()
        gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])
        total = total + gradient * min(1.0, clip / float(gradient.norm()))
    return total


def test_ghost_clipping_is_clipping_each_record():
    rows = make_rows(20)
    draws = torch.from_numpy(record_normals(KEY, 0, np.arange(20), 6)).view(20, 2, 3)
    found = clipped_sum(make(), rows, np.arange(20))
    wanted = clipped_by_hand(rows, 1 - 2.0**-10, draws)
    assert torch.allclose(found.float(), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e8])
@pytest.mark.parametrize("clip", [0.1, 1.0, 30.0])
def test_a_record_moves_the_sum_by_at_most_the_clip_norm_however_large_its_gradient(scale, clip):
    rows = make_rows(40, scale)
    sgd = make(SgdSpec(clip_norm=clip, steps=1))
    for who in range(40):
        assert float(clipped_sum(sgd, rows, [who]).norm()) <= clip
    if scale > 1:
        assert float(clipped_sum(sgd, rows, [0]).norm()) > 0.998 * clip  # it was clipped, not lost


class Opposed(nn.Module):
    """Two draws of a record with a gradient each of ``slope`` and ``rest - slope``."""

    normals = (0,)

    def __init__(self, slope: float, rest: float) -> None:
        super().__init__()
        self.net, self.slope, self.rest = nn.Linear(1, 1, bias=False), slope, rest

    def forward(self, x: Tensor, xi: Tensor) -> Tensor:
        out = self.net(x[:, None].expand(-1, 2, -1))[..., 0]
        return self.slope * (out[:, 0] - out[:, 1]) + self.rest * out[:, 1]


@pytest.mark.parametrize(("slope", "least"), [(1e2, 0.998), (1e6, 1e-4)])
def test_a_record_whose_draws_cancel_is_clipped_all_the_same(slope, least):
    sgd = DpSgd(Opposed(slope, 10), SgdSpec(clip_norm=1.0), Noise(1.0, 1.0), KEY)
    moved = float(clipped_sum(sgd, (torch.ones(1, 1),), [0]).norm())
    assert least < moved <= 1.0  # a millionfold cancellation: its terms are clipped to 32, whatever they add up to


@pytest.mark.parametrize("objective", [Regression, NoDraws])
@pytest.mark.parametrize("huge", [1e25, 1e38, float("nan")])
def test_a_record_whose_gradient_overflows_is_left_out_and_changes_nothing_else(huge, objective):
    sgd = DpSgd(objective(), SgdSpec(), Noise(1.0, 1.0), KEY)
    x, y = make_rows(9)
    without = sgd._clipped_sum((x, y), np.arange(9))
    x[4] = huge
    others = np.delete(np.arange(9), 4)
    assert np.array_equal(sgd._clipped_sum((x, y), np.arange(9)), sgd._clipped_sum((x, y), others))
    assert not np.array_equal(sgd._clipped_sum((x, y), others), without)
    assert not sgd._clipped_sum((x, y), np.array([4])).any()


def test_the_size_of_blocks_changes_not_a_bit():
    rows = make_rows(150)
    whole, parts = (DpSgd(Regression(), SgdSpec(micro_batch=m), Noise(1.0, 5e4), KEY) for m in (4096, 7))
    assert (whole.block, parts.block) == (576, 64)
    assert np.array_equal(*(sgd._clipped_sum(rows, np.arange(150)) for sgd in (whole, parts)))


def test_the_rows_of_a_block_are_public_and_hold_the_batch_that_is_expected():
    for expected in (1, 10, 651, 1200, 1e5):
        sgd = make(SgdSpec(sampling_probability=0.5), records=2 * expected)
        blocks = math.ceil(expected / sgd.block)
        assert sgd.block <= 1024 and sgd.block % 64 == 0 and blocks * sgd.block < 1.3 * expected + 64


def test_batches_are_binomial_and_records_independent():
    sizes = np.array([len(KeyStream(KEY, step).poisson_batch(400, 0.05)) for step in range(3000)])
    bins = np.arange(10, 32)
    seen = np.histogram(sizes, [-1, *bins, 401])[0]
    expected = len(sizes) * np.diff(stats.binom(400, 0.05).cdf([-2, *(bins - 1), 400]))
    assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-6
    assert sizes.min() < sizes.mean() - 5 and sizes.max() > sizes.mean() + 5  # never a fixed size
    member = np.zeros((3000, 2))
    for step in range(3000):
        member[step] = np.isin([0, 1], KeyStream(KEY, step).poisson_batch(400, 0.3))
    assert abs(member.mean() - 0.3) < 0.03
    assert stats.pearsonr(*member.T).pvalue > 1e-6


def test_the_sampling_probability_is_rounded_down():
    class AllOnes(KeyStream):
        def words(self, count):
            return np.full(count, np.uint32(int(0.1 * 2**32)))

    assert len(AllOnes(KEY, 0).poisson_batch(10, 0.1)) == 0


@pytest.mark.parametrize("scale", [1.0, 2 / 3, 3 / 2])
def test_the_noise_of_a_step_has_the_scale_that_is_charged(scale):
    sgd = make(SgdSpec(clip_norm=0.5), multiplier=1.7)
    noise = sgd._noise(KeyStream(KEY, 3), 5000) * 0.5 * 2.0**-20
    assert has_stddev(noise, scale * 1.7 * 0.5) == (scale == 1.0)


def captured(sgd: DpSgd, rows: tuple[Tensor, ...], monkeypatch) -> Tensor:
    """Return the gradient that the first step hands to the optimiser."""
    seen: list[Tensor] = []
    monkeypatch.setattr(sgd.adam, "step", lambda: seen.append(torch.cat([p.grad.flatten() for p in sgd.parameters])))
    next(iter(sgd.train(Sensitive(rows))))
    return seen[0].double()


@pytest.mark.parametrize("rows", [0, 1])
def test_an_empty_batch_is_noised_like_any_other(rows, monkeypatch):
    spec = SgdSpec(sampling_probability=1e-6, steps=1, clip_norm=2.0)
    sgd = DpSgd(Regression(), spec, Noise(3.0, 50.0), KEY)
    gradient = captured(sgd, make_rows(rows), monkeypatch)
    stream = KeyStream(KEY, 0)
    stream.poisson_batch(rows, 1e-6)
    noise = torch.from_numpy(2.0 * 2.0**-20 * rounded_gaussian(stream, len(gradient), 3.0 * 2**20))
    assert torch.allclose(gradient * (1e-6 * 50.0), noise)
    assert float(gradient.abs().min()) > 0


def test_the_divisor_is_the_expected_batch_whatever_the_batch_is(monkeypatch):
    spec, rows = SgdSpec(sampling_probability=0.5, steps=1), make_rows(60)
    sgd = DpSgd(Regression(), spec, Noise(1e-9, 40.0), KEY)
    stream = KeyStream(KEY, 0)
    batch = stream.poisson_batch(60, 0.5)
    total = clipped_sum(sgd, rows, batch)
    assert len(batch) != 20
    assert torch.allclose(captured(sgd, rows, monkeypatch), total / (0.5 * 40.0), rtol=1e-5, atol=1e-7)


def test_with_the_same_key_a_neighbour_changes_only_the_steps_that_drew_it():
    rows, seen = make_rows(51), set()
    for step in range(20):
        small, large = (KeyStream(KEY, step).poisson_batch(count, 0.3) for count in (50, 51))
        assert set(large) - set(small) <= {50} and set(small) <= set(large)
        sums = [make()._clipped_sum(rows, batch) for batch in (small, large)]
        assert np.array_equal(*sums) == (50 not in large)
        seen.add(50 in large)
    assert seen == {True, False}


def test_a_resumed_training_takes_every_step_once_and_ends_at_the_same_bits():
    rows, spec = Sensitive(make_rows(80)), SgdSpec(steps=12, sampling_probability=0.2)
    straight, broken = make(spec), make(spec)
    assert list(straight.train(rows)) == list(range(1, 13))
    for step in broken.train(rows):
        if step == 5:
            saved = {name: tensor.clone() for name, tensor in broken.tensors().items()}
        if step == 7:
            break
    resumed = DpSgd(Regression(), spec, Noise(1.0, 100.0), bytes(32))
    resumed.restore(saved)
    assert list(resumed.train(rows)) == list(range(6, 13))
    for a, b in zip(straight.mean + straight.parameters, resumed.mean + resumed.parameters, strict=True):
        assert torch.equal(a, b)


def test_it_learns_when_there_are_many_records():
    x = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0))
    sgd = DpSgd(
        Regression(), SgdSpec(steps=300, sampling_probability=0.05, learning_rate=0.02), Noise(1.0, 4000.0), KEY
    )
    objective, xi = (
        sgd.gradients.objective,
        torch.from_numpy(record_normals(KEY, 999, np.arange(4000), 6)).view(-1, 2, 3),
    )
    with torch.no_grad():
        before = float(objective(x, x[:, 0], xi).mean())
    for _ in sgd.train(Sensitive((x, x[:, 0]))):
        pass
    sgd.load_mean()
    with torch.no_grad():
        assert float(objective(x, x[:, 0], xi).mean()) < 0.1 * before


def test_the_state_of_an_older_version_is_refused_in_one_sentence():
    old = {name: tensor for name, tensor in make().tensors().items() if name != "format"}
    with pytest.raises(ArtifactError, match="begun by another version"):
        make().restore(old)


def test_batch_normalisation_and_impossible_noise_are_refused():
    with pytest.raises(Unsuitable, match="batch normalization"):
        DpSgd(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), SgdSpec(), Noise(1.0, 1.0), KEY)
    for noise in (Noise(0.0, 1.0), Noise(1.0, 0.0), Noise(float("nan"), 1.0), Noise(1.0, float("inf"))):
        with pytest.raises(Unsuitable, match="noise"):
            DpSgd(Regression(), SgdSpec(), noise, KEY)


def test_what_is_not_a_whole_linear_layer_is_no_sum_of_products():
    frozen, tied = Regression(), nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    frozen.net[0].bias.requires_grad_(False)
    tied[1].weight = tied[0].weight
    for objective in (frozen, tied, nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))):
        with pytest.raises(Unsuitable, match="linear layers"):
            RecordGradients(objective)
    with pytest.raises(Unsuitable, match="none to train"):
        DpSgd(nn.ReLU(), SgdSpec(), Noise(1.0, 1.0), KEY)


def test_a_network_so_wide_that_rounding_would_take_the_bound_is_refused():
    assert training._bound(10**6) == 1 - 1001 * 2.0**-20
    with pytest.raises(Unsuitable, match="fewer than"):
        training._bound(2**34 + 2**20)


def test_the_draws_of_a_record_are_its_own_normal_and_repeatable():
    rows = np.arange(3000)
    drawn = record_normals(KEY, 1, rows, 7)
    assert np.array_equal(drawn[rows[::-1]], record_normals(KEY, 1, rows[::-1].copy(), 7))
    assert drawn.shape == (3000, 7) and stats.kstest(drawn.ravel(), "norm").pvalue > 1e-6
    assert np.abs(np.corrcoef(drawn.T) - np.eye(7)).max() < 0.1
    for other in (record_normals(KEY, 2, rows, 7), record_normals(KEY, 1, rows + 3000, 7)):
        assert abs(stats.pearsonr(drawn.ravel(), other.ravel()).statistic) < 0.05
    with refused(InvalidArgument, name="draws", value=2**18 + 1):
        record_normals(KEY, 1, rows, 2**18 + 1)


def test_the_stream_of_a_step_and_the_draws_of_its_records_share_no_block(monkeypatch):
    from cryptography.hazmat.primitives.ciphers import modes

    asked: list[np.ndarray] = []

    class Recorded:
        def __init__(self, algorithm, mode):
            self.mode = mode

        def encryptor(self):
            return self

        def update(self, data):
            if isinstance(self.mode, modes.ECB):
                asked.append(np.frombuffer(data, ">u8").reshape(-1, 2))
            return data

    monkeypatch.setattr("cryptography.hazmat.primitives.ciphers.Cipher", Recorded)
    record_normals(KEY, 10**6 - 1, np.array([0, 5, 2**25 - 1]), 2**18)
    blocks = {(int(a), int(b)) for a, b in asked[0]}
    assert len(blocks) == 3 * 2**16  # no two records share one
    assert all(a == 2**63 + 10**6 - 1 for a, _ in blocks)  # a step's stream counts up from (step, 0)


class Followed(Regression):
    """An objective with something that follows every step: a running sum of the weights, and of a seeded draw."""

    def __init__(self) -> None:
        super().__init__()
        self.total, self.seen = torch.zeros(()), list[int]()

    def follow(self, step: int) -> None:
        self.seen.append(step)
        drawn = torch.randn((), generator=torch.Generator().manual_seed(step))
        self.total = self.total + drawn + sum(p.detach().sum() for p in self.parameters())

    def tensors(self) -> dict[str, Tensor]:
        return {"total": self.total}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        self.total = tensors["total"]


def test_what_follows_the_steps_is_told_of_each_and_resumes_with_the_same_bits():
    rows, spec = Sensitive(make_rows(100)), SgdSpec(steps=10, sampling_probability=0.2)

    def followed() -> tuple[Followed, DpSgd]:
        objective = Followed()
        return objective, DpSgd(objective, spec, Noise(1.0, 100), KEY)

    whole, sgd = followed()
    for step in sgd.train(rows):
        if step == 4:
            state = {name: tensor.clone() for name, tensor in sgd.tensors().items()}
    assert whole.seen == list(range(1, 11))
    again, resumed = followed()
    resumed.restore(state)
    assert list(resumed.train(rows)) == again.seen == list(range(5, 11))
    assert torch.equal(again.total, whole.total)
    assert all(torch.equal(p, q) for p, q in zip(again.parameters(), whole.parameters(), strict=True))


def test_what_follows_the_steps_is_told_of_each_whatever_its_batch_holds():
    """Else the pace of a generator would say which batches were empty."""
    objective = Followed()
    list(DpSgd(objective, SgdSpec(steps=7), Noise(1.0, 50.0), KEY).train(Sensitive(make_rows(0))))
    assert objective.seen == list(range(1, 8))
