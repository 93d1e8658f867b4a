"""What holds for somebody with several records where the unit is one record: epsilon and delta, and even bets.

Privacy: reckoned of a manifest's events and budget.
"""

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from dpmodels import amounts
from dpmodels.accounting.events import EVENT
from dpmodels.accounting.meaning import in_words, only_gaussians, right_guesses_of_records
from dpmodels.pages.asked.risk import RECORDS
from dpmodels.pages.card_words import REPLACED, is_record
from dpmodels.pages.page import short_up

Facts = Mapping[str, Any]


def several_records(facts: Facts) -> str:
    """Say which epsilon and delta hold for somebody with a few records, k steps apart, and how they grow.

    P(a) <= e^epsilon P(b) + delta, used k times, gives k epsilon, and delta times 1 + e^epsilon + .. + e^((k-1)
    epsilon). Empty where a unit is no record.
    """
    hand_off = facts["hand_off"]
    if not _has_events_of_records(hand_off):
        return ""
    epsilon, delta = Decimal(hand_off["epsilon"]), hand_off["delta"]
    some = list[str]()
    for number in RECORDS:
        of_delta = f" and δ = {short_up(delta_of_records(float(epsilon), delta, number))}" if delta else ""
        some.append(f"with {number} records ε = {amounts.spent(number * epsilon)}{of_delta}")
    grows = "k records: k·ε" + ", and δ·(e^(k·ε) - 1) / (e^ε - 1)" * bool(delta)
    public = "How many records there are is public. " * (hand_off["adjacency"] == REPLACED)
    known = f"{public}Nacre cannot know whether one person has several records."
    return f"{known} At worst a person has {', '.join(some[:-1])} and {some[-1]} ({grows}): answer 2."


def bets_by_noise(facts: Facts, words: Mapping[str, Any], of_all: Mapping[str, Any] | None) -> str:
    """Say how often even bets are won by the noise that was drawn, beside bounds for any noise; empty if no rarer."""
    said = list[str]()
    if words["cases"] != words["guesses_of_budget"]:
        said.append(f"in {words['cases']} by these files")
    if of_all and of_all["of_noise"] and of_all["cases"] != of_all["guesses_of_budget"]:
        said.append(f"in {of_all['cases']} by all the account paid for")
    if several := _bets_of_several(facts):
        said.append(several)
    if not said:
        return ""
    return (
        f"Bets above hold for any noise that keeps ε and δ. By the noise that was drawn one is won {'; '.join(said)}."
    )


def _bets_of_several(facts: Facts) -> str:
    """Say how often the best attacker is right on somebody with a few records; empty where noise does not tell it."""
    hand_off = facts["hand_off"]
    if not _has_events_of_records(hand_off):
        return ""
    events = [EVENT.validate_python(one) for charge in hand_off["charges"] for one in charge["events"]]
    if not only_gaussians(events):
        return ""
    epsilon, delta = float(hand_off["epsilon"]), hand_off["delta"]
    shares = [in_words(right_guesses_of_records(events, epsilon, delta, number)) for number in RECORDS]
    return f"on {_either(map(str, RECORDS))} records of one person in at most {_either(shares)}"


def _has_events_of_records(hand_off: Facts) -> bool:
    """Tell whether the unit is a record, and what was released of records is known."""
    return bool(is_record(hand_off) and not hand_off["clients"] and hand_off["charges"])


def delta_of_records(epsilon: float, delta: float, records: int) -> float:
    """Return the delta at worst of somebody with so many records, by which epsilon is as many times as large."""
    steps = [min(epsilon * step, 700.0) for step in range(records)]
    return min(1.0, delta * math.fsum(map(math.exp, steps))) if delta else 0.0


def _either(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}"
