"""What is still open of what an operator declares: fields that are blank, or whose words answer nothing by their form.

No software can judge what words mean. What can be seen is that a field says none, names nobody, has no day or no
article of the law; and that law asks of a person what no field has.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FIELDS = {
    "purpose": "the purpose",
    "subjects": "whose data it is",
    "special_categories": "which columns hold special categories of data (Art. 9(1)), or that none does",
    "legal_basis": "the legal basis (Art. 6)",
    "compatibility": "from the controller, why this use fits what the data was collected for (Art. 6(4))",
    "information": "from the controller, how the people were informed, or why not (Art. 13, 14)",
    "minors": "from whoever collected the data, whether children are among the people, and what is done for them",
    "processor": "from the controller, who processes the data on its behalf, by which contract (Art. 28)",
    "recipient": "the recipient",
    "recipient_retention": "until when recipients may keep it",
    "license": "the terms of re-use (may it be passed on?)",
    "controller": "the controller (Art. 4(7))",
    "contact": "the contact",
    "signer": "who signs it",
    "why": "why this unit and this budget",
    "retention": "until when raw data are kept",
    "release_retention": "until when the release is kept",
}
"""What an operator may declare, as what is to be obtained of it."""
UNSTATED, NONE, NAMELESS = "Not stated", "Answered with none", "Without a name"
DATELESS, WITHOUT_ARTICLE = "Without a day", "Without an article of the GDPR"
STATES = (UNSTATED, NONE, WITHOUT_ARTICLE, NAMELESS, DATELESS)
CONDITION = "the condition for special categories of data (Art. 9(2))"
ASSESSMENT = "the impact assessment (DPIA), or why none is needed (Art. 35)"
TRANSFER = "whether it goes to a third country, and on what ground (Art. 44 to 49)"
MAY_BE_NONE = ("special_categories", "compatibility", "information", "minors", "processor")
"""Fields of which none, with or without a reason, is an answer."""
BEGINS_WITH_NONE = re.compile(r"\W*(none|no|not|nobody|nothing|unknown|n/?a|tbd|todo)\b", re.IGNORECASE)
NO_ANSWER = re.compile(r"\W*(unknown|n/?a|tbd|todo)\b", re.IGNORECASE)
NOBODY = re.compile(r"\b(whoever|anybody|anyone|everybody|everyone|nobody|somebody|someone|no one)\b", re.IGNORECASE)
NO_CONDITION = re.compile(r"\bno (condition|ground|basis)\b", re.IGNORECASE)
DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
OF_ASSESSMENT = re.compile(r"\b(DPIA|impact assessment|Art(icle|\.) ?35)\b", re.IGNORECASE)
NEVER_EXPIRES = " (no day such as 2027-03-01, so `nacre remove --expired` deletes nothing)"


@dataclass(frozen=True)
class Point:
    """What is to be obtained, of which field of the declaration, and what that lacks; law asks some of no field."""

    state: str
    what: str
    field: str = ""


def open_points(given: Mapping[str, str]) -> list[Point]:
    """List what is open of what law asks of a person, sorted by what is lacking."""
    points = [*_of_fields(given), *_of_law(given)]
    return sorted(points, key=lambda point: STATES.index(point.state))


def open_in_words(given: Mapping[str, str]) -> list[tuple[str, str]]:
    """Write the open points, each state with all that is in it."""
    points = open_points(given)
    by_state = {state: [one.what for one in points if one.state == state] for state in STATES}
    return [(state, "; ".join(parts)) for state, parts in by_state.items() if parts]


def field_counts(given: Mapping[str, str]) -> dict[str, int]:
    """Count the fields of a declaration: all, those that are blank, and those that are filled in and still open."""
    blank = [name for name in FIELDS if not given.get(name)]
    still_open = {point.field for point in open_points(given)} - {"", *blank}
    closed = len(FIELDS) - len(blank) - len(still_open)
    return {"all": len(FIELDS), "blank": len(blank), "open": len(still_open), "closed": closed}


def names_article(text: str, article: int) -> bool:
    """Tell whether words name an article of the GDPR by its number."""
    return re.search(rf"(?<![\d.]){article}(?![\d.]*\d)", text) is not None


def condition_declared(given: Mapping[str, str]) -> str:
    """Return what is declared of the condition for special categories; empty where nothing is."""
    special, basis = given.get("special_categories", ""), given.get("legal_basis", "")
    of_basis = basis if names_article(basis, 9) and not BEGINS_WITH_NONE.match(basis) else ""
    of_columns = special if re.search(r"9\s*\(2\)", special) or NO_CONDITION.search(special) else ""
    return "; ".join(filter(None, (of_columns, of_basis)))


def _of_fields(given: Mapping[str, str]) -> Iterator[Point]:
    for name, what in FIELDS.items():
        if state := _state(name, given.get(name, "")):
            more = NEVER_EXPIRES if name == "retention" and state != UNSTATED else ""
            yield Point(state, what + more, name)


def _state(name: str, text: str) -> str:
    """Say what a field lacks by the form of its words; empty where that tells nothing."""
    if not text:
        return UNSTATED
    if "retention" in name:  # of raw data nacre itself obeys a day of the calendar, and no other words
        dated = DAY.search(text) if name == "retention" else re.search(r"\d", text)
        return "" if dated else DATELESS
    if (NO_ANSWER if name in MAY_BE_NONE else BEGINS_WITH_NONE).match(text):
        return NONE
    if name == "why":
        return NONE if NOBODY.search(text) else ""
    if name in ("recipient", "controller", "contact", "signer"):
        return NAMELESS if NOBODY.search(text) else ""
    return WITHOUT_ARTICLE if name == "legal_basis" and not names_article(text, 6) else ""


def _of_law(given: Mapping[str, str]) -> Iterator[Point]:
    """Name what law asks beside the fields: a condition where there are special categories, a DPIA, a transfer."""
    special, condition = given.get("special_categories", ""), condition_declared(given)
    if NO_CONDITION.search(special):
        yield Point(NONE, CONDITION, "special_categories")
    elif not condition and not BEGINS_WITH_NONE.match(special):
        yield Point(UNSTATED, CONDITION)
    if not OF_ASSESSMENT.search(given.get("why", "")):
        yield Point(UNSTATED, ASSESSMENT)
    yield Point(UNSTATED, TRANSFER)
