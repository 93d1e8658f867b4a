"""A JSON Schema of a row: an object with properties, or a list of such objects."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dpmodels.authoring.facts import Facts, Tables, between, joined, listed

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
    given, required = row.get("properties"), row.get("required")
    columns = {}
    for name, each in (given if isinstance(given, dict) else {}).items():
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
    given = _resolved(schema, document)
    own = schema if isinstance(schema, dict) else {}
    yield Facts(description=str(own.get("description") or given.get("description") or given.get("title") or ""))
    types = given.get("type")
    types = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    held = [str(one) for one in types if one != "null"]
    kind = TYPES.get(held[0]) if len(held) == 1 else None
    kind = FORMATS.get(str(given.get("format")), kind) if kind in (None, "text") else kind
    yield Facts(kind=kind, nullable=True if "null" in types else None, unread=() if kind or not held else ("type",))
    if "enum" in given or "const" in given:
        yield listed(given.get("enum", [given.get("const")]))
    for opened, low, high in ((False, "minimum", "maximum"), (True, "exclusiveMinimum", "exclusiveMaximum")):
        yield between(_number(given.get(low)), _number(given.get(high)), opened, opened)
    yield between(given.get("formatMinimum"), given.get("formatMaximum"))
    step = given.get("multipleOf")
    if isinstance(step, float) and 0 < step < 1 and math.log10(step) == round(math.log10(step)):
        yield Facts(decimals=-round(math.log10(step)))
    yield from _alternatives(given, document, depth)


def _number(given: Any) -> Any:
    return None if isinstance(given, bool) else given


def _alternatives(given: Mapping[str, Any], document: Mapping[str, Any], depth: int) -> Iterator[Facts]:
    """Read alternatives that are null and one other, or constants, each with its title."""
    either: list[Any] = next((given[key] for key in ("anyOf", "oneOf") if isinstance(given.get(key), list)), [])
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
