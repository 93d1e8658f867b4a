"""A contract of the Open Data Contract Standard, version 3: tables, whose properties have types, options and rules.

``contract.odcs.yaml`` of a hand-off is one, and says of a column what its schema did, but for what the standard has no
word for, such as the range of values that are told apart. Rules of several columns are not read.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dpmodels.authoring.facts import RESOLUTIONS, Bound, Facts, Tables, between, joined, listed, stepping, typed
from dpmodels.contract.formula import Misread, names_in

TYPES = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "moment",
}
ABSENT = ("nullValues", "missingValues")


def is_data_contract(document: Mapping[str, Any]) -> bool:
    """Tell whether a document calls itself a data contract, and lists its tables."""
    return document.get("kind") == "DataContract" and isinstance(document.get("schema"), list)


def read_data_contract(document: Mapping[str, Any]) -> Tables:
    """Read the tables that have properties."""
    return {
        str(table.get("name", "")): _columns(_mappings(table.get("properties")))
        for table in _mappings(document.get("schema"))
        if table.get("properties")
    }


def _columns(properties: list[Mapping[str, Any]]) -> dict[str, Facts]:
    names = {str(one.get("physicalName") or one.get("name", "")): one for one in properties}
    keys = [name for name, one in names.items() if one.get("primaryKey")]
    uniques = {*(keys if len(keys) == 1 else ()), *(name for name, one in names.items() if one.get("unique") is True)}
    return {name: replace(_facts(one, names), unique=name in uniques) for name, one in names.items()}


def _facts(column: Mapping[str, Any], names: Collection[str]) -> Facts:
    facts = joined([*_said(column, names), *(_rule(rule) for rule in _mappings(column.get("quality")))])
    unread = () if facts.derived else facts.unread  # its rule is what it follows from, in words
    return replace(facts, low=_utc(facts.low), high=_utc(facts.high), unread=unread)


def _said(column: Mapping[str, Any], names: Collection[str]) -> Iterator[Facts]:
    """Read what flags, types and options say."""
    options, more = _mapping(column.get("logicalTypeOptions")), _custom(column)
    if more.get("identifier") or column.get("primaryKey") or column.get("unique") or options.get("format") == "uuid":
        yield Facts(kind="identifier")
    logical, physical = column.get("logicalType"), typed(column.get("physicalType"))
    kind = TYPES.get(str(logical), physical.kind if logical is None else None)
    yield Facts(kind=kind, description=str(column.get("description") or ""))
    if logical is not None and kind is None:
        yield Facts(unread=(f"type {logical}",))
    yield Facts(decimals=physical.decimals if kind == "number" else None)
    yield Facts(nullable=False if column.get("primaryKey") or column.get("required") else None)
    if column.get("required") is False and not column.get("primaryKey"):
        yield Facts(nullable=True)
    for opened, low, high in ((False, "minimum", "maximum"), (True, "exclusiveMinimum", "exclusiveMaximum")):
        yield between(options.get(low), options.get(high), opened, opened)
    yield stepping(options.get("multipleOf"))
    if more.get("resolution") in RESOLUTIONS:
        yield Facts(resolution=more["resolution"])
    yield _derived(column, more, names)


def _derived(column: Mapping[str, Any], more: Mapping[str, Any], names: Collection[str]) -> Facts:
    """Read what a column follows from, where that is a formula or a lookup of columns of the same table."""
    sources, lookup, formula = column.get("transformSourceObjects"), more.get("lookup"), column.get("transformLogic")
    if isinstance(lookup, dict) and isinstance(sources, list) and len(sources) == 1 and sources[0] in names:
        return Facts(derived={"of": sources[0], "values": lookup})
    try:
        complete = isinstance(formula, str) and bool(operands := names_in(formula)) and set(operands) <= set(names)
    except Misread:
        complete = False
    return Facts(derived={"formula": formula}) if complete else Facts(unread=("transformLogic",) if formula else ())


def _rule(rule: Mapping[str, Any]) -> Facts:
    """Read a rule of one column that no row may break; whatever else it asks for is named."""
    metric, never = rule.get("metric", rule.get("rule")), rule.get("mustBe") == 0
    if metric in ABSENT and never:
        return Facts(nullable=False)
    values = _mapping(rule.get("arguments")).get("validValues", rule.get("validValues"))
    if metric == "invalidValues" and never and isinstance(values, list):
        return listed(values)
    return Facts(unread=(f"rule {metric or rule.get('description') or rule.get('type')}",))


def _utc(bound: Bound | None) -> Bound | None:
    """Write a moment with a zone as a schema does, in UTC and without saying so."""
    if bound is None or not isinstance(bound.value, datetime) or bound.value.tzinfo is None:
        return bound
    return Bound(bound.value.astimezone(UTC).replace(tzinfo=None), bound.open)


def _custom(column: Mapping[str, Any]) -> dict[str, Any]:
    return {str(one.get("property")): one.get("value") for one in _mappings(column.get("customProperties"))}


def _mapping(node: Any) -> Mapping[str, Any]:
    return node if isinstance(node, dict) else {}


def _mappings(nodes: Any) -> list[Mapping[str, Any]]:
    return [one for one in nodes if isinstance(one, dict)] if isinstance(nodes, list) else []
