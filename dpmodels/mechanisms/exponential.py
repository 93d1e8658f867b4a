"""The exponential mechanism on integer scores, sampled exactly by OpenDP with system randomness.

It draws candidate i with probability proportional to exp(score_i / scale).

Accounting. Where one unit moves every score by at most D, the log-likelihood ratio of the outcomes lies in some
interval [b - h, b] of width h = 2 D / scale: the common normaliser moves the interval, never its width. Such a pair
(P, Q) is a post-processing of a Gaussian pair N(0, 1), N(mu, 1) with

    mu = 2 Phi^-1( 1 / (1 + e^(-h/2)) ),

so a draw is charged as a Gaussian of noise multiplier 1 / mu and composes in closed form with every other one. Proof.
1. The likelihood ratio has mean 1 under P and values in [e^(b-h), e^b]; in convex order it is largest when only the two
   ends occur, so (P, Q) is a garbling (Blackwell) of two-point distributions (p, 1-p), (q, 1-q) with
   logit q - logit p = h.
2. Thresholding the Gaussian pair where N(0, 1) exceeds the threshold with probability p, N(mu, 1) exceeds it with
   probability Phi(Phi^-1(p) + mu). If that is at least q, the two-point pair is a randomised test of the Gaussian one.
3. So mu must be sup over p of Phi^-1(q) - Phi^-1(p) with logit q = logit p + h. The derivative of Phi^-1 by the logit,
   Phi(z) Phi(-z) / phi(z), is even in z and falls in |z|, so the interval that gains most is centred: logit q = h/2.
4. It falls, that is D(z) = phi(z) (2 Phi(z) - 1) - z Phi(z) Phi(-z) > 0 for z > 0: D is 0 at 0 and at infinity, and
   D' = 2 phi^2 - Phi(z) Phi(-z) is positive at 0 and changes sign once, for the logarithm of phi^2 / (Phi(z) Phi(-z))
   has the derivative r(z) - r(-z) - 2 z < 0, where r = phi / Phi(-.) is the hazard rate, whose slope is below 1.

mu is about 0.627 h. The same draw taken as an h-DP answer of which nothing else is known is charged twice as much
(it is randomised response: mu about 1.253 h).

Source: McSherry and Talwar (2007); Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential
mechanisms" (2020), for the bounded range and step 1; Sampford, "Some inequalities on Mill's ratio" (1953), for the
slope in step 4. The tests check the result numerically as well.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.privacy import Released, Sensitive

IntegerVector = NDArray[np.int64]
Selector = Callable[[IntegerVector, float], int]
"""Draws an index with probability proportional to exp(score / scale); only tests inject another."""

_LIMIT = 2**62


def exponential_scale(sensitivity: int, noise_multiplier: float) -> float:
    """Return the scale at which a draw is charged as a Gaussian of ``noise_multiplier``, rounded up.

    Units: ``sensitivity`` and the scale in steps of the scores; ``noise_multiplier`` is a ratio.
    """
    from scipy.special import erf, log_ndtr

    if not (sensitivity > 0 and math.isfinite(noise_multiplier) and noise_multiplier > 0):
        raise InvalidArgument("noise_multiplier", noise_multiplier, "be positive and finite, as must the sensitivity")
    z = 0.5 / noise_multiplier
    # h / 2, the logit of Phi(mu / 2), where nothing cancels
    half = float(2 * math.atanh(erf(z / math.sqrt(2))) if z < 1 else log_ndtr(z) - log_ndtr(-z))
    return sensitivity / half * (1 + 1e-9)  # rounding errors above stay below 1e-12, relative


def gumbel_maximum(scores: IntegerVector, scale: float) -> int:
    """Draw from the exponential mechanism; cannot be seeded.

    Under this measure OpenDP adds Gumbel noise. Under pure differential privacy it would permute and flip, whose
    outcomes do *not* have the bounded range that the accounting above rests on.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.linf_distance(T=dp.i64)
    return int(dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)(scores))


_selector: Selector = gumbel_maximum


def select_exponential(scores: Sensitive[IntegerVector], *, sensitivity: int, noise_multiplier: float) -> Released[int]:
    """Release the index of a high score.

    Privacy: neighbouring score vectors differ by at most ``sensitivity`` in every entry (the caller's proof). Releases
        one index; charged by the caller's ledger entry as Gaussian(noise_multiplier).

    Raises:
        InvalidArgument: a scale that is not positive and finite, no candidates, or scores that could overflow.
    """
    scale = exponential_scale(sensitivity, noise_multiplier)
    values = scores.reveal()
    if not values.size:
        raise Unsuitable("there is nothing to choose from; give the score of at least one candidate")
    if max(abs(int(values.max())), abs(int(values.min()))) >= _LIMIT:
        raise Unsuitable("the scores reach 2**62 in magnitude, where they could overflow; use fewer rows a run")
    return Released(_selector(values, scale))
