"""What does in Python the same as a command that a message names, so that whoever called reads a call."""

import re
import shlex

CALLS = {
    "ledger open": "nacre.ledger(HOME).open_account(SCHEMA, epsilon=EPSILON, delta=DELTA)",
    "ledger cap": "nacre.ledger(HOME).change_cap(NAME, epsilon=EPSILON, reason=REASON)",
    "ledger entries": "nacre.ledger(HOME).entries()",
    "ledger verify": "nacre.ledger(HOME).verify()",
    "ledger plan": "nacre.ledger(HOME).plan(NAME, epsilon=EPSILON, delta=DELTA)",
    "schema init": "nacre.draft_schema(DATA)",
    "schema lint": "nacre.lint(SCHEMA)",
    "schema discover": "nacre.discover(DATA, SCHEMA, epsilon=EPSILON, delta=DELTA)",
    "approve": "nacre.approve(RUN, KEY)",
    "resume": "nacre.resume(RUN)",
    "fit": "nacre.fit(RELEASE)",
    "runs": "nacre.runs()",
    "marginals": "nacre.marginals(RUN)",
    "sample": "nacre.sample(RUN, ROWS)",
    "validate": "nacre.validate(DATA, SCHEMA)",
    "verify": "nacre.verify(FOLDER)",
}
"""The calls by the words of a command; what is to be filled in has the name that its option has, in capitals."""
OF_ACCOUNT = "nacre.ledger(HOME).open_account(SCHEMA, account=NAME, epsilon=EPSILON, delta=DELTA)"
UNNAMED = ("RUN", "RELEASE", "DATA", "FOLDER", "NAME", "SCHEMA")
"""What stands in a command without an option."""
FURTHER = ("home", "ledger", "officer_key", "public_key", "refit")
"""Options that a call takes too, where a command has them."""
NUMBERS = ("EPSILON", "DELTA", "ROWS")
BLANK = re.compile(r"\b[A-Z]{3,}\b")
BLANKS = {*UNNAMED, *NUMBERS, "HOME", "KEY", "REASON"}


def call_of(command: str, home: object = None) -> str:
    """Return the call that does what a command does, with what it fills in; empty where none does.

    ``home`` is that of whoever called, which a command that names none would be typed with.
    """
    words = shlex.split(command)[1:] if command.count("'") % 2 == 0 and command.count('"') % 2 == 0 else []
    name = next((one for one in (" ".join(words[:2]), " ".join(words[:1])) if one in CALLS), "")
    if not name:
        return ""
    given, unnamed = _options(words[len(name.split()) :])
    given = {"home": str(home), **given} if home and "HOME" in CALLS[name] else given
    call = OF_ACCOUNT if name == "ledger open" and unnamed else CALLS[name]
    first = next((blank for blank in BLANK.findall(call) if blank in UNNAMED and blank.lower() not in given), "")
    if unnamed:
        given.setdefault("name" if call == OF_ACCOUNT else first.lower(), unnamed[0])
    filled = BLANK.sub(lambda blank: _written(given.pop(blank[0].lower(), blank[0]), blank[0]), call)
    more = "".join(f", {one}={_written(given[one], '')}" for one in FURTHER if one in given)
    more = more if more and not filled.endswith("()") else more.removeprefix(", ")
    return f"{filled.removesuffix(')')}{more})"


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options of a command with their values, True for a switch, and the words that are of none."""
    given, unnamed, name = dict[str, str](), list[str](), ""
    for word in words:
        if word.startswith("--"):
            name = word.removeprefix("--").replace("-", "_")
            given[name] = "True"
        elif name:
            given[name], name = word, ""
        else:
            unnamed.append(word)
    return given, unnamed


def _written(value: str, blank: str) -> str:
    """Write a value as Python does; what is to be filled in stays as it is."""
    return value if value in BLANKS or value == "True" or blank in NUMBERS else repr(value)
