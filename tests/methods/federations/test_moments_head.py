"""The moments head: one noise for a federation, or one a client; and skew that does not matter to sums."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dpmodels.embeddings.frozen import Examples, transform_frozen
from dpmodels.errors import InvalidArgument
from dpmodels.mechanisms import gaussian
from dpmodels.methods.federations.moments_head import FLOOR, FLOOR_OF_CLASSES, ClientMoments, MomentsHead, discriminant
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.release import read_release
from dpmodels.statistics.class_moments import ClassMoments
from dpmodels.statistics.component_moments import Points
from tests.kit.errors import refused
from tests.kit.noise import has_stddev
from tests.kit.parties import make_contract, make_examples, make_features, split
from tests.kit.support import desk_in

EXTRACT = make_features()
NEGATIVES = EXTRACT.whole(make_examples(20, seed=7).inputs)
RECORDS = make_examples(3000)


def contract(parts: dict[str, Examples], public: bool = True):
    return make_contract(EXTRACT, NEGATIVES, {name: len(own.labels) if public else None for name, own in parts.items()})


def measured(own: MomentsHead, about, held: list[Points], folder: Path, epsilon: float = 1.0):
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5, adjacency=about.adjacency)
    line = own.plan(about, budget)
    return read_release(own.measure(Sensitive(held), line, desk_in(folder, line)).value)


def points(own: Examples) -> list[Points]:
    return list(transform_frozen(EXTRACT, Sensitive(own)).reveal())


def right(head, examples: Examples) -> float:
    return float((head.logits(EXTRACT.whole(examples.inputs)).argmax(axis=1) == examples.labels.numpy()).mean())


@pytest.mark.parametrize("pooled", [True, False])
def test_the_exact_sums_are_those_of_all_records_however_they_are_split(pooled):
    own = MomentsHead(ClientMoments(pooled=pooled))
    for alpha in (0.01, 100.0):
        parts = split(RECORDS, alpha)
        design = own.design(own.measurement, contract(parts))
        totals = [design.total(one.z, one.label) for part in parts.values() for one in points(part)]
        whole = [design.total(one.z, one.label) for one in points(RECORDS)]
        assert np.array_equal(np.sum(totals, axis=0), whole[0])


def test_one_noise_covers_a_federation_and_one_each_adds_up(tmp_path):
    parts, test, own = split(RECORDS, 0.01), make_examples(500, seed=3), MomentsHead()
    about = contract(parts)
    central = measured(own, about, [one for part in parts.values() for one in points(part)], tmp_path / "all", 8.0)
    local = [measured(own, about.of(name), points(part), tmp_path / name, 8.0) for name, part in parts.items()]
    exact = discriminant(own.of(central.value.line), own.design(own.measurement, about).total(*whole()), 1.0, FLOOR)
    found = [right(head, test) for head in (exact, own.fit([central]), own.fit(local))]
    assert found[0] > 0.8
    assert found[1] > found[0] - 0.05 and found[2] > found[0] - 0.15


def whole() -> tuple[np.ndarray, np.ndarray]:
    (one,) = points(RECORDS)
    return one.z, one.label


@pytest.mark.parametrize("public", [True, False])
def test_the_noise_is_that_of_the_adjacency(monkeypatch, tmp_path, public):
    drawn = []

    def sampler(values, stddev):
        noisy = gaussian.discrete_gaussian(values, stddev)
        drawn.append(noisy - values)
        return noisy

    monkeypatch.setattr(gaussian, "_sampler", sampler)
    own = MomentsHead(ClientMoments(pooled=False))
    about = contract(split(RECORDS, 1.0), public)
    release = measured(own, about, points(RECORDS), tmp_path / "desk")
    moments = own.of(release.value.line)
    one = 29 * 4.0**12
    squared = (0.15 * one) ** 2 + one**2 + one**2
    apart = one**2 / 2  # B^2 / 2S with a mean weight of 1; twice the squares but for the weight of counts
    proved = 3.7306 * (squared if not public else 4 * one**2 + apart) ** 0.5
    assert len(drawn[0]) == moments.dim
    assert has_stddev(drawn[0], proved)
    assert not has_stddev(drawn[0], proved * 2 / 3) and not has_stddev(drawn[0], proved * 3 / 2)


def test_releases_of_other_measurements_or_twice_the_same_are_not_added(tmp_path):
    parts, own, other = split(RECORDS, 1.0), MomentsHead(), MomentsHead(ClientMoments(count_weight=0.3))
    about = contract(parts)
    first = measured(own, about.of("a"), points(parts["a"]), tmp_path / "a")
    second = measured(other, about.of("b"), points(parts["b"]), tmp_path / "b")
    for wrong in ([], [first, first], [first, second]):
        with pytest.raises(InvalidArgument):
            own.fit(wrong)


def test_one_noise_for_the_sums_of_all_clients_is_that_of_one_record(monkeypatch, tmp_path):
    """Central trust: the noise knows nothing of the number of clients, and the total is exact without it."""
    own, drawn = MomentsHead(ClientMoments(trust="central")), []

    def sampler(values, stddev):
        noisy = gaussian.discrete_gaussian(values, stddev)
        drawn.append((values, noisy - values, stddev))
        return noisy

    monkeypatch.setattr(gaussian, "_sampler", sampler)
    parts = split(RECORDS, 0.1)
    about = contract(parts).of("a")
    line = own.plan(about, PrivacyBudget(epsilon=1.0, delta=1e-5, adjacency=about.adjacency))
    moments = own.of(line)
    sums = [moments.total(one.z, one.label) for part in parts.values() for one in points(part)]
    release = read_release(own.measure(Sensitive(sums), line, desk_in(tmp_path / "desk", line)).value)
    ((values, noise, stddev),) = drawn
    assert np.array_equal(values, moments.total(*whole())) and np.array_equal(values + noise, release.value.vector)
    assert stddev == pytest.approx(3.7306 * moments.replaced_sensitivity, rel=1e-4)
    alone = MomentsHead().plan(about, line.budget)
    assert alone.noise_stddev(0, moments.l2_sensitivity) == line.noise_stddev(0, moments.l2_sensitivity)
    assert alone.hash != line.hash and alone.fingerprint == line.fingerprint
    test = make_examples(500, seed=3)
    assert right(own.fit([release]), test) > 0.6


def make_vectors(number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors of which a few features vary more than the noise, and the others less."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, number)
    z = rng.normal(0, 1, (number, 24)) * np.where(np.arange(24) < 4, 700, 150)
    z[np.arange(number), label] += 1800
    return np.rint(z).astype(np.int64), label


@pytest.mark.parametrize("pooled", [True, False])
def test_a_release_with_less_noise_is_not_read_worse(pooled: bool) -> None:
    spec = ClientMoments(pooled=pooled)
    assert spec.floor == (FLOOR if pooled else FLOOR_OF_CLASSES)
    moments = ClassMoments(3, 24, spec.count_weight, spec.mean_weight, pooled=pooled)
    exact, (z, label) = moments.total(*make_vectors(2000, 0)), make_vectors(1000, 1)
    found = []
    for stddev in 3.73 * moments.l2_sensitivity * np.array([0.03, 0.1, 0.3, 1.0, 3.0]):
        noise = np.rint(stddev * np.random.default_rng(0).standard_normal(moments.dim)).astype(np.int64)
        said = discriminant(moments, exact + noise, float(stddev), spec.floor).logits(z).argmax(axis=1)
        found.append(float((said == label).mean()))
    assert min(found) > 0.9, found
    assert all(less > more - 0.02 for less, more in pairwise(found)), found


def test_the_floor_is_planned_and_is_what_a_release_is_read_with(tmp_path):
    parts = split(RECORDS, 1.0)
    about = contract(parts).of("a")
    own, low = MomentsHead(), MomentsHead(ClientMoments(floor=0.05))
    release = measured(own, about, points(parts["a"]), tmp_path / "a")
    line = release.value.line
    assert line.measurement["floor"] == FLOOR
    (once,) = own.answers(release.value)
    read = [discriminant(own.of(line), once.vector, once.noise_stddev, floor) for floor in (FLOOR, 0.05)]
    assert not np.allclose(read[0].inverses, read[1].inverses)
    for system in (own, low):  # the plan of the release decides, and not whoever reads it
        assert np.array_equal(system.fit([release]).inverses, read[0].inverses)
    other = measured(low, contract(parts).of("b"), points(parts["b"]), tmp_path / "b")
    with pytest.raises(InvalidArgument):
        own.fit([release, other])


def test_a_federation_whose_sum_could_overflow_is_refused():
    about = make_contract(EXTRACT, NEGATIVES, {f"c{n}": None for n in range(1000)}, most_records=10**7)
    with refused(InvalidArgument, name="most_records", value=10**7):
        MomentsHead().plan(about.of("c0"), PrivacyBudget(epsilon=1.0, delta=1e-5, adjacency=about.adjacency))
