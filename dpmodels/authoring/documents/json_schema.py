"""A JSON Schema of a row: an object with properties, or a list of such objects."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dpmodels.authoring.facts import Facts, Tables, between, joined, listed, stepping

TYPES = {"integer": "integer", "number": "number", "boolean": "boolean", "string": "text"}
FORMATS = {"date": "date", "date-time": "moment", "uuid": "identifier"}
DEEPEST = 8  # references and alternatives inside one another


def is_json_schema(document: Mapping[str, Any]) -> bool:
    """Tell whether a document describes an object by its properties, or a list of such objects."""
    return "properties" in _resolved(document, document) or "items" in document


def read_json_schema(document: Mapping[str, Any]) -> Tables:
    """Read the properties of a row."""
    row = _resolved(document, document)
    if "properties" not in row:
        row = _resolved(row.get("items"), document)
    properties, required = row.get("properties"), row.get("required")
    columns = {}
    for name, each in (properties if isinstance(properties, dict) else {}).items():
        facts = joined(_facts(each, document, 0))
        if facts.nullable is None and isinstance(required, list):
            facts = replace(facts, nullable=name not in required)
        columns[str(name)] = facts
    return {str(row.get("title", "")): columns}


def _resolved(schema: Any, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to another part of the document."""
    for _ in range(DEEPEST):
        target = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(target, str) or not target.startswith("#/"):
            break
        schema = document
        for part in target[2:].split("/"):
            schema = schema.get(part) if isinstance(schema, dict) else None
    return schema if isinstance(schema, dict) else {}


def _facts(schema: Any, document: Mapping[str, Any], depth: int) -> Iterator[Facts]:
    resolved = _resolved(schema, document)
    local = schema if isinstance(schema, dict) else {}
    yield Facts(description=str(local.get("description") or resolved.get("description") or resolved.get("title") or ""))
    types = resolved.get("type")
    types = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    type_names = [str(one) for one in types if one != "null"]
    kind = TYPES.get(type_names[0]) if len(type_names) == 1 else None
    kind = FORMATS.get(str(resolved.get("format")), kind) if kind in (None, "text") else kind
    yield Facts(
        kind=kind, nullable=True if "null" in types else None, unread=() if kind or not type_names else ("type",)
    )
    if "enum" in resolved or "const" in resolved:
        yield listed(resolved.get("enum", [resolved.get("const")]))
    for opened, low, high in ((False, "minimum", "maximum"), (True, "exclusiveMinimum", "exclusiveMaximum")):
        yield between(_number(resolved.get(low)), _number(resolved.get(high)), opened, opened)
    yield between(resolved.get("formatMinimum"), resolved.get("formatMaximum"))
    yield stepping(resolved.get("multipleOf"))
    yield from _alternatives(resolved, document, depth)


def _number(number: Any) -> Any:
    return None if isinstance(number, bool) else number


def _alternatives(schema: Mapping[str, Any], document: Mapping[str, Any], depth: int) -> Iterator[Facts]:
    """Read alternatives that are null and one other, or constants, each with its title."""
    either: list[Any] = next((schema[key] for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)), [])
    several = [_resolved(one, document) for one in either]
    others = [one for one in several if one.get("type") != "null"]
    if len(others) < len(several):
        yield Facts(nullable=True)
    if others and all("const" in one for one in others):
        yield listed([one["const"] for one in others])
    elif len(others) == 1 and depth < DEEPEST:
        yield from _facts(others[0], document, depth + 1)
    elif others:
        yield Facts(unread=("alternatives",))
