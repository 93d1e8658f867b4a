"""Columns that a person gives by keys of a schema, as ``{"type": "number", "min": 30, "max": 45, "round": 1}``."""

from collections.abc import Mapping
from typing import Any

from dpmodels.authoring.facts import TODO, Facts
from dpmodels.authoring.faults.misspelt import KINDS
from dpmodels.authoring.file_types import TYPES
from dpmodels.authoring.given.whole import OPEN
from dpmodels.authoring.lint import parse
from dpmodels.authoring.type_words import kind_of
from dpmodels.contract.discovery.discovery import WORD
from dpmodels.errors import Unsuitable
from dpmodels.plain_yaml import read_yaml, unwritable, write_yaml

KIND_OF = {
    "categorical": "category",
    "boolean": "boolean",
    "integer": "integer",
    "number": "number",
    "datetime": "date",
    "identifier": "identifier",
}
"""The kinds of column that a schema's types stand for; a datetime of text is cut to the day."""
UNWRITABLE = "types: column {}: YAML cannot write {} of it; use text, numbers, dates, lists and dictionaries"


def is_made(written: object) -> bool:
    """Tell whether a column is made of others, so that the data need not have it."""
    return isinstance(written, Mapping) and (written.get("type") == "derived" or "computed" in written)


def facts_of_keys(name: str, written: Mapping[str, Any]) -> Facts:
    """Read the keys of a column; words for types are read as in documents, and what is left out stays open.

    Raises:
        Unsuitable: a key is none of a schema, or its value breaks a rule.
    """
    if key := unwritable(written):
        raise Unsuitable(UNWRITABLE.format(name, key))
    keys: dict[str, Any] = read_yaml(write_yaml(dict(written)))
    word = str(keys.get("type", ""))
    kind = KIND_OF.get(word) or (None if word in KINDS else kind_of(word))
    if kind is not None:
        keys["type"] = TYPES[kind]
    _check(name, {**dict.fromkeys(OPEN.get(keys.get("type", ""), ()), TODO), **keys})
    return Facts(kind=kind, from_person=True, keys=keys)


def _check(name: str, keys: Mapping[str, Any]) -> None:
    """Hold the keys to what a schema takes, but for what is open, and for columns that a formula names."""
    _, faults = parse(write_yaml({"name": "draft", "columns": {"column": keys, "other": {"type": "boolean"}}}))
    for fault in faults:
        begin, column, *key = fault.where.split(".")[:3] if "." in fault.where else (fault.where, "")
        is_open = str(keys.get("".join(key), "")) in (TODO, WORD)
        if (begin, column) == ("columns", "column") and not is_open and not _is_of_others(fault.message):
            raise Unsuitable(f"types: column {name}: {' '.join([*key, fault.message])}")


def _is_of_others(message: str) -> bool:
    return any(words in message for words in ("is no column", "must be a categorical or boolean column"))
