"""A charge in words: what each step of it costs, and whose presence, or words, its budget hides."""

import re
from itertools import groupby

from dpmodels.accounting.events import (
    Event,
    Leaf,
    ParallelEvent,
    PureEvent,
    SampledGaussianEvent,
    ThresholdEvent,
    leaves,
)
from dpmodels.accounting.meaning import factor_in_words, guesses_of_budget, in_words, right_guesses
from dpmodels.privacy import Adjacency, PrivacyBudget
from dpmodels.releases.plan import Line


def charge_in_words(event: Event, one: str = "record") -> str:
    """Say what is charged, in one line for each step or for each sequence of equal steps."""
    lines, number = [], 0
    for (stem, words), alike in groupby(leaves([event]), lambda part: (_stem(part), _words(part, one))):
        count = len(list(alike))
        steps = f"step {number + 1}" if count == 1 else f"each of steps {number + 1} to {number + count}"
        lines.append(f"{steps}, {stem or 'everything at once'}: {words}")
        number += count
    return "\n".join(lines)


def _stem(part: Leaf | ParallelEvent) -> str:
    """Return the name of a step, without the number that repeated steps have."""
    return f"one {part.by} at a time" if isinstance(part, ParallelEvent) else re.sub(r" \d+$", "", part.mechanism)


def _words(part: Leaf | ParallelEvent, one: str) -> str:
    match part:
        case ParallelEvent():
            inner = "; or ".join(_within(event, one) for event in part.events)
            return f"each {part.by} of its own, in parallel: {inner}"
        case PureEvent():
            factor = factor_in_words(part.epsilon, 4)
            return f"pure, epsilon={part.epsilon:.6f}: one {one} makes no answer more than {factor} times as likely"
        case ThresholdEvent():
            return f"by a threshold, delta={part.delta:g}: the probability that what one {one} alone has is named"
        case SampledGaussianEvent():
            kind = f"{part.steps} steps of DP-SGD, each record with probability {part.sampling_probability:g}"
        case _:
            kind = part.kind.capitalize()
    return (
        f"{kind}, noise_multiplier={part.noise_multiplier:.6f}: "
        f"as costly as noise of {part.noise_multiplier:.3g} times the most that one {one} changes"
    )


def _within(event: Event, one: str) -> str:
    """Say in one line what is charged of each part; a single step needs no number."""
    words = charge_in_words(event, one).replace("\n", "; ")
    if len(list(leaves([event]))) > 1:
        return words
    return words.removeprefix("step 1, ").removeprefix("everything at once: ")


def hidden(budget: PrivacyBudget) -> str:
    """Say which two data sets a budget makes hard to tell apart."""
    what = "whether it is in the data at all"
    if budget.adjacency == Adjacency.REPLACE_ONE:
        what = "what it says, not that it is there"
    return f"{budget.adjacency.of(budget.unit)}: {what}"


def one_of(budget: PrivacyBudget) -> str:
    """Say in a word or two whose presence, or words, a budget hides."""
    return f"user ({budget.unit.user})" if budget.unit.user else budget.unit.kind


def promised(line: Line) -> str:
    """Say how often the best attacker is right, by the noise of a line and by epsilon and delta alone."""
    epsilon, delta = line.budget.epsilon, line.budget.delta
    by_noise, alone = in_words(right_guesses([line.event], epsilon, delta)), in_words(guesses_of_budget(epsilon, delta))
    rarely = "delta is 0, so epsilon holds without exception"
    if delta:
        rarely = f"what is seen is e^epsilon times as likely at most as without it, plus 1 in {1 / delta:,.0f} (delta)"
    return (
        f"whoever sees this wins {by_noise} of even bets on one {one_of(line.budget)} at most by this noise, and 50 % "
        f"by tossing a coin; by epsilon and delta alone, which the pages of a hand-off quote, {alone}; {rarely}"
    )
