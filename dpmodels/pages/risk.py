"""What somebody could learn at worst, as a table: each figure beside what it rests on."""

from collections.abc import Mapping
from typing import Any

from dpmodels.pages.card_words import NEARLY_ANY, by_factor


def risks(words: Mapping[str, Any], of_all: Mapping[str, Any] | None) -> list[tuple[str, ...]]:
    """Return the rows of answer 2: what is asked, the figure by these files, by all that was paid for, and its basis.

    Args:
        words: of the card, as ``words_of`` writes them.
        of_all: the same of all that the account paid for; None where that is this release alone.
    """
    there, of_values = words["there"], bool(words["factor_of_values"])
    step = "with it or without it" if of_values else "with it or with any other in its place"
    rows = [
        (
            "cases",
            f"an even bet on {there} is won in",
            "the best attacker that there can be, against this noise; a coin wins 50 %",
        ),
        (
            "example",
            f"a guess of 10 % on {there} becomes one of",
            f"ε: {step}, one step apart. {_odds(words['factor'], words['beyond'])}",
        ),
    ]
    if of_values:
        basis = f"2ε: two steps apart. {_odds(words['factor_of_values'], words['beyond_of_values'])}"
        rows.append(("example_of_values", f"a guess of 10 % on {words['value']} becomes one of", basis))
    sides = [words, *([of_all] if of_all else [])]
    return [(asked, *(_written(name, side) for side in sides), basis) for name, asked, basis in rows]


def _odds(factor: str, beyond: str) -> str:
    """Say by what odds rise, and how often by more."""
    return f"Odds rise by {by_factor(factor)}{f'; by more in {beyond}' if beyond else ''}"


def _written(name: str, words: Mapping[str, Any]) -> str:
    """Write a figure as a bound."""
    if name == "cases":
        return str(words["cases"])
    return f"{words[name]} at most" if words[name] else NEARLY_ANY.removeprefix("may become ")
