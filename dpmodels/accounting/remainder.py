"""The noise that DP-SGD needs so that its steps and the releases before them stay within one budget."""

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
    """Return the least noise_multiplier with which DP-SGD's steps and the events before them fit into the budget.

    Units:
        noise_multiplier: noise standard deviation / clip_norm, a ratio.

    Privacy:
        One-sided: ``spent_epsilon``, which the ledger uses, found the returned value within the budget; it is at most
        0.1 % above the least such value. Under add-or-remove-one alone.

    Raises:
        InvalidArgument: the events before leave nothing of the budget, or no Gaussian can keep the budget.
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
