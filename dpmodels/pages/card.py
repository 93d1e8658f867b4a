"""The pages of a model card: one for whoever uses a hand-off, a sheet for an officer, and a data sheet."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmodels.keys import fingerprint
from dpmodels.pages import embedded, federated, report
from dpmodels.pages.account_words import above_words, accounts_of
from dpmodels.pages.advice import meaning_of, meanings_of
from dpmodels.pages.card_words import MOST_WORDS, cut, words_of
from dpmodels.pages.glance import AS_A_RULE, MOST_CLIPPED, clipped, fits, worst_means
from dpmodels.pages.page import percent, render_page, short
from dpmodels.pages.questions import answers
from dpmodels.pages.words import look_in_words

DONE = {**report.DONE, **embedded.DONE, **federated.DONE}
DECLARED = {
    "purpose": "Purpose, in the operator's words",
    "subjects": "Whose data it is",
    "special_categories": "Special categories of data (GDPR, Art. 9)",
    "legal_basis": "Legal basis",
    "recipient": "Recipient",
    "recipient_retention": "May be kept by the recipient",
    "license": "License",
    "controller": "Controller",
    "contact": "Contact",
    "signer": "Made and signed by",
    "why": "Why this unit and this budget, in the operator's words",
}
"""What an operator may declare, and its titles on the pages; retention and charging again have places of their own."""
UNDECLARED = {
    "subjects": "whose data it is",
    "special_categories": "whether any column holds special categories of data",
    "recipient_retention": "how long the recipient may keep it",
    "signer": "who signs it",
    "why": "why this budget",
}
"""What is said of what nobody declared, where the name of the field does not say it."""
NOTHING = dict.fromkeys((*DECLARED, "retention", "release_retention", "again"), "")
PARTS = {
    "release": "release",
    "report": "charged report",
    "discovery": "what the schema was discovered with",
}
"""What a hand-off was charged for, by the names that its card has."""
FIGURES = {"mean": "mean", "total": "total", "p99": "99 % quantile"}
MINDED = 0.01
"""Distance from which on a column is named among those where a hand-off is weak."""
MOST_SOURCES = 3
"""So many documents are named on the sheet; schema.yaml has all."""
FEW_CLIENTS = 2
"""So many clients' accounts fit on the sheet; of more it names the heaviest, and the card has all."""


MOST_NAMES, MOST_WARNED = 600, 440
"""Letters of columns' names, and of warnings, for which a data sheet has room."""
MADE_ANEW = {
    "regenerate": "numbers from 1 on",
    "pattern": "made after a pattern",
    "text": "the same text in every row",
}
"""How identifiers of synthetic rows are made, none of which is of anybody."""


def render_card(facts: Mapping[str, Any]) -> str:
    """Lay the facts of a hand-off out for whoever uses it."""
    quality = facts["quality"]
    scores = [
        (f"{one['score']}, {model['model']}", short(one["value"]), short(one["low"]), short(one["high"]))
        for model in quality.get("classifiers", ())
        for one in model["scores"]
    ]
    return render_page(
        "card.html",
        **_told(facts),
        columns=[(one["name"], one["type"]) for one in facts["content"].get("columns", ())],
        scores=scores,
        accounts=accounts_of(facts),
        fit=_fit(quality.get("fit", ())),
        looks=[{**one, "look": look_in_words(one["look"])} for one in quality.get("fit", ())],
    )


def _fit(looks: Sequence[Mapping[str, Any]]) -> str:
    """Say in a sentence whether the synthetic rows follow what was released; empty where nothing tells it."""
    if not looks:
        return ""
    if far := list(dict.fromkeys(look_in_words(one["look"], numbered=False) for one in looks if not fits(one))):
        return f"The synthetic rows are farther from the released {_listed(far)} than noise explains."
    return "The synthetic rows are as close to what was released as its noise allows."


def render_statement(facts: Mapping[str, Any]) -> str:
    """Lay the facts of a hand-off out on one sheet for a data-protection officer."""
    accounts = accounts_of(facts)
    return render_page(
        "statement.html",
        **_told(facts),
        questions=answers(facts, accounts),
        accounts=accounts[:FEW_CLIENTS],
        signed=sum(bool(one["approved"]) for one in accounts),
        further=len(accounts[FEW_CLIENTS:]),
        sources=[cut(one) for one in facts["content"].get("sources", ())[:MOST_SOURCES]],
        fingerprint=fingerprint,
        dropped=list(facts["hand_off"]["dropped"].items())[:FEW_CLIENTS],
        above=[above_words(one) for one in facts["above"]],
    )


def render_sheet(facts: Mapping[str, Any]) -> str:
    """Lay the facts of a hand-off out on one sheet for whoever gets it: what it is, and what it is not for."""
    quality, content = facts["quality"], facts["content"]
    avoid, numbers = quality.get("avoid", {}), quality.get("numbers", {})
    warnings = [one for one in quality["warnings"] if not _is_told(one.partition(": ")[0], avoid, numbers)]
    warned = list(_fitting(warnings))
    number_columns = {"columns": [{"name": name, "avoid": avoid.get(name, ()), **one} for name, one in numbers.items()]}
    return render_page(
        "data-sheet.html",
        **_told(facts),
        names=_names(content.get("columns", ())),
        classes=_listed(content.get("classes", ())),
        weakest=[f"{name} {percent(error)}" for name, error in _weak(quality["weakest"]).items()],
        as_a_rule=AS_A_RULE,
        numbers=_means(number_columns["columns"]),
        clipped=clipped(number_columns["columns"], MOST_CLIPPED),
        avoided=list(_avoided(avoid, numbers)),
        warned=warned,
        further=len(warnings) - len(warned),
    )


def _weak(errors: Mapping[str, float]) -> dict[str, float]:
    """Leave out what is close enough that nobody minds, but for the first; the worst are first."""
    return {name: error for index, (name, error) in enumerate(errors.items()) if index == 0 or error >= MINDED}


def _is_told(name: str, avoid: Mapping[str, Sequence[str]], numbers: Mapping[str, Any]) -> bool:
    """Tell whether all that a column is warned of is said by naming the figures of it that are not to be used."""
    is_far = "far" in numbers.get(name, {}).get("unseen", {})
    return name in avoid and not (is_far and "mean" not in avoid[name])


def _fitting(warnings: Sequence[str]) -> Iterator[str]:
    """Yield as many warnings as there is room for, in whole sentences, of which advice is left out."""
    room = MOST_WARNED
    for words in map(meaning_of, warnings):
        whole = words if len(words) <= MOST_WARNED else f"{words[: MOST_WARNED - 1]}…"
        if len(whole) > room:
            return
        room -= len(whole)
        yield whole


def _means(columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say of the columns whose means are known worst, and of one whose mean noise leaves open, what the report says."""
    worst = worst_means({"columns": columns})
    open_means = [one for one in columns if "means" in one.get("unseen", {}) and one not in worst]
    sound = [one for one in open_means if "mean" not in one["avoid"] and "far" not in one["unseen"]]
    return [_mean(*report.number_row(one)) for one in [*worst, *sound[:1]]]


def _mean(
    name: str, estimate: str, synthetic: str, error: str, quantile: str, error_of_quantile: str, low: str, high: str
) -> str:
    """Say of a number column what the report says in its table of means, in the same figures."""
    rows = f", {synthetic} in these rows" if synthetic else ""
    could = f" (by noise alone it could be from {low} to {high})" if low else ""
    known = f"{quantile} ± {error_of_quantile}" if error_of_quantile != "unknown" else "is not known"
    return f"{name} {estimate} as released{rows}, ± {error}{could}, its 99 % quantile {known}"


def _avoided(avoid: Mapping[str, Sequence[str]], numbers: Mapping[str, Any]) -> Iterator[str]:
    """Say of which columns which figures are not to be used, those with the same verdict together."""
    verdicts: dict[tuple[str, bool], list[str]] = {}
    for name, figures in avoid.items():
        thin = "expected_error_if_thinning_out" in numbers.get(name, {}).get("mean", {})
        verdicts.setdefault((_either([FIGURES[one] for one in figures]), thin), []).append(name)
    for (figures, thin), names in verdicts.items():
        unless = ", unless you know that their values thin out towards the bounds" if thin else ""
        yield f"Use no {figures} of {_listed(names)}{unless}."


def _either(words: Sequence[str]) -> str:
    """Join words of which any may be meant."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if words[1:] else words[0]


def _told(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every page of a card is told."""
    hand_off = facts["hand_off"]
    verb = (
        federated.CENTRAL if "trust" in hand_off else DONE.get(hand_off["method"].removesuffix("-ae"), report.ELSE_DONE)
    )
    charges = [one["name"] for one in hand_off["charges"]]
    return {
        "card": facts,
        "given": NOTHING | facts["given"],
        "declared": [(title, facts["given"][name]) for name, title in DECLARED.items() if facts["given"].get(name)],
        "undeclared": [
            UNDECLARED.get(name, name.replace("_", " ")) for name in DECLARED if not facts["given"].get(name)
        ],
        "said": hand_off,
        "cautions": meanings_of(hand_off["cautions"]),
        "limits": meanings_of(facts["limits"]),
        "words": words_of(facts),
        "left_out": _listed(facts["content"].get("left_out", ())),
        "made_anew": [
            (_listed(names, MOST_WORDS), MADE_ANEW[way]) for way, names in facts["content"].get("made_anew", {}).items()
        ],
        "done": verb,
        "together": _joined([PARTS[name] for name in dict.fromkeys(charges)]) if len(charges) > 1 else "",
        "discovered": "discovery" in charges,
    }


def _joined(words: Sequence[str]) -> str:
    """Join words as a list is spoken."""
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _names(columns: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Sort columns by type: each type with its number, and its columns' names as far as there is room."""
    kinds: dict[str, list[str]] = {}
    for one in columns:
        kinds.setdefault(one["type"], []).append(one["name"])
    room = max(60, MOST_NAMES // max(1, len(kinds)))
    return [(f"{len(names)} {kind}", _listed(names, room)) for kind, names in kinds.items()]


def _listed(names: Sequence[str], room: int = MOST_NAMES) -> str:
    """Join names as far as there is room, and say how many more there are."""
    names_shown = list[str]()
    for name in names:
        if sum(map(len, names_shown)) + len(name) + 2 * len(names_shown) > room and names_shown:
            break
        names_shown.append(cut(name))
    more = len(names) - len(names_shown)
    return ", ".join(names_shown) + (f" and {more} more, which model-card.html names" if more else "")
