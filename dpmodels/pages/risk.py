"""What somebody could learn at worst, as a table: each figure beside what it rests on."""

from collections.abc import Mapping
from typing import Any

from dpmodels.pages.card_words import NEARLY_ANY, by_factor, rest_of

VALUE = "a value of somebody who is known to be there, such as a diagnosis,"


def risks(words: Mapping[str, Any], of_all: Mapping[str, Any] | None) -> list[tuple[str, ...]]:
    """Return the rows of answer 2: what is asked, the figure by these files, by all that was paid for, and its basis.

    Args:
        words: of the card, as ``words_of`` writes them.
        of_all: the same of all that the account paid for; None where that is this release alone.
    """
    there, of_values = words["there"], bool(words["factor_of_values"])
    step = "with it or without it" if of_values else "with it or with any other in its place"
    more = words.get("beyond") or "0"
    beyond = "" if more == "0" else f", by more with a probability of at most {more}"
    odds = f"odds move by {by_factor(words['factor'])}{beyond}"
    rows = [
        (
            "cases",
            f"an even bet on {there} is won in",
            "the best attack, on the noise that was drawn; a coin wins 50 %",
        ),
        ("example", f"a guess of 10 % on {there} becomes one of", f"ε: {step}, one step apart; {odds}"),
    ]
    if of_values:
        delta = "" if words["delta_of_values"] == "0" else f", {rest_of(words['delta_of_values'])}"
        basis = f"2ε: two steps apart; odds move by {by_factor(words['factor_of_values'])}{delta}"
        rows.append(("example_of_values", f"a guess of 10 % on {VALUE} becomes one of", basis))
    sides = [words, *([of_all] if of_all else [])]
    return [(asked, *(_written(name, side) for side in sides), basis) for name, asked, basis in rows]


def _written(name: str, words: Mapping[str, Any]) -> str:
    """Write a figure as a bound."""
    if name == "cases":
        return str(words["cases"])
    return f"{words[name]} at most" if words[name] else NEARLY_ANY.removeprefix("may become ")
