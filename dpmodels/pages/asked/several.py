"""What holds for somebody with several records where the unit is one record: epsilon and delta, and even bets.

Privacy: reckoned of a manifest's events and budget.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from dpmodels import amounts
from dpmodels.accounting.meaning import guesses_of_budget, in_words
from dpmodels.pages.card_words import NEARLY_ANY, REPLACED, after_at_worst, is_record
from dpmodels.pages.page import short_up

Facts = Mapping[str, Any]
RECORDS = (2, 3, 5)
"""Records of one person of which pages say what they mean."""
TABLED = (*RECORDS, 10)
"""Records of one person of which the table of a statement has a row."""
NEARLY_SURE = 891.0
"""Odds by which a guess of 10 % becomes 99 %: from here on nothing worth quoting is promised."""
LARGEST_EXPONENT = 100.0
"""From here on odds have no limit that is worth a figure."""


def steps_of(records: int, of_values: bool) -> int:
    """Return how many steps apart records are: one each, and two where neighbors have a record or lack it."""
    return records * (2 if of_values else 1)


def guess_of_records(words: Mapping[str, Any], records: int, of_values: bool) -> str:
    """Return what a guess of 10 % on somebody with so many records becomes at most; empty where nothing limits it."""
    steps = steps_of(records, of_values)
    return after_at_worst(math.exp(min(steps * float(words["epsilon"]), LARGEST_EXPONENT)))


def records_without_promise(epsilon: float, of_values: bool) -> int:
    """Return from how many records of one person on a guess of 10 % may become 99 % by epsilon alone."""
    return max(2, math.ceil(math.log(NEARLY_SURE) / (steps_of(1, of_values) * epsilon)))


def guesses_of_several(words: Mapping[str, Any], of_values: bool) -> str:
    """Write what a guess becomes with a few records, to stand beside that of one; empty where a unit is all of one."""
    if not (what := words["of_several"]):
        return ""
    nearly = NEARLY_ANY.removeprefix("may become ")
    said = [f"{guess_of_records(words, number, of_values) or nearly} with {number}" for number in RECORDS]
    return f"{_listed(said)} {what}s"


def figures_of_several(facts: Facts, words: Mapping[str, Any]) -> dict[str, str]:
    """Write what stands beside each figure of one record on a card; empty where a unit is all of a person."""
    what = words["of_several"]
    bets = bets_of_several(facts) if what else ""
    return {
        "bets": f"{bets} {what}s" if bets else "",
        "of_values": guesses_of_several(words, True),
    }


def beside_one_record(facts: Facts, words: Mapping[str, Any]) -> str:
    """Say beside figures of one record, in a sentence, what they are for somebody with several; empty of persons."""
    if not (guesses := guesses_of_several(words, bool(words["factor_of_values"]))):
        return ""
    said = f"Nothing proves that a {words['of_several']} is a person: of somebody with more, the guess becomes at most "
    if bets := bets_of_several(facts):
        return f"{said}{guesses}, and the bet is won in {bets} at most."
    return f"{said}{guesses}."


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


def notes_on_records(facts: Facts, words: Mapping[str, Any]) -> str:
    """Say how often bets on several records are won, and from how many on nothing is promised; empty of persons."""
    several = bets_of_several(facts)
    notes = [f"On somebody with more records a bet is won in at most {several}."] if several else []
    if what := words["of_several"]:
        least = records_without_promise(float(words["epsilon"]), bool(words["factor_of_values"]))
        notes.append(
            f"From about {least:,} {what}s on nothing worth quoting is promised to a person: "
            "there a guess of 10 % may become 99 %."
        )
    return " ".join(notes)


def bets_of_several(facts: Facts) -> str:
    """Write how often a bet is won on a few records, beside that of one; empty where no charge tells it."""
    hand_off = facts["hand_off"]
    if not _has_events_of_records(hand_off):
        return ""
    return bets_of_records(float(hand_off["epsilon"]), hand_off["delta"])


def bets_of_records(epsilon: float, delta: float) -> str:
    """Write how often the best attacker is right on a few records of one person, whatever the noise."""
    budgets = [(number * epsilon, delta_of_records(epsilon, delta, number)) for number in RECORDS]
    shares = [in_words(guesses_of_budget(*budget)) for budget in budgets]
    return _listed([f"{share} with {number}" for share, number in zip(shares, RECORDS, strict=True)])


def _has_events_of_records(hand_off: Facts) -> bool:
    """Tell whether the unit is a record, and what was released of records is known."""
    return bool(is_record(hand_off) and not hand_off["clients"] and hand_off["charges"])


def delta_of_records(epsilon: float, delta: float, records: int) -> float:
    """Return the delta at worst of somebody with so many records, by which epsilon is as many times as large."""
    steps = [min(epsilon * step, 700.0) for step in range(records)]
    return min(1.0, delta * math.fsum(map(math.exp, steps))) if delta else 0.0


def _listed(figures: Sequence[str]) -> str:
    return f"{', '.join(figures[:-1])} and {figures[-1]}"
