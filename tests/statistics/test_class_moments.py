"""The look that P3GM's directions are read off: what one record moves it by, and what the directions find."""

import numpy as np
import pytest

from dpmodels.errors import Unsuitable
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.privacy import Sensitive
from dpmodels.statistics.class_moments import ClassMoments, leading_directions, transform_class_moments
from dpmodels.statistics.component_moments import Z_BITS, Points
from tests.kit.noise import has_stddev

R = 1 << Z_BITS


def norm(vector: np.ndarray) -> float:
    return sum(int(v) ** 2 for v in vector) ** 0.5


def clipped(points: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.trunc(points * (R / np.maximum(lengths, 1))).astype(np.int64)


def look(moments: ClassMoments, z: np.ndarray, label: np.ndarray) -> np.ndarray:
    return transform_class_moments(moments, Sensitive(Points(z, label))).reveal()


@pytest.mark.parametrize("classes", [1, 2, 7])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.15, 0.6)])
def test_adding_one_worst_record_moves_the_look_by_the_sensitivity_and_no_more(classes, weights):
    rng = np.random.default_rng(classes)
    moments = ClassMoments(classes, 4, *weights)
    z, label = clipped(rng.standard_normal((300, 4))), rng.integers(0, classes, 300)
    before, moved = look(moments, z, label), []
    for extra in (
        [R, 0, 0, 0],
        [-R // 2, R // 2, R // 2, R // 2],
        [0, 0, 0, 0],
        *clipped(rng.standard_normal((20, 4))),
    ):
        after = look(moments, np.vstack([z, [extra]]), np.append(label, rng.integers(0, classes)))
        moved.append(norm(after - before))
    assert max(moved) <= moments.l2_sensitivity
    assert max(moved) > 0.999 * moments.l2_sensitivity  # no larger bound is paid for than needed


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.15, 0.6), (2.0, 0.1), (0.1, 1.0)])
def test_replacing_one_worst_record_moves_the_look_by_its_own_sensitivity_and_no_more(weights, pooled):
    rng = np.random.default_rng(0)
    moments = ClassMoments(3, 4, *weights, pooled=pooled)
    one, edge = np.array([[R, 0, 0, 0]]), clipped(rng.standard_normal((20, 4)))
    turned = [[int(R * np.cos(angle)), int(R * np.sin(angle)), 0, 0] for angle in np.linspace(0, np.pi, 50)]
    moved = [
        norm(look(moments, one, np.zeros(1, dtype=np.int64)) - look(moments, np.array([other]), np.array([label])))
        for other in [*turned, *edge, [0, 0, 0, 0]]
        for label in (0, 1)
    ]
    assert 0.95 * moments.replaced_sensitivity < max(moved) <= moments.replaced_sensitivity
    assert moments.l2_sensitivity < moments.replaced_sensitivity < 2 * moments.l2_sensitivity


def test_a_vector_beyond_the_bound_is_refused_without_naming_it():
    with pytest.raises(Unsuitable, match="passes the norm"):
        ClassMoments(1, 2, 1.0, 1.0).total(np.array([[R, 1]]), np.zeros(1, dtype=np.int64))


def test_order_and_blocks_of_the_rows_change_nothing_and_unpacking_gives_the_moments_back(monkeypatch):
    rng = np.random.default_rng(0)
    z, label, moments = clipped(rng.standard_normal((100, 3))), rng.integers(0, 2, 100), ClassMoments(2, 3, 0.15, 0.6)
    total, order = moments.total(z, label), rng.permutation(100)
    monkeypatch.setattr("dpmodels.statistics.class_moments.BLOCK_ROWS", 7)
    assert np.array_equal(moments.total(z[order], label[order]), total)
    counts, sums, second = moments.unpack(total)
    assert counts.tolist() == np.bincount(label).tolist()
    assert np.allclose(sums, [z[label == c].sum(axis=0) / R for c in (0, 1)])
    assert np.allclose(second[0], z.T @ z / R**2)


def test_the_noise_on_the_look_is_of_the_scale_that_is_charged():
    moments, multiplier = ClassMoments(3, 20, 0.15, 0.6), 2.0
    total = np.zeros(moments.dim, dtype=np.int64)
    noisy = measure_gaussian(Sensitive(total), l2_sensitivity=moments.l2_sensitivity, noise_multiplier=multiplier).value
    stddev = multiplier * moments.l2_sensitivity
    assert has_stddev(noisy, stddev)
    assert not has_stddev(noisy, stddev * 2 / 3) and not has_stddev(noisy, stddev * 3 / 2)


def test_directions_part_the_classes_first_and_stop_where_noise_begins():
    covariance = np.diag([5.0, 4.0, 3.0, 0.01, 0.01, 0.01])
    offsets = np.array([[0, 0, 0, 0, 0, 2.0], [0, 0, 0, 0, 0, -2.0]])
    directions = leading_directions(covariance, offsets, 5, least=1.0)
    assert directions.shape == (6, 4)
    assert np.allclose(directions.T @ directions, np.eye(4))
    assert np.allclose(np.abs(directions[:, 0]), np.eye(6)[5])
    assert np.allclose(np.abs(directions[:, 1:]), np.eye(6)[:, :3])
    assert leading_directions(covariance, offsets[:1], 5, least=10.0).shape == (6, 1)  # one at least


def test_directions_are_no_more_than_were_asked_for():
    offsets = np.array([[0, 0, 0, 0, 0, 2.0], [0, 0, 0, 0, 0, -2.0]])
    assert leading_directions(5 * np.eye(6), offsets, 3, least=1.0).shape == (6, 3)
