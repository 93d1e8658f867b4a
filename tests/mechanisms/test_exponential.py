"""The exponential mechanism: it draws by its formula, and costs no more than the Gaussian it is charged as."""

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import log_expit, log_ndtr, ndtri_exp, softmax

from dpmodels.errors import InvalidArgument
from dpmodels.mechanisms.exponential import exponential_scale, gumbel_maximum, select_exponential
from dpmodels.privacy import Released, Sensitive

ALPHA = 1e-6  # a false alarm in a million runs
SCORES = np.array([0, 300, 500, 900, -400])
DRAWS = 3000


@pytest.mark.parametrize("offset", [0, 2**50])
def test_the_draws_follow_the_formula_and_reject_two_thirds_and_three_halves_of_the_scale(offset):
    scale = exponential_scale(400, 1.5)
    seen = np.bincount([gumbel_maximum(SCORES + offset, scale) for _ in range(DRAWS)], minlength=len(SCORES))

    def fits(factor: float) -> bool:
        return stats.chisquare(seen, DRAWS * softmax(SCORES / (scale * factor))).pvalue > ALPHA

    assert [fits(factor) for factor in (2 / 3, 1, 3 / 2)] == [False, True, False]


def test_the_selection_draws_at_the_scale_it_is_charged_for():
    release = select_exponential(Sensitive(SCORES), sensitivity=1, noise_multiplier=100.0)
    assert isinstance(release, Released) and 0 <= release.value < len(SCORES)
    seen = [select_exponential(Sensitive(SCORES), sensitivity=400, noise_multiplier=1.5).value for _ in range(2000)]
    expected = 2000 * softmax(SCORES / exponential_scale(400, 1.5))
    assert stats.chisquare(np.bincount(seen, minlength=len(SCORES)), expected).pvalue > ALPHA


def gaussian_delta(mu: float, epsilon: np.ndarray) -> np.ndarray:
    """Return the hockey-stick divergences of a Gaussian pair."""
    return np.exp(log_ndtr(mu / 2 - epsilon / mu)) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def exceeds(scores: np.ndarray, moved: np.ndarray, scale: float, mu: float) -> bool:
    """Say whether the draws from two score vectors can be told apart better than the Gaussian pair, at any epsilon."""
    epsilon = np.linspace(-12, 12, 481) * mu
    p, q = softmax(scores / scale), softmax(moved / scale)
    sides = [np.maximum(a[:, None] - np.exp(epsilon) * b[:, None], 0).sum(0) for a, b in ((p, q), (q, p))]
    return bool((np.max(sides, axis=0) > gaussian_delta(mu, epsilon) + 1e-12).any())


@pytest.mark.parametrize("noise_multiplier", [0.2, 1.0, 5.0, 40.0])
def test_no_neighbours_are_told_apart_better_than_by_the_gaussian_that_is_charged(noise_multiplier):
    rng, scale, mu = np.random.default_rng(0), exponential_scale(1, noise_multiplier), 1 / noise_multiplier
    for _ in range(400):
        scores = rng.normal(size=rng.integers(2, 6)) * scale * rng.choice([0.1, 1, 4])
        moved = scores + rng.choice([-1, 0, 1], size=len(scores))
        assert not exceeds(scores, moved, scale, mu)


@pytest.mark.parametrize("noise_multiplier", [0.2, 1.0, 5.0, 40.0])
def test_the_worst_neighbours_would_exceed_it_at_a_scale_that_is_hardly_smaller(noise_multiplier):
    scale, mu = exponential_scale(1, noise_multiplier), 1 / noise_multiplier
    scores, moved = np.array([0.5, -0.5]), np.array([-0.5, 0.5])
    assert not exceeds(scores, moved, scale, mu)
    assert exceeds(scores, moved, scale * 0.97, mu) and exceeds(scores, moved, scale * 2 / 3, mu)


@pytest.mark.parametrize("noise_multiplier", [0.1, 1.0, 30.0])
def test_the_centred_interval_gains_most(noise_multiplier):
    """Step 3 of the proof: no other pair of two-point distributions of the same range needs a larger mu."""
    width, mu = 2 / exponential_scale(1, noise_multiplier), 1 / noise_multiplier
    low = np.linspace(-30 - width, 30, 4001)
    gains = normal_of_logit(low + width) - normal_of_logit(low)
    assert gains.max() <= mu * (1 + 1e-9) and gains.max() == pytest.approx(mu, rel=1e-4)
    assert -2 * normal_of_logit(np.array(-width / 2)) == pytest.approx(mu, rel=1e-7)


def normal_of_logit(x: np.ndarray) -> np.ndarray:
    """Return the normal quantile of the probability of this logit."""
    return -np.sign(x) * ndtri_exp(log_expit(-np.abs(x)))


@pytest.mark.parametrize("noise_multiplier", [0.01, 0.3, 0.499, 0.501, 2.0, 1e3, 1e6, 1e9])
def test_the_scale_is_never_below_the_exact_one(noise_multiplier):
    with mpmath.workdps(700):
        tail = mpmath.ncdf(-1 / (2 * mpmath.mpf(noise_multiplier)))
        exact = 2**17 / mpmath.log((1 - tail) / tail)
        assert exact <= mpmath.mpf(exponential_scale(2**17, noise_multiplier)) <= exact * (1 + mpmath.mpf("2e-9"))


@pytest.mark.parametrize("multiplier", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_no_scale_is_refused(multiplier):
    with pytest.raises(InvalidArgument, match="noise_multiplier"):
        select_exponential(Sensitive(SCORES), sensitivity=1, noise_multiplier=multiplier)


def test_no_candidates_and_scores_that_could_overflow_are_refused_without_naming_them():
    with pytest.raises(InvalidArgument, match="candidate"):
        select_exponential(Sensitive(SCORES[:0]), sensitivity=1, noise_multiplier=1.0)
    with pytest.raises(InvalidArgument, match="use fewer rows"):
        select_exponential(Sensitive(np.array([0, -(2**62)])), sensitivity=1, noise_multiplier=1.0)
