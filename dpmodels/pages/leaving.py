"""Whether the files of a hand-off may leave: in the same words on the statement and in a check of the folder."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpmodels.pages.asked.declared_rules import rules_in_words
from dpmodels.pages.asked.limits import why_handed_over
from dpmodels.pages.asked.open_points import BESIDE_OPTIONS, open_of
from dpmodels.pages.asked.prompts import prompts
from dpmodels.pages.asked.special import tied_in_words
from dpmodels.pages.card_words import cut, delta_warning, is_record
from dpmodels.plural import counted

FILES = "files may leave"
AT_MAKING = (
    "These files may be sent and used once an officer signed in `officer.sig`, beside this page, that they may leave: "
    "`nacre verify FOLDER --officer-key KEY` says whether one did. Until then: inside, sent to nobody and not used."
)
"""What every page says of that near its top. Pages are part of what an officer signs, so none of them can know it;
these words are true before that and after."""
PROPOSED = (
    "whether an officer let these files leave stands in officer.sig beside them, if there is one: "
    "nacre verify FOLDER --officer-key KEY"
)
"""What the contract for machines says of it."""
AGREED = "yes"
BECAUSE = "because an officer signed it, by the key that you named"
BY_MAKER = "because the key that you named signed it, which is the key of the maker too"
UNDECIDED = "not yet, because no officer signed it"
BY_ANYBODY = "not known: who signed as an officer is not proved without --officer-key"
BY_OFFICER = "officer: yes; maker: not proved"
MAKER_UNSIGNED = {
    True: "that they are the maker's needs --public-key",
    False: "that they are the maker's needs the maker's signature, which is not here, and --public-key",
}
"""What it takes to know whose the files are, by whether a maker signed them."""
LEAVING_NEEDS = "leaving needs an officer's signature, which is here"
OTHER_KEY = (
    "not known; until then: inside; next: check that key; if it is the right one, somebody else signed: use nothing of "
    "it, and ask whoever sent it"
)
"""What is said of that where nothing else was found to be wrong."""
REFUSED = "no, because it is not as it was made; inside: use nothing of it, and ask whoever sent it"
"""What is said of that where a check of the folder has faults."""
INSIDE = "until then: inside, sent to nobody and not used; next: "
SIGN = "an officer reads statement.html, obtains what its box lists, and gives `nacre approve FOLDER --key KEY`"
NEXT = {
    (False, False): f"{INSIDE}{SIGN}",
    (False, True): f"{INSIDE}{SIGN}",
    (True, False): f"{INSIDE}get the officer's key from the officer, and name it with --officer-key, since anybody's "
    "key could have signed",
    (True, True): "next: send all files of the folder together, officer.sig among them",
}
NAME_THE_MAKER = "next: get the maker's key from the maker, name it with --public-key, then send all files together"
"""What comes next, by whether some officer signed, and whether the caller named the officer's key."""
OF_THE_DATA = re.compile(
    r"\b(itself|profil\w*|observed|public sample|(the|this|these|our|own|real|private) "
    r"(data|dataset|file|rows?|records?|table))\b",
    re.IGNORECASE,
)
"""Words of a source that is the data set, or rows of it, and no document about it."""
READ_OFF, TAKEN = (
    "Bounds or lists of values",
    "are said to be taken from the data: exact, unprotected and in no budget.",
)
INSTEAD = "Ask for a law or a form that sets them, or for a new release that discovers them."
ALWAYS = (
    "from whoever prepared the file, which version it is, what it was linked with, and which rows or columns were "
    "taken out of it before",
    "from the controller, whether every declared word is true",
    "from the controller, what other ledgers and tools released of the same people",
    "from the maker, which key is theirs: whether the files are signed, and by which keys, `nacre verify` says",
)
"""What is to be obtained of any hand-off, from whom."""
OF_PERSONS = "from whoever collected the data, proof that nobody has several {of}, or a new release of users"
"""What an officer asks where the unit is a record: nacre sees no persons in records."""
OF_OWNER = "from whoever opened the account, who answers for its cap: no owner is named"
MOST_CITED, MOST_NAMED = 2, 9
"""So many of these sources are cited, and of their columns named; schema.yaml has all."""


def leaving(
    is_signed: bool,
    officer_named: bool,
    by_maker: bool = False,
    was_open: str = "",
    maker_named: bool = True,
    maker_signed: bool = True,
) -> str:
    """Say whether the files may leave, what was open when an officer signed, and why; never yes without the key.

    ``by_maker``: maker and officer signed by one key. ``maker_named``: the key that was named for the maker signed.
    ``maker_signed``: some key signed as the maker's.
    """
    if not is_signed:
        return UNDECIDED
    when = f"; open when signed: {was_open}" if was_open else ""
    if not officer_named:
        return BY_ANYBODY + when
    if not maker_named:
        return f"{BY_OFFICER}{when}; {LEAVING_NEEDS}; {MAKER_UNSIGNED[maker_signed]}"
    return f"{AGREED}{when}; {BY_MAKER if by_maker else BECAUSE}"


def next_step(is_signed: bool, officer_named: bool, maker_named: bool = True) -> str:
    """Say what comes next and, unless an officer whom the caller named let the files leave, where they are."""
    if is_signed and officer_named and not maker_named:
        return NAME_THE_MAKER
    return NEXT[is_signed, officer_named]


def from_the_data(sources: Sequence[str]) -> list[str]:
    """Return the sources of a schema that by their words are the data themselves.

    Bounds and lists of values that somebody read off real rows are told to whoever gets the schema, and are in no
    budget; nacre cannot see where they are from.
    """
    return [one for one in sources if OF_THE_DATA.search(one)]


def read_off_in_words(sources: Sequence[str], columns: Iterable[str]) -> str:
    """Name the columns whose bounds or lists are, by the sources of a schema, the data; empty where none is.

    A source names a column by its name. Sources that name none are cited.
    """
    if not (suspect := from_the_data(sources)):
        return ""
    told = {source: [name for name in columns if _names(source, name)] for source in suspect}
    named = list(dict.fromkeys(name for names in told.values() for name in names))
    cited = [f"“{cut(source)}”" for source, names in told.items() if not names]
    more = f" and {len(cited) - MOST_CITED} more" if len(cited) > MOST_CITED else ""
    whose = f" of {_some(named)}" if named else ""
    if cited:
        whose += f"{', and others' if named else ''} (no column is named by {', '.join(cited[:MOST_CITED])}{more})"
    return f"{READ_OFF}{whose} {TAKEN}"


def _some(names: Sequence[str]) -> str:
    """Join names of columns, as far as there is room."""
    shown = [cut(name) for name in names[:MOST_NAMED]]
    last = f"{len(names) - MOST_NAMED} more" if names[MOST_NAMED:] else shown.pop()
    return f"{', '.join(shown)} and {last}" if shown else last


def _names(source: str, column: str) -> bool:
    """Tell whether a source names a column, apart from the words by which it is the data."""
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", OF_THE_DATA.sub("", source)) is not None


def bounds_to_obtain(content: Mapping[str, Any]) -> str:
    """Ask where bounds and lists of values are from, which nobody can check."""
    number, sources = len(content["columns"]), content.get("sources", ())
    named = f"the schema names {counted(len(sources), 'source')}" if sources else "the schema names no source"
    others = "other " if from_the_data(sources) else ""
    of_all = f"the {counted(number, 'column')}" if not others else "other columns"
    return f"from whoever wrote the schema, that no bound or list of values of {of_all} was read off real rows: {named}"


def rules_to_obtain(facts: Mapping[str, Any]) -> str:
    """Say what declared rules and formulas tell of the real rows, and ask who checked them; empty without any."""
    content, rules = facts["content"], len(facts["quality"].get("rules", ()))
    formulas = sum(one["type"] == "derived" for one in content.get("columns", ()))
    named = [rules_in_words(rules)] * (rules > 0) + [counted(formulas, "formula")] * (formulas > 0)
    if not named:
        return ""
    rules_and_formulas = " and its ".join(named)
    return (
        f"from whoever wrote the schema, who checked that its {rules_and_formulas} are public: nacre refuses, before "
        "any charge, raw rows that break one, so each holds in the real rows too (but for rows that "
        "`reject-row` leaves out, formulas of null values, and values that `outside` clips or replaces)"
    )


def warnings(facts: Mapping[str, Any]) -> list[str]:
    """Return what an officer weighs first: bounds that are the data, and a delta that is large for so many records."""
    content, delta = facts["content"], delta_warning(facts)
    read_off = read_off_in_words(content.get("sources", ()), names_of(content))
    return [*([f"{read_off} {INSTEAD}"] if read_off else []), *([delta] if delta else [])]


def names_of(content: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns that are handed over; none where there are none."""
    return [one["name"] for one in content.get("columns", ())]


def _several(unique: Sequence[str]) -> str:
    return f"values of {cut(' and '.join(unique))}" if unique else "records"


def to_obtain(facts: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """List what is to be obtained before the files leave, by who says it, since no file of the folder knows it.

    Of each person it is sorted by what an answer lacks; behind nothing stands what no option takes.
    """
    content = facts["content"]
    others = [
        *prompts(facts),
        *_of_columns(facts),
        *([bounds_to_obtain(content)] if "columns" in content else []),
        *filter(None, [rules_to_obtain(facts)]),
        *([OF_PERSONS.format(of=_several(content.get("unique", ())))] if is_record(facts["hand_off"]) else []),
        *ALWAYS,
        *BESIDE_OPTIONS,
    ]
    every = [*open_of(facts["given"]), *(_as_open(one) for one in others)]
    people = dict.fromkeys(who for who, _, _ in every)
    return [(who, _by_lack([one for one in every if one[0] == who])) for who in people]


def _of_columns(facts: Mapping[str, Any]) -> list[str]:
    """Ask what columns raise: of which no use holds, or that are tied to special ones; and who answers for a cap."""
    content, special = facts["content"], facts["given"].get("special_categories", "")
    asked = [why_handed_over(facts), *(tied_in_words(special, content) if special else [])]
    of_columns = [f"from the controller, {one[0].lower()}{one[1:].rstrip('.')}" for one in asked if one]
    ownerless = [OF_OWNER for one in facts.get("books", ()) if not one.get("owner")]
    return [*of_columns, *ownerless[:1]]


def _by_lack(some: Sequence[tuple[str, str, str]]) -> list[tuple[str, list[str]]]:
    """Sort what is to be obtained of one person by what the answers lack."""
    lacks = dict.fromkeys(lack for _, lack, _ in some)
    return [(lack, [what for _, state, what in some if state == lack]) for lack in lacks]


def _as_open(asked: str) -> tuple[str, str, str]:
    """Split what is to be obtained from somebody into who that is and what it is; it lacks nothing by its form."""
    who, _, what = asked.removeprefix("from ").partition(", ")
    return who, "", what
