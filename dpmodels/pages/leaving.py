"""Whether the files of a hand-off may leave: in the same words on the statement and in a check of the folder."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.pages.card_words import cut
from dpmodels.pages.open_points import open_in_words
from dpmodels.plural import counted

FILES = "files may leave"
NOT_YET = "not yet"
SINCE = "before an officer signs; verify says if one did"
"""What a page says, which is part of what an officer signs, so that no page can know it."""
AT_MAKING = (
    "When this page was made, no officer had signed that these files may leave. One signs afterwards, in `officer.sig` "
    "beside them: `nacre verify FOLDER` says whether one did. Until then send and use nothing."
)
"""What pages for recipients say of that, which stays true whatever happens after."""
PROPOSED = (
    "when this file was made, no officer had signed that these files may leave; officer.sig beside them, if there is "
    "one, says so since: nacre verify FOLDER --officer-key KEY"
)
"""What the contract for machines says of it."""
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
MOST_CITED = 2
"""So many of these sources are cited; schema.yaml has all."""


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


def read_off_in_words(sources: Sequence[str]) -> str:
    """Warn of sources of a schema that by their words are the data themselves; empty where none is."""
    if not (suspect := from_the_data(sources)):
        return ""
    cited = ", ".join(f"“{cut(one)}”" for one in suspect[:MOST_CITED])
    more = f" and {len(suspect) - MOST_CITED} more" if len(suspect) > MOST_CITED else ""
    return (
        f"Of the sources that schema.yaml names for its bounds and lists of values, {cited}{more} is by its words the "
        "data themselves. What was read off real rows is exact: no noise hides it, and no budget or promise covers it."
    )


def uncovered_in_words(sources: Sequence[str]) -> str:
    """Say in a line of such sources what no promise covers; empty where none is."""
    if not (number := len(from_the_data(sources))):
        return ""
    return f"Bounds from {counted(number, 'source')} of schema.yaml come from real rows: no promise covers them."


def bounds_to_obtain(content: Mapping[str, Any]) -> str:
    """Ask where bounds and lists of values are from, which nobody can check, and say what to do if it is real rows."""
    number, sources = len(content["columns"]), content.get("sources", ())
    named = f"the schema names {counted(len(sources), 'source')}" if sources else "the schema names no source"
    if suspect := from_the_data(sources):
        cited = ", ".join(f"“{cut(one)}”" for one in suspect[:MOST_CITED])
        are = "one is by its" if len(suspect) == 1 else f"{len(suspect)} are by their"
        named += f", of which {are} words the data themselves: {cited}"
    return (
        f"where the bounds and lists of values of the {counted(number, 'column')} come from: {named}. Those that were "
        "read off real rows are exact, unprotected and in no budget: if there are any, ask for a law or a form that "
        "sets them, or for a new release that discovers them"
    )


def to_obtain(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List what a person obtains before the files leave, with what it lacks, since no file of the folder knows it."""
    content = facts["content"]
    others = [
        *([bounds_to_obtain(content)] if "columns" in content else []),
        "whether every declared word is true",
        "what other ledgers and tools released of the same people",
        "the signer's key, from the signer"
        if facts["given"].get("signer")
        else "the key that signed it, if one did, from whoever made it, since nobody is named as signer",
    ]
    return [*open_in_words(facts["given"]), *(("", one) for one in others)]
