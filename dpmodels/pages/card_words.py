"""What a hand-off's card says in plain words: what was handed over, what was protected, and what the budget means."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels import amounts
from dpmodels.accounting.meaning import in_words
from dpmodels.contract.remarks import is_declared
from dpmodels.pages.page import percent, short, thousands

REPLACED = "replace_one"
NEARLY_ANY = "may become nearly any"
"""What is said of a guess of 10 % after which next to no limit holds."""
NO_LIMIT = 1e6
"""From this factor on odds have next to no limit."""
SMALL = 0.1
"""What delta times the number of records is at most to be called far below 1."""
KNOWN_TO_BE_THERE = "a value of somebody{with_one} who is known to be there, such as {example},"
DIAGNOSIS = "a diagnosis"
MOST_WORDS = 110
"""Letters of one name or foreign word for which a sheet has room."""
FIRST_WORDS = 60
"""Letters of an operator's words that an answer has where they are longer, and stand whole below."""


def words_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Say in plain words what was handed over, what was protected, and what the budget means.

    The ``bet`` is that of epsilon and delta alone, for any noise: one figure on every page, which may be quoted.
    """
    hand_off, meant, content = facts["hand_off"], facts["meaning"], facts["content"]
    of_budget = in_words(meant["right_guesses_of_budget"])
    return {
        "made": _made(content),
        **_unit(hand_off),
        "there": there(hand_off),
        "of_persons": of_persons(content.get("unique", ())) if is_record(hand_off) else "",
        "of_several": of_several(hand_off),
        "epsilon": amounts.spent(hand_off["epsilon"]),
        **tells(
            hand_off,
            meant["odds_factor"],
            hand_off["delta"],
            in_words(meant["right_guesses"]),
            beyond=meant["beyond"],
            example=example_of(content),
        ),
        "delta": once_in(hand_off["delta"]),
        "share": _share(content.get("counted"), hand_off),
        "guesses": of_budget,
        "guesses_of_budget": cases(of_budget),
        "bet": f"an even bet on {there(hand_off)} is won in {cases(of_budget)} by epsilon and delta alone",
        "counted": _counted(content.get("counted"), hand_off["unit"].startswith("user")),
    }


def of_persons(unique: Sequence[str]) -> str:
    """Say that no record is proved to be a person, and of which identifier the values differ."""
    said = "not proved to be one person"
    if not unique:
        return said
    return f"{said}: that no two raw rows have the same {cut(' or '.join(unique))} was checked, whose they are was not"


def _counted(records: float | None, users: bool) -> str:
    """Say how many records there are; of rows of users, that they are no persons."""
    if records is None:
        return ""
    said = f"A noisy count has about {thousands(round(records))}"
    if users:
        return f"{said} rows in use; how many persons these are was not released."
    return f"{said} records; how many rows were made is another number, and no count of records."


def cautions_of(facts: Mapping[str, Any]) -> list[str]:
    """Return the cautions of a hand-off, and those of its report as a whole, each once; notes on what is declared not.

    Cards up to page layout 19 have the first alone.
    """
    of_report = [one for one in facts["quality"].get("cautions", ()) if not is_declared(one)]
    return list(dict.fromkeys([*facts["hand_off"]["cautions"], *of_report]))


def is_record(hand_off: Mapping[str, Any]) -> bool:
    """Tell whether the unit is a record, of which one person may have several."""
    return not hand_off["unit"].startswith(("user", "sentence", "document"))


def _share(records: float | None, hand_off: Mapping[str, Any]) -> str:
    """Write delta times a noisy number of records; nothing where none was released, or of rows of users."""
    product = hand_off["delta"] * (records or 0.0)
    return f"{short(product)} records" if product and not hand_off["unit"].startswith("user") else ""


def delta_over_records(records: float, delta: float) -> str:
    """Say what delta comes to over a noisy number of records, and what rule of thumb that keeps or breaks."""
    expected = delta * records
    least = "" if expected <= SMALL else f"; a δ of {_one_digit(SMALL / records)} or less keeps it"
    return (
        f"A noisy count has about {thousands(round(records))} records. Times δ that is {short(expected)}, the records "
        f"to expect in the open if all of δ went wrong: a rule of thumb is {SMALL:g} at most{least or ', which it is'}."
    )


def delta_warning(facts: Mapping[str, Any]) -> str:
    """Warn of a delta that is large for so many records, and say who decides; empty where it is not, or of users."""
    hand_off, records = facts["hand_off"], facts["content"].get("counted")
    delta = hand_off["delta"]
    if not records or hand_off["unit"].startswith("user") or delta * records <= SMALL:
        return ""
    return (
        f"δ = {short(delta)} is large for about {thousands(round(records))} records: their product is "
        f"{short(delta * records)}, and a rule of thumb is {SMALL:g} at most, which a δ of "
        f"{_one_digit(SMALL / records)} or less keeps. The controller decides whether it may stay."
    )


def _one_digit(number: float) -> str:
    """Write a number rounded down to one digit."""
    lead = 10.0 ** math.floor(math.log10(number))
    return short(math.floor(number / lead) * lead)


def _made(content: Mapping[str, Any]) -> str:
    """Say what was handed over."""
    about, dim = content["about"], content.get("dim")
    rows = thousands(content.get("rows", content.get("documents", 0)))
    if "words" in content:
        return str(content["words"])
    if about == "federation":
        return f"a classifier of {len(content['classes'])} classes, made of what the clients released"
    if about == "embeddings":
        return f"an embedding, a vector of {dim} numbers, for each of {rows} documents"
    if about == "documents":
        return f"{rows} synthetic embeddings of {dim} numbers, none of which is of one document"
    if about == "images":
        return f"{rows} synthetic images with their labels, drawn from a model"
    if about == "users":
        return f"{rows} synthetic users and their rows, as tables that join by a made key, drawn from a model"
    if about == "tree":
        tables = len(content["tables"])
        units = (
            f"{rows} synthetic units and all their rows in {tables} tables that join by made keys, drawn from a model"
        )
        return units + (f". {', '.join(content['public'])}: public, as they are" if content.get("public") else "")
    return f"{rows} synthetic rows of {len(content['columns'])} columns, drawn from a model"


def _unit(hand_off: Mapping[str, Any]) -> dict[str, str]:
    """Say what one unit is, and what two neighboring data sets are."""
    unit, replaced = hand_off["unit"], hand_off["adjacency"] == REPLACED
    where = "the records of one client" if hand_off["clients"] else "the data"
    if unit.startswith("sentence"):
        one = "one sentence of one document"
        return {
            "one": one,
            "neighbors": f"the documents, and the same documents with {one} replaced by any other",
            "shown": "That a document is there, its id, and how many sentences it has are public, not protected.",
        }
    if unit.startswith("user"):
        rows = unit.partition("at most ")[2].rstrip(")")
        one = f"one person (user) with all their rows, at most {rows}"
        sentence = "Of a person with more only the first of them, in the order of the data, were used."
    else:
        what = {"document": "document"}.get(unit, "record")
        one = f"one {what}" + (" of one client" if hand_off["clients"] else "")
        sentence = (
            f"Nacre cannot know whether one person has several: whoever has k {what}s in the data is hidden less, "
        )
        sentence += "with k times this epsilon at worst"
        sentence += ", and a delta that is more than k times as large." if hand_off["delta"] else "."
    each = one.removesuffix(" of one client")
    if replaced:
        neighbors = f"{where}, and the same with {each} replaced by any other"
        sentence = f"How many records there are is public. {sentence}"
    else:
        neighbors = f"{where} with {each}, and the same without"
    return {"one": one, "neighbors": neighbors, "shown": sentence}


def patient_words(facts: Mapping[str, Any]) -> str:
    """Say whether the unit may be a patient, on which an expert's determination under HIPAA may rest."""
    unit, unique = facts["hand_off"]["unit"], facts["content"].get("unique", ())
    if unit.startswith("user"):
        return "here it is a user with all their rows, if each user is one patient."
    if unit.startswith("sentence"):
        return "here it is a sentence, so it may not."
    said = f"here it is a {unit}, so not without proof that each patient has one"
    if unique:
        names = cut(" or ".join(unique))
        said += (
            f". By the schema no two raw rows have the same {names}: that is the proof if it names every row's "
            "patient; a number of a claim or visit is no such proof"
        )
    return f"{said}."


def there(hand_off: Mapping[str, Any]) -> str:
    """Say what a bet on one unit is about: whether it is there or, where that is public, what is true of it."""
    one = _unit(hand_off)["one"].partition(" (user)")[0]
    return f"what is true of {one}" if hand_off["adjacency"] == REPLACED else f"whether {one} is there"


def tells(
    hand_off: Mapping[str, Any],
    factor: float | None,
    delta: float,
    guesses: str,
    *,
    beyond: float | None = None,
    example: str = DIAGNOSIS,
) -> dict[str, str]:
    """Say what releases tell of one unit: that it is there, and what its values are (``value_guess``).

    Args:
        hand_off: whose unit and neighbors these are.
        factor: by which odds move, with ``delta``; None is one that no float holds.
        delta: see ``factor``.
        guesses: the share of even bets that the best attacker wins by the noise that was drawn, as it is written.
        beyond: the probability that odds rise by more; None where it is not known.
        example: of what a guess on a value is.

    Returns:
        ``value_guess`` as part of a sentence, and the figures: ``cases`` are those of the noise that was drawn.
    """
    figures = of_values(factor, delta, hand_off["adjacency"] == REPLACED)
    becomes_there, example_of_values = after_one_to_nine(factor), after_one_to_nine(factor and factor**2)
    more, more_of_values = _oftener_by_steps(factor, beyond, bool(figures["factor_of_values"]))
    guess, after, but = there(hand_off), becomes_there, more
    if figures["factor_of_values"]:
        guess, after, but = _known_to_be_there(hand_off, example), example_of_values, more_of_values
    becomes = f"becomes one of {at_most(after, but)}" if after else NEARLY_ANY
    return {
        "factor": odds_factor(factor),
        **figures,
        "beyond": more,
        "beyond_of_values": more_of_values,
        "example": becomes_there,
        "example_of_values": example_of_values,
        "cases": cases(guesses),
        "value_guess": f"a guess of 10 % on {guess} {becomes}",
        "value": _known_to_be_there(hand_off, example),
        "after_ten": after,
        "but": but,
    }


def examples_of(content: Mapping[str, Any]) -> list[str]:
    """Return the columns by which pages give examples, the target first; none where there are none."""
    names = [one["name"] for one in content.get("columns", ()) if one["type"] != "identifier"]
    return sorted(names, key=lambda name: name != content.get("target"))


def example_of(content: Mapping[str, Any]) -> str:
    """Say of what a guess on a value is, by a column of the table itself where there is one."""
    columns = examples_of(content)
    return f"in column {cut(columns[0])}" if columns else DIAGNOSIS


def _known_to_be_there(hand_off: Mapping[str, Any], example: str) -> str:
    """Say of what a guess on a value is, and of somebody with one record where that may have several."""
    what = of_several(hand_off)
    return KNOWN_TO_BE_THERE.format(with_one=f" with one {what}" if what else "", example=example)


def of_several(hand_off: Mapping[str, Any]) -> str:
    """Return what one person may have several of, a record or a document; empty where a unit is all of a person."""
    return "document" if hand_off["unit"] == "document" else "record" if is_record(hand_off) else ""


def oftener(beyond: float | None) -> str:
    """Say after how many draws of the noise a bound on odds may fail; nothing where it never does.

    That is the probability that the privacy loss is above epsilon (``accounting.meaning``), and no delta. The loss is
    the logarithm of the factor by which odds on what is true rise; odds on what is not true rise so far more seldom.
    """
    if not beyond:
        return ""
    written = once_in(beyond)
    return f"{written} of draws" if "%" in written else f"{written.replace('1 in', '1 draw in')}"


def at_most(figure: str, beyond: str) -> str:
    """Write a figure as a bound, with how often it may fail."""
    return f"{figure} at most{f', but for {beyond}' if beyond else ''}"


def _oftener_by_steps(factor: float | None, beyond: float | None, of_values: bool) -> tuple[str, str]:
    """Say it of one step and, where values are two apart, of two; nothing where odds have next to no limit."""
    if factor is None or factor >= NO_LIMIT or not beyond:
        return "", ""
    limited = of_values and factor**2 < NO_LIMIT
    return oftener(beyond), oftener(beyond_of_values(factor, beyond)) if limited else ""


def beyond_of_values(factor: float, beyond: float) -> float:
    """Bound the probability that odds on values rise by more than e^(2 epsilon), where they are two steps apart.

    The loss between two values is the sum of two losses, by way of the data without the unit. One of them is then above
    epsilon: the first with probability b = ``beyond``; the second alone, while the first is at most epsilon, with at
    most e^epsilon b, since nothing is then more than e^epsilon times as likely as without the unit.
    """
    return min(1.0, (1 + factor) * beyond)


def cases(guesses: str) -> str:
    """Write in how many cases a bet is won, of a share that ``in_words`` wrote."""
    return f"at most {guesses} of cases" if "%" in guesses else f"{guesses} cases"


def by_factor(factor: str) -> str:
    """Write by what odds move, of a factor that ``odds_factor`` wrote."""
    return f"a factor of {factor}" if factor.startswith("more") else f"a factor of at most {factor}"


def odds_factor(factor: float | None) -> str:
    """Write a factor by which odds move, rounded up; None is one that no float holds."""
    if factor is None or factor >= NO_LIMIT:
        return "more than a million, which is next to no limit"
    return f"{math.ceil(factor * 100) / 100:g}" if factor < 100 else f"{math.ceil(factor):,}"


def of_values(factor: float | None, delta: float, replaced: bool) -> dict[str, str]:
    """Return what holds of the values of a unit that is known to be there; nothing where that is epsilon itself.

    Where neighbors have a unit or lack it, data sets with other values of it are two steps apart, and by
    P(a) <= e^epsilon P(b) + delta, used twice, that costs (2 epsilon, (1 + e^epsilon) delta).
    """
    if replaced:
        return {"factor_of_values": "", "delta_of_values": ""}
    twice, shares = (math.inf, math.inf) if factor is None else (factor**2, 1 + factor)
    delta_of_values = min(1.0, shares * delta) if delta else 0.0
    return {"factor_of_values": odds_factor(twice), "delta_of_values": once_in(delta_of_values)}


def after_one_to_nine(factor: float | None) -> str:
    """Return what a belief of 10 % may become, rounded up; nothing where it may become nearly anything."""
    return "" if factor is None or factor > 1000 else f"{math.ceil(1000 * factor / (factor + 9)) / 10:g} %"


def after_at_worst(factor: float | None) -> str:
    """Return what a belief of 10 % may become, rounded up, with so many digits that it is not all; else nothing."""
    if factor is None or factor >= NO_LIMIT:
        return ""
    if after := after_one_to_nine(factor):
        return after
    rest = 900 / (factor + 9)
    digits = -math.floor(math.log10(rest))
    return f"{100 - math.floor(rest * 10**digits) / 10**digits:.{digits}f} %"


def once_in(probability: float) -> str:
    """Write a small probability as one in so many, on the side of caution."""
    if probability >= 0.1:
        return percent(probability)
    if not probability:
        return "0"
    whole = math.floor(1 / probability * (1 + 1e-9))
    unit = 10 ** max(0, len(str(whole)) - 2)
    return f"1 in {whole // unit * unit:,}"


def cut(text: str) -> str:
    """Shorten a foreign word for which a sheet has no room."""
    return text if len(text) <= MOST_WORDS else f"{text[: MOST_WORDS - 1]}…"


def brief(text: str) -> str:
    """Repeat words of an operator in an answer: whole where there is room, and else how they begin."""
    return text if len(text) <= MOST_WORDS else f"{text[: FIRST_WORDS - 1]}…"
