"""The exponential mechanism on integer scores, sampled exactly by OpenDP with system randomness.

It draws candidate i with probability proportional to exp(score_i / scale).

Accounting. Let no score differ by more than D between neighboring data sets, under the adjacency of the budget. The
log-likelihood ratio of outcome i is then (s_i - s'_i) / scale + log(Z' / Z), where Z sums exp(s_j / scale). The first
term lies in an interval I of width h = 2 D / scale, and the second is the same for all i. The scores are *monotonic*
where adding a unit lowers none of them: under add-or-remove-one all differences then have one sign, and h = D / scale.
Replacing a unit adds one and removes one, so under replace-one no score is monotonic. One draw has two valid prices.

**Pure.** It is h-DP: log(Z' / Z) is the logarithm of a mean of exp((s'_j - s_j) / scale), so it lies in -I, and the sum
of a number in I and one in -I is at most the width of I in magnitude.

**Gaussian.** The log-likelihood ratios of the outcomes lie in some interval [b - h, b]. Such a pair (P, Q) of output
distributions is a post-processing of a Gaussian pair N(0, 1), N(mu, 1) with

    mu = 2 Phi^-1( 1 / (1 + e^(-h/2)) ),

so a draw is charged as a Gaussian of noise multiplier 1 / mu and composes in closed form with other Gaussians. Proof.
1. The likelihood ratio has mean 1 under P and values in [e^(b-h), e^b]; in convex order it is largest when only the two
   ends occur, so (P, Q) is a garbling (Blackwell) of two-point distributions (p, 1-p), (q, 1-q) with
   logit q - logit p = h.
2. Thresholding the Gaussian pair where N(0, 1) exceeds the threshold with probability p, N(mu, 1) exceeds it with
   probability Phi(Phi^-1(p) + mu). If that is at least q, the two-point pair is a randomized test of the Gaussian one.
3. So mu must be sup over p of Phi^-1(q) - Phi^-1(p) with logit q = logit p + h. The derivative of Phi^-1 by the logit,
   Phi(z) Phi(-z) / phi(z), is even in z and falls in |z|, so the interval that gains most is centred: logit q = h/2.
4. It falls, that is D(z) = phi(z) (2 Phi(z) - 1) - z Phi(z) Phi(-z) > 0 for z > 0: D is 0 at 0 and at infinity, and
   D' = 2 phi^2 - Phi(z) Phi(-z) is positive at 0 and changes sign once, for the logarithm of phi^2 / (Phi(z) Phi(-z))
   has the derivative r(z) - r(-z) - 2 z < 0, where r = phi / Phi(-.) is the hazard rate, whose slope is below 1.

mu is about 0.627 h. In an account that adds up Gaussians the pure price is twice as much (an h-DP answer of which
nothing else is known is randomized response: mu about 1.253 h); where delta is 0 it is the only one.

Source: McSherry and Talwar (2007); Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential
mechanisms" (2020), for the bounded range and step 1; Sampford, "Some inequalities on Mill's ratio" (1953), for the
slope in step 4. The tests check the result numerically as well.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from dpmodels.arrays import Whole
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.privacy import Adjacency, Released, Sensitive, exact_decimal

Selector = Callable[[Whole, float], int]
"""Draws an index with probability proportional to exp(score / scale); only tests inject another sampler."""

_LIMIT = 2**62


def exponential_scale(sensitivity: int, noise_multiplier: float, *, monotonic: bool = False) -> float:
    """Return the least scale, rounded up, at which a draw costs one Gaussian of ``noise_multiplier``.

    Units: ``sensitivity`` and the scale are in steps of the scores; ``noise_multiplier`` is a ratio.
    """
    from scipy.special import erf, log_ndtr

    if not (sensitivity > 0 and math.isfinite(noise_multiplier) and noise_multiplier > 0):
        raise InvalidArgument("noise_multiplier", noise_multiplier, "be positive and finite, as must the sensitivity")
    z = 0.5 / noise_multiplier
    # h / 2, which is the logit of Phi(mu / 2), in the form in which nothing cancels
    half = float(2 * math.atanh(erf(z / math.sqrt(2))) if z < 1 else log_ndtr(z) - log_ndtr(-z))
    return sensitivity / (half * (1 + monotonic)) * (1 + 1e-9)  # rounding errors above stay below 1e-12, relative


def pure_scale(
    sensitivity: int, epsilon: float, *, monotonic: bool = False, adjacency: Adjacency = Adjacency.ADD_OR_REMOVE_ONE
) -> float:
    """Return the scale at which a draw is epsilon-DP: never less than 2 D / epsilon, or D / epsilon where monotonic.

    Units: ``sensitivity`` D and the scale are in steps of the scores.

    Raises:
        InvalidArgument: epsilon or D is not positive, or the scores are called monotonic under replace-one.
    """
    if not (sensitivity > 0 and math.isfinite(epsilon) and epsilon > 0):
        raise InvalidArgument("epsilon", epsilon, "be positive and finite, as must the sensitivity")
    if monotonic and adjacency != Adjacency.ADD_OR_REMOVE_ONE:
        raise InvalidArgument(
            "monotonic", monotonic, "be false: a unit that is replaced may raise one score and lower another"
        )
    exact = (2 - monotonic) * sensitivity / Fraction(exact_decimal(epsilon))
    scale = float(exact)
    return scale if scale >= exact else math.nextafter(scale, math.inf)


def gumbel_maximum(scores: Whole, scale: float) -> int:
    """Draw from the exponential mechanism; cannot be seeded.

    Under this measure OpenDP adds exact Gumbel noise to the scores and returns the index of the largest, whose
    probability is proportional to exp(score / scale) whatever the draw is charged as. Under its measure of pure
    differential privacy OpenDP would permute and flip: the outcomes would *not* be those of the exponential mechanism,
    and would lack the bounded range that the Gaussian price needs.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.linf_distance(T=dp.i64)
    return int(dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)(scores))


_selector: Selector = gumbel_maximum


def select_exponential(scores: Sensitive[Whole], *, scale: float) -> Released[int]:
    """Release the index of a high score.

    Privacy: neighboring score vectors differ in every entry by at most the sensitivity from which ``scale`` was
        computed (the caller's proof). Releases one index; charged by the caller's ledger entry as the Gaussian of
        ``exponential_scale`` or the pure epsilon of ``pure_scale``.

    Raises:
        InvalidArgument: the scale is not positive and finite.
        Unsuitable: there are no candidates, or scores could overflow.
    """
    if not (math.isfinite(scale) and scale > 0):
        raise InvalidArgument("scale", scale, "be positive and finite")
    values = scores.reveal()
    if not values.size:
        raise Unsuitable("there is nothing to choose from; give the score of at least one candidate")
    if max(abs(int(values.max())), abs(int(values.min()))) >= _LIMIT:
        raise Unsuitable("the scores reach 2**62 in magnitude, where they could overflow; use fewer rows a run")
    return Released(_selector(values, scale))
