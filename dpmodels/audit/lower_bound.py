"""Lower bounds of mu from draws of one Gaussian step, by whoever knows everything but which of two data sets it was.

A step releases y = f(D) + noise. Its claim is that the pair (D, D') is no easier to tell apart than N(0, 1) and
N(mu, 1), with mu = 1 / noise multiplier. The adversary of an audit knows f(D) and f(D'), so its best statistic is

    score = <y - f(D), f(D') - f(D)> / ||f(D') - f(D)||,

which is N(0, s^2) under D and N(||f(D') - f(D)||, s^2) under D', if the noise is N(0, s^2) in every coordinate. Two
bounds are computed, each of which exceeds the true mu with a probability of at most alpha.

**Assumption-free.** A threshold t is chosen by the first half of the scores. In the second half, let a be the share of
scores under D above t and b that under D'. By Clopper and Pearson the true shares are at most a+ and at least b-, each
but for a probability of alpha / 2, whatever the scores' laws are. A pair that is no easier to tell apart than N(0, 1)
and N(mu, 1) has b <= Phi(Phi^-1(a) + mu) for each event, so mu >= Phi^-1(b-) - Phi^-1(a+). With n scores
in each second half it falls short of mu by about 2.6 z_(alpha/2) / sqrt(n), for the threshold is then near the middle.

**Parametric.** If the noise is Gaussian, of one variance, independent from coordinate to coordinate and from draw to
draw, and the same under D and D', then the m noise values of all coordinates of all draws have a sum of squares of
s^2 chi^2(m). So s is at most sqrt(sum of squares / q) with q the quantile alpha of chi^2(m), but for a probability of
alpha, and mu = ||f(D') - f(D)|| / s is at least ||f(D') - f(D)|| sqrt(q / sum of squares). It falls short by about
z_alpha / sqrt(2 m), relative: 2.2 % for m = 10,000 and alpha = 0.001. What it assumes is tested first: the shape by
Kolmogorov and Smirnov, against the normal law of the variance that is found; the variance of D against that of D' by an
F test; independence by the correlations of neighboring coordinates, of the same coordinate in successive draws, and of
the noise with what it was added to; each at a level of ``ALARM``.

Noise on a lattice is a rounded Gaussian, or a discrete one of a deviation of at least four steps. For the test of its
shape a uniform number from a step about 0 is added to each value, after which it has a density again.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from dpmodels.arrays import Floats

ALPHA = 1e-3
"""What may exceed the truth by chance in one of a thousand audits."""
ALARM = 1e-6
"""What is called a fault of the code: chance does it in one of a million audits."""


RESTS = 16
"""Noise is divided by this, and must leave every rest as often."""


@dataclass(frozen=True)
class Interval:
    """A bound below, and one above that the same assumptions give; ``high`` is infinite where there is none."""

    low: float
    high: float = float("inf")


@dataclass(frozen=True)
class NoiseTests:
    """The p-values of what the parametric bound assumes."""

    shape: float
    same_variance: float
    independence: float

    @property
    def hold(self) -> bool:
        """Tell whether nothing speaks against the assumptions."""
        return min(self.shape, self.same_variance, self.independence) > ALARM


def clopper_pearson(hits: int, tries: int, alpha: float) -> tuple[float, float]:
    """Return a lower and an upper bound of a probability, each wrong with a probability of at most ``alpha``."""
    low = float(stats.beta.ppf(alpha, hits, tries - hits + 1)) if hits else 0.0
    high = float(stats.beta.ppf(1 - alpha, hits + 1, tries - hits)) if hits < tries else 1.0
    return low, high


def shares_above(under: Floats, under_other: Floats, threshold: float, alpha: float) -> tuple[float, float]:
    """Bound the share of scores above a threshold, under D from above and under D' from below."""
    hits = int((under > threshold).sum()), int((under_other > threshold).sum())
    return _shares(*hits, len(under), len(under_other), alpha)


def _shares(hits: int, others: int, tries: int, other_tries: int, alpha: float) -> tuple[float, float]:
    return clopper_pearson(hits, tries, alpha / 2)[1], clopper_pearson(others, other_tries, alpha / 2)[0]


def ceilings(draws: int, others: int, delta: float = 0.0, alpha: float = ALPHA) -> tuple[float, float]:
    """Return the largest mu, and the largest epsilon, that bounds without assumptions can show with so many draws.

    Half of the draws choose the threshold. Of the other half all are guessed right, as they would be against no noise
    at all, and Clopper and Pearson say of n right guesses of n that the share of right ones is (alpha / 2)^(1/n) at
    least. A bound near its ceiling says that there were too few draws, and a ceiling below the claim that no fault of
    the noise could have been seen so.

    Source: Clopper and Pearson, "The use of confidence or fiducial limits" (1934); as a limit of what audits can show,
        Nasr et al., "Adversary instantiation" (2021), section IV.
    """
    tries, other_tries = draws - draws // 2, others - others // 2
    above, below = _shares(0, other_tries, tries, other_tries, alpha)
    mu = max(0.0, float(stats.norm.ppf(below) - stats.norm.ppf(above)))
    return mu, max(0.0, float(np.log((below - delta) / above))) if below > delta else 0.0


def epsilon_at(under: Floats, under_other: Floats, threshold: float, delta: float, alpha: float = ALPHA) -> float:
    """Bound epsilon from below by one event: under (epsilon, delta) it has b <= e^epsilon a + delta."""
    above, below = shares_above(under, under_other, threshold, alpha)
    return max(0.0, float(np.log((below - delta) / above))) if below > delta else 0.0


def assumption_free(under: Floats, under_other: Floats, alpha: float = ALPHA) -> float:
    """Bound mu from below by scores under D and under D', which are larger under D'; 0 where they say nothing."""
    threshold, rest, others = _split(under, under_other)
    above, below = shares_above(rest, others, threshold, alpha)
    return max(0.0, float(stats.norm.ppf(below) - stats.norm.ppf(above)))


def epsilon_assumption_free(under: Floats, under_other: Floats, delta: float, alpha: float = ALPHA) -> float:
    """Bound epsilon from below in the same way, for a mechanism of which (epsilon, delta) is claimed and no more."""
    threshold, rest, others = _split(under, under_other)
    return epsilon_at(rest, others, threshold, delta, alpha)


def parametric(noise: Floats, distance: float, alpha: float = ALPHA) -> Interval:
    """Bound mu = distance / s from both sides, from noise values of the standard deviation s.

    Units: ``noise`` and ``distance`` = ||f(D') - f(D)|| in lattice steps. Shapes: any.
    """
    squares, count = float((noise**2).sum()), noise.size
    if not squares:
        return Interval(float("inf"))
    low, high = (distance * (float(stats.chi2.ppf(share, count)) / squares) ** 0.5 for share in (alpha, 1 - alpha))
    return Interval(low, high)


def noise_tests(noise: Floats, other: Floats, values: Floats) -> NoiseTests:
    """Test what the parametric bound assumes, of draws under D and of draws under D'.

    Shapes: [draws, coordinates] twice; ``values`` [coordinates] is what the noise was added to under D.
    """
    both = np.concatenate([noise, other])
    if not noise.any() or not other.any():
        return NoiseTests(0.0, 0.0, 0.0)
    spread = both.ravel() + np.random.default_rng(0).uniform(-0.5, 0.5, both.size)
    even = spread / np.sqrt((spread**2).mean())
    shape = min(float(stats.kstest(even, "norm").pvalue), _reaches(even), _alike(both))
    ratio = float((noise**2).mean() / (other**2).mean())
    same = 2 * min(stats.f(noise.size, other.size).cdf(ratio), stats.f(noise.size, other.size).sf(ratio))
    pairs = [(both[:, :-1], both[:, 1:]), (both[:-1], both[1:]), (noise, np.broadcast_to(values, noise.shape))]
    apart = [correlation(left.ravel(), right.ravel()) for left, right in pairs]
    return NoiseTests(shape, float(same), min(1.0, len(apart) * min(apart)))


def deviation_is(noise: Floats, stddev: float) -> bool:
    """Tell whether noise has a standard deviation, by a two-sided chi-square test at the level of an alarm."""
    quantile = float(stats.chi2(noise.size).cdf(((noise / stddev) ** 2).sum()))
    return ALARM / 2 < quantile < 1 - ALARM / 2


def is_fine(noise: Floats) -> bool:
    """Tell whether noise is of whole numbers of every kind: on a grid it would leave the rest of a division exact."""
    whole = np.abs(np.rint(noise)).astype(np.int64).ravel()
    rests = stats.chisquare(np.bincount(whole % RESTS, minlength=RESTS)).pvalue
    return bool(whole.std() < 2 * RESTS or (rests > ALARM and np.gcd.reduce(whole) == 1))


def _reaches(even: Floats) -> float:
    """Return the probability that the largest of so many standard normal values is no larger than it is here."""
    return float(np.exp(even.size * np.log1p(-2 * stats.norm.sf(np.abs(even).max()))))


def _alike(noise: Floats) -> float:
    """Return the p-value of the coordinate whose variance is farthest from the rest. Shapes: [draws, coordinates]."""
    law, squares = stats.chi2(len(noise)), (noise**2).sum(axis=0) / (noise**2).mean()
    chance: float = 2 * min(law.cdf(squares).min(), law.sf(squares).min()) * len(squares)
    return min(1.0, chance)


def correlation(left: Floats, right: Floats) -> float:
    """Return the p-value of a correlation; of too few values, or of constant ones, 1."""
    if len(left) < 3 or not left.std() or not right.std():
        return 1.0
    return float(stats.pearsonr(left, right).pvalue)


def _split(under: Floats, under_other: Floats) -> tuple[float, Floats, Floats]:
    """Return the threshold at which half of the scores promise the largest bound, and the other half of them."""
    first, second = len(under) // 2, len(under_other) // 2
    tried = np.quantile(np.concatenate([under[:first], under_other[:second]]), np.linspace(0.04, 0.96, 24))
    bounds = [shares_above(under[:first], under_other[:second], t, ALPHA) for t in tried]
    separations = [stats.norm.ppf(below) - stats.norm.ppf(above) for above, below in bounds]
    return float(tried[int(np.argmax(separations))]), under[first:], under_other[second:]


def one_run(canaries: int, guesses: int, right: int, delta: float, alpha: float = ALPHA) -> float:
    """Bound epsilon from below by one run with canaries of which each is in the data with probability one half.

    If the run is (epsilon, delta)-DP, the number of right guesses is, up to delta, no larger in law than a binomial of
    probability e^epsilon / (1 + e^epsilon); the correction for delta is that of theorem 5.2.

    Source: Steinke, Nasr, Jagielski, "Privacy auditing with one (1) training run" (2023).
    """
    low, high = 0.0, 30.0
    if not guesses or _one_run_chance(0.0, canaries, guesses, right, delta) > alpha:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        too_small = _one_run_chance(middle, canaries, guesses, right, delta) < alpha
        low, high = (middle, high) if too_small else (low, middle)
    return low


def _one_run_chance(epsilon: float, canaries: int, guesses: int, right: int, delta: float) -> float:
    """Bound the probability of so many right guesses."""
    law = stats.binom(guesses, 1 / (1 + np.exp(-epsilon)))
    chance = float(law.sf(right - 1))
    fewer = np.arange(1, right + 1)
    worst = float(np.max((law.sf(right - fewer - 1) - chance) / fewer, initial=0.0))
    return min(1.0, chance + worst * delta * 2 * canaries)
