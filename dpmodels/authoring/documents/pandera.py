"""A pandera schema in the form that pandera writes: YAML or JSON with ``columns``, each with a dtype and checks."""

from collections.abc import Iterator, Mapping
from typing import Any

from dpmodels.authoring.facts import Facts, Tables, between, joined, keyed, listed, typed

OPEN = {"greater_than": "low", "gt": "low", "less_than": "high", "lt": "high"}
CLOSED = {"greater_than_or_equal_to": "low", "ge": "low", "less_than_or_equal_to": "high", "le": "high"}
OWN = {
    "dtype",
    "nullable",
    "checks",
    "description",
    "title",
    "name",
    "unique",
    "coerce",
    "required",
    "regex",
    "metadata",
}
OWN |= {"parsers", "default", "report_duplicates", "drop_invalid_rows"}
"""Keys of a column that are no checks; newer versions of pandera write each check beside them."""


def is_pandera(document: Mapping[str, Any]) -> bool:
    """Tell whether a document has columns by name, as pandera writes them."""
    return isinstance(document.get("columns"), dict)


def read_pandera(document: Mapping[str, Any]) -> Tables:
    """Read the columns."""
    return {str(document.get("name") or ""): {str(name): _facts(one) for name, one in document["columns"].items()}}


def _facts(column: Any) -> Facts:
    column_schema = column if isinstance(column, dict) else {}
    words = column_schema.get("description") or column_schema.get("title") or ""
    nullable = column_schema.get("nullable", False)
    facts = [typed(column_schema.get("dtype")), Facts(description=str(words), nullable=nullable is True)]
    facts += [Facts(unique=column_schema.get("unique") is True)]
    beside = {key: check for key, check in column_schema.items() if key not in OWN}
    checks = [*_checks(column_schema.get("checks")), *_checks(beside)]
    return keyed(joined([*facts, *(_checked(name, check) for name, check in checks)]))


def _checks(checks: Any) -> Iterator[tuple[str, Any]]:
    """Yield checks by name, from a mapping of them or from a list in which each has its name among its options."""
    if isinstance(checks, dict):
        yield from checks.items()
    for check in checks if isinstance(checks, list) else []:
        options = check.get("options") if isinstance(check, dict) else None
        if isinstance(options, dict):
            yield str(options.get("check_name")), check


def _checked(name: str, check: Any) -> Facts:
    settings = check if isinstance(check, dict) else {}
    value = settings.get("value", check if not settings else None)
    if name == "isin":
        return listed(settings.get("allowed_values", value))
    if name in ("in_range", "between"):
        closed = (settings.get("include_min", True), settings.get("include_max", True))
        return between(settings.get("min_value"), settings.get("max_value"), not closed[0], not closed[1])
    for sides, opened in ((OPEN, True), (CLOSED, False)):
        if name in sides and value is not None:
            return between(value, None, opened) if sides[name] == "low" else between(None, value, False, opened)
    return listed([value]) if name in ("equal_to", "eq") else Facts(unread=(f"check {name}",))
