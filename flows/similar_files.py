"""The file that was probably meant by one that does not exist."""

import os
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

LONGEST_NAME, LIKENESS = 255, 0.6
"""Letters of a file's name, and the share of letters that two names have in common that may be confused."""

SCHEMAS = (".yaml", ".yml", ".json")
OF_SCHEMA = " does not exist; `nacre schema init"
"""The endings of a schema's file, and what the error of one that is missing says behind its path."""


def similar_file(words: Iterable[str], error: str) -> str:
    """Ask whether another file of the same folder was meant by a word of a call that does not exist by its error.

    Privacy: the names of files stay with whoever typed the call and may list them; no error of a flow holds one.
    """
    for word in words:
        path = Path(word.partition("=")[2] if word.startswith("--") else word)
        with suppress(OSError, ValueError):
            if f"{path} does not exist" in error and path.parent.is_dir():
                names = [Path(name) for name in os.listdir(path.parent) if name[0] not in "._"]
                is_schema = f"{path}{OF_SCHEMA}" in error or path.suffix.lower() in SCHEMAS
                if is_schema or (path.suffix and not get_close_matches(path.suffix.lower(), SCHEMAS)):
                    names = [name for name in names if (name.suffix.lower() in SCHEMAS) == is_schema]
                names.sort(key=lambda one: (one.suffix == path.suffix, one.name))
                stems = {one.stem: one.name for one in names}  # of several endings that of the word
                if match := get_close_matches(path.stem[:LONGEST_NAME], stems, n=1, cutoff=LIKENESS):
                    return f"; did you mean `{stems[match[0]]}`?"
    return ""
