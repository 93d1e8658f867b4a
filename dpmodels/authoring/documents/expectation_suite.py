"""A suite of Great Expectations as JSON: expectations of the values of single columns."""

from collections.abc import Mapping
from typing import Any

from dpmodels.authoring.facts import Facts, Tables, between, joined, keyed, listed, typed

RANGES = {
    "expect_column_values_to_be_between": ("min_value", "max_value"),
    "expect_column_min_to_be_between": ("min_value", ""),
    "expect_column_max_to_be_between": ("", "max_value"),
}


def is_suite(document: Mapping[str, Any]) -> bool:
    """Tell whether a document has a list of expectations."""
    return isinstance(document.get("expectations"), list)


def read_suite(document: Mapping[str, Any]) -> Tables:
    """Read the expectations by column."""
    columns: dict[str, list[Facts]] = {}
    for one in document["expectations"]:
        settings = one.get("kwargs") if isinstance(one, dict) else None
        if isinstance(settings, dict) and isinstance(settings.get("column"), str):
            name = str(one.get("type") or one.get("expectation_type"))
            columns.setdefault(settings["column"], []).append(_expected(name, settings))
    return {"": {name: keyed(joined(facts)) for name, facts in columns.items()}}


def _expected(name: str, settings: Mapping[str, Any]) -> Facts:
    mostly = settings.get("mostly")
    if name == "expect_column_to_exist":
        return Facts()
    if settings.get("row_condition") or (mostly is not None and mostly != 1):
        return Facts(unread=(f"{name}, which need not hold of every row",))
    if name == "expect_column_values_to_not_be_null":
        return Facts(nullable=False)
    if name == "expect_column_values_to_be_in_set":
        return listed(settings.get("value_set"))
    if name in RANGES:
        low, high = (settings.get(key) for key in RANGES[name])
        return between(low, high, settings.get("strict_min") is True, settings.get("strict_max") is True)
    if name == "expect_column_values_to_be_of_type":
        return typed(settings.get("type_"))
    if name == "expect_column_values_to_be_in_type_list":
        return next((facts for one in settings.get("type_list") or [] if (facts := typed(one)).kind), Facts())
    if name == "expect_column_values_to_be_unique":
        return Facts(unique=True)
    return Facts(unread=(name,))
