"""Symmetric coordinates: what a record moves them by, and that the noise on them hides a neighbour."""

import numpy as np
import pytest

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.statistics.symmetric import DIAGONAL, OFF_DIAGONAL, pack, principal_directions, symmetric_dim, unpack


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


def ruled_out(mechanism, draws: int = 400) -> tuple[float, float]:
    """How often an output lies below the neighbour's moments somewhere: drawn from the neighbour, and from without it.

    The neighbour has one record x more. An event that never happens on one side and often does on the other is a leak
    that no delta below its probability covers.
    """
    x = np.array([1000, 0, 0])
    neighbour = np.outer(x, x)
    shares = []
    for moments in (neighbour, 0 * neighbour):
        least = [np.linalg.eigvalsh(mechanism(moments) - neighbour)[0] for _ in range(draws)]
        shares.append(float(np.mean(np.array(least) < -1e-6 * 1000**2)))
    return shares[0], shares[1]


def test_the_wishart_mechanism_would_be_caught_and_ours_is_not():
    """Jiang, Xie, Zhang (2016) at epsilon 1: W_d(d + 1, 3 / (2 epsilon) I) added to the moments; retracted since."""
    rng, epsilon, delta = np.random.default_rng(0), 1.0, 1e-5

    def wishart(moments: np.ndarray) -> np.ndarray:
        rows = rng.standard_normal((4, 3)) * (1000 * (3 / (2 * epsilon)) ** 0.5)
        return moments + rows.T @ rows

    def ours(moments: np.ndarray) -> np.ndarray:
        z = gaussian_noise_multiplier(PrivacyBudget(epsilon=epsilon, delta=delta))
        total = Sensitive(pack(moments))
        return unpack(measure_gaussian(total, l2_sensitivity=DIAGONAL * 1000**2, noise_multiplier=z).value, 3)

    def private(shares: tuple[float, float], slack: float = 0.1) -> bool:
        low, high = sorted(shares)
        return high <= np.exp(epsilon) * low + delta + slack

    assert ruled_out(wishart)[0] == 0.0
    assert not private(ruled_out(wishart))
    assert private(ruled_out(ours))


def test_directions_are_sorted_orthogonal_and_of_one_sign():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    matrix = (basis * np.arange(8, 0, -1)) @ basis.T
    directions = principal_directions(matrix, 3)
    assert np.allclose(directions.T @ directions, np.eye(3))
    assert np.allclose(np.diag(directions.T @ matrix @ directions), [8, 7, 6])
    assert np.array_equal(directions, principal_directions(matrix, 8)[:, :3])
    assert (directions[np.abs(directions).argmax(axis=0), range(3)] > 0).all()
