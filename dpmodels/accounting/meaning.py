"""What a budget means to one person: how far odds can move, and how often the best attacker is right.

Right guesses: somebody holds it for an even bet which of two neighboring data sets was released from, knows all the
rest, sees the release, and names the likelier one. After one release their belief is p on one side and 1 - p on the
other, and they are right with the larger of the two. The share of right guesses is the mean of that over all releases:
(1 + V) / 2, where V is the total variation between the two, which is delta at epsilon 0. For Gaussian noise that is
Phi(mu / 2) (Dong, Roth and Su 2019). Of epsilon and delta alone, whatever the noise, follows only that it is at most
(e^epsilon + delta) / (1 + e^epsilon) (Kairouz, Oh and Viswanath 2015). Pages of a hand-off say what epsilon and delta
allow, ``guesses_of_budget``, which compares with other releases; plans, and notes for experts, what ``right_guesses``
returns: the share for the noise that is drawn. How far one belief moves is a matter of odds.

Odds move by the factor e^loss, where the privacy loss is a random number. Delta does not bound the probability that the
loss is above epsilon, though it is often said to: delta weighs how far above it is. So that probability is stated, too.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from dpmodels.accounting.composition import spent_delta
from dpmodels.accounting.events import Event
from dpmodels.accounting.tally import Tally

TRIALS = 64
PRACTICALLY_ALL = 0.9995
MOST_EPSILON = 700
"""From here on a float does not hold e^epsilon."""


@dataclass(frozen=True)
class Meaning:
    """What a budget means, each number an upper bound.

    Attributes:
        odds_factor: by how much odds move, but for ``beyond``; infinite where it is more than a float holds.
        beyond: the probability that they move by more.
        right_guesses: the share of right guesses of the best attacker on an even bet, for the noise that was drawn.
        right_guesses_of_budget: the same for any mechanism that keeps epsilon and delta.
    """

    odds_factor: float
    beyond: float
    right_guesses: float
    right_guesses_of_budget: float

    @classmethod
    def of(cls, events: Sequence[Event], epsilon: float, delta: float) -> "Meaning":
        """Reckon the meaning of events that spend epsilon at delta."""
        factor = math.exp(epsilon) if epsilon < MOST_EPSILON else math.inf
        right, of_budget = right_guesses(events, epsilon, delta), guesses_of_budget(epsilon, delta)
        return cls(factor, probability_beyond(events, epsilon), right, of_budget)

    def facts(self) -> dict[str, float | None]:
        """Return the numbers, rounded up; None for a factor that no float holds."""
        return {name: None if math.isinf(value) else _up(value) for name, value in asdict(self).items()}


def right_guesses(events: Sequence[Event], epsilon: float, delta: float) -> float:
    """Return the share of right guesses of the best attacker on an even bet, for events within epsilon and delta."""
    return min((1 + spent_delta(events, 0.0)) / 2, guesses_of_budget(epsilon, delta))


@dataclass(frozen=True)
class Together:
    """What several releases mean together, as ``Meaning`` has it of one.

    Attributes:
        right_guesses: the share of right guesses of whoever has all of them.
        beyond: the probability that odds move by more than e^epsilon.
    """

    right_guesses: float
    beyond: float

    @classmethod
    def of(cls, tallies: Sequence[Tally], epsilon: float, delta: float) -> "Together | None":
        """Reckon it of the heaviest line of accounts; None where a tally has more than Gaussians, which takes long."""
        if any(tally.others or tally.renyi for tally in tallies):
            return None
        right = max(min((1 + spent_delta(tally, 0.0)) / 2, guesses_of_budget(epsilon, delta)) for tally in tallies)
        return cls(_up(right), _up(max(_probability_beyond(tally, epsilon) for tally in tallies)))


def guesses_of_budget(epsilon: float, delta: float = 0.0) -> float:
    """Return the share of right guesses that epsilon and delta allow, whatever the noise."""
    return 1 - (1 - delta) / (1 + math.exp(min(epsilon, MOST_EPSILON)))


def in_words(share: float) -> str:
    """Write a share of right guesses, rounded up."""
    return f"{math.ceil(1000 * share) / 10:g} %" if share < PRACTICALLY_ALL else "practically all"


def factor_in_words(epsilon: float, digits: int = 3) -> str:
    """Write the factor e^epsilon by which odds move, as a power of ten where no float holds it.

    It is rounded to the nearest, as the terms of earlier hand-offs are; pages round it up.
    """
    return f"{math.exp(epsilon):.{digits}g}" if epsilon < MOST_EPSILON else f"10^{epsilon / math.log(10):.0f}"


def factor_rounded_up(epsilon: float, digits: int = 3) -> str:
    """Write the factor e^epsilon, of which no less than the whole is said."""
    if epsilon >= MOST_EPSILON:
        return f"10^{math.ceil(epsilon / math.log(10))}"
    lead = 10.0 ** (math.floor(epsilon / math.log(10)) - digits + 1)
    return f"{math.ceil(math.exp(epsilon) / lead * (1 - 1e-9)) * lead:.{digits}g}"


def probability_beyond(events: Sequence[Event], epsilon: float) -> float:
    """Return an upper bound of the probability that the privacy loss of some events is larger than epsilon.

    Privacy: for Gaussians the loss is normal with mean mu^2 / 2 and variance mu^2, which is exact. In general delta at
        e is the mean of max(0, 1 - exp(e - loss)), which is at least 1 - exp(e - epsilon) where the loss is larger
        than epsilon; so the probability is at most delta(e) / (1 - exp(e - epsilon)) for each e below epsilon.
    """
    return _probability_beyond(Tally.of(events), epsilon)


def _probability_beyond(tally: Tally, epsilon: float) -> float:
    return min(1.0, float(tally.threshold_delta) * (1 + 1e-9) + _beyond(tally.besides, epsilon))


def _beyond(tally: Tally, epsilon: float) -> float:
    """Return that bound for a tally without thresholds, whose loss is infinite with the probability of their deltas."""
    if tally.pure_epsilon is not None and tally.pure_epsilon <= epsilon:
        return 0.0
    if not tally.others:
        from scipy.special import ndtr

        mu = tally.mu_squared**0.5
        return min(1.0, float(ndtr(mu / 2 - epsilon / mu)) * (1 + 1e-9)) if mu else 0.0
    lower = [epsilon * index / TRIALS for index in range(TRIALS)]
    return min(1.0, *(spent_delta(tally, each) / -math.expm1(each - epsilon) for each in lower if each < epsilon))


def _up(value: float) -> float:
    """Round up to six figures."""
    if not value:
        return 0.0
    digits = 5 - math.floor(math.log10(value))
    return math.ceil(round(value * 10.0**digits, 6)) / 10.0**digits
