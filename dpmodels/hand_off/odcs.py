"""The contract of a hand-off as the Open Data Contract Standard writes it, made of schema.yaml and the manifest alone.

It states each column's types, bounds, values and nulls, and every rule that the gate held the synthetic rows to: as a
bound or a metric where the standard has one, as SQL where that says the same, and in words otherwise. What was spent,
by whom, and of whose presence the budget speaks are custom properties, in the manifest's words.

Source: Open Data Contract Standard 3.1.0, https://bitol-io.github.io/open-data-contract-standard/v3.1.0/
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

import pyarrow as pa

from dpmodels.codec.derive import bounds_as
from dpmodels.codec.embedded import codec_of
from dpmodels.codec.flat import tables_of
from dpmodels.codec.public import public_types, schema_of
from dpmodels.codec.tree import TreeCodec
from dpmodels.contract.base import Modelled, zone_of
from dpmodels.contract.columns import Boolean, Categorical, Continuous, Datetime, Derived, Identifier, Image
from dpmodels.contract.helpers import helpers_of, without_helpers
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.gate.sql import STAND_IN, TABLE, compared, counting, quoted
from dpmodels.gate.suite import moments
from dpmodels.hand_off.manifest import Manifest
from dpmodels.pages.leaving import PROPOSED, read_off_in_words
from dpmodels.plain_yaml import write_yaml

VERSION = "v3.1.0"
PARTS = "part-*.parquet"
STATUS = "proposed"
"""In the standard's words; an officer agrees after this file is written, in one of their own, so it is never active."""
SYNTHETIC = (
    "Every row is synthetic: drawn from a release under differential privacy. report.html says how far off its "
    "figures may be, and what is not promised."
)
REFERENCE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A name that the standard's short references take."""
PHYSICAL = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT",
    "uint8": "SMALLINT", "uint16": "INTEGER", "uint32": "BIGINT", "float": "FLOAT", "double": "DOUBLE",
    "string": "VARCHAR", "large_string": "VARCHAR", "date32[day]": "DATE",
}  # fmt: skip
"""SQL types that hold a Parquet column, by words that engines and checkers share, so without unsigned ones."""
CONTRACT_SAYS = (
    "license", "recipient", "recipient_retention", "subjects", "special_categories", "legal_basis", "compatibility",
    "information", "minors", "processor", "controller", "contact", "signer", "why", "release_retention",
)  # fmt: skip
"""What the operator declares that is a custom property; the purpose has a field of the standard."""
Facts = dict[str, Any]


def has_contract(contract: Any) -> TypeGuard[Schema | Tree]:
    """Tell whether what is handed over is a table, or several."""
    return bool(contract.is_table or contract.kind == "tree")


def render_contract(manifest: Manifest, contract: Schema | Tree) -> str:
    """Return the text of ``contract.odcs.yaml``; it repeats nothing that only another file or the ledger knows."""
    path = f"synthetic/{'{model}/' if tables_of(contract) else ''}{PARTS}"
    columns = contract.columns if contract.is_table else contract.handed_over_columns
    read_off = read_off_in_words(contract.sources, columns)
    cautions = " ".join(filter(None, [SYNTHETIC, read_off, *(manifest.cautions or ())]))
    said, stated = manifest.operator_says, {"approval": PROPOSED, **price_of(manifest)}
    content = {
        "apiVersion": VERSION,
        "kind": "DataContract",
        "id": f"{manifest.data_set}-{manifest.made_by}" if manifest.made_by else manifest.data_set,
        "name": manifest.data_set,
        "version": manifest.made_by or "1",
        "status": STATUS,
        "description": {**({"purpose": said["purpose"]} if "purpose" in said else {}), "limitations": cautions},
        "tags": ["synthetic", "differential-privacy"],
        "servers": [{"server": "hand-off", "type": "local", "path": path, "format": "parquet"}],
        "schema": tables(contract),
        "customProperties": [{"property": name, "value": value} for name, value in stated.items()],
    }
    return write_yaml(content, default_flow_style=None, width=120)


def tables(contract: Schema | Tree) -> list[Facts]:
    """State the tables that are handed over: the one, those of the users and of their rows, or those of a tree."""
    if contract.kind == "tree":
        return _tables_of_tree(contract)
    named = {name: getattr(contract, name) for name in tables_of(contract)} or {contract.name: contract}
    stated = [_table(name, table, codec_of(contract).output_schema) for name, table in named.items()]
    if contract.users:
        for table in stated:
            _join(contract, table)
    return stated


def _tables_of_tree(tree: Tree) -> list[Facts]:
    codec = TreeCodec(tree)
    stated = [_table(name, schema_of(name, one), public_types(name, one)) for name, one in tree.public.items()]
    stated += [_table(name, tree.handed_over(name), codec.output_of(name)) for name in tree.tables]
    for table in stated:
        _join_tree(tree, table)
    return stated


def price_of(manifest: Manifest) -> Facts:
    """Return what was spent, by whom, on whom, and of which release, as the manifest writes it."""
    spent, said = manifest.whole_cost, manifest.operator_says
    stated = {
        "epsilon": str(spent.epsilon),
        "delta": spent.delta,
        "unit": manifest.unit,
        "adjacency": manifest.adjacency.value,
        "account": manifest.ledger.account,
        "charge": manifest.ledger.charge,
        "run": manifest.made_by or None,
        "method": manifest.method,
        "schemaSha256": manifest.schema_sha256,
        "releaseSha256": manifest.release_sha256,
        **{name: said.get(name) for name in CONTRACT_SAYS},
        "nacreVersion": manifest.nacre_version,
    }
    return {name: value for name, value in stated.items() if value is not None}


def _table(name: str, table: Schema, types: pa.Schema) -> Facts:
    """State one table: its columns as they are handed over, and the rules of several of them."""
    helpers = helpers_of(table)
    columns = {key: column for key, column in table.columns.items() if key in types.names and key not in helpers}
    properties = [_column(key, column, types.field(key).type, helpers) for key, column in columns.items()]
    said, rules = {"name": name, "physicalType": "table", "properties": properties}, list(_rules(table))
    return said | ({"quality": rules} if rules else {})


def _column(name: str, column: Any, kind: pa.DataType, helpers: frozenset[str]) -> Facts:
    said: Facts = {"name": name, "logicalType": _logical(kind), "physicalType": _physical(kind)}
    if isinstance(column, Modelled):
        options = dict(_options(column, kind))
        said |= {"required": not column.nullable} | ({"logicalTypeOptions": options} if options else {})
        if isinstance(column, Datetime) and column.resolution != "day":
            said["customProperties"] = [{"property": "resolution", "value": column.resolution}]
    elif isinstance(column, Identifier):
        said["customProperties"] = [{"property": "identifier", "value": True}]
    elif isinstance(column, Image):
        options = {"minItems": column.numbers, "maxItems": column.numbers}
        inner = {
            "logicalType": "integer",
            "physicalType": "SMALLINT",
            "logicalTypeOptions": {"minimum": 0, "maximum": 255},
        }
        said |= {"logicalTypeOptions": options, "items": inner}
    elif isinstance(column, Derived):
        if helpers & {*column.operands}:  # nobody who has the table can reckon it
            return said | ({"logicalTypeOptions": bounds_as(column, kind)} if column.is_bounded else {})
        said |= _derived(column, kind)
    quality = list(_quality(column))
    return said | ({"quality": quality} if quality else {})


def _logical(kind: pa.DataType) -> str:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = {
        "boolean": pa.types.is_boolean, "integer": pa.types.is_integer, "number": pa.types.is_floating,
        "date": pa.types.is_date, "timestamp": pa.types.is_timestamp, "time": pa.types.is_time,
        "array": pa.types.is_fixed_size_list,
    }  # fmt: skip
    if pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_duration(kind):
        return "integer"
    return next((name for name, test in tests.items() if test(kind)), "string")


def _physical(kind: pa.DataType) -> str:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP_TZ"
    if pa.types.is_fixed_size_list(kind):
        return "ARRAY"
    return PHYSICAL.get(str(kind), "TIME" if pa.types.is_time(kind) else "BIGINT")  # a duration counts its units


def _options(column: Modelled, kind: pa.DataType) -> Iterator[tuple[str, Any]]:
    """State bounds where the standard has them: not of times of day, which nacre counts in a unit."""
    if not isinstance(column, Continuous) or pa.types.is_time(kind):
        return
    if isinstance(column, Datetime):
        zone = zone_of(column.resolved_dtype)
        for key, moment in zip(("minimum", "maximum"), moments(column), strict=True):
            yield key, f"{moment.isoformat()[: 10 if pa.types.is_date(kind) else 19]}{'Z' if zone else ''}"
        if zone:
            yield from (("timezone", True), ("defaultTimezone", zone))
        return
    whole = pa.types.is_integer(kind) or pa.types.is_duration(kind)
    for key, end in (("minimum", column.low), ("maximum", column.high)):
        yield key, int(end) if whole else end
    if not whole and column.decimals is not None:
        yield "multipleOf", float(f"1e-{column.decimals}")


def _derived(column: Derived, kind: pa.DataType) -> Facts:
    options = {"logicalTypeOptions": bounds_as(column, kind)} if column.is_bounded else {}
    said: Facts = {**options, "transformSourceObjects": list(column.operands)}
    if column.formula is not None:
        return said | {"transformLogic": column.formula}
    return said | {"customProperties": [{"property": "lookup", "value": dict(column.values or {})}]}


def _quality(column: Any) -> Iterator[Facts]:
    """State what the gate asks of one column and no option or flag of the standard says."""
    if isinstance(column, Modelled) and column.max_null_share is not None:
        share = 100 * column.max_null_share
        yield {"metric": "nullValues", "unit": "percent", "mustBeLessOrEqualTo": share}
    if isinstance(column, Categorical) and column.kind != "boolean":
        yield {"metric": "invalidValues", "arguments": {"validValues": list(column.values)}, "mustBe": 0}
    elif isinstance(column, Image | Derived) or (
        isinstance(column, Modelled) and not isinstance(column, Boolean) and column.resolved_dtype.startswith("time")
        and not isinstance(column, Datetime)
    ):  # fmt: skip
        yield _words(column.rule)


def _rules(table: Schema) -> Iterator[Facts]:
    for rule in compared(without_helpers(table)):
        query, words = counting(rule, table.columns), f"`{str(rule).strip()}` must hold in every row"
        yield {"type": "sql", "query": query, "mustBe": 0, "description": words} if query else _words(words)


def _words(text: str) -> Facts:
    return {"type": "text", "description": text}


def _join(contract: Schema, table: Facts) -> None:
    """Say by which column the tables are joined: it names each user once, and each row one of the users."""
    key = (str(contract.unit.user),)
    if table["name"] == "parents":
        _add_key(table, key)
        return
    if "parents" in tables_of(contract):
        _add_reference(table, key, "parents", key)
    table["quality"] = [*table.get("quality", ()), _numbered(key, contract.unit.max_rows)]


def _join_tree(tree: Tree, table: Facts) -> None:
    """Say which columns name a row, its parent and the public rows that it refers to, and how many a parent has."""
    name = table["name"]
    if name in tree.public:
        _add_key(table, tree.public[name].key)
        return
    branch, on = tree.tables[name], tree.keys_of(name)
    _add_key(table, branch.key)
    for one in branch.refers:
        _add_reference(table, one.by, one.to, tree.public[one.to].key)
    rules = [_words(f"`{rule.flat}` must hold in every row") for rule in tree.rules_of(name) if rule.alone is None]
    if branch.parent is not None:
        _add_reference(table, on, branch.parent, tree.tables[branch.parent].key)
        rules.append(_numbered(on, branch.most))
    if rules:
        table["quality"] = [*table.get("quality", ()), *rules]


def _add_key(table: Facts, key: Sequence[str]) -> None:
    properties = {one["name"]: one for one in table["properties"]}
    for position, name in enumerate(key, start=1):
        properties[name] |= {"primaryKey": True, "primaryKeyPosition": position}


def _add_reference(table: Facts, by: Sequence[str], to: str, key: Sequence[str]) -> None:
    """State a foreign key, where the standard's short references take its names."""
    if not all(map(REFERENCE.fullmatch, (to, *by, *key))):
        return
    if len(by) == 1:
        (column,) = [one for one in table["properties"] if one["name"] == by[0]]
        column.setdefault("relationships", []).append({"type": "foreignKey", "to": f"{to}.{key[0]}"})
    else:
        ends = {"from": [f"{table['name']}.{name}" for name in by], "to": [f"{to}.{name}" for name in key]}
        table.setdefault("relationships", []).append({"type": "foreignKey", **ends})


def _numbered(key: Sequence[str], most: int) -> Facts:
    """State how many rows a user, or a row of the parent's table, may have."""
    words, named = f"no {' and '.join(key)} has more than {most} rows", ", ".join(map(quoted, key))
    crowded = f"SELECT {named} FROM {TABLE} GROUP BY {named} HAVING COUNT(*) > {most}"
    query = f"SELECT COUNT(*) FROM ({crowded}) AS crowded"
    if any(STAND_IN & set(name) for name in key):
        return _words(words)
    return {"type": "sql", "query": query, "mustBe": 0, "description": words}
