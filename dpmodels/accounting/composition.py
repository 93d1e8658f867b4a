"""What several releases spend together: exact for Gaussian and pure ones, privacy loss distributions for the rest.

Amounts are decimals on a grid of 1e-12, always rounded up, so that the comparison with a cap is exact. Every answer
depends on the tally alone and is remembered, so an account's spending is computed once for each appended charge.

Thresholds have a delta and nothing else (events.py). Their deltas are taken off the delta at which the rest is added
up; where they take more than there is, no epsilon holds, and what is spent is infinite.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dpmodels.accounting.calibration import gaussian_delta, gaussian_epsilon, gaussian_noise_multiplier
from dpmodels.accounting.events import (
    Event,
    GaussianEvent,
    LaplaceEvent,
    Leaf,
    SampledGaussianEvent,
    ThresholdEvent,
)
from dpmodels.accounting.renyi import ORDERS, filter_cost, filter_epsilon, tally_divergence
from dpmodels.accounting.tally import SCALE, Parallel, Tally, parse_kind
from dpmodels.privacy import PrivacyBudget

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

SPENT_GRID = Decimal("1e-12")
REMAINING_GRID = Decimal("1e-9")
LEAST = Decimal("1e-3")
"""The smallest epsilon that a budget may have."""
# The grid of privacy losses has steps of 1e-4 up to this epsilon, and larger ones beyond, so that time stays bounded.
FINE_UP_TO = 30.0
ROUGHLY = 1e-5  # the delta at which the size of a spending is estimated
# Grouping the distributions in another way changes epsilon by less than this, which is added to ours.
_PLD_MARGIN = 2e-7

Spending = Tally | Sequence[Event]


def spent_epsilon(spending: Spending, delta: Decimal, order: int | None = None) -> Decimal:
    """Return the epsilon that all events spend together at delta, rounded up; adding an event never lowers it.

    With an order, this is the epsilon of a Renyi filter (see ``renyi``), for a tally that was kept at that order. At
    delta 0 it is infinite unless every release is pure.

    Privacy:
        Adaptive composition under the adjacency that every event is proved under (``check_adjacency``). Gaussians
        compose exactly: mu^2 is the sum of the mu_i^2 (Dong, Roth and Su 2019, corollary 3.3), whatever their order.
        Pure epsilons add up, as decimals. Where delta is above 0, the epsilon by privacy loss distributions holds as
        well, and the smaller of the two is the price. A threshold of delta q is, for the worst pair of neighbors, a
        coin that gives the unit away with probability q and is silent otherwise; so the rest is priced at delta - q,
        in a Renyi filter as well (Whitehouse et al. 2023, theorem 1, of filters of approximate divergences).
    """
    tally, delta = _apart(spending, delta)
    if delta < 0:
        return Decimal("Infinity")
    if order is not None and tally and not delta:
        return Decimal("Infinity")
    if order is not None:
        return _ceiling(filter_epsilon(tally.renyi / SCALE, order, _float_below(delta)))
    pure = tally.pure_epsilon
    if not tally:
        return Decimal(0)
    added = Decimal("Infinity") if pure is None else math.ceil(pure / Fraction(SPENT_GRID)) * SPENT_GRID
    return min(added, _spent(tally.key, _float_below(delta))) if delta else added


def spent_delta(spending: Spending, epsilon: float) -> float:
    """Return the delta at which all events together spend no more than an epsilon, rounded up.

    Privacy: Gaussians compose exactly, and pure releases of epsilon E are never told apart better than a coin that is
        turned with a probability of 1 / (1 + e^E) (Kairouz, Oh and Viswanath 2015). All else is composed by privacy
        loss distributions, which are pessimistic. The deltas of thresholds are added.
    """
    whole = _tally(spending)
    if whole.delta:
        return min(1.0, spent_delta(whole.besides, epsilon) + math.nextafter(float(whole.threshold_delta), 1.0))
    tally, pure = whole, whole.pure_epsilon
    if not tally:
        return 0.0
    if pure is not None:  # (e^E - e^epsilon) / (1 + e^E), written so that nothing overflows
        return max(0.0, -math.expm1(epsilon - float(pure)) / (1 + math.exp(-float(pure))))
    if not tally.others:
        return gaussian_delta(tally.mu_squared**-0.5, epsilon)
    return float(_whole(tally.key).get_delta_for_epsilon(epsilon))


def pld_epsilon(spending: Spending, delta: Decimal) -> Decimal:
    """Return the epsilon by privacy loss distributions, pessimistic up to their own grid, rounded up.

    Units: delta is above 0.
    """
    tally, delta = _apart(spending, delta)
    if delta <= 0:
        return spent_epsilon(tally, delta)
    return _by_pld(tally, _float_below(delta)) if tally else Decimal(0)


def renyi_epsilon(spending: Spending, delta: Decimal) -> Decimal:
    """Return the looser epsilon of Renyi accounting over many orders, rounded up; for comparison only."""
    tally, delta = _apart(spending, delta)
    if delta <= 0:  # the Renyi divergence of order infinity is the pure epsilon
        return spent_epsilon(tally, delta)
    return _ceiling(_renyi(tally.key, _float_below(delta))) if tally else Decimal(0)


def remaining_epsilon(spending: Spending, cap: Decimal, delta: Decimal, order: int | None = None) -> Decimal:
    """Return the largest epsilon of one further release that still fits under the cap: Gaussian, or at delta 0 pure.

    The epsilon of a Gaussian release is found by a search for the largest that fits: cap - spent would be far too
    small, because epsilons of Gaussian releases do not add up. Those of pure releases do. The answer is rounded down to
    1e-9, or to a five-hundredth of the cap where each trial needs a privacy loss distribution; it is 0 when not even
    the smallest budget (0.001) fits. The further release is one at the whole delta, also where thresholds took some.
    """
    tally, left_delta = _apart(spending, delta)
    if left_delta <= 0:
        left = cap - spent_epsilon(tally, left_delta)
        return left if left >= LEAST else Decimal(0)
    grid = max(REMAINING_GRID, cap / 500) if tally.others else REMAINING_GRID
    return _remaining(tally.key, cap, (delta, left_delta), order, grid)


@lru_cache(maxsize=4096)
def _remaining(key: tuple, cap: Decimal, deltas: tuple[Decimal, Decimal], order: int | None, grid: Decimal) -> Decimal:  # type: ignore[type-arg]
    tally, (whole, delta) = _of_key(key), deltas

    def fits(epsilon: Decimal) -> bool:
        budget = PrivacyBudget(epsilon=float(epsilon), delta=_float_below(whole))
        further = [GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget))]
        cost = Tally.of(further) if order is None else filter_cost(further, order)
        spent = (
            spent_epsilon(tally + cost, delta, order)
            if order or not tally.others
            else _by_pld(tally + cost, _float_below(delta), coarser=8)
        )
        return spent <= cap

    if not fits(LEAST):
        return Decimal(0)
    low, high = 0, int((cap - LEAST) / grid)  # steps of the grid above the least budget
    if order is None and not tally.others:
        guess = int((_gaussian_room(tally.mu_squared, cap, delta) - LEAST) / grid)
        width = 3 + guess // 10**7
        below, above = max(low, guess - width), min(high, guess + width)
        low = below if fits(LEAST + below * grid) else low
        high = above if not fits(LEAST + above * grid) else high
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(LEAST + middle * grid) else (low, middle - 1)
    return (LEAST + low * grid).quantize(REMAINING_GRID)


def _gaussian_room(mu_squared: float, cap: Decimal, delta: Decimal) -> Decimal:
    """Guess the remaining epsilon, where the search starts, from the 1/z^2 that is left under the cap."""
    at = _float_below(delta)
    whole = gaussian_noise_multiplier(PrivacyBudget(epsilon=float(cap), delta=at)) ** -2
    left = max(whole - mu_squared, 1e-20)
    return min(max(Decimal(gaussian_epsilon(left**-0.5, at)), Decimal("1e-3")), cap)


@lru_cache(maxsize=4096)
def _spent(key: tuple, delta: float) -> Decimal:  # type: ignore[type-arg]
    tally = _of_key(key)
    if tally.others:
        return _by_pld(tally, delta)
    return _ceiling(gaussian_epsilon(tally.mu_squared**-0.5, delta)) if tally else Decimal(0)


@lru_cache(maxsize=4096)
def _renyi(key: tuple, delta: float) -> float:  # type: ignore[type-arg]
    tally = _of_key(key)
    return min(filter_epsilon(tally_divergence(tally, order), order, delta) for order in ORDERS)


def _by_pld(tally: Tally, delta: float, coarser: int = 1) -> Decimal:
    """Compose the distributions of all kinds of releases; all Gaussians are one Gaussian.

    The grid of losses is a power of two times 1e-4, coarser the larger the epsilon, and rounds every loss up: the
    answer stays an upper bound, with a number of cells that depends on neither epsilon nor the number of releases.
    """
    rough = _renyi(tally.key, delta)
    whole = _composed(tally, coarser * _grid(rough))
    return _ceiling(min(float(whole.get_epsilon_for_delta(delta)) * (1 + _PLD_MARGIN) + _PLD_MARGIN, rough))


@lru_cache(maxsize=4)
def _whole(key: tuple) -> "PrivacyLossDistribution":  # type: ignore[type-arg]
    return _composed(_of_key(key), _grid(_renyi(key, ROUGHLY)))


def _grid(rough: float) -> float:
    return 1e-4 * 2.0 ** max(0, math.ceil(math.log2(max(rough, 1e-9) / FINE_UP_TO)))


def _composed(tally: Tally, grid: float) -> "PrivacyLossDistribution":
    """Compose all releases of a tally that is not empty."""
    parts = [_all_others(tally.key[1], grid)] if tally.others else []
    if tally.gaussian:
        parts.append(_distribution(GaussianEvent(noise_multiplier=tally.mu_squared**-0.5), grid))
    return parts[0] if len(parts) == 1 else parts[0].compose(parts[1])


@lru_cache(maxsize=8)
def _all_others(others: tuple[tuple[str, int], ...], grid: float) -> "PrivacyLossDistribution":
    """Compose all releases that are not Gaussian, short distributions first: a step's cost grows with both lengths."""
    parts = sorted((_repeated(kind, times, grid) for kind, times in others), key=_width)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return whole


@lru_cache(maxsize=2 * 64)
def _repeated(kind: str, times: int, grid: float) -> "PrivacyLossDistribution":
    """Compose one kind of release with itself."""
    return _distribution(parse_kind(kind), grid).self_compose(times)


def _distribution(part: Leaf | Parallel, grid: float) -> "PrivacyLossDistribution":
    """Return the pessimistic privacy loss distribution of one release."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    match part:
        case Parallel():
            parts = [_composed(tally, grid) for tally in part.parts]
            sides = [
                _largest([each._pmf_remove for each in parts], grid),
                _largest([each._pmf_add for each in parts], grid),
            ]
            return pld.PrivacyLossDistribution(*sides)
        case GaussianEvent():
            return pld.from_gaussian_mechanism(part.noise_multiplier, value_discretization_interval=grid)
        case SampledGaussianEvent():
            return pld.from_gaussian_mechanism(
                part.noise_multiplier,
                value_discretization_interval=grid,
                sampling_prob=part.sampling_probability,
            )
        case LaplaceEvent():
            return pld.from_laplace_mechanism(part.noise_multiplier, value_discretization_interval=grid)
    epsilon, delta = (0.0, part.delta) if isinstance(part, ThresholdEvent) else (part.epsilon, 0.0)
    parameters = common.DifferentialPrivacyParameters(epsilon, delta)
    return pld.from_privacy_parameters(parameters, value_discretization_interval=grid)


def _largest(parts: list[Any], grid: float) -> Any:
    """Return the privacy loss distribution whose divergence is, at every epsilon, the largest among the parts.

    Each part's divergence is linear in e^epsilon between the points of the grid, so the largest of them, being convex,
    lies under the chords that connect its values on the grid.
    """
    import numpy as np
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap

    dense = [part.to_dense_pmf() for part in parts]
    low = min(part._lower_loss for part in dense)
    high = max(part._lower_loss + part.size - 1 for part in dense)
    points = np.arange(low, high + 1) * grid
    deltas = np.max([part.get_delta_for_epsilon(points) for part in dense], axis=0)
    return create_pmf_pessimistic_connect_dots_fixed_gap(grid, low, high, np.clip(deltas, 0.0, 1.0))


def _width(distribution: "PrivacyLossDistribution") -> int:
    return int(distribution._pmf_remove.size)


def _tally(spending: Spending) -> Tally:
    return spending if isinstance(spending, Tally) else Tally.of(spending)


def _apart(spending: Spending, delta: Decimal) -> tuple[Tally, Decimal]:
    """Return a spending without its thresholds, and the delta that these leave, rounded down; it may be negative."""
    tally = _tally(spending)
    with localcontext(prec=60, rounding=ROUND_FLOOR):
        return tally.besides, delta - tally.threshold_delta if tally.delta else delta


def _of_key(key: tuple) -> Tally:  # type: ignore[type-arg]
    gaussian, others, renyi, delta = key
    return Tally(gaussian=gaussian, others=dict(others), renyi=renyi, delta=delta)


def _ceiling(epsilon: float) -> Decimal:
    return Decimal(epsilon).quantize(SPENT_GRID, rounding=ROUND_CEILING)


def _float_below(value: Decimal) -> float:
    """Return a float that is not above the decimal."""
    nearest = float(value)
    return nearest if Decimal(nearest) <= value else math.nextafter(nearest, 0.0)
