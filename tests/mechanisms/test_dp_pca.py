"""Symmetric coordinates: what a record moves them by, and that the noise on them hides a neighbour."""

import numpy as np
import pytest

from dpmodels.mechanisms.dp_pca import DIAGONAL, OFF_DIAGONAL, pack, principal_directions, symmetric_dim, unpack
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.privacy import Sensitive


def squared(vector: np.ndarray) -> int:
    return sum(int(v) ** 2 for v in vector)


def test_an_off_diagonal_entry_weighs_as_its_two_places_do_and_never_more():
    assert 0.999 * 2 * DIAGONAL**2 < OFF_DIAGONAL**2 <= 2 * DIAGONAL**2


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_no_record_moves_the_coordinates_by_more_than_its_squared_norm(size):
    rng = np.random.default_rng(size)
    extremes = [np.eye(size, dtype=np.int64)[0] * 500, np.full(size, 77), np.resize([9, -9], size)]
    for x in [*extremes, *rng.integers(-1000, 1000, (200, size))]:
        moved, norm = squared(pack(np.outer(x, x))), squared(x)
        assert moved <= (DIAGONAL * norm) ** 2
        assert moved >= 0.999 * (DIAGONAL * norm) ** 2  # no larger bound is paid for than needed


def test_unpacking_gives_the_matrix_back():
    gram = np.random.default_rng(0).integers(-50, 50, (3, 6, 6))
    gram = gram + gram.transpose(0, 2, 1)
    packed = pack(gram)
    assert packed.shape == (3, symmetric_dim(6))
    assert np.array_equal(unpack(packed, 6), gram)


def test_the_release_is_not_confined_to_positive_matrices():
    """Wishart noise is positive semidefinite, so that a release below the moments of a neighbour would rule it out."""
    x = np.array([1000, 0, 0])
    total, sensitivity = pack(np.outer(x, x)), DIAGONAL * 1000**2
    below = 0
    for _ in range(60):
        noisy = measure_gaussian(Sensitive(total), l2_sensitivity=sensitivity, noise_multiplier=1.0).value
        difference = unpack(noisy - total, 3)
        below += np.linalg.eigvalsh(difference)[0] < 0 < np.linalg.eigvalsh(difference)[-1]
    assert below > 30


def test_directions_are_sorted_orthogonal_and_of_one_sign():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    matrix = (basis * np.arange(8, 0, -1)) @ basis.T
    directions = principal_directions(matrix, 3)
    assert np.allclose(directions.T @ directions, np.eye(3))
    assert np.allclose(np.diag(directions.T @ matrix @ directions), [8, 7, 6])
    assert np.array_equal(directions, principal_directions(matrix, 8)[:, :3])
    assert (directions[np.abs(directions).argmax(axis=0), range(3)] > 0).all()
