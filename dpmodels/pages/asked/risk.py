"""What somebody could learn at worst, and small chances, as tables: each figure beside what it counts."""

from collections.abc import Mapping
from typing import Any

from dpmodels.pages.asked.several import TABLED, guess_of_records, steps_of
from dpmodels.pages.card_words import NEARLY_ANY, at_most, by_factor

QUOTE = (
    "To people, boards and authorities quote what a guess {on}becomes by these files ({figure}): it follows from the "
    "price alone (ε and δ), so it compares with other releases."
)
"""Which figure to quote to whom, and why."""
OF_NOISE = " The smaller chances in small print below hold of this release alone, and are for experts."
DRAWS = "draws of the noise"
BET = "an even bet on it is won by the very noise that was drawn, for experts on this release alone,"
"""What is said of bets that are won more seldom than the price tells."""
Words = Mapping[str, Any]


def risks(words: Words, *others: Words) -> list[tuple[str, ...]]:
    """Return the rows of answer 2: what is asked, the figure by these files and by other sums, and what it counts.

    All are reckoned by epsilon and delta, so that they can be compared.

    Args:
        words: of the card, as ``words_of`` writes them.
        others: the same of all that the account paid for, and of its cap, as far as there are such.
    """
    there, of_values = words["there"], bool(words["factor_of_values"])
    step = "with it or without it" if of_values else "with it or with any other in its place"
    one_step = f"Files made {step} are compared (ε). Odds rise by {by_factor(words['factor'])}"
    won = f"an even bet on {there} is won in"
    rows = [
        ("guesses_of_budget", won, "Right answers of the best attacker by ε and δ alone; a coin wins 50 %"),
        ("example", f"a guess of 10 % on {there} becomes", one_step),
    ]
    if of_values:
        basis = f"With other values in its place (2ε). Odds rise by {by_factor(words['factor_of_values'])}"
        rows.append(("example_of_values", f"a guess of 10 % on {words['value']} becomes", basis))
    sides = (words, *others)
    written = [(asked, *(_written(name, side) for side in sides), basis) for name, asked, basis in rows]
    return written + (_of_several(words["of_several"], sides, of_values) if words["of_several"] else [])


def what_to_quote(words: Words) -> str:
    """Say which figure to quote to whom and why: the largest, of several records where one is no person."""
    of_values, what = bool(words["factor_of_values"]), words["of_several"]
    figure = str(words["example_of_values" if of_values else "example"] or _NEARLY)
    if what:
        worst = guess_of_records(words, TABLED[-1], of_values) or _NEARLY
        figure = f"{worst}, the row of {TABLED[-1]} {what}s, until it is proved how many a person has; {figure} only "
        figure += "with proof that nobody has more than one"
    is_smaller = bool(words["cases"] != words["guesses_of_budget"])
    return QUOTE.format(on="on a value " * of_values, figure=figure) + OF_NOISE * is_smaller


def _of_several(what: str, sides: tuple[Words, ...], of_values: bool) -> list[tuple[str, ...]]:
    """Return a row for each number of records of one person: what becomes of a guess on what is true of them."""
    rows = list[tuple[str, ...]]()
    for number in TABLED:
        after = [guess_of_records(one, number, of_values) for one in sides]
        figures = [at_most(one, "") if one else _NEARLY for one in after]
        steps = f"{steps_of(number, of_values)}ε, and a larger δ"
        rows.append((f"the same of somebody with {number} {what}s", *figures, steps))
    return rows


_NEARLY = NEARLY_ANY.removeprefix("may become ")


def _written(name: str, words: Words) -> str:
    """Write a figure as a bound."""
    if name == "guesses_of_budget":
        return str(words[name])
    but = words["beyond_of_values" if name == "example_of_values" else "beyond"]
    return at_most(words[name], but) if words[name] else _NEARLY


def chances(words: Words, of_all: Words | None = None) -> list[tuple[str, str, str]]:
    """Return small chances: each figure, of what it is a part, and what it counts; none of a promise without any.

    ``of_all``: words of all that the account paid for.
    """
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
    paid = [(words, "by these files"), *([(of_all, "by all the account paid for")] if of_all else [])]
    rows += [(one["cases"], "cases", f"{BET} {by}") for one, by in paid if one["cases"] != one["guesses_of_budget"]]
    share = "of all together, not of one, would be given away on average, if each were with chance δ"
    rows.append((words["share"], "records", share))
    return [(_plain(figure), of_what, said) for figure, of_what, said in rows if figure]


def _plain(chance: str) -> str:
    """Write a chance without what it is a part of."""
    chance = chance.removeprefix("at most ").removesuffix(" of cases")
    return chance.replace(" of draws", "").replace(" draw", "").removesuffix(" records")
