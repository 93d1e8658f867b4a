"""A dbt ``schema.yml``: models, sources, seeds and snapshots, whose columns have types, tests and constraints."""

from collections.abc import Iterator, Mapping
from typing import Any

from dpmodels.authoring.documents.ddl import checked
from dpmodels.authoring.facts import Facts, Tables, between, joined, listed, typed

PRIMARY, UNIQUE = "primary_key", {"unique", "expect_column_values_to_be_unique"}
ROOMS = ("models", "seeds", "snapshots")


def is_dbt(document: Mapping[str, Any]) -> bool:
    """Tell whether a YAML document has tables as dbt has them."""
    return any(isinstance(document.get(room), list) for room in (*ROOMS, "sources"))


def read_dbt(document: Mapping[str, Any]) -> Tables:
    """Read the tables that have columns."""
    return {str(table.get("name", "")): dict(_columns(table)) for table in _tables(document) if table.get("columns")}


def _tables(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for room in ROOMS:
        yield from _mappings(document.get(room))
    for source in _mappings(document.get("sources")):
        yield from _mappings(source.get("tables"))


def _columns(table: Mapping[str, Any]) -> Iterator[tuple[str, Facts]]:
    columns = list(_mappings(table.get("columns")))
    keys = [one for column in columns for one in _mappings(column.get("constraints")) if one.get("type") == PRIMARY]
    for column in columns:
        rules = [*_rules(column.get("data_tests")), *_rules(column.get("tests"))]
        facts = [typed(column.get("data_type")), Facts(description=str(column.get("description") or ""))]
        facts += [_tested(name, settings) for name, settings in rules]
        constraints = _mappings(column.get("constraints"))
        facts += [_constrained(one, str(column.get("name")), len(keys) == 1) for one in constraints]
        names = {name for name, _ in rules}
        facts = [Facts(kind="identifier"), *facts] if UNIQUE & names else facts
        yield str(column.get("name", "")), joined(facts)


def _rules(tests: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for test in tests if isinstance(tests, list) else []:
        if isinstance(test, str):
            yield test.rpartition(".")[2], {}
        elif isinstance(test, dict):
            for name, settings in test.items():
                settings = settings if isinstance(settings, dict) else {}
                more = settings.get("arguments")
                yield str(name).rpartition(".")[2], settings | (more if isinstance(more, dict) else {})


def _tested(name: str, settings: Mapping[str, Any]) -> Facts:
    if settings.get("where") or settings.get("row_condition") or (settings.get("config") or {}).get("where"):
        return Facts(unread=(f"test {name}, which holds of some rows only",))
    if name in UNIQUE:
        return Facts(unique=True)
    if name == "not_null" or name == "expect_column_values_to_not_be_null":
        return Facts(nullable=False)
    if name in ("accepted_values", "expect_column_values_to_be_in_set"):
        values = settings.get("values", settings.get("value_set"))
        return listed(values)
    if name in ("accepted_range", "expect_column_values_to_be_between"):
        closed = settings.get("inclusive", not settings.get("strictly", False))
        return between(settings.get("min_value"), settings.get("max_value"), not closed, not closed)
    return Facts() if name == "relationships" else Facts(unread=(f"test {name}",))


def _constrained(constraint: Mapping[str, Any], column: str, alone: bool) -> Facts:
    """Read a constraint of a column; a primary key that it is not ``alone`` in names rows with the others."""
    kind = constraint.get("type")
    if kind in ("not_null", PRIMARY):
        is_key = kind == PRIMARY
        return Facts(nullable=False, kind="identifier" if is_key else None, unique=is_key and alone)
    if kind == "unique":
        return Facts(unique=True)
    facts_by_name = checked(str(constraint.get("expression", ""))) if kind == "check" else {}
    return joined(facts for name, facts in facts_by_name.items() if name.casefold() == column.casefold())


def _mappings(nodes: Any) -> Iterator[Mapping[str, Any]]:
    yield from (one for one in nodes if isinstance(one, dict)) if isinstance(nodes, list) else ()
