"""What holds for somebody with several records where the unit is one record: epsilon, delta, bets and guesses.

Privacy: reckoned of a manifest's events and budget.
"""

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from dpmodels import amounts
from dpmodels.accounting.events import EVENT
from dpmodels.accounting.meaning import in_words, only_gaussians, right_guesses_of_records
from dpmodels.pages.card_words import NEARLY_ANY, REPLACED, after_at_worst, is_record
from dpmodels.pages.page import short_up

RECORDS = (2, 3, 5, 12)
"""Records of one person of which a statement says what they mean."""
FEW = (2, 3)
"""Those of which it says what epsilon and delta they have."""
MANY_RECORDS = (5, 12)
"""Those of which it says what becomes of a guess on a value."""


def several_records(facts: Mapping[str, Any]) -> str:
    """Say how often the best attacker is right on somebody with a few records; empty where a unit is no record."""
    hand_off = facts["hand_off"]
    if not is_record(hand_off) or hand_off["clients"] or not hand_off["charges"]:
        return ""
    events = [EVENT.validate_python(one) for charge in hand_off["charges"] for one in charge["events"]]
    epsilon, delta = float(hand_off["epsilon"]), hand_off["delta"]
    shares = [in_words(right_guesses_of_records(events, epsilon, delta, number)) for number in RECORDS]
    by = "by this noise" if only_gaussians(events) else "by so many times ε alone"
    bets = (
        f"If one person has {_either(map(str, RECORDS))} records, an even bet on whether these are there is won in at "
    )
    bets += f"most {_either(shares)} of cases, {by}."
    return f"{_group_privacy(hand_off)} {bets} {_values_of_records(epsilon, hand_off['adjacency'] == REPLACED)}"


def _group_privacy(hand_off: Mapping[str, Any]) -> str:
    """Say which epsilon and delta hold for somebody with two or three records, k steps apart, and how they grow.

    P(a) <= e^epsilon P(b) + delta, used k times, gives k epsilon, and delta times 1 + e^epsilon + .. + e^((k-1)
    epsilon).
    """
    epsilon, delta = Decimal(hand_off["epsilon"]), hand_off["delta"]
    some = list[str]()
    for number in FEW:
        of_delta = f" and δ = {short_up(delta_of_records(float(epsilon), delta, number))}" if delta else ""
        some.append(f"{number} records ε = {amounts.spent(number * epsilon)}{of_delta}")
    grows = "k records: k·ε" + ", and δ·(e^(k·ε) - 1) / (e^ε - 1)" * bool(delta)
    public = "How many records there are is public. " * (hand_off["adjacency"] == REPLACED)
    known = f"{public}Nacre cannot know whether one person has several records."
    return f"{known} At worst a person has with {' and with '.join(some)} ({grows})."


def delta_of_records(epsilon: float, delta: float, records: int) -> float:
    """Return the delta at worst of somebody with so many records, by which epsilon is as many times as large."""
    steps = [min(epsilon * step, 700.0) for step in range(records)]
    return min(1.0, delta * math.fsum(map(math.exp, steps))) if delta else 0.0


def _values_of_records(epsilon: float, replaced: bool) -> str:
    """Say what a guess on a value becomes of somebody with a few records, by k or 2 k times epsilon.

    Where neighbors have a record or lack it, other values of k records are 2 k steps away.
    """
    odds = [steps * epsilon * (1 if replaced else 2) for steps in MANY_RECORDS]
    after = [after_at_worst(math.exp(min(one, 100.0))) or NEARLY_ANY.removeprefix("may become ") for one in odds]
    both = [one if one.startswith("nearly") else f"{one} at most" for one in after]
    return (
        f"A guess of 10 % on {'what is true of them' if replaced else 'a value that all of them share'} becomes "
        f"{' or '.join(both)} where they are {' or '.join(map(str, MANY_RECORDS))}, but for a δ that grows "
        f"too, by so many times {'' if replaced else 'twice '}ε."
    )


def _either(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}"
