"""Whether the files of a hand-off may leave: in the same words on the statement and in a check of the folder."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

FILES = "files may leave"
NOT_YET = "not yet"
SINCE = "before an officer signs; verify says if one did"
"""What a page says, which is part of what an officer signs, so that no page can know it."""
AGREED, UNDECIDED = "yes, because an officer signed it", "not yet, because no officer signed it"
BY_ANYBODY = "not known, because it was signed with a key that you did not name"
NEXT = {
    (False, False): "an officer reads statement.html, obtains what its box lists, and gives "
    "`nacre approve FOLDER --key KEY`",
    (False, True): "an officer reads statement.html, obtains what its box lists, and gives "
    "`nacre approve FOLDER --key KEY`; until then send and use nothing",
    (True, False): "name the officer's key with --officer-key, from the officer, since anybody's key could have signed",
    (True, True): "send all files of the folder together, officer.sig among them",
}
"""What comes next, by whether some officer signed, and whether the caller named the officer's key."""
OF_THE_DATA = re.compile(
    r"\b(itself|profil\w*|observed|public sample|(the|this|these|our|own|real|private) "
    r"(data|dataset|file|rows?|records?|table))\b",
    re.IGNORECASE,
)
"""Words of a source that is the data set, or rows of it, and no document about it."""


ASK = (
    "ask the operator what they are from: bounds of a law or a form need no budget, others a new release that "
    "discovers them"
)
"""What is to be done about bounds that nobody can check."""


def leaving(is_signed: bool, officer_named: bool) -> str:
    """Say whether the files may leave, why, and what comes next."""
    signed = AGREED if officer_named else BY_ANYBODY
    return f"{signed if is_signed else UNDECIDED}; next: {NEXT[is_signed, officer_named]}"


def from_the_data(sources: Sequence[str]) -> list[str]:
    """Return the sources of a schema that by their words are the data themselves.

    Bounds and lists of values that somebody read off real rows are told to whoever gets the schema, and are in no
    budget; nacre cannot see where they are from.
    """
    return [one for one in sources if OF_THE_DATA.search(one)]


def unchecked_sources(content: Mapping[str, Any]) -> str:
    """Warn of bounds and lists of values that nobody can check, with how many columns that concerns."""
    if "columns" not in content:
        return ""
    number, sources = len(content["columns"]), content.get("sources", ())
    columns = f"{number} column{'s' if number != 1 else ''}"
    if not sources:
        return f"no document is named that bounds and lists of values of the {columns} are from"
    if suspect := from_the_data(sources):
        named = f"{len(suspect)} of {len(sources)} sources of the bounds and lists of the {columns}"
        verb = "is" if len(suspect) == 1 else "are"
        return f"{named} {verb} the data or rows by its words: what was read off real rows is in no budget"
    return ""


def to_obtain(facts: Mapping[str, Any], undeclared: Sequence[str]) -> list[str]:
    """List what a person obtains before the files leave, since no file of the folder can know it."""
    stated = [f"what the operator did not state: {', '.join(undeclared)}"] if undeclared else []
    content = facts["content"]
    bounds = ["that bounds and lists of values were read off no real row"] if "columns" in content else []
    if bounds and (warning := unchecked_sources(content)):
        bounds = [f"{bounds[0]}: {warning}; {ASK}"]
    kept = facts["given"].get("recipient_retention", "")
    dated = ["a date until when recipients may keep it"] if kept and not any(map(str.isdigit, kept)) else []
    return [
        *stated,
        *dated,
        "whether every declared word is true",
        *bounds,
        "what other ledgers and tools released of the same people",
        "the signer's key, from the signer",
    ]
