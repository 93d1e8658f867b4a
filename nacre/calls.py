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
"""The calls by the words of a command; what is to be written in has the name that its option has, in capitals."""
OF_ACCOUNT = "nacre.ledger(HOME).open_account(SCHEMA, account=NAME, epsilon=EPSILON, delta=DELTA)"
POSITIONAL = ("RUN", "RELEASE", "DATA", "FOLDER", "NAME", "SCHEMA")
"""What stands in a command without an option."""
KEYWORDS = ("home", "ledger", "officer_key", "public_key", "refit")
"""Options that a call takes too, where a command has them."""
FURTHER = {"resume": ("out",), "approve": ("reason",), "validate": ("raw",)}
"""Those that some calls take besides."""
OF_COLUMNS = ("marginals",)
"""Commands with columns behind the run, which their calls take as well."""
NUMBERS = ("EPSILON", "DELTA", "ROWS")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")
PLACEHOLDERS = {*POSITIONAL, *NUMBERS, "HOME", "KEY", "OUT", "REASON"}


def call_of(command: str, home: object = None) -> str:
    """Return the call that does what a command does, with what it fills in; empty where none does.

    ``home`` is that of whoever called, which a command that names none would be typed with.
    """
    words = shlex.split(command)[1:] if command.count("'") % 2 == 0 and command.count('"') % 2 == 0 else []
    name = next((one for one in (" ".join(words[:2]), " ".join(words[:1])) if one in CALLS), "")
    if not name:
        return ""
    options, positional = _options(words[len(name.split()) :])
    options = {"home": str(home), **options} if home and "HOME" in CALLS[name] else options
    call = OF_ACCOUNT if name == "ledger open" and positional else CALLS[name]
    first = next((one for one in PLACEHOLDER.findall(call) if one in POSITIONAL and one.lower() not in options), "")
    if positional:
        options.setdefault("name" if call == OF_ACCOUNT else first.lower(), positional[0])
    written = PLACEHOLDER.sub(lambda one: _as_python(options.pop(one[0].lower(), one[0]), one[0]), call)
    taken = (*KEYWORDS, *FURTHER.get(name, ()))
    columns = "".join(f", {one!r}" for one in positional[1:]) if name in OF_COLUMNS else ""
    keywords = columns + "".join(f", {one}={_as_python(options[one], '')}" for one in taken if one in options)
    keywords = keywords if keywords and not written.endswith("()") else keywords.removeprefix(", ")
    return f"{written.removesuffix(')')}{keywords})"


def called(text: str) -> str:
    """Return a command with what is said behind a comma as a call; one that no call stands for as it is."""
    command, comma, rest = text.partition(",")
    return f"{call_of(command) or command}{comma}{rest}"


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options of a command with their values, True for a switch, and the words that are of none."""
    options, positional, name = dict[str, str](), list[str](), ""
    for word in words:
        if word.startswith("--"):
            name = word.removeprefix("--").replace("-", "_")
            options[name] = "True"
        elif name:
            options[name], name = word, ""
        else:
            positional.append(word)
    return options, positional


def _as_python(value: str, placeholder: str) -> str:
    """Write a value as Python does; a placeholder stays as it is."""
    return value if value in PLACEHOLDERS or value == "True" or placeholder in NUMBERS else repr(value)
