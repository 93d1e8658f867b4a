"""How much noise DP-SGD needs so that it and everything released before it stay within one budget."""

from collections.abc import Sequence
from functools import lru_cache

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import Event, SampledGaussianEvent, check_adjacency
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.privacy import PrivacyBudget

LEAST, MOST, PRECISION = 0.3, 1e4, 1e-3


def sampled_noise_multiplier(
    budget: PrivacyBudget, before: Sequence[Event], sampling_probability: float, steps: int
) -> float:
    """Return the least noise stddev / clip norm with which the steps still fit beside the events before them.

    Privacy:
        One-sided: the answer was itself put to ``spent_epsilon``, the ledger's own reckoning, and found within the
        budget; it is at most 0.1 % above the least such value. Under add-or-remove-one alone.

    Raises:
        InvalidArgument: what comes before leaves nothing, or the budget is one that no Gaussian keeps.
    """
    check_adjacency([SampledGaussianEvent(noise_multiplier=1, sampling_probability=0.5)], budget.adjacency)
    return _search(budget, tuple(before), sampling_probability, steps)


@lru_cache(maxsize=64)
def _search(budget: PrivacyBudget, before: tuple[Event, ...], probability: float, steps: int) -> float:
    delta, cap = budget.delta_exact, budget.epsilon_exact
    if not delta:
        raise InvalidArgument("delta", budget.delta, "be above 0 for DP-SGD: only pure releases keep a delta of 0")

    def fits(noise_multiplier: float) -> bool:
        event = SampledGaussianEvent(
            noise_multiplier=noise_multiplier, sampling_probability=probability, steps=steps, mechanism="DP-SGD"
        )
        return spent_epsilon([*before, event], delta) <= cap

    low, high = LEAST, 1.0
    while not fits(high):
        low, high = high, 2 * high
        if high > MOST:
            raise Unsuitable("what is measured before DP-SGD takes the whole budget; lower the shares of those phases")
    while high / low > 1 + PRECISION:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
