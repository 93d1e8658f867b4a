"""Ten questions that an officer asks of a hand-off, each with its answer in a line and where more is said.

An answer repeats what the sheets say, or says that nobody declared it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmodels.pages.asked.adviser import ASKS_WHO_DECIDES, says_adviser
from dpmodels.pages.asked.risk import risks, what_to_quote
from dpmodels.pages.asked.several import notes_on_records
from dpmodels.pages.asked.special import tied_in_words
from dpmodels.pages.card_words import at_most, brief, cautions_of, cut, examples_of, there, words_of
from dpmodels.pages.leaving import names_of, read_off_in_words
from dpmodels.pages.notes import left_out_and_reckoned

AT_MOST = "For whoever knows all else, rounded up"
THIS_ACCOUNT = "by all the account paid for"
UNSIGNED = (
    "to compare sha256sum of each file with manifest.json proves nothing unless manifest.json is signed, or you got "
    "its own sha256 elsewhere: whoever alters a file can alter it too."
)
DECISIONS_ON_GROUPS = (
    "A decision on a group that follows from these rows, such as a tariff or a quota, is the recipient's, who answers "
    "for how far off they are."
)
"""What is said of groups wherever pages say that no single person may be decided on."""
ROLES = (
    ("Operator", "runs nacre where the real data lie, and declares what stands here in “ ”"),
    ("Maker", "made these files from the noisy numbers, and may sign them; mostly the operator"),
    (
        "Whoever opened the account",
        "set the most that may be spent on these data, and may name an owner and an officer",
    ),
    ("Controller", "decides why and how the data are used (GDPR, Art. 4(7)), and answers for it"),
    ("Recipient", "gets these files, keeps to their terms, and answers for what is done with them there"),
    (
        "Whoever collected the data",
        "knows whose data they are, how they were told, and whether one has several records",
    ),
    (
        "Officer",
        "signs by a key what may be spent, if the account names one, and that these files may leave (answer 6)",
    ),
)
"""Who is who on all pages."""
ADVISERS = (
    "A data-protection officer who may only advise (Art. 39) leaves signing to the controller: who decides may not be "
    "who watches over it (Art. 38(6)). "
)
STATEMENT, SHEET, CARD, REPORT = "statement.html", "data-sheet.html", "model-card.html", "report.html"
ANSWERED = (
    "purpose", "subjects", "special_categories", "legal_basis", "recipient", "recipient_retention", "license", "signer",
)  # fmt: skip
"""What an operator declares that is in an answer."""
Facts = Mapping[str, Any]
Accounts = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Answer:
    """A question, its answer, the places where more is said, as words and links within the folder, and a table.

    ``rows`` are below the answer, the first of them headings, and ``note`` below them.
    """

    question: str
    text: str
    more: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""


def answers(facts: Facts, accounts: Accounts) -> list[Answer]:
    """Answer the ten questions from the facts of a card, and from its accounts as pages write them, heaviest first."""
    words = words_of(facts)
    return [
        _protected(facts, words),
        _at_worst(facts, words, accounts),
        _unprotected(facts),
        _special(facts),
        _ground(facts),
        _approval(facts, accounts),
        _budget(facts, accounts),
        _traced(facts, words),
        _recipients(facts),
        _checks(facts),
    ]


def _protected(facts: Facts, words: Mapping[str, str]) -> Answer:
    hand_off = facts["hand_off"]
    trusted = "the operator who reads the data, and the machine that it lies on"
    if hand_off["clients"]:
        trusted = "each client's operator, who reads that client's records"
    if "trust" in hand_off:
        trusted += ", and whoever runs the aggregator, which read the exact sums of every client"
    but = ", but not against what bounds read off real rows give away (answer 3)" if _read_off(facts["content"]) else ""
    one = words["one"] + "," * ("," in words["one"])
    text = f"{_capital(one)} is protected from everybody who gets these files, whatever else they know{but}."
    text += f" It is {words['of_persons']}." if words["of_persons"] else ""
    more = (("What was protected", f"{STATEMENT}#protected"),)
    text += f" Nothing guards against {trusted}, which are trusted."
    return Answer("Who is protected, and from whom?", text, more)


def _at_worst(facts: Facts, words: Mapping[str, Any], accounts: Accounts) -> Answer:
    first, of_all = accounts[0] if accounts else {}, of_all_paid(accounts)
    of_cap = first.get("of_cap")
    header = [AT_MOST, "by these files", *([THIS_ACCOUNT] if of_all else [])]
    if of_cap:
        header.append(f"if its whole cap is spent (ε = {first['cap']})")
    sides = [one for one in (of_all, of_cap) if one]
    places = {"Small chances": "guesses", "Of values": "assessment", "Budget": "budget"}
    more = tuple((name, f"{STATEMENT}#{place}") for name, place in places.items())
    rows = (*header, "What it counts"), *risks(words, *sides)
    text = f"Somebody who knows all else, and sees these files, learns no more of {words['one']} than this table says. "
    text += what_to_quote(words)
    return Answer("What could somebody learn at worst?", text, more, rows, notes_on_records(facts, words))


def of_all_paid(accounts: Accounts) -> Mapping[str, Any] | None:
    """Return the words of all that the heaviest account paid for; None where it paid for this alone."""
    return accounts[0].get("all") if accounts and accounts[0].get("charges") else None


def _unprotected(facts: Facts) -> Answer:
    hand_off, content = facts["hand_off"], facts["content"]
    public = "what schema.yaml says"
    if "columns" in content:
        is_discovered = any(one["name"] == "discovery" for one in hand_off["charges"])
        but = ", but for those that were discovered under a charge" * is_discovered
        public += f" (columns, bounds and lists of values{but})"
    if content.get("public"):
        public += f", what the tables {cut(', '.join(content['public']))} hold"
    several = (
        "" if hand_off["unit"].startswith("user") else " Whoever has several records is hidden less than with one."
    )
    text = f"Nothing hides what is true of everybody in the data{_such_as(facts)}, {public}, "
    text += f"or what another ledger or tool released of the same people.{several}"
    if read_off := _read_off(content):
        text += f" {read_off}"
    more = [("What was protected", f"{STATEMENT}#protected"), ("Not promised", f"{STATEMENT}#limits")]
    if cautions_of(facts):
        text += " This hand-off has cautions, too."
        more.append(("Cautions", f"{STATEMENT}#cautions"))
    return Answer("What is not protected?", text, tuple(more))


def _read_off(content: Facts) -> str:
    return read_off_in_words(content.get("sources", ()), names_of(content))


def _declares(words: str | None, what: str, not_stated: str) -> str:
    """Repeat words of the operator in a sentence, between marks, which tell them from nacre's; or say what lacks."""
    if not words:
        return f"The operator does not state {not_stated}."
    return f"The operator declares {what}: “{brief(words)}”{' (whole below)' * (brief(words) != words)}."


def _such_as(facts: Facts) -> str:
    """Give an example of two columns of the table itself: those that depend most on each other, if that is known."""
    names: Sequence[str] = facts["quality"].get("strongest") or examples_of(facts["content"])
    first, other, *_ = (*names, "", "")
    return f", such as how {cut(other)} and {cut(first)} go together" if other else ""


def _special(facts: Facts) -> Answer:
    declared = facts["given"].get("special_categories")
    which = "whether the data hold special categories, nor that they hold none"
    names = ""
    if "columns" in facts["content"]:
        which, names = (
            "which columns hold special categories of data, nor that none does",
            "; the data sheet names the columns",
        )
    text = f"The operator declared neither {which}. Nacre never guesses it{names}{_ask(facts)}."
    if declared:
        text = " ".join([_declares(declared, "as special categories", ""), *tied_in_words(declared, facts["content"])])
    more = ("What is in it", f"{SHEET}#content"), ("What the files are", f"{STATEMENT}#made")
    return Answer("Are there special categories of data (GDPR, Art. 9)?", text, more)


def _ground(facts: Facts) -> Answer:
    given = facts["given"]
    minors = given.get("minors")
    least_ages = facts["content"].get("ages", {})
    ages = ", ".join(f"{cut(name)} may hold ages from {least}" for name, least in least_ages.items())
    parts = [
        PURPOSE if given.get("purpose") else _declares("", "", "a purpose"),
        _declares(given.get("legal_basis"), "this legal basis", "a legal basis"),
        _declares(given.get("subjects"), "whose data it is", "whose data it is"),
        _declares(minors, "of children among them", f"whether {VULNERABLE} are among them"),
        "" if minors else "Nacre cannot know it.",
        f"By the schema {ages}: ask whether minors are among them." if ages and not minors else "",
    ]
    question = "For what purpose, on what legal basis, and are there children among the people?"
    return Answer(question, " ".join(filter(None, parts)), (_MADE, ("To obtain", f"{STATEMENT}#obtain")))


def charge_approved(facts: Facts, accounts: Accounts) -> str:
    """Say by whom and when the charge of a hand-off was approved, as far as its card tells."""
    hand_off, approved = facts["hand_off"], facts["hand_off"]["approved"]
    signed = [one for one in accounts if one["approved"]]
    text = "The charge (what making these files spent) was approved "
    if approved:
        text += f"by {cut(approved['officer'])}"
        if hand_off["day"]:
            text += (
                f", no later than {hand_off['day']}, when it was charged; without that signature it would have been "
            )
            text += "refused"
    elif signed:
        text += f"by an officer of each of {len(signed)} of {len(accounts)} clients"
    elif accounts:
        text += "by nobody, since the account named no officer"
    else:
        text = "Who approved the charge (what making these files spent) is not known here: the ledger that paid has it"
    return text


def _approval(facts: Facts, accounts: Accounts) -> Answer:
    text = f"{charge_approved(facts, accounts)}. That these files may leave is another decision, which stands in "
    text += (
        "officer.sig beside them: nacre verify FOLDER reads it, with its day, and without that file nobody took it. "
    )
    text += "Nacre verify also says whether the files are signed, and whether maker and officer signed by one key. "
    text += ADVISERS
    if adviser := says_adviser(approved["officer"]) if (approved := facts["hand_off"]["approved"]) else "":
        text += f"The name says {cut(adviser)}, and one key signs both charge and leaving: {ASKS_WHO_DECIDES}. "
    text += _declares(facts["given"].get("signer"), "as their maker", "who made the files")
    return Answer("Who approved it, and when?", text, (("Approved", f"{STATEMENT}#approved"), _MADE))


def _budget(facts: Facts, accounts: Accounts) -> Answer:
    more = [("Budget", f"{STATEMENT}#budget")]
    if not accounts:
        text = "What remains is not known here: each client, or whoever keeps the ledger, can say it."
        return Answer("What remains of the budget?", text, tuple(more))
    one = accounts[0]
    left = "nothing further fits"
    if one["remaining"] != "0":
        left = f"one further release of noisy numbers with ε = {one['remaining']} at most would fit"
        left += f" ({one['why']})" if one["why"] else ""
    whose = f" of {one['client']}, which spent the most," if one["client"] and len(accounts) > 1 else ""
    spent = f"ε = {one['after']} of {one['cap']} with this ({one['before']} before)"
    text = f"{_capital(one['used'])}; {one['more']}. Account {cut(one['name'])}{whose} has spent {spent}; {left}"
    text += f", until {one['expires']}." if one["expires"] else "."
    if cap := one["of_cap"]:
        becomes = at_most(cap["example"], cap["beyond"]) if cap["example"] else "nearly any"
        text += (
            f" If all of it is ever spent, odds on {there(facts['hand_off'])} move by {cap['factor']}, and a guess of "
        )
        text += f"10 % becomes {becomes}."
    text += f" The cap of {one['cap']} was set by whoever opened the account"
    text += f"; {_sentence('it is answered for by ' + one['owner'])}" if one["owner"] else ", who named no owner: ask."
    if one["earlier"]:
        more.append(("Charges before this", f"{CARD}#charges"))
    return Answer("What remains of the budget?", text, tuple(more))


def _traced(facts: Facts, words: Mapping[str, str]) -> Answer:
    content = facts["content"]
    if content["about"] == "federation":
        text = "There are no rows of persons: a classifier is handed over, which is made of noisy sums."
    elif content["about"] == "embeddings":
        text = f"Yes, each vector is of one document, whose id is public; {words['one']} is hidden."
    elif "words" in content:
        text = f"The files hold {_sentence(cut(content['words']))}"
    else:
        text = "No row is anybody's: rows are drawn from a model of noisy sums, and one that equals a real one by "
        text += f"chance proves nothing. That they are so drawn rests on {vouched_for_by(facts)}."
    text += " Whether the files are anonymous in law (GDPR, recital 26), the controller assesses: by answer 2, by what "
    text += (
        "recipients have and can do, by other releases and the whole cap (7), by bounds read off real rows (3), and by "
    )
    text += (
        "whether the maker is trusted (10). Against it speak persons with many records, and bounds read off real rows."
    )
    dropped, reckoned = left_out_and_reckoned(facts)
    if content.get("left_out"):
        text += (
            f" Left out are the columns that the schema declares identifiers: {cut(', '.join(content['left_out']))}."
        )
    elif "left_out" in content:
        text += (
            f" No column of schema.yaml was left out{' as an identifier' * bool(dropped or reckoned)}; what else the "
        )
        text += "raw file had is not known here."
    if dropped:
        text += f" These columns were measured, and are not handed over: {cut(', '.join(dropped))}."
    if reckoned:
        text += f" These are no columns of the files, but follow from columns that are: {cut(', '.join(reckoned))}."
    if content.get("made_anew"):
        anew = ", ".join(name for names in content["made_anew"].values() for name in names)
        text += f" These are made anew, of nobody: {cut(anew)}."
    return Answer(
        "Can a row be traced to a person, and is it anonymous?", text, (("What is in it", f"{SHEET}#content"),)
    )


def _recipients(facts: Facts) -> Answer:
    given = facts["given"]
    parts = [
        _declares(given.get("recipient"), "as recipient", "a recipient"),
        _declares(given.get("license"), "these terms", "any terms"),
        _declares(given.get("recipient_retention"), "how long the files may be kept", "how long the files may be kept"),
    ]
    text = (
        " ".join(parts) + " No recipient may use the files for a decision about a single person, or to look for one. "
    )
    text += DECISIONS_ON_GROUPS
    more = ("What it must not be used for", f"{SHEET}#not-for"), ("If you pass it on", f"{SHEET}#pass-on")
    return Answer("What may recipients do, and when must they delete it?", text, more)


def _checks(facts: Facts) -> Answer:
    text = "It is checked by nacre verify FOLDER --public-key KEY --officer-key KEY, with keys that you got elsewhere. "
    text += (
        f"Without nacre, {UNSIGNED} Nothing can check that the noise was added and rows were drawn from it, what is "
    )
    text += f"declared, days, names, and what had been spent before this: these rest on {vouched_for_by(facts)}. "
    text += "Nobody but its authors reviewed nacre."
    more = (("To check", f"{STATEMENT}#check"), ("Was the method tested?", f"{REPORT}#officer"))
    return Answer("How is it checked that nothing was changed, and what is not?", text, more)


PURPOSE = "The declared purpose stands above. Limits are printed beside it; nobody compared them."
VULNERABLE = "children or other vulnerable people"
_MADE = ("What the files are", f"{STATEMENT}#made")


def vouched_for_by(facts: Facts) -> str:
    """Name whose word it is that nobody can check."""
    named = facts["given"].get("signer")
    return "the maker, whom answer 6 names as declared" if named else "the maker, whom nobody named"


def _ask(facts: Facts) -> str:
    contact = facts["given"].get("contact")
    return f"; ask {cut(contact)}" if contact else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."
