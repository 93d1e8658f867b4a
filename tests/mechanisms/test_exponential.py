"""The exponential mechanism: it draws by its formula, and costs no more than the Gaussian or the epsilon charged."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import log_expit, log_ndtr, ndtri_exp, softmax

from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.mechanisms.exponential import exponential_scale, gumbel_maximum, pure_scale, select_exponential
from dpmodels.privacy import Adjacency, Released, Sensitive
from tests.kit.errors import refused

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
    scale = exponential_scale(400, 1.5)
    release = select_exponential(Sensitive(SCORES), scale=scale)
    assert isinstance(release, Released) and 0 <= release.value < len(SCORES)
    seen = [select_exponential(Sensitive(SCORES), scale=scale).value for _ in range(2000)]
    expected = 2000 * softmax(SCORES / scale)
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
    with refused(InvalidArgument, name="noise_multiplier", value=multiplier):
        exponential_scale(1, multiplier)
    with refused(InvalidArgument, name="epsilon", value=multiplier):
        pure_scale(1, multiplier)
    with refused(InvalidArgument, name="scale", value=multiplier):
        select_exponential(Sensitive(SCORES), scale=multiplier)


def test_no_candidates_and_scores_that_could_overflow_are_refused_without_naming_them():
    with pytest.raises(Unsuitable, match="candidate"):
        select_exponential(Sensitive(SCORES[:0]), scale=1.0)
    with pytest.raises(Unsuitable, match="use fewer rows"):
        select_exponential(Sensitive(np.array([0, -(2**62)])), scale=1.0)


@pytest.mark.parametrize("offset", [0, 2**61, -(2**61)])
def test_the_draw_that_is_charged_as_pure_is_the_exponential_mechanism_to_the_last_step(offset):
    """Scores so large that a float could not tell them apart; permute-and-flip would fail as well."""
    scores = np.array([0, 1, 2, 5])
    scale = pure_scale(1, 0.8)
    assert scale == 2.5
    draws = [select_exponential(Sensitive(scores + offset), scale=scale).value for _ in range(DRAWS)]
    seen = np.bincount(draws, minlength=len(scores))

    def fits(expected: np.ndarray) -> bool:
        return stats.chisquare(seen, DRAWS * expected).pvalue > ALPHA

    assert [fits(softmax(scores / (scale * factor))) for factor in (2 / 3, 1, 3 / 2)] == [False, True, False]
    assert not fits(permute_and_flip(scores, scale))


def permute_and_flip(scores: np.ndarray, scale: float) -> np.ndarray:
    """Return the probabilities of permute-and-flip, by every order of the candidates."""
    accept = np.exp((scores - scores.max()) / scale)
    total = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for index in order:
            total[index] += left * accept[index] / len(orders)
            left *= 1 - accept[index]
    return total


def worst_ratio(monotonic: bool, scale: float, size: int, sensitivity: int) -> mpmath.mpf:
    """Return the largest logarithm of a ratio of probabilities over all small score vectors and all neighbours."""
    moves = range(0 if monotonic else -sensitivity, sensitivity + 1)
    with mpmath.workdps(50):
        weights = {step: mpmath.exp(mpmath.mpf(step) / scale) for step in range(-sensitivity, 13)}

        def log_probabilities(scores: tuple[int, ...]) -> list[mpmath.mpf]:
            total = mpmath.log(mpmath.fsum(weights[score] for score in scores))
            return [score / mpmath.mpf(scale) - total for score in scores]

        worst = mpmath.mpf(0)
        for scores in itertools.product((0, 1, 10), repeat=size):
            p = log_probabilities(scores)
            for step in itertools.product(moves, repeat=size):
                q = log_probabilities(tuple(score + one for score, one in zip(scores, step, strict=True)))
                worst = max(worst, *(abs(a - b) for a, b in zip(p, q, strict=True)))
        return worst


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 3.0])
def test_no_neighbours_have_a_ratio_above_e_to_the_epsilon_and_two_thirds_of_the_scale_would_exceed_it(
    monotonic, sensitivity, epsilon
):
    scale = pure_scale(sensitivity, epsilon, monotonic=monotonic)
    assert worst_ratio(monotonic, scale, 3, sensitivity) <= epsilon
    if epsilon == 3.0:  # where the heaviest candidate has nearly all of the weight
        assert worst_ratio(monotonic, scale * 2 / 3, 3, sensitivity) > epsilon


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1 / 3, 0.7, 1e-6, 99.9])
@pytest.mark.parametrize("sensitivity", [1, 3, 2**17, 10**12 + 1])
def test_the_pure_scale_is_exact_and_rounded_up(epsilon, sensitivity):
    written = Fraction(repr(epsilon))
    for factor, monotonic in ((2, False), (1, True)):
        scale = Fraction(pure_scale(sensitivity, epsilon, monotonic=monotonic))
        assert 0 <= scale * written / (factor * sensitivity) - 1 < Fraction(1, 2**51)
        assert scale == Fraction(pure_scale(sensitivity * factor, epsilon, monotonic=True))


def test_no_score_is_monotonic_under_replace_one():
    assert pure_scale(3, 0.5, adjacency=Adjacency.REPLACE_ONE) == pure_scale(3, 0.5)
    with refused(InvalidArgument, name="monotonic", value=True):
        pure_scale(3, 0.5, monotonic=True, adjacency=Adjacency.REPLACE_ONE)
    # a count of records, replaced: one score falls and another rises, and the ratio is that of the full range
    scale, swapped = pure_scale(1, 0.5, monotonic=True), (np.array([5, 0]), np.array([4, 1]))
    p, q = (softmax(scores / scale) for scores in swapped)
    assert np.log(q / p).max() > 0.5


@pytest.mark.parametrize("noise_multiplier", [0.3, 2.0])
def test_monotonic_scores_have_half_the_range_and_the_gaussian_covers_them_at_half_the_scale(noise_multiplier):
    scale, mu = exponential_scale(1, noise_multiplier, monotonic=True), 1 / noise_multiplier
    assert scale == pytest.approx(exponential_scale(1, noise_multiplier) / 2)
    rng = np.random.default_rng(0)
    for _ in range(300):
        scores = rng.normal(size=3) * scale * rng.choice([0.1, 1, 4])
        assert not exceeds(scores, scores + rng.integers(0, 2, size=3), scale, mu)
    half = np.array([0.25, -0.25])
    assert exceeds(half, -half, scale / 3, mu)
