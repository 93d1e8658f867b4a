"""Renyi divergences of our events in closed form, and the one order at which a cap works as a Renyi filter.

**Filter.** Let the order a be fixed before the first release, and let release i, with whatever parameters the analyst
chooses after seeing releases 1..i-1, have Renyi divergence at most r_i (both directions, over all neighbors). If
sum r_i <= B whatever is seen, then all releases together have divergence at most B at order a: the products of the
conditional densities to the power a integrate to at most exp((a-1) B), by induction from the last release to the
first (Feldman and Zrnic 2021, theorem 4.3). By the conversion below they are (epsilon, delta)-DP. The order must not
depend on the releases, so it is written into the entry that opens the account.

Thresholds leave the filter the delta that they do not take. That is proved where they are charged first, so that what
is left is fixed as well. An analyst who charges one only after releases that told little of a unit, and spends the
same delta on noise after ones that told much, has both: up to twice the delta (tests/accounting/test_thresholds.py).
So the ledger refuses a threshold in a filter that has been charged for anything else (ledger/weighing.py).

Source: Mironov, "Renyi differential privacy" (2017); Mironov, Talwar and Zhang, "Renyi differential privacy of the
sampled Gaussian mechanism" (2019), section 3.3; Feldman and Zrnic, "Individual privacy accounting via a Renyi filter"
(2021).
"""

import math
from collections.abc import Iterable
from decimal import Decimal

from dpmodels.accounting.events import (
    Event,
    GaussianEvent,
    LaplaceEvent,
    Leaf,
    ParallelEvent,
    PureEvent,
    SampledGaussianEvent,
    ThresholdEvent,
    leaves,
)
from dpmodels.accounting.tally import Parallel, Tally, exact

ORDERS = tuple([*range(2, 65), *range(72, 257, 8), 320, 384, 448, 512, 768, 1024])
_MARGIN = 1e-12  # relative; rounding errors of the formulas below stay under it


def divergence(part: Leaf | Parallel, order: int) -> float:
    """Return the Renyi divergence of one release at an integer order; for DP-SGD that of one step.

    For sampled Gaussians the computed direction (sample against base) is the larger one: Mironov et al., theorem 5.
    """
    match part:
        case Parallel():
            return max(tally_divergence(tally, order) for tally in part.parts)
        case GaussianEvent():
            return order / 2 * part.noise_multiplier**-2
        case SampledGaussianEvent():
            return _sampled_gaussian(part.sampling_probability, part.noise_multiplier, order)
        case LaplaceEvent():  # Mironov (2017), table II
            b, a = part.noise_multiplier, order
            terms = [math.log(a / (2 * a - 1)) + (a - 1) / b, math.log((a - 1) / (2 * a - 1)) - a / b]
            return _conjugate(terms, a, 1e-15)
        case PureEvent():  # the worst pair is randomized response
            e, a = part.epsilon, order
            log_p, log_q = -math.log1p(math.exp(-e)), -e - math.log1p(math.exp(-e))
            return _conjugate([a * log_p + (1 - a) * log_q, a * log_q + (1 - a) * log_p], a, 1e-15)
        case ThresholdEvent():
            raise ValueError("the divergence of a threshold is infinite; its delta is counted apart")


def tally_divergence(tally: Tally, order: int) -> float:
    """Return the Renyi divergence of everything in a tally at an integer order."""
    others = math.fsum(times * divergence(part, order) for part, times in tally.kinds)
    return order / 2 * tally.mu_squared + others


def filter_cost(events: Iterable[Event], order: int) -> Tally:
    """Add up divergences, rounded up, and deltas of thresholds: what a charge adds to the tally of a Renyi filter."""
    total, delta = 0, 0
    for part in leaves(events):
        if isinstance(part, ParallelEvent):
            costs = [filter_cost([each], order) for each in part.events]
            total, delta = total + max(cost.renyi for cost in costs), delta + max(cost.delta for cost in costs)
            continue
        if isinstance(part, ThresholdEvent):
            delta += exact(part.delta)
            continue
        times = part.steps if isinstance(part, SampledGaussianEvent) else 1
        total += times * exact(max(divergence(part, order), 1e-30) * (1 + _MARGIN))
    return Tally(renyi=total, delta=delta)


def filter_epsilon(spent: float, order: int, delta: float) -> float:
    """Convert a divergence at an order into epsilon at delta; a divergence of 0 is an epsilon of 0.

    Source: Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (2020), proposition 12.
    """
    if spent == 0:
        return 0.0
    epsilon = spent + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    return max(0.0, epsilon * (1 + _MARGIN))


def filter_order(cap: Decimal, delta: Decimal) -> int:
    """Return the order at which the cap has room for the most Gaussian releases; it depends on the public cap alone.

    A cap of epsilon leaves the divergence B = epsilon - filter_epsilon(0+), and a Gaussian release costs order/2 per
    1/z^2, so the best order has the largest B / order.
    """

    def room(order: int) -> float:
        return (float(cap) - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)) / order

    return int(max(ORDERS, key=room))


def _sampled_gaussian(q: float, z: float, order: int) -> float:
    """Sum the binomial series for integer orders, all of its terms positive (Mironov, Talwar and Zhang, 2019)."""
    log_q, log_rest = math.log(q), math.log1p(-q)
    terms = [
        math.lgamma(order + 1) - math.lgamma(k + 1) - math.lgamma(order - k + 1)
        + (order - k) * log_rest + k * log_q + (k * k - k) / (2 * z * z)
        for k in range(order + 1)
    ]  # fmt: skip
    return _conjugate(terms, order, 1e-12)


def _conjugate(log_terms: list[float], order: int, error: float) -> float:
    """Return log(sum of terms) / (order - 1), plus a bound on the rounding error where the sum is close to 1."""
    top = max(log_terms)
    log_sum = top + math.log(math.fsum(math.exp(term - top) for term in log_terms))
    return (max(0.0, log_sum) + error * order) / (order - 1)
