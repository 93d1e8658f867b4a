"""The exponential mechanism over a lattice: it draws by its formula, and neighbors differ by epsilon at most."""

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.mechanisms import k_norm
from dpmodels.mechanisms.k_norm import k_norm_scale, measure_k_norm
from dpmodels.privacy import Released, Sensitive

ALPHA = 1e-6  # a false alarm in a million runs


@cache
def log_normalizer(dim: int, scale: float) -> float:
    """Return the logarithm of the sum over all points of exp(-distance / scale), cube by cube."""
    radii = np.arange(round((2 * dim + 62) * scale + 60))
    return logsumexp(dim * np.log(2.0 * radii + 1) - radii / scale) + np.log(-np.expm1(-1 / scale))


def log_probabilities(distances: np.ndarray, dim: int, scale: float) -> np.ndarray:
    return -distances / scale - log_normalizer(dim, scale)


def distances(points: np.ndarray, center: np.ndarray) -> np.ndarray:
    return np.abs(points - center).max(axis=-1)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_probabilities_add_up_to_one(dim):
    radii = np.arange(4000)
    # the points at a distance r are those of one cube that are not in the next smaller one
    shell = (2.0 * radii + 1) ** dim - np.where(radii, np.abs(2.0 * radii - 1), 0) ** dim
    assert (shell * np.exp(log_probabilities(radii, dim, 20.0))).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("dim", "scale"), [(1, 0.7), (1, 3.3), (2, 1.1), (3, 0.9)])
def test_the_draws_follow_the_formula_and_reject_two_thirds_and_three_halves_of_the_scale(dim, scale):
    number, reach = 1500, 2
    center = np.arange(dim) * 1000 - 7
    release = measure_k_norm(Sensitive(np.tile(center, (number, 1))), scale=scale)
    assert isinstance(release, Released) and release.value.dtype == np.int64
    points = np.array(list(itertools.product(range(-reach, reach + 1), repeat=dim))) + center
    seen = np.array([(release.value == point).all(axis=1).sum() for point in points])

    def fits(factor: float) -> bool:
        expected = number * np.exp(log_probabilities(distances(points, center), dim, scale * factor))
        outside = number - seen.sum(), number - expected.sum()
        return stats.chisquare([*seen, outside[0]], [*expected, outside[1]]).pvalue > ALPHA

    assert [fits(factor) for factor in (2 / 3, 1, 3 / 2)] == [False, True, False]


def test_every_vector_of_a_block_gets_its_own_noise():
    drawn = measure_k_norm(Sensitive(np.zeros((300, 8), dtype=np.int64)), scale=500.0).value
    assert len(np.unique(drawn, axis=0)) == 300
    # by symmetry the coordinates of a point are not correlated, and those of two points are independent
    assert np.abs(np.corrcoef(drawn.T) - np.eye(8)).max() < 0.35
    assert drawn.std() == pytest.approx(500 * np.sqrt(9 * 10 / 3), rel=0.2)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 25.0])
def test_no_point_is_more_than_e_to_epsilon_as_probable_for_a_neighbor_and_the_worst_reaches_it(epsilon):
    rng, sensitivity, dim = np.random.default_rng(0), 64, 6
    scale, worst = k_norm_scale(sensitivity, epsilon), 0.0
    for _ in range(3000):
        one = rng.integers(-500, 500, size=dim)
        move = rng.choice([-sensitivity, 0, rng.integers(-sensitivity, sensitivity + 1), sensitivity], size=dim)
        points = np.vstack([one, one + move, one + 2 * move, rng.integers(-800, 800, size=(20, dim))])
        near, far = distances(points, one), distances(points, one + move)
        ratios = log_probabilities(near, dim, scale) - log_probabilities(far, dim, scale)
        worst = max(worst, np.abs(ratios).max())
    assert worst <= epsilon * (1 + 1e-9) and worst == pytest.approx(epsilon, rel=1e-6)


def test_the_scale_is_never_too_small():
    for sensitivity, epsilon in itertools.product((1, 3, 8192), (0.1, 0.3, 7.0, 25.0)):
        assert Fraction(k_norm_scale(sensitivity, epsilon)) >= Fraction(sensitivity) / Fraction(str(epsilon))


def test_nothing_is_drawn_for_no_vector_and_numbers_that_could_overflow_are_refused():
    assert measure_k_norm(Sensitive(np.zeros((0, 4), dtype=np.int64)), scale=1.0).value.shape == (0, 4)
    with pytest.raises(Unsuitable, match="overflow"):
        measure_k_norm(Sensitive(np.full((1, 1), 2**52)), scale=1.0)
    for scale in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidArgument):
            measure_k_norm(Sensitive(np.zeros((1, 1), dtype=np.int64)), scale=scale)


def test_a_word_that_would_favor_a_small_number_is_refused(monkeypatch):
    """2**64 is 1 modulo 3 and 6 modulo 10, so of all words the first one, or the first six, are too many."""
    words = iter([[0, 5, 6, 2**64 - 1], [7, 15]])
    monkeypatch.setattr(k_norm.os, "urandom", lambda size: np.array(next(words), dtype=np.uint64).tobytes())
    assert k_norm._below(np.array([3, 10, 10, 10])).tolist() == [7 % 3, 15 % 10, 6, (2**64 - 1) % 10]
    with pytest.raises(StopIteration):
        next(words)


def test_radii_that_are_not_accepted_are_drawn_again():
    """At a small scale most sums of geometric variables are refused; those that stay follow (2 R + 1)^d q^R."""
    dim, scale = 3, 0.6
    drawn = k_norm._radii(k_norm._geometric(scale), 3000, dim)
    radii = np.arange(8)
    weights = (2.0 * radii + 1) ** dim * np.exp(-radii / scale)
    expected = 3000 * weights / weights.sum()
    seen = np.bincount(drawn, minlength=8)
    assert stats.chisquare([*seen[:6], seen[6:].sum()], [*expected[:6], expected[6:].sum()]).pvalue > ALPHA
