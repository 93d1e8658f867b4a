"""What several releases spend together: exact for Gaussians, privacy loss distributions for anything else.

Amounts are decimals on a grid of 1e-12, always rounded up, so that a cap is compared exactly and never by luck.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

from dpmodels.accounting.calibration import gaussian_epsilon, gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, Event, GaussianEvent, leaves, to_dp_accounting
from dpmodels.privacy import PrivacyBudget

if TYPE_CHECKING:
    from dp_accounting import PrivacyAccountant

SPENT_GRID = Decimal("1e-12")
REMAINING_GRID = Decimal("1e-9")


def spent_epsilon(events: Sequence[Event], delta: Decimal) -> Decimal:
    """Return the epsilon that all events spend together at delta, rounded up; adding an event never lowers it.

    Privacy:
        Adaptive composition under add-or-remove-one. Gaussians compose exactly: mu^2 is the sum of the mu_i^2
        (Dong, Roth and Su 2019, corollary 3.3), whatever their order.
    """
    if not events:
        return Decimal(0)
    parts = list(leaves(events))
    if all(isinstance(part, GaussianEvent) for part in parts):
        mu = math.sqrt(math.fsum(part.noise_multiplier**-2 for part in parts))
        return _ceiling(gaussian_epsilon(1 / mu, _float_below(delta)))
    return pld_epsilon(events, delta)


def pld_epsilon(events: Sequence[Event], delta: Decimal) -> Decimal:
    """Return the epsilon by privacy loss distributions, pessimistic up to their own grid of 1e-4, rounded up."""
    from dp_accounting import NeighboringRelation, pld

    return _by_accountant(pld.PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE), events, delta)


def renyi_epsilon(events: Sequence[Event], delta: Decimal) -> Decimal:
    """Return the looser epsilon of Renyi accounting, rounded up; shown beside the ledger's own, never decides."""
    from dp_accounting import NeighboringRelation, rdp

    return _by_accountant(rdp.RdpAccountant(neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE), events, delta)


def remaining_epsilon(events: Sequence[Event], cap: Decimal, delta: Decimal) -> Decimal:
    """Return the largest epsilon of one further Gaussian release at delta that still fits under the cap.

    It is found by asking, not by subtracting: cap - spent would be far too small, because epsilons do not add up.
    Rounded down to 1e-9; 0 when not even the smallest budget (0.001) fits.
    """

    def fits(steps: int) -> bool:
        budget = PrivacyBudget(epsilon=float(steps * REMAINING_GRID), delta=_float_below(delta))
        further = GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget))
        return spent_epsilon([*events, further], delta) <= cap

    low, high = int(Decimal("1e-3") / REMAINING_GRID), int(cap / REMAINING_GRID)
    if not fits(low):
        return Decimal(0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low * REMAINING_GRID


def _by_accountant(accountant: "PrivacyAccountant", events: Sequence[Event], delta: Decimal) -> Decimal:
    if not events:
        return Decimal(0)
    accountant.compose(to_dp_accounting(ComposedEvent(events=tuple(events))))
    return _ceiling(float(accountant.get_epsilon(_float_below(delta))))


def _ceiling(epsilon: float) -> Decimal:
    return Decimal(epsilon).quantize(SPENT_GRID, rounding=ROUND_CEILING)


def _float_below(value: Decimal) -> float:
    """Return a float that is not above the decimal."""
    nearest = float(value)
    return nearest if Decimal(nearest) <= value else math.nextafter(nearest, 0.0)
