"""DP-EM: what one record moves a release by, and that iterations find a mixture from a public start."""

import numpy as np
import pytest

from dpmodels.errors import Unsuitable
from dpmodels.mechanisms import gaussian
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.privacy import Sensitive
from dpmodels.statistics.component_moments import (
    RHO_BITS,
    Z_BITS,
    ComponentMoments,
    Mixture,
    Points,
    _log_density,
    responsibilities,
    start_mixture,
    transform_component_moments,
)
from dpmodels.statistics.symmetric import DIAGONAL
from tests.kit.noise import repeated_noise

R, ONE = 1 << Z_BITS, 1 << RHO_BITS


def norm(vector: np.ndarray) -> float:
    return sum(int(v) ** 2 for v in vector) ** 0.5


def clipped(points: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.trunc(points * (R / np.maximum(lengths, 1))).astype(np.int64)


def split_responsibility(rng: np.random.Generator, components: int) -> np.ndarray:
    return np.floor(ONE * rng.dirichlet(np.full(components, 0.3))).astype(np.int64)


@pytest.mark.parametrize("components", [1, 2, 7])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.15, 0.6)])
def test_no_record_moves_a_release_by_more_than_the_sensitivity_however_it_is_shared_out(components, weights):
    rng, size = np.random.default_rng(components), 5
    moments = ComponentMoments(3, components, size, *weights)
    corner = np.zeros((1, size), dtype=np.int64)
    corner[0, 2] = -R
    worst = 0.0
    for z in [corner, *(clipped(rng.standard_normal((1, size))) for _ in range(100))]:
        whole = np.eye(components, dtype=np.int64)[:1] * ONE
        for rho in (whole, split_responsibility(rng, components)[None]):
            moved = norm(moments.total(z, rho, rng.integers(0, 3, 1)))
            assert moved <= moments.l2_sensitivity
            worst = max(worst, moved)
    assert worst > 0.999 * moments.l2_sensitivity  # no larger bound is paid for than needed


def test_with_equal_weights_the_sensitivity_is_the_root_of_three_whatever_the_number_of_components():
    bounds = {ComponentMoments(1, components, 4, 1.0, 1.0).l2_sensitivity for components in (1, 5, 64)}
    assert len(bounds) == 1
    assert bounds.pop() / (ONE * DIAGONAL * R**2) == pytest.approx(3**0.5, rel=1e-6)


def test_adding_one_worst_record_to_a_table_moves_the_release_by_no_more():
    rng = np.random.default_rng(0)
    z, label = clipped(rng.standard_normal((300, 4))), rng.integers(0, 2, 300)
    mixture = start_mixture(np.full(4, 0.2), rng.standard_normal((2, 3, 4)))
    moments = ComponentMoments(2, 3, 4, 0.15, 0.6)
    without = transform_component_moments(moments, Sensitive(Points(z, label)), mixture).reveal()
    for extra in ([R, 0, 0, 0], [-R // 2, R // 2, R // 2, R // 2], [0, 0, 0, 0]):
        more = Points(np.vstack([z, [extra]]), np.append(label, 1))
        moved = transform_component_moments(moments, Sensitive(more), mixture).reveal() - without
        assert 0 < norm(moved) <= moments.l2_sensitivity


def test_a_vector_or_a_responsibility_beyond_the_bound_is_refused_without_naming_it():
    moments, label = ComponentMoments(1, 2, 2, 1.0, 1.0), np.zeros(1, dtype=np.int64)
    for z, rho in (([R, 1], [ONE, 0]), ([0, 0], [ONE, 1]), ([0, 0], [-1, 5])):
        with pytest.raises(Unsuitable, match="passes the norm"):
            moments.total(np.array([z]), np.array([rho]), label)


def test_responsibilities_never_exceed_one_and_favour_the_near_component():
    mixture = Mixture(
        np.array([[0.5, 0.5]]), np.array([[[0.5, 0.0], [-0.5, 0.0]]]), np.tile(np.eye(2) * 0.01, (1, 2, 1, 1))
    )
    z = np.concatenate([clipped(np.random.default_rng(0).standard_normal((500, 2))), [[R // 2, 0], [0, 0]]])
    rho = responsibilities(z, np.zeros(len(z), dtype=np.int64), mixture)
    assert rho.min() >= 0 and rho.sum(axis=1).max() <= ONE and rho.sum(axis=1).min() >= ONE - 2
    assert rho[-2, 0] >= ONE - 1 and abs(rho[-1, 0] - rho[-1, 1]) <= 1


def test_what_is_said_of_a_record_does_not_depend_on_those_beside_it():
    rng = np.random.default_rng(0)
    z, spread = clipped(rng.standard_normal((400, 30))), rng.standard_normal((30, 30)) / 30
    covariances = (spread @ spread.T + 1e-4 * np.eye(30))[None, None]
    mixture = Mixture(np.ones((1, 1)), rng.standard_normal((1, 1, 30)) / 10, covariances)
    together, alone = _log_density(z, mixture, 0, 0), [_log_density(row[None], mixture, 0, 0)[0] for row in z]
    assert np.array_equal(together, alone)  # to the last bit: else a neighbour could tip a rounding of theirs
    factor = np.linalg.cholesky(covariances[0, 0])
    whitened = np.linalg.solve(factor, (z / R - mixture.means[0, 0]).T)
    wanted = -0.5 * (whitened**2).sum(axis=0) - np.log(np.diag(factor)).sum()
    assert np.allclose(together, wanted, rtol=1e-2, atol=0.5)


def test_order_and_blocks_of_the_rows_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    z, label, rho = clipped(rng.standard_normal((100, 3))), rng.integers(0, 2, 100), np.full((100, 2), ONE // 2)
    moments = ComponentMoments(2, 2, 3, 0.15, 0.6)
    total, order = moments.total(z, rho, label), rng.permutation(100)
    monkeypatch.setattr("dpmodels.statistics.component_moments.BLOCK_ROWS", 7)
    assert np.array_equal(moments.total(z[order], rho[order], label[order]), total)


@pytest.mark.parametrize("epsilon_noise", [0.0, 2.0])
def test_iterations_find_two_clusters_from_a_public_start(epsilon_noise, monkeypatch):
    sampler = repeated_noise() if epsilon_noise else lambda values, stddev: values
    monkeypatch.setattr(gaussian, "_sampler", sampler)  # from some noise six iterations end in one cluster
    rng = np.random.default_rng(3)
    centres = np.array([[0.5, 0.0], [-0.5, 0.1]])
    which = rng.integers(0, 2, 4000)
    z = np.trunc(R * np.clip(centres[which] + 0.08 * rng.standard_normal((4000, 2)), -0.7, 0.7)).astype(np.int64)
    points, moments = Sensitive(Points(z, np.zeros(4000, dtype=np.int64))), ComponentMoments(1, 2, 2, 0.15, 0.6)
    mixture = start_mixture(np.array([0.25, 0.01]), np.random.default_rng(0).standard_normal((1, 2, 2)))
    multiplier = epsilon_noise or 1.0
    for _ in range(6):
        total = transform_component_moments(moments, points, mixture)
        noisy = measure_gaussian(total, l2_sensitivity=moments.l2_sensitivity, noise_multiplier=multiplier).value
        mixture = moments.maximise(noisy, multiplier * moments.l2_sensitivity)
    found = mixture.means[0][np.argsort(-mixture.means[0][:, 0])]
    assert np.abs(found - centres).max() < 0.05
    assert np.abs(mixture.shares - 0.5).max() < 0.1


def test_a_class_without_records_still_has_a_proper_mixture():
    moments = ComponentMoments(2, 2, 3, 0.15, 0.6)
    noisy = measure_gaussian(
        Sensitive(np.zeros(moments.dim, dtype=np.int64)), l2_sensitivity=moments.l2_sensitivity, noise_multiplier=5.0
    ).value
    mixture = moments.maximise(noisy, 5.0 * moments.l2_sensitivity)
    assert np.isfinite(mixture.means).all() and np.allclose(mixture.shares.sum(axis=1), 1)
    assert np.linalg.eigvalsh(mixture.covariances).min() > 0
    assert np.linalg.norm(mixture.means, axis=-1).max() <= 1 + 1e-9


def test_the_records_of_each_of_two_classes_are_counted_apart_and_an_empty_component_as_one():
    moments, label = ComponentMoments(2, 1, 2, 1.0, 1.0), np.array([0, 1, 1])
    total = transform_component_moments(moments, Sensitive(Points(np.zeros((3, 2), dtype=np.int64), label)), None)
    assert moments.unpack(total.reveal())[0].ravel().tolist() == [1, 2]
    two = ComponentMoments(1, 2, 2, 1.0, 1.0)
    rho = np.tile([ONE, 0], (3, 1))
    found = two.maximise(two.total(np.zeros((3, 2), dtype=np.int64), rho, np.zeros(3, dtype=np.int64)), 0.0)
    assert found.shares[0].tolist() == [0.75, 0.25]
