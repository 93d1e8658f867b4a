"""The pages of a model card: one for whoever uses a hand-off, a sheet for an officer, and a data sheet."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.keys import fingerprint
from dpmodels.pages import embedded, federated, report
from dpmodels.pages.account_words import above_words, accounts_of
from dpmodels.pages.advice import meanings_of
from dpmodels.pages.card_words import MOST_WORDS, cut, patient_words, words_of
from dpmodels.pages.glance import AS_A_RULE, fits
from dpmodels.pages.leaving import AT_MAKING, FILES, NOT_YET, SINCE, from_the_data, read_off_in_words, to_obtain
from dpmodels.pages.open_points import BEGINS_WITH_NONE, OF_ASSESSMENT, condition_declared, field_counts
from dpmodels.pages.page import coded, render_page, short
from dpmodels.pages.questions import answers
from dpmodels.pages.weak import joined, listed, weaknesses
from dpmodels.pages.words import look_in_words
from dpmodels.plural import counted

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
MOST_SOURCES = 3
"""So many documents are named on the sheet; schema.yaml has all."""
OPTIONS = [
    "`--controller`",
    "`--legal-basis` (with the condition of Art. 9)",
    "`--recipient` (with the country)",
    "`--recipient-retention` (with a day)",
    "`--retention` and `--release-retention` (with a day each)",
    "`--license` (terms of re-use)",
    "`--again` (other releases)",
    "`--why` (with the DPIA)",
    "`--signer` (who decided)",
]
"""What a run may be given of what law asks of a person."""
FEW_CLIENTS = 2
"""So many clients' accounts fit on the sheet; of more it names the heaviest, and the card has all."""


MOST_NAMES = 600
"""Letters of columns' names for which a data sheet has room."""
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
        accounts=(accounts := accounts_of(facts)),
        by_hand=_by_hand(facts, accounts),
        options=coded(joined(OPTIONS)),
        fit=_fit(quality.get("fit", ())),
        looks=[{**one, "look": look_in_words(one["look"])} for one in quality.get("fit", ())],
    )


def _by_hand(facts: Mapping[str, Any], accounts: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return what law asks of a person, with what is declared or in the ledger of it; the rest is left blank."""
    given, charges = facts["given"], sum(one["charges"] for one in accounts)
    here = f"{counted(charges, 'charge')} before, to this account; to other accounts, and by other tools: "
    why = given.get("why", "")
    kept = {"retention": "raw data", "release_retention": "release"}
    declared = {
        "Controller (GDPR, Art. 4(7))": given.get("controller"),
        "Legal basis (GDPR, Art. 6(1))": given.get("legal_basis"),
        "Condition for special categories of data (GDPR, Art. 9(2))": condition_declared(given),
        "Transfer to a third country, or to an international organization (GDPR, Art. 44 to 49)": "",
        "Terms of re-use: may it be passed on?": given.get("license"),
        "Valid until, or to be looked at again on": _each(given, {"recipient_retention": "to be kept"}),
        "Raw data and release are deleted on": _each(given, kept),
        "Reference of the DPIA (GDPR, Art. 35), or why none is needed": why if OF_ASSESSMENT.search(why) else "",
    }
    rows = [(title, f"as declared: {words}" if words else "") for title, words in declared.items()]
    return [*rows, ("Other releases of the same people", here if accounts else ""), ("Decided by, on which day", "")]


def _each(given: Mapping[str, str], fields: Mapping[str, str]) -> str:
    """Write what is declared of some fields, each with what it is of."""
    return "; ".join(f"{what}: {given[name]}" for name, what in fields.items() if given.get(name))


def _fit(looks: Sequence[Mapping[str, Any]]) -> str:
    """Say in a sentence whether the synthetic rows follow what was released; empty where nothing tells it."""
    if not looks:
        return ""
    if far := list(dict.fromkeys(look_in_words(one["look"], numbered=False) for one in looks if not fits(one))):
        return f"The synthetic rows are farther from the released {listed(far)} than noise explains."
    return "Taken together, the synthetic rows are as close to what was released as its noise allows."


def render_statement(facts: Mapping[str, Any]) -> str:
    """Lay the facts of a hand-off out on one sheet for a data-protection officer."""
    accounts = accounts_of(facts)
    return render_page(
        "statement.html",
        **_told(facts),
        questions=answers(facts, accounts),
        leave={"files": FILES, "not_yet": NOT_YET, "since": SINCE},
        patient=patient_words(facts),
        unchecked=from_the_data(facts["content"].get("sources", ())),
        obtain=to_obtain(facts),
        fields=field_counts(facts["given"]),
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
    content = facts["content"]
    return render_page(
        "data-sheet.html",
        **_told(facts),
        names=_names(content.get("columns", ())),
        classes=listed(content.get("classes", ())),
        no_terms=BEGINS_WITH_NONE.match(facts["given"].get("license", "")),
        as_a_rule=AS_A_RULE,
        weak=weaknesses(facts["quality"]),
    )


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
        "undeclared": _undeclared(facts),
        "said": hand_off,
        "cautions": meanings_of(hand_off["cautions"]),
        "limits": meanings_of(facts["limits"]),
        "at_making": coded(AT_MAKING),
        "read_off": read_off_in_words(facts["content"].get("sources", ())),
        "words": words_of(facts),
        "left_out": listed(facts["content"].get("left_out", ())),
        "made_anew": [
            (listed(names, MOST_WORDS), MADE_ANEW[way]) for way, names in facts["content"].get("made_anew", {}).items()
        ],
        "done": verb,
        "together": joined([PARTS[name] for name in dict.fromkeys(charges)]) if len(charges) > 1 else "",
        "discovered": "discovery" in charges,
    }


def _undeclared(facts: Mapping[str, Any]) -> list[str]:
    """Name what an operator may declare and did not."""
    return [UNDECLARED.get(name, name.replace("_", " ")) for name in DECLARED if not facts["given"].get(name)]


def _names(columns: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Sort columns by type: each type with its number, and its columns' names as far as there is room."""
    kinds: dict[str, list[str]] = {}
    for one in columns:
        kinds.setdefault(one["type"], []).append(one["name"])
    room = max(60, MOST_NAMES // max(1, len(kinds)))
    return [(f"{len(names)} {kind}", listed(names, room)) for kind, names in kinds.items()]
