"""The one place where a budget becomes noise, and noise an epsilon; every rounding is on the side of privacy.

With ``mu = 1 / noise_multiplier`` the Gaussian mechanism is (epsilon, delta)-DP exactly when

    delta >= Phi(a) - e^epsilon Phi(b),    a = mu/2 - epsilon/mu,    b = -mu/2 - epsilon/mu.

Because ``b^2 - a^2 = 2 epsilon``, both terms share the factor ``exp(-a^2/2)``. The other factors are scaled
complementary error functions, so neither a delta of 1e-300 nor an epsilon of 1000 leaves the range of a float.

Source: Balle and Wang, "Improving the Gaussian mechanism for differential privacy" (2018), theorem 8.
"""

import math
from decimal import ROUND_FLOOR, localcontext

from dpmodels.errors import InvalidArgument
from dpmodels.privacy import PrivacyBudget

# Relative surplus of noise. It lowers epsilon to at least 1e-8 (relative) under the target, a hundred times what
# ``gaussian_epsilon`` and the ledger's rounding add back, so a charge of exactly the cap fits under the cap.
CALIBRATION_SLACK = 1e-8
# What ``gaussian_epsilon`` adds against its own rounding errors, which stay below 1e-12 relative and 1e-15 absolute.
_RELATIVE_MARGIN, _ABSOLUTE_MARGIN = 1e-10, 1e-13


def gaussian_noise_multiplier(budget: PrivacyBudget) -> float:
    """Return the least noise_multiplier (noise stddev / L2 sensitivity) that keeps the budget, within a factor 1+1e-6.

    Units:
        noise_multiplier: a ratio; multiplied by the L2 sensitivity it is the standard deviation of the noise.

    Privacy:
        One-sided: the Gaussian mechanism with this multiplier is (epsilon, delta)-DP under the adjacency under which
        its sensitivity is proved.

    Raises:
        InvalidArgument: epsilon or delta lies outside the range in which one-sidedness is proved.

    Source: Balle and Wang (2018), algorithm 1, solved by bisection on mu.
    """
    epsilon, delta = budget.epsilon, budget.delta
    if not 1e-3 <= epsilon <= 1e3:
        raise InvalidArgument("epsilon", epsilon, "lie between 0.001 and 1000")
    _check_delta(delta)
    log_inverse = -math.log(delta)
    # Concentrated DP gives a mu that is private enough; the optimum lies above it.
    low = math.sqrt(2) * epsilon / (math.sqrt(log_inverse + epsilon) + math.sqrt(log_inverse))
    high = 2 * low
    while _private_enough(epsilon, high, delta):
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _private_enough(epsilon, middle, delta) else (low, middle)
    noise_multiplier = (1 + CALIBRATION_SLACK) / low
    while not _private_enough(epsilon, 1 / noise_multiplier, delta):
        noise_multiplier *= 1 + CALIBRATION_SLACK
    return noise_multiplier


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Return the epsilon that a Gaussian release spends at delta, rounded up; 0 where it is (0, delta)-DP.

    Raises:
        InvalidArgument: the multiplier is not positive and finite, or delta is not between 0 and 1.

    Source: Balle and Wang (2018), theorem 8, solved by bisection on epsilon.
    """
    from scipy.special import erf

    if not 0 < noise_multiplier < math.inf:
        raise InvalidArgument("noise_multiplier", noise_multiplier, "be positive and finite")
    _check_delta(delta)
    mu = 1 / noise_multiplier
    if erf(mu / math.sqrt(8)) < delta * (1 - _RELATIVE_MARGIN):
        return 0.0
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta))
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if _private_enough(middle, mu, delta) else (middle, high)
    return high * (1 + _RELATIVE_MARGIN) + _ABSOLUTE_MARGIN


def gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return the least delta at which a Gaussian release spends no more than an epsilon, rounded up.

    At epsilon 0 it is the total variation between what is released of two neighboring data sets.

    Source: Balle and Wang (2018), theorem 8.
    """
    from scipy.special import erfcx, log_ndtr

    mu = 1 / noise_multiplier
    a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    if a > 0:
        exact = math.exp(float(log_ndtr(a))) - math.exp(epsilon + float(log_ndtr(b)))
    else:
        exact = float(erfcx(-a / math.sqrt(2)) - erfcx(-b / math.sqrt(2))) / 2 * math.exp(-a * a / 2)
    return min(1.0, max(0.0, exact) * (1 + _RELATIVE_MARGIN) + _ABSOLUTE_MARGIN)


def pure_epsilon(budget: PrivacyBudget, releases: int = 1) -> float:
    """Return the epsilon of each of ``releases`` equal pure releases that together spend at most the budget's epsilon.

    Privacy: epsilons are added as the decimals that are written, so the returned one is rounded down to 15 digits.
    """
    with localcontext(prec=15, rounding=ROUND_FLOOR):
        return float(budget.epsilon_exact / releases)


def _private_enough(epsilon: float, mu: float, delta: float) -> bool:
    """Say whether the Gaussian mechanism of this mu is (epsilon, delta)-DP, up to rounding errors."""
    from scipy.special import erfcx, log_ndtr

    a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    if delta > 0.5 or a > 5:  # compare 1 - delta, a sum of two positive terms: nothing cancels
        complement = math.exp(float(log_ndtr(-a))) + math.exp(epsilon + float(log_ndtr(b)))
        return complement >= 1 - delta
    difference = float(erfcx(-a / math.sqrt(2)) - erfcx(-b / math.sqrt(2)))
    return difference <= 0 or math.log(difference / 2) - a * a / 2 <= math.log(delta)


def _check_delta(delta: float) -> None:
    if delta == 0:
        raise InvalidArgument("delta", delta, "be above 0 for Gaussian noise: only pure releases keep a delta of 0")
    if not 0 < delta < 1:
        raise InvalidArgument("delta", delta, "lie strictly between 0 and 1")
