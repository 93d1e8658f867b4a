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
    """Say where a word of a call that does not exist by its error was looked for, and ask for a similar file there.

    Privacy: the names of files stay with whoever typed the call and may list them; no error of a flow holds one.
    """
    for word in words:
        path = Path(word.partition("=")[2] if word.startswith("--") else word)
        with suppress(OSError, ValueError):
            if f"{path} does not exist" in error:
                return _looked_for(path) + _meant(path, f"{path}{OF_SCHEMA}" in error)
    return ""


def _looked_for(path: Path) -> str:
    """Name the folder of a path that is written from the present one, and any that is none."""
    folder = path.parent.absolute()
    if not folder.is_dir():
        return f"; nor does the folder {folder}"
    return "" if path.is_absolute() else f"; it was looked for in {folder}"


def _meant(path: Path, is_schema: bool) -> str:
    """Ask whether another file of the folder was meant: one with the same ending, if a similar one has it."""
    if not path.parent.is_dir():
        return ""
    names = [Path(name) for name in os.listdir(path.parent) if name[0] not in "._"]
    is_schema = is_schema or path.suffix.lower() in SCHEMAS
    if is_schema or (path.suffix and not get_close_matches(path.suffix.lower(), SCHEMAS)):
        names = [name for name in names if (name.suffix.lower() in SCHEMAS) == is_schema]
    for several in ([one for one in names if one.suffix == path.suffix], names):
        stems = {one.stem: one.name for one in sorted(several)}
        if match := get_close_matches(path.stem[:LONGEST_NAME], stems, n=1, cutoff=LIKENESS):
            return f"; did you mean `{stems[match[0]]}`?"
    return ""
