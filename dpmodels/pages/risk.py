"""What somebody could learn at worst, and small chances, as tables: each figure beside what it counts."""

from collections.abc import Mapping
from typing import Any

from dpmodels.pages.card_words import NEARLY_ANY, at_most, by_factor, cases

QUOTE = "To be quoted, as the largest. "
DRAWS = "draws of the noise"
Words = Mapping[str, Any]


def risks(words: Words, *others: Words) -> list[tuple[str, ...]]:
    """Return the rows of answer 2: what is asked, the figure by these files and by other sums, and what it counts.

    Args:
        words: of the card, as ``words_of`` writes them.
        others: the same of all that the account paid for, and of its cap, as far as there are such.
    """
    there, of_values = words["there"], bool(words["factor_of_values"])
    step = "with it or without it" if of_values else "with it or with any other in its place"
    one_step = f"ε: {step}, one step apart. Odds rise by {by_factor(words['factor'])}"
    rows = [
        (
            "cases",
            f"an even bet on {there} is won in",
            "Best attacker; a coin wins 50 %. By ε and δ alone: against any noise that keeps them, δ counted in",
        ),
        ("example", f"a guess of 10 % on {there} becomes", one_step if of_values else f"{QUOTE}{one_step}"),
    ]
    if of_values:
        basis = f"{QUOTE}2ε: two steps apart. Odds rise by {by_factor(words['factor_of_values'])}"
        rows.append(("example_of_values", f"a guess of 10 % on {words['value']} becomes", basis))
    return [(asked, *(_written(name, side) for side in (words, *others)), basis) for name, asked, basis in rows]


def _written(name: str, words: Words) -> str:
    """Write a figure as a bound."""
    if name == "cases":
        alone = f"{cases(words['guesses_of_budget'])} by ε and δ alone"
        return f"{words['cases']} by this noise; {alone}" if words.get("of_noise", True) else alone
    but = words["beyond_of_values" if name == "example_of_values" else "beyond"]
    return at_most(words[name], but) if words[name] else NEARLY_ANY.removeprefix("may become ")


def chances(words: Words) -> list[tuple[str, str, str]]:
    """Return small chances: each figure, of what it is a part, and what it counts; none of a promise without any."""
    rows = [
        (words["beyond"], DRAWS, f"odds on {words['there']} rise by more than {words['factor']}"),
        (words["beyond_of_values"], DRAWS, f"odds on a value rise by more than {words['factor_of_values']}"),
    ]
    if words["delta"] != "0":
        rows.append((f"{words['delta']} (δ)", "chance", "is added to the chance of anything that these files may show"))
        if words["delta_of_values"]:
            rows.append(
                (f"{words['delta_of_values']} ((1 + e^ε)·δ)", "chance", "is added to it where values are asked")
            )
    share = "would be given away on average, if each were with chance δ: δ times all records"
    rows.append((words["share"], "records", share))
    return [(_plain(figure), of_what, said) for figure, of_what, said in rows if figure]


def _plain(chance: str) -> str:
    """Write a chance without what it is a part of."""
    return chance.replace(" of draws", "").replace(" draw", "").removesuffix(" records")
