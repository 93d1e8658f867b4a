"""The pages of a model card: one for whoever uses a hand-off, a sheet for an officer, and a data sheet."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from dpmodels import amounts
from dpmodels.accounting.meaning import MOST_EPSILON, guesses_of_budget, in_words
from dpmodels.keys import fingerprint
from dpmodels.pages import embedded, federated, report
from dpmodels.pages.glance import AS_A_RULE, MOST_CLIPPED, clipped, doubted
from dpmodels.pages.page import percent, render_page, short, thousands

DONE = {**report.DONE, **embedded.DONE, **federated.DONE}
REPLACED = "replace_one"
DECLARED = {
    "purpose": "Purpose, in the operator's words",
    "subjects": "Whose data it is",
    "legal_basis": "Legal basis",
    "recipient": "Recipient",
    "recipient_retention": "May be kept by the recipient",
    "license": "License",
    "controller": "Controller",
    "contact": "Contact",
    "why": "Why this unit and this budget, in the operator's words",
}
"""What an operator may declare, and its titles on the pages; retention and charging again have places of their own."""
UNDECLARED = {
    "subjects": "whose data it is",
    "recipient_retention": "how long the recipient may keep it",
    "why": "why this budget",
}
"""What is said of what nobody declared, where the name of the field does not say it."""
NOTHING = dict.fromkeys((*DECLARED, "retention", "again"), "")
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


MOST_NAMES, MOST_WARNED, MOST_WORDS = 600, 440, 110
"""Letters of columns' names, of warnings, and of one name or foreign word, for which a data sheet has room."""
SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")
ADVICE = ("For the next release", "If its values are a few amounts")
"""Begin the sentences of a warning that are for whoever makes the next release, and not for whoever gets this one."""


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
        accounts=[_account(one, name) for one, name in _of_whom(facts)],
    )


def render_statement(facts: Mapping[str, Any]) -> str:
    """Lay the facts of a hand-off out on one sheet for a data-protection officer."""
    accounts = [_account(one, name) for one, name in _of_whom(facts)]
    return render_page(
        "statement.html",
        **_told(facts),
        accounts=accounts[:FEW_CLIENTS],
        further=len(accounts[FEW_CLIENTS:]),
        left_out=_listed(facts["content"].get("left_out", ()), MOST_WORDS),
        sources=[_cut(one) for one in facts["content"].get("sources", ())[:MOST_SOURCES]],
        fingerprint=fingerprint,
        dropped=list(facts["hand_off"]["dropped"].items())[:FEW_CLIENTS],
        above=[_above(one) for one in facts["above"]],
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
        left_out=_listed(content.get("left_out", ())),
        weakest=[f"{name} {percent(error)}" for name, error in _weak(quality["weakest"]).items()],
        as_a_rule=AS_A_RULE,
        numbers=doubted(number_columns),
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
    for one in warnings:
        words = " ".join(part for part in SENTENCE.split(one) if not part.startswith(ADVICE))
        words = words if len(words) <= MOST_WARNED else f"{words[: MOST_WARNED - 1]}…"
        if len(words) > room:
            return
        room -= len(words)
        yield words


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
        "words": _words(facts),
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
        names_shown.append(_cut(name))
    more = len(names) - len(names_shown)
    return ", ".join(names_shown) + (f" and {more} more, which model-card.html names" if more else "")


def _cut(text: str) -> str:
    return text if len(text) <= MOST_WORDS else f"{text[: MOST_WORDS - 1]}…"


def _of_whom(facts: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str]]:
    """Pair the accounts that paid with the names of the clients that they are of, heaviest first."""
    clients = facts["hand_off"]["clients"]
    names = [one["name"] for one in clients] or [""]
    pairs = list(zip(facts["accounts"], names, strict=False))
    return sorted(pairs, key=lambda pair: -Decimal(pair[0]["after"]))


def _account(one: Mapping[str, Any], client: str) -> dict[str, Any]:
    """Write the amounts of an account; those that are spent are rounded up, and what remains is rounded down."""
    spent = Decimal(one["after"]) - Decimal(one["before"])
    return {
        "name": one["account"],
        "client": client,
        "delta": short(float(one["delta"])),
        "cap": amounts.written(one["cap"]),
        "before": amounts.spent(one["before"]),
        "after": amounts.spent(one["after"]),
        "added": amounts.spent(spent),
        "remaining": amounts.remaining(one["remaining"]),
        **_of_all(one),
        "why": amounts.composes(one["cap"], one["after"], one["remaining"]),
        "approved": one["approved"],
        "charges": one.get("charges", 0),
        "earlier": [_earlier(charge) for charge in one.get("earlier", ())],
    }


def _of_all(one: Mapping[str, Any]) -> dict[str, Any]:
    """Say what everything means together that an account paid for; nothing where there is one release."""
    if not Decimal(one["before"]):
        return {"all": None}
    epsilon, delta = float(one["after"]), float(one["delta"])
    factor = math.exp(epsilon) if epsilon < MOST_EPSILON else None
    of_noise = "right_guesses" in one
    guesses = one["right_guesses"] if of_noise else guesses_of_budget(epsilon, delta)
    beyond = _once_in(one["beyond"]) if of_noise else ""
    said = {"factor": _factor(factor), "beyond": beyond, "guesses": in_words(guesses), "of_noise": of_noise}
    return {"all": said | {"of_values": _factor(None if factor is None else factor**2)}}


def _earlier(charge: Mapping[str, str]) -> tuple[str, ...]:
    """Write an earlier charge as a row: day, run, epsilon, delta, and what was declared."""
    price = amounts.written(charge["epsilon"]), amounts.written(charge["delta"])
    said = filter(None, (charge.get("purpose"), charge.get("recipient")))
    return charge["day"], charge["run"], *price, "; ".join(said) or "nothing"


def _above(one: Mapping[str, Any]) -> dict[str, str]:
    return {"name": one["account"], "cap": amounts.written(one["cap"]), "spent": amounts.spent(one["spent"])}


def _words(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Say in plain words what was handed over, what was protected, and what the budget means."""
    hand_off, meant, content = facts["hand_off"], facts["meaning"], facts["content"]
    return {
        "made": _made(content),
        **_unit(hand_off),
        "epsilon": amounts.spent(hand_off["epsilon"]),
        "factor": _factor(meant["odds_factor"]),
        **_of_values(meant["odds_factor"], hand_off["delta"], hand_off["adjacency"] == REPLACED),
        "example": _after_one_to_nine(meant["odds_factor"]),
        "beyond": _once_in(meant["beyond"]),
        "delta": _once_in(hand_off["delta"]),
        "guesses": in_words(meant["right_guesses"]),
        "guesses_of_budget": in_words(meant["right_guesses_of_budget"]),
        "counted": _counted(content.get("counted"), hand_off["delta"], hand_off["unit"].startswith("user")),
    }


def _counted(records: float | None, delta: float | None, users: bool) -> str:
    """Say how many records there are, and what delta comes to over all; of rows of users, that they are no persons."""
    if records is None:
        return ""
    said = f"A noisy count has about {thousands(round(records))}"
    if users:
        return f"{said} rows in use; how many persons these are was not released."
    if not delta:
        return f"{said} records."
    return (
        f"{said} records; delta times that is {short(delta * records)}, and delta is chosen so that it is well below 1."
    )


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
        return f"{rows} synthetic images with their labels, drawn from a model; none was copied"
    if about == "users":
        return f"{rows} synthetic users and their rows, as tables that join by a made key; none was copied"
    if about == "tree":
        tables = len(content["tables"])
        units = f"{rows} synthetic units and all their rows in {tables} tables that join by made keys; none was copied"
        return units + (f". {', '.join(content['public'])}: public, as they are" if content.get("public") else "")
    return f"{rows} synthetic rows of {len(content['columns'])} columns, drawn from a model; none was copied"


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
        sentence = f"Whether one person has several is not known here: whoever has k {what}s in the data is hidden "
        sentence += "less, with k times this epsilon at worst"
        sentence += ", and a delta that is more than k times as large." if hand_off["delta"] else "."
    each = one.removesuffix(" of one client")
    if replaced:
        neighbors = f"{where}, and the same with {each} replaced by any other"
        sentence = f"How many records there are is public. {sentence}"
    else:
        neighbors = f"{where} with {each}, and the same without"
    return {"one": one, "neighbors": neighbors, "shown": sentence}


def _factor(factor: float | None) -> str:
    if factor is None or factor >= 1e6:
        return "more than a million, which is next to no limit"
    return f"{math.ceil(factor * 100) / 100:g}" if factor < 100 else f"{math.ceil(factor):,}"


def _of_values(factor: float | None, delta: float, replaced: bool) -> dict[str, str]:
    """Return what holds of the values of a unit that is known to be there; nothing where that is epsilon itself.

    Where neighbors have a unit or lack it, data sets with other values of it are two steps apart, and by
    P(a) <= e^epsilon P(b) + delta, used twice, that costs (2 epsilon, (1 + e^epsilon) delta).
    """
    if replaced:
        return {"factor_of_values": "", "delta_of_values": ""}
    twice, shares = (math.inf, math.inf) if factor is None else (factor**2, 1 + factor)
    delta_of_values = min(1.0, shares * delta) if delta else 0.0
    return {"factor_of_values": _factor(twice), "delta_of_values": _once_in(delta_of_values)}


def _after_one_to_nine(factor: float | None) -> str:
    """Return what a belief of 10 % may become, rounded up; nothing where it may become nearly anything."""
    return "" if factor is None or factor > 1000 else f"{math.ceil(1000 * factor / (factor + 9)) / 10:g} %"


def _once_in(probability: float) -> str:
    """Write a small probability as one in so many, on the side of caution."""
    if probability >= 0.1:
        return percent(probability)
    if not probability:
        return "0"
    whole = math.floor(1 / probability * (1 + 1e-9))
    unit = 10 ** max(0, len(str(whole)) - 2)
    return f"1 in {whole // unit * unit:,}"
