"""The optimum of a logistic loss: what one record moves it by, held to the bound, and the ways to get that wrong."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression

from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.privacy import Sensitive
from dpmodels.statistics.component_moments import Points
from dpmodels.statistics.logistic import Logistic, transform_optimum
from tests.kit.errors import refused
from tests.kit.noise import has_stddev
from tests.kit.points import R, clipped

SIZE, CROWD = 4, 400
Solve = Callable[[np.ndarray, np.ndarray], np.ndarray]


def problem(outputs: int, replaced: bool = True, **changes: float) -> Logistic:
    """Return a problem with a lambda of 0.002, so weak that what a record does shows at its worst."""
    return replace(Logistic(SIZE, outputs, 0.002 * CROWD, 0.3, replaced, 2 * CROWD), **changes)


def crowd() -> tuple[np.ndarray, np.ndarray]:
    """Return records that are all alike: of label 0, so that the others' class is hardly believed anywhere near."""
    rng = np.random.default_rng(0)
    points = np.c_[np.ones(CROWD), 0.01 * rng.standard_normal((CROWD, SIZE - 1))]
    return clipped(points), np.zeros(CROWD, dtype=np.int64)


def inserted(z: np.ndarray, label: np.ndarray, place: int, record: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Put a record of label 1 at a place, or nothing."""
    if record is None:
        return z, label
    return np.insert(z, place, record, axis=0), np.insert(label, place, 1)


def moved(solve: Solve, first: np.ndarray | None, second: np.ndarray | None, outputs: int, place: int = 0) -> float:
    """Return how far one record, in the place of another or of none, moves what a solver finds."""
    data = crowd()
    return float(np.linalg.norm(solve(*inserted(*data, place, first)) - solve(*inserted(*data, place, second))))


def on_lattice(own: Logistic) -> Solve:
    return lambda z, label: own.whole(own.features(z), own.targets(label))


def worst(solve: Solve, replaced: bool, outputs: int, rounds: int = 60) -> float:
    """Let an adversary look for the record, or the pair of records, that moves the optimum most."""
    rng = np.random.default_rng(1)
    pair = np.zeros((2, SIZE))
    pair[:, 0], pair[:, 1] = 0.4, (1, -1)
    best, width = 0.0, 0.5
    for step in range(rounds):
        tried = pair + width * rng.standard_normal(pair.shape) * (step > 0)
        first, second = clipped(tried)
        found = moved(solve, first, second if replaced else None, outputs)
        if found > best:
            best, pair = found, tried
        else:
            width *= 0.95
    return best


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_worst_record_moves_the_optimum_by_the_bound_and_no_more(outputs, replaced):
    own = problem(outputs, replaced)
    far = worst(on_lattice(own), replaced, outputs)
    assert 0.6 * own.l2_sensitivity < far <= own.l2_sensitivity


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("place", [0, CROWD // 2, CROWD])
def test_extremes_keep_the_bound_wherever_they_stand(outputs, place):
    extremes = [*clipped(np.concatenate([np.eye(SIZE), -np.eye(SIZE)])), np.zeros(SIZE, dtype=np.int64)]
    added, replaced = problem(outputs, replaced=False), problem(outputs)
    for first in extremes:
        assert moved(on_lattice(added), first, None, outputs, place) <= added.l2_sensitivity
        for second in extremes:
            assert moved(on_lattice(replaced), first, second, outputs, place) <= replaced.l2_sensitivity


def by_sklearn(strength: float, free: bool = False) -> Solve:
    """Solve with scikit-learn, whose C is 1 / strength; ``free`` leaves the intercept outside of the clipped vector."""

    def solve(z: np.ndarray, label: np.ndarray) -> np.ndarray:
        phi = problem(1).features(z)[:, : -1 if free else None]
        model = LogisticRegression(C=1 / strength, fit_intercept=free, tol=1e-10, max_iter=10_000).fit(phi, label)
        return np.append(model.coef_, model.intercept_ if free else [])

    return solve


def test_the_published_c_breaks_its_bound_and_the_same_search_sees_it():
    """Its C is 1 / lambda, not 1 / (n lambda). With the right one scikit-learn finds what is found here."""
    own, lattice = problem(1), problem(1).step
    right, ours = (worst(solve, True, 1, rounds=10) for solve in (by_sklearn(own.strength), on_lattice(own)))
    assert right == pytest.approx(ours * lattice, rel=1e-2)
    assert worst(by_sklearn(own.strength / CROWD), True, 1, rounds=10) > 2 * own.bound


def test_an_intercept_outside_of_the_clipped_vector_breaks_the_bound():
    """A second record of a rare class moves a free intercept by log 2, however strong the regularization."""
    own, zeros = problem(1, replaced=False, strength=40.0), np.zeros(SIZE, dtype=np.int64)
    data = inserted(*crowd(), 0, zeros)
    more = inserted(*data, 0, zeros)

    def far(solve: Solve) -> float:
        return float(np.linalg.norm(solve(*more) - solve(*data)))

    assert far(by_sklearn(own.strength, free=True)) > 20 * own.bound
    assert far(by_sklearn(own.strength)) <= own.bound


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_gradient_is_that_of_the_loss_and_the_hessian_that_of_the_gradient(outputs):
    rng = np.random.default_rng(3)
    own, z, label = problem(outputs), clipped(rng.standard_normal((50, SIZE))), rng.integers(0, max(2, outputs), 50)
    phi, targets = own.features(z), own.targets(label)

    def loss(flat: np.ndarray) -> float:
        w = flat.reshape(outputs, -1)
        logits = phi @ w.T
        parts = np.logaddexp(0, logits) if outputs == 1 else np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return float(parts.sum() - (targets * logits).sum() + own.strength / 2 * (w * w).sum())

    def slope(flat: np.ndarray) -> np.ndarray:
        return own._slope(flat.reshape(outputs, -1), phi, targets)[0].ravel()

    point, direction = rng.standard_normal((2, outputs * (SIZE + 1)))
    assert check_grad(loss, slope, point) < 1e-4
    bend = own._slope(point.reshape(outputs, -1), phi, targets)[1](direction.reshape(outputs, -1)).ravel()
    assert np.allclose(bend, (slope(point + 1e-6 * direction) - slope(point - 1e-6 * direction)) / 2e-6, atol=1e-5)


@pytest.mark.parametrize("strength", [0.002, 0.2, 20, 2000])
@pytest.mark.parametrize("outputs", [1, 10])
def test_what_is_found_is_certified_whatever_the_data(outputs, strength):
    rng = np.random.default_rng(4)
    own = Logistic(30, outputs, strength * 300, 0.3, True, 700)
    for z in (clipped(rng.standard_normal((700, 30))), clipped(np.ones((700, 30))), np.zeros((0, 30), dtype=np.int64)):
        label = rng.integers(0, max(2, outputs), len(z))
        found = own.solve(own.features(z), own.targets(label))
        assert found is not None
        slope, _ = own._slope(found, own.features(z), own.targets(label))
        assert np.linalg.norm(slope) <= own.tolerance


def test_an_answer_without_a_certificate_is_not_given(monkeypatch):
    """Instead come zeros, which say nothing of the data; nothing is raised, for that would say something."""
    own = problem(3, strength=40.0)
    monkeypatch.setattr(Logistic, "_rounding", lambda self, records, norm: 1.0)
    assert not on_lattice(own)(*crowd()).any()


def test_a_tolerance_below_what_rounding_allows_is_refused_from_public_numbers():
    with refused(InvalidArgument, name="strength"):
        problem(3, tolerance=1e-12)


def test_a_vector_beyond_the_clip_norm_or_another_number_of_records_is_refused_without_naming_it():
    own = problem(3)
    with pytest.raises(Unsuitable, match="passes the norm") as caught:
        own.features(np.array([[R, 1, 0, 0]]))
    assert str(R) not in str(caught.value)
    held = Sensitive([Points(np.zeros((7, SIZE), dtype=np.int64), np.zeros(7, dtype=np.int64))])
    with pytest.raises(Unsuitable, match="not what the contract says") as caught:
        transform_optimum(own, held, records=8)
    assert "7" not in str(caught.value)


def test_one_output_is_for_private_records_of_one_label_alone():
    """With labels of their own, a replaced record could move it by more than the bound of one output."""
    held = Sensitive([Points(np.zeros((3, SIZE), dtype=np.int64), np.array([0, 1, 1]))])
    for own, public in ((problem(1), None), (problem(3), np.zeros((2, SIZE), dtype=np.int64))):
        with pytest.raises(Unsuitable, match="private records from public ones"):
            transform_optimum(own, held, 3, public)


def test_the_noise_is_that_of_the_bound():
    own = Logistic(200, 5, 4.0, 0.3, True, 100)
    rng = np.random.default_rng(5)
    held = Sensitive([Points(clipped(rng.standard_normal((100, 200))), rng.integers(0, 5, 100))])
    exact = transform_optimum(own, held, records=100)
    release = measure_gaussian(exact, l2_sensitivity=own.l2_sensitivity, noise_multiplier=3.7)
    noise = (release.value - exact.reveal()) * own.step
    proved = 3.7 * 2 * np.sqrt(2) / 4
    assert has_stddev(noise, proved * (1 + 2e-3))
    assert not has_stddev(noise, proved * 2 / 3) and not has_stddev(noise, proved * 3 / 2)
