"""What is asked of a person, what an operator declared of it, and what is still open: blank, or no answer by its form.

No software can judge what words mean. What can be seen is that a field says none, names nobody, has no day or no
article of the law; and that law asks of a person what no field has.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

UNSTATED, NONE, NAMELESS = "Not stated", "Answered with none", "Without a name"
DATELESS, WITHOUT_ARTICLE = "Without a day", "Without an article of the GDPR"
STATES = (UNSTATED, NONE, WITHOUT_ARTICLE, NAMELESS, DATELESS)
NONE_WITH_REASON = ("compatibility", "processor")
"""Fields of which none is an answer with its reason alone, which stands behind a mark such as a colon."""
BARE_NONE = re.compile(r"\W*(none|no|not|nobody|nothing)\b[^:;,(–—]*", re.IGNORECASE)
MAY_BE_NONE = ("special_categories", "compatibility", "information", "minors", "processor")
"""Fields of which none, with or without a reason, is an answer."""
BEGINS_WITH_NONE = re.compile(r"\W*(none|no|not|nobody|nothing|unknown|n/?a|tbd|todo)\b", re.IGNORECASE)
NO_ANSWER = re.compile(r"\W*(unknown|n/?a|tbd|todo|(none|not) (claimed|given|stated|weighed))\b", re.IGNORECASE)
NOBODY = re.compile(r"\b(whoever|anybody|anyone|everybody|everyone|nobody|somebody|someone|no one)\b", re.IGNORECASE)
NO_CONDITION = re.compile(r"\bno (condition|ground|basis)\b", re.IGNORECASE)
DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
OF_ASSESSMENT = re.compile(
    r"\b(DPIA|impact assessment|DSFA|Datenschutz-?Folgenabschätzung|AIPD|Art(icle|\.|ikel) ?35)\b", re.IGNORECASE
)
SENTENCE = re.compile(r"(?<=[^\W\d_]{4}[.;])\s+|(?<=\d[.;])\s+(?=[^\W\d_a-z])")
"""Between two sentences of an operator: behind a word, which no abbreviation such as Art. is, or a number."""
OF_TRANSFER = re.compile(
    r"\b(third countr(y|ies)|adequacy|international organi[sz]ation|Drittl(and|änder)|Drittstaat(en)?|pays tiers|"
    r"Art(icle|\.|ikel) ?4[4-9])\b",
    re.IGNORECASE,
)
OF_CHILDREN = re.compile(
    r"(?<!no )(?<!without )\b(minors?|child(ren)?|pupils?|infants?|newborns?|adolescents?|Kinder|Minderjährige)\b",
    re.IGNORECASE,
)
REASON_NEEDED = " (none is an answer with its reason, behind a colon)"
NEVER_EXPIRES = " (no day such as 2027-03-01, so `nacre remove --expired` deletes nothing)"


@dataclass(frozen=True)
class Asked:
    """What is asked of a person: its title, who says it, what is to be obtained, and what to write into the field."""

    title: str
    who: str
    what: str
    within: str = ""


CONTROLLER, OPERATOR, COLLECTOR = "the controller", "the operator", "whoever collected the data"
ASKED = {
    "purpose": Asked("Purpose", CONTROLLER, "the purpose"),
    "subjects": Asked("Whose data it is", COLLECTOR, "whose data it is"),
    "special_categories": Asked(
        "Special categories of data (GDPR, Art. 9(1))",
        CONTROLLER,
        "which columns hold special categories of data (Art. 9(1)), or that none does",
    ),
    "legal_basis": Asked("Legal basis (GDPR, Art. 6(1))", CONTROLLER, "the legal basis (Art. 6)", "with its article"),
    "condition": Asked(
        "Condition for special categories of data (GDPR, Art. 9(2))",
        CONTROLLER,
        "the condition for special categories of data (Art. 9(2))",
        "`--legal-basis`, with its article",
    ),
    "compatibility": Asked(
        "Why this use fits what the data was collected for (GDPR, Art. 6(4))",
        CONTROLLER,
        "why this use fits what the data was collected for (Art. 6(4))",
    ),
    "information": Asked(
        "How the people were informed, or why not (GDPR, Art. 13, 14)",
        CONTROLLER,
        "how the people were informed, or why not (Art. 13, 14)",
    ),
    "minors": Asked(
        "Children or other vulnerable people among them, and what is done for them",
        COLLECTOR,
        "whether children, or other vulnerable people, are among them, and what is done for these: nacre cannot know; "
        'an answer, which an officer signs with the files, is such as `--minors "None: all were 18 or older"`',
    ),
    "processor": Asked(
        "Processor, and its contract (GDPR, Art. 28)",
        CONTROLLER,
        "who processes the data on its behalf, by which contract (Art. 28)",
    ),
    "recipient": Asked("Recipient", CONTROLLER, "the recipient"),
    "transfer": Asked(
        "Transfer to a third country, or to an international organization (GDPR, Art. 44 to 49)",
        CONTROLLER,
        "whether it goes to a third country, and on what ground (Art. 44 to 49)",
        "`--recipient`, with the ground",
    ),
    "recipient_retention": Asked(
        "The recipient may keep it until", CONTROLLER, "until when recipients may keep it", "with a day"
    ),
    "license": Asked("Terms of re-use: may it be passed on?", CONTROLLER, "the terms of re-use (may it be passed on?)"),
    "controller": Asked("Controller (GDPR, Art. 4(7))", OPERATOR, "the controller (Art. 4(7))"),
    "contact": Asked("Contact, who answers questions about these files", CONTROLLER, "the contact"),
    "signer": Asked("Made by, as declared", OPERATOR, "who made the files"),
    "why": Asked("Why this unit and this budget", "whoever chose unit and budget", "why this unit and this budget"),
    "assessment": Asked(
        "Reference of the DPIA (GDPR, Art. 35), or why none is needed",
        CONTROLLER,
        "the impact assessment (DPIA), or why none is needed (Art. 35)",
        "`--why`, in a sentence with the DPIA, which then answers both",
    ),
    "retention": Asked("How long raw data are kept", OPERATOR, "until when raw data are kept", "with a day"),
    "release_retention": Asked(
        "How long the release (noisy numbers) is kept", OPERATOR, "until when the release is kept", "with a day"
    ),
}
"""What is asked of a person, by the field of a declaration that has it; some stand in the words of another field."""
BESIDE_OPTIONS = (
    "from the controller, whether professional secrecy allows this, where it binds you (such as Art. 226-13 Code pénal "
    "in France, § 203 StGB in Germany)",
    "from the controller, the vote of an ethics board, or why none is needed",
    "from the controller, that nobody is in the data who objected (Art. 21), or opted out of it",
    "from the controller, the national law where an article asks for one (Art. 6(3), 9(2), 89(1))",
    "from the recipient, an agreement to look for nobody in the rows, and to link them with nothing about people",
)
"""What law asks of the controller, and no field of a declaration has."""
CARED_FOR = "what is done for the children who by answer 5 are among the people"


@dataclass(frozen=True)
class Line:
    """One thing that is asked of a person, with what is declared of it, and what that lacks; empty where it is whole.

    ``option`` is how it is stated to a run.
    """

    title: str
    who: str
    option: str
    answer: str
    state: str
    what: str


def lines(given: Mapping[str, str]) -> list[Line]:
    """Return all that is asked of a person, each with what is declared of it and what that lacks."""
    return [_line(name, asked, given) for name, asked in ASKED.items()]


def lack_in_words(line: Line) -> str:
    """Write behind a title what its answer lacks; nothing behind one without an answer."""
    reason = ", no reason" * (line.what.endswith(REASON_NEEDED))
    return "" if line.state in ("", UNSTATED) else f" ({line.state[0].lower()}{line.state[1:]}{reason})"


def open_of(given: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Write what is open, each behind who says it and what its answer lacks, by which they are sorted."""
    every = lines(given)
    return [(one.who, state, one.what) for state in STATES for one in every if one.state == state]


def counts_of(given: Mapping[str, str]) -> dict[str, int]:
    """Count what is asked of a person: all, what is blank, and what is answered and still open by its form.

    An answer counts once: ``shared`` are the closed ones that are words of another answer, by a guess from its words.
    """
    states = {name: _state(name, given) for name in ASKED}
    shared = [name for name, state in states.items() if not state and not given.get(name)]
    every = [*states.values()]
    blank, closed = every.count(UNSTATED), every.count("")
    counts = {"all": len(every), "blank": blank, "open": len(every) - blank - closed}
    return counts | {"closed": closed - len(shared), "shared": len(shared)}


def names_article(text: str, article: int) -> bool:
    """Tell whether words name an article of the GDPR by its number."""
    return re.search(rf"(?<![\d.]){article}(?![\d.]*\d)", text) is not None


def _line(name: str, asked: Asked, given: Mapping[str, str]) -> Line:
    option = asked.within if asked.within.startswith("`") else f"`--{name.replace('_', '-')}` {asked.within}".strip()
    answer, state, what = _answer(name, given), _state(name, given), asked.what
    if name == "retention" and state not in ("", UNSTATED):
        what += NEVER_EXPIRES
    if name in NONE_WITH_REASON and state == NONE:
        what += REASON_NEEDED
    if name == "minors" and answer and not given.get(name):
        what = CARED_FOR
    return Line(asked.title, asked.who, option, answer, state, what)


def _answer(name: str, given: Mapping[str, str]) -> str:
    """Return what is declared, in its own field or in the words of another; empty where nothing is."""
    special, subjects = given.get("special_categories", ""), given.get("subjects", "")
    if name == "condition":
        return _condition(given) or (special if BEGINS_WITH_NONE.match(special) else "")
    if name == "assessment":
        return assessment_of(given)
    if name == "transfer":
        return given.get("recipient", "") if OF_TRANSFER.search(given.get("recipient", "")) else ""
    if name == "minors" and not given.get(name):
        return subjects if OF_CHILDREN.search(subjects) else ""
    return given.get(name, "")


def assessment_of(given: Mapping[str, str]) -> str:
    """Return the sentences of why a unit and a budget were chosen that name an impact assessment; empty without any."""
    return " ".join(one for one in SENTENCE.split(given.get("why", "")) if OF_ASSESSMENT.search(one))


def _condition(given: Mapping[str, str]) -> str:
    """Return what is declared of the condition for special categories; empty where nothing is."""
    special, basis = given.get("special_categories", ""), given.get("legal_basis", "")
    of_basis = basis if names_article(basis, 9) and not BEGINS_WITH_NONE.match(basis) else ""
    of_columns = special if re.search(r"9\s*\(2\)", special) or NO_CONDITION.search(special) else ""
    return "; ".join(filter(None, (of_columns, of_basis)))


def _state(name: str, given: Mapping[str, str]) -> str:
    """Say what an answer lacks by the form of its words; empty where that tells nothing."""
    text = given.get(name, "")
    if name == "condition":
        no_condition = NO_CONDITION.search(given.get("special_categories", ""))
        return NONE if no_condition else "" if _answer(name, given) else UNSTATED
    if name in ("assessment", "transfer"):
        return "" if _answer(name, given) else UNSTATED
    if not text:
        return UNSTATED
    if "retention" in name:  # of raw data nacre itself obeys a day of the calendar, and no other words
        dated = DAY.search(text) if name == "retention" else re.search(r"\d", text)
        return "" if dated else DATELESS
    if (NO_ANSWER if name in MAY_BE_NONE else BEGINS_WITH_NONE).match(text):
        return NONE
    if name in NONE_WITH_REASON and BARE_NONE.fullmatch(text):
        return NONE
    if name == "why":
        return NONE if NOBODY.search(text) else ""
    if name in ("recipient", "controller", "contact", "signer"):
        return NAMELESS if NOBODY.search(text) else ""
    return WITHOUT_ARTICLE if name == "legal_basis" and not names_article(text, 6) else ""
