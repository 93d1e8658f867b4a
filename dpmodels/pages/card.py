"""The pages of a model card: one for whoever uses a hand-off, a sheet for an officer, and a data sheet."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.keys import fingerprint
from dpmodels.pages import embedded, federated, report
from dpmodels.pages.account_words import above_words, accounts_of
from dpmodels.pages.advice import meanings_of
from dpmodels.pages.asked.columns import columns_by_need
from dpmodels.pages.asked.declared_rules import WHERE, rules_in_words
from dpmodels.pages.asked.limits import hard_limits, means_in_words, measured_in_words
from dpmodels.pages.asked.needed import figures_to_tick
from dpmodels.pages.asked.open_points import BEGINS_WITH_NONE, assessment_of, counts_of, lines
from dpmodels.pages.asked.persons import who_says_one_person
from dpmodels.pages.asked.questions import (
    ANSWERED,
    DECISIONS_ON_GROUPS,
    ROLES,
    UNSIGNED,
    answers,
    of_all_paid,
)
from dpmodels.pages.asked.risk import chances
from dpmodels.pages.asked.several import beside_one_record, figures_of_several, several_records
from dpmodels.pages.asked.special import is_named, tied_in_words, tied_to
from dpmodels.pages.asked.weak import joined, listed, weaknesses
from dpmodels.pages.by_column import NOT_FOR, ONLY_IF
from dpmodels.pages.card_words import (
    MOST_WORDS,
    brief,
    cautions_of,
    cut,
    delta_warning,
    patient_words,
    words_of,
)
from dpmodels.pages.glance import AS_A_RULE, SENTENCE, fits
from dpmodels.pages.leaving import AT_MAKING, names_of, read_off_in_words, to_obtain, warnings
from dpmodels.pages.notes import left_out_and_reckoned, not_handed_over
from dpmodels.pages.page import coded, render_page, short
from dpmodels.pages.words import look_in_words
from dpmodels.plural import counted

DONE = {**report.DONE, **embedded.DONE, **federated.DONE}
DECLARED = {
    "purpose": "Purpose, in the operator's words",
    "subjects": "Whose data it is",
    "special_categories": "Special categories of data (GDPR, Art. 9)",
    "legal_basis": "Legal basis",
    "compatibility": "Why this use fits the first purpose (GDPR, Art. 6(4))",
    "information": "How the people were informed (GDPR, Art. 13, 14)",
    "minors": "Children among the people",
    "processor": "Processor (GDPR, Art. 28)",
    "recipient": "Recipient",
    "recipient_retention": "May be kept by the recipient",
    "license": "License",
    "controller": "Controller",
    "contact": "Contact",
    "signer": "Made by, as declared",
    "why": "Why this unit and this budget, in the operator's words",
}
"""What an operator may declare, and its titles on the pages; retention and charging again have places of their own."""
NOTHING = dict.fromkeys((*DECLARED, "retention", "release_retention", "again"), "")
PARTS = {
    "release": "release",
    "report": "charged report",
    "discovery": "what the schema was discovered with",
}
"""What a hand-off was charged for, by the names that its card has."""
MOST_RULES = 3
"""So many rules between columns are named on a data sheet; schema.yaml has all."""
MOST_SOURCES = 3
"""So many documents are named on the sheet; schema.yaml has all."""
MOST_DECLARED = 800
"""Letters of operators' words for which a statement has room; model-card.html has all."""
MOST_PALE = 260
"""Letters of names of groups for which a data sheet has room."""
FEW_CLIENTS = 2
"""So many clients' accounts fit on the sheet; of more it names the heaviest, and the card has all."""


MOST_NAMES = 600
"""Letters of columns' names for which a data sheet has room."""
DECLARED_SCHEMA = "the declared schema"
"""What a limit calls the schema, and what pages do, which say beside it where bounds are from."""
UNCOUNTED = ("identifier", "derived")
"""Types of columns that no count of columns has, here and in a report's headline and tiles."""
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
        several=figures_of_several(facts, words_of(facts)),
        columns=[(one["name"], one["type"], _marks_of(one, facts)) for one in facts["content"].get("columns", ())],
        scores=scores,
        warnings=_warnings(quality),
        accounts=(accounts := accounts_of(facts)),
        signed=sum(bool(one["approved"]) for one in accounts),
        needed=figures_to_tick(facts),
        by_hand=lines(facts["given"]),
        others=_others(accounts) if accounts else "",
        fit=_fit(quality),
    )


def _marks_of(column: Mapping[str, str], facts: Mapping[str, Any]) -> str:
    """Say of a column whether it is the target, follows from others, or is special, as declared or by a tie."""
    name, content, special = column["name"], facts["content"], facts["given"].get("special_categories", "")
    declared = is_named(name, special)
    tied = tied_to(name, special, content)
    marks = {
        "target": name == content.get("target"),
        "follows from others by a formula": column["type"] == "derived",
        "special category, as declared": declared,
        f"tied by a rule or formula to {', '.join(map(cut, tied))}, declared special": bool(tied),
    }
    return "; ".join(mark for mark, holds in marks.items() if holds)


def _warnings(quality: Mapping[str, Any]) -> list[str]:
    """Return the warnings of the columns that are handed over."""
    dropped = not_handed_over(quality)
    return [one for one in quality["warnings"] if one.partition(": ")[0] not in dropped]


def _others(accounts: Sequence[Mapping[str, Any]]) -> str:
    """Say what is known here of other releases of the same people; empty where no ledger is."""
    charges = sum(one["charges"] for one in accounts)
    before = f"{counted(charges, 'charge')} before, to this account"
    return f"{before}; to other accounts, and by other tools: not known to nacre, ask"


def _fit(quality: Mapping[str, Any]) -> str:
    """Say whether the synthetic rows follow what was released, and what does less; empty where nothing tells it."""
    looks, weaker = quality.get("fit", ()), quality.get("weaker", ())
    if not looks:
        return ""
    pairs = f" There for certain, and weaker in these rows than as released: {', '.join(weaker)}." if weaker else ""
    if stronger := quality.get("stronger", ()):
        pairs += f" There for certain, and stronger by more than a quarter: {', '.join(stronger)}."
    if far := list(dict.fromkeys(look_in_words(one["look"], numbered=False) for one in looks if not fits(one))):
        return f"The synthetic rows are farther from the released {listed(far)} than noise explains.{pairs}"
    said = "Summed over all counts, the synthetic rows are as close to what was released as its noise allows"
    return f"{said}; such sums hide single columns and pairs.{pairs}"


def render_statement(facts: Mapping[str, Any]) -> str:
    """Lay the facts of a hand-off out on one sheet for a data-protection officer."""
    accounts = accounts_of(facts)
    return render_page(
        "statement.html",
        **_told(facts),
        questions=answers(facts, accounts),
        limits_of_use=hard_limits(facts),
        measured=measured_in_words(facts["content"]),
        by_need=columns_by_need(facts),
        has_figures=figures_to_tick(facts) is not None,
        roles=ROLES,
        patient=patient_words(facts),
        assessment=brief(assessment_of(facts["given"])),
        several=several_records(facts),
        chances=chances(words_of(facts), of_all_paid(accounts)),
        obtain=to_obtain(facts),
        warnings=warnings(facts),
        kept={name: cut(facts["given"].get(name, "")) for name in ("retention", "release_retention", "again")},
        below=_below(facts["given"]),
        accounts=accounts[:FEW_CLIENTS],
        signed=sum(bool(one["approved"]) for one in accounts),
        further=len(accounts[FEW_CLIENTS:]),
        sources=[cut(one) for one in facts["content"].get("sources", ())[:MOST_SOURCES]],
        fingerprint=fingerprint,
        dropped=list(facts["hand_off"]["dropped"].items())[:FEW_CLIENTS],
        above=[above_words(one) for one in facts["above"]],
    )


def _below(given: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what is declared and stands whole in no answer, with its titles, as far as a statement has room."""
    rest = [
        name
        for name in DECLARED
        if given.get(name) and name != "purpose" and (name not in ANSWERED or brief(given[name]) != given[name])
    ]
    each = MOST_DECLARED // max(1, len(rest))
    fits = sum(len(given[name]) for name in rest) <= MOST_DECLARED
    words = [given[name] if fits or len(given[name]) <= each else f"{given[name][: each - 1]}…" for name in rest]
    return [(DECLARED[name], text) for name, text in zip(rest, words, strict=True)]


def render_sheet(facts: Mapping[str, Any]) -> str:
    """Lay the facts of a hand-off out on one sheet for whoever gets it: what it is, and what it is not for."""
    content = facts["content"]
    return render_page(
        "data-sheet.html",
        **_told(facts),
        names=_names(content.get("columns", ())),
        limits_of_use=hard_limits(facts, names_below=True),
        means=means_in_words(facts["quality"]),
        fit=_fit(facts["quality"]),
        classes=listed(content.get("classes", ())),
        ask="the contact" if facts["given"].get("contact") else "whoever gave it to you",
        no_terms=BEGINS_WITH_NONE.match(facts["given"].get("license", "")),
        as_a_rule=AS_A_RULE,
        weak=weaknesses(facts["quality"]),
        pale=_pale(facts["quality"]),
        single_rows=_single_rows(facts["quality"]) if "columns" in content else "",
        headline=_headline(facts["quality"].get("headline", "")),
        uncounted={one["type"] for one in content.get("columns", ())} & {*UNCOUNTED},
    )


def _headline(words: str) -> str:
    """Leave out of a headline which figures are not to be used: a data sheet says it once, in its table."""
    return " ".join(one for one in SENTENCE.split(words) if not one.startswith((NOT_FOR, ONLY_IF)))


def _pale(quality: Mapping[str, Any]) -> str:
    """Name the groups that no rate's figure counts, by column that is handed over, as far as there is room."""
    said, dropped = list[str](), not_handed_over(quality)
    groups = {name: labels for name, labels in quality.get("pale", {}).items() if name not in dropped}
    for name, labels in groups.items():
        if sum(map(len, said)) > MOST_PALE:
            break
        said.append(f"{cut(name)} ({cut('; '.join(labels))})")
    more = len(groups) - len(said)
    return ", ".join(said) + (f", and groups of {more} more columns, which report.html shows" if more else "")


def _told(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every page of a card is told."""
    hand_off = facts["hand_off"]
    verb = (
        federated.CENTRAL if "trust" in hand_off else DONE.get(hand_off["method"].removesuffix("-ae"), report.ELSE_DONE)
    )
    charges = [one["name"] for one in hand_off["charges"]]
    hidden, reckoned = left_out_and_reckoned(facts)
    words = words_of(facts)
    return {
        "card": facts,
        "given": NOTHING | facts["given"],
        "declared": [(title, facts["given"][name]) for name, title in DECLARED.items() if facts["given"].get(name)],
        "said": hand_off,
        "cautions": meanings_of(cautions_of(facts)),
        "limits": [one.replace(DECLARED_SCHEMA, "schema.yaml") for one in meanings_of(facts["limits"])],
        "at_making": coded(AT_MAKING),
        "read_off": read_off_in_words(facts["content"].get("sources", ()), names_of(facts["content"])),
        "large_delta": delta_warning(facts),
        "fields": counts_of(facts["given"]),
        "unsigned": UNSIGNED,
        "on_groups": DECISIONS_ON_GROUPS,
        "tied": tied_in_words(facts["given"].get("special_categories", ""), facts["content"]),
        "words": words,
        "beside_one": beside_one_record(facts, words),
        "one_person": coded(who_says_one_person(facts)),
        "left_out": listed(facts["content"].get("left_out", ())),
        "unreceived": ", ".join(map(cut, hidden)),
        "reckoned": ", ".join(map(cut, reckoned)),
        "rules": rules_in_words(len(facts["quality"].get("rules", ()))),
        "made_anew": [
            (listed(names, MOST_WORDS), MADE_ANEW[way]) for way, names in facts["content"].get("made_anew", {}).items()
        ],
        "done": verb,
        "together": joined([PARTS[name] for name in dict.fromkeys(charges)]) if len(charges) > 1 else "",
        "discovered": "discovery" in charges,
    }


def _single_rows(quality: Mapping[str, Any]) -> str:
    """Say that values of one row may not go together, but for the rules of the schema; empty where none is known."""
    if "rules" not in quality:
        return ""
    rules = quality["rules"]
    said = "single rows: values of one row may be impossible together, since a model of few columns at a time drew them"
    if not rules:
        return f"{said}; it has no rule between columns ({WHERE})"
    more = f", and {len(rules) - MOST_RULES} more" if rules[MOST_RULES:] else ""
    return f"{said}, but for {rules_in_words(len(rules))}: {', '.join(map(cut, rules[:MOST_RULES]))}{more}"


def _names(columns: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Sort columns by type: each type with its number, and its columns' names as far as there is room."""
    kinds: dict[str, list[str]] = {}
    for one in columns:
        kinds.setdefault(one["type"], []).append(one["name"])
    room = max(60, MOST_NAMES // max(1, len(kinds)))
    return [(f"{len(names)} {kind}", listed(names, room)) for kind, names in kinds.items()]
