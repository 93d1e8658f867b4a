"""Keys of a column that a person gives whole: they win over what words of documents say of it."""

from collections.abc import Mapping
from typing import Any

from dpmodels.authoring.facts import TODO
from dpmodels.contract.discovery.discovery import WORD

OPEN = {
    "categorical": ("values",),
    "integer": ("min", "max"),
    "number": ("min", "max"),
    "datetime": ("min", "max"),
    "image": ("height", "width"),
}
"""The keys that a schema asks for, and that a person may leave open."""
RESOLVED = ("dtype", "resolution")
"""Keys that no words but the type of a column in the data settles."""
NOT_ADDED = "not added to the keys that are given, though its description says it: {}"


def is_whole_entry(given: Mapping[str, Any]) -> bool:
    """Tell whether keys are more than a type, and leave nothing open that a schema asks for."""
    asked = OPEN.get(str(given.get("type")), ())
    return len(given) > 1 and all(str(given.get(key, TODO)) not in (TODO, WORD) for key in asked)


def as_given(
    given: Mapping[str, Any], keys: Mapping[str, Any], of_file: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the keys of a whole entry, and of others what the type in the data says; name those of words alone."""
    kept = {key: value for key, value in keys.items() if key in {*given, *RESOLVED} or of_file.get(key) == value}
    others = [f"{key}: {str(value).lower()}" for key, value in keys.items() if key not in kept]
    return kept, [NOT_ADDED.format(", ".join(others))] if others else []
