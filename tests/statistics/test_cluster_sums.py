"""DP k-means: what one record moves a release by, and that it finds clusters from a public start."""

import numpy as np
import pytest

from dpmodels.errors import Unsuitable
from dpmodels.mechanisms import gaussian
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.privacy import Sensitive
from dpmodels.statistics.cluster_sums import (
    ClusterSums,
    nearest,
    start_centroids,
    transform_class_counts,
    transform_cluster_sums,
)
from dpmodels.statistics.component_moments import Z_BITS, Points
from tests.kit.noise import repeated_noise

R = 1 << Z_BITS


def norm(vector: np.ndarray) -> float:
    return sum(int(v) ** 2 for v in vector) ** 0.5


@pytest.mark.parametrize("clusters", [1, 3, 20])
def test_no_record_moves_a_release_by_more_than_the_sensitivity(clusters):
    rng, sums = np.random.default_rng(clusters), ClusterSums(clusters, 4, 0.5)
    centroids = start_centroids(rng.standard_normal((clusters, 4)), 0.5)
    z = np.trunc(rng.uniform(-R / 2, R / 2, (200, 4))).astype(np.int64)

    def release(rows: np.ndarray) -> np.ndarray:
        points = Points(rows, np.zeros(len(rows), dtype=np.int64))
        return transform_cluster_sums(sums, Sensitive(points), centroids).reveal()

    moved = [norm(release(np.vstack([z, [x]])) - release(z)) for x in ([R, 0, 0, 0], [0, 0, -R, 0], [0, 0, 0, 0])]
    assert max(moved) <= sums.l2_sensitivity
    assert max(moved) > 0.999 * sums.l2_sensitivity


def test_a_vector_beyond_the_bound_is_refused_without_naming_it():
    with pytest.raises(Unsuitable, match="passes the norm"):
        ClusterSums(2, 2, 0.5).total(np.array([[R, 1]]), np.zeros(1, dtype=np.int64))


def test_iterations_find_three_clusters_under_noise_and_an_empty_one_stays_where_it_was(monkeypatch):
    monkeypatch.setattr(gaussian, "_sampler", repeated_noise())  # one time in nine some noise would move the empty one
    rng = np.random.default_rng(0)
    truth = np.array([[0.6, 0.0], [-0.3, 0.5], [-0.3, -0.5]])
    z = np.trunc(R * (truth[rng.integers(0, 3, 6000)] + 0.05 * rng.standard_normal((6000, 2)))).astype(np.int64)
    points, sums = Sensitive(Points(z, np.zeros(6000, dtype=np.int64))), ClusterSums(4, 2, 0.5)
    far = np.array([[0.0, 50.0]])
    centroids = np.vstack([start_centroids(np.random.default_rng(3).standard_normal((3, 2)), 0.3), far])
    for _ in range(5):
        total = transform_cluster_sums(sums, points, centroids)
        noisy = measure_gaussian(total, l2_sensitivity=sums.l2_sensitivity, noise_multiplier=5.0).value
        centroids, counts = sums.centroids(noisy, centroids, 5.0 * sums.l2_sensitivity)
    assert np.array_equal(centroids[3:], far)
    assert all(np.linalg.norm(centroids[:3] - point, axis=1).min() < 0.05 for point in truth)
    assert abs(counts.sum() - 6000) < 200


def test_every_record_goes_to_the_nearest_centroid():
    rng = np.random.default_rng(0)
    z, centroids = rng.integers(-R, R, (50, 3)), rng.standard_normal((6, 3))
    by_hand = [int(np.linalg.norm(x / R - centroids, axis=1).argmin()) for x in z]
    assert nearest(z, centroids).tolist() == by_hand


def test_classes_are_counted_with_those_that_nobody_has_and_by_cluster_if_there_are_any():
    points = Sensitive(Points(np.array([[R, 0], [-R, 0], [-R, 0]]), np.array([0, 1, 1])))
    assert transform_class_counts(points, 3, None).reveal().tolist() == [1, 2, 0]
    alone = Sensitive(Points(points.reveal().z, np.zeros(3, dtype=np.int64)))  # a table without classes has one
    assert transform_class_counts(alone, 1, None).reveal().tolist() == [3]
    centroids = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 9.0]])
    assert transform_class_counts(points, 2, centroids).reveal().tolist() == [0, 2, 1, 0, 0, 0]
