"""Find every fault of a contract's file and say on which line it is and what to write instead.

A file with ``columns`` is the schema of a table; one with ``encoder``, ``text`` or ``embedding`` describes documents.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dpmodels.errors import ArtifactError, SchemaError, SchemaFault, taken_for_text
from dpmodels.files import read_at_most
from dpmodels.limits import LARGEST_YAML
from dpmodels.privacy import PrivacyUnit
from dpmodels.schema.base import ColumnFaults
from dpmodels.schema.columns import Boolean, Categorical, Datetime, Derived, Identifier, Image, Integer, Number
from dpmodels.schema.documents import Documents, Encoder
from dpmodels.schema.family import Users
from dpmodels.schema.federation import Client, Federation
from dpmodels.schema.partition import Partition
from dpmodels.schema.schema import RowCount, Schema, name_faults

Place = tuple[str, ...]
KINDS: dict[str, type[BaseModel]] = {
    "categorical": Categorical,
    "boolean": Boolean,
    "integer": Integer,
    "number": Number,
    "datetime": Datetime,
    "identifier": Identifier,
    "image": Image,
    "derived": Derived,
}
PLAIN_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|[-+]?\.[0-9]+([eE][-+]?[0-9]+)?")
TOO_LARGE = f"is larger than {LARGEST_YAML // 2**20} MiB, and no contract is"
SWITCHES = ("nullable", "zero_inflated")  # here yes and no can only be meant as true and false
TODO = "is still TODO: write it from public documentation, never by looking at the data"
PHRASES = {  # pydantic's error types, in the words of someone who writes YAML
    "missing": "is missing",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be text; put it in quotes",
    "dict_type": "must be a mapping of `key: value` lines",
    "model_type": "must be a mapping of `key: value` lines",
    "model_attributes_type": "must be a mapping of `key: value` lines",
    "tuple_type": "must be a list such as [a, b]",
    "too_short": "must list at least one value",
    "date_type": "must be a date such as 2020-01-31",
    "string_pattern_mismatch": "may hold only the characters a-z, 0-9, _ and -",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "union_tag_not_found": "has no type; write one of " + ", ".join(KINDS),
}


def lint(path: str | Path) -> list[SchemaFault]:
    """List the faults of a contract's file by line; an empty list means it can be used for a new run."""
    contract, faults = read(path)
    return faults if contract is None or isinstance(contract, Federation) else _run_faults(contract, Path(path))


def load_for_run(path: str | Path) -> Schema | Documents:
    """Read a contract's file for a new run, which may not do all that a release of an earlier version did.

    Raises:
        SchemaError: the file has faults; every one is in it, with its line.
    """
    contract = load_contract(path)
    if faults := _run_faults(contract, Path(path)):
        raise SchemaError(str(path), faults)
    return contract


def load_contract(path: str | Path) -> Schema | Documents:
    """Read the file of a table's schema or of a contract of documents; what it holds tells which.

    Raises:
        SchemaError: the file has faults; every one is in it, with its line.
    """
    contract, faults = read(path)
    if contract is None:
        raise SchemaError(str(path), faults)
    if isinstance(contract, Federation):
        raise SchemaError(str(path), [SchemaFault(1, "file", "describes a federation, whose contract is no input")])
    return contract


def load_schema(path: str | Path) -> Schema:
    """Read the schema of a table.

    Raises:
        SchemaError: the file has faults, or describes documents.
    """
    contract = load_contract(path)
    if not isinstance(contract, Schema):
        raise SchemaError(str(path), [SchemaFault(1, "file", "describes documents; this needs the schema of a table")])
    return contract


def read(path: str | Path) -> tuple[Schema | Documents | Federation | None, list[SchemaFault]]:
    """Read a contract's file: the contract, or None and every fault found."""
    try:
        text = read_at_most(Path(path), LARGEST_YAML).decode()
    except FileNotFoundError:
        return None, [SchemaFault(0, "file", "does not exist; `nacre schema init DATA` drafts one")]
    except (OSError, UnicodeDecodeError):
        return None, [SchemaFault(0, "file", "cannot be read as UTF-8 text")]
    except ArtifactError:
        return None, [SchemaFault(0, "file", TOO_LARGE)]
    return parse(text)


def _run_faults(contract: Schema | Documents, path: Path) -> list[SchemaFault]:
    """List what a new run refuses in a contract that can be read."""
    user = contract.unit.user
    column = contract.columns[user] if user and isinstance(contract, Schema) else None
    grouped = isinstance(contract, Schema) and contract.users is not None
    if not isinstance(column, Identifier) or column.keep == "drop" or grouped:
        return []
    root: Any = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    line = Outline(root).line(("columns", str(user), "keep"))
    message = (
        "must be drop: without `users` synthetic rows are not grouped by user, and fresh numbers would make each row "
        "a user"
    )
    return [SchemaFault(line, f"columns.{user}.keep", message)]


def parse(text: str) -> tuple[Schema | Documents | Federation | None, list[SchemaFault]]:
    """Parse a contract's YAML text: the contract, or None and every fault found."""
    if len(text) > LARGEST_YAML:
        return None, [SchemaFault(0, "file", TOO_LARGE)]
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if not isinstance(root, yaml.MappingNode):
            what = "is empty" if root is None else "is not a mapping"
            return None, [SchemaFault(0, "file", f"{what}; it must hold name, unit, target and columns")]
        outline = Outline(root)
        data = {} if outline.tangled else yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return None, [SchemaFault(mark.line + 1 if mark else 0, "file", f"is not valid YAML: {error.problem}")]
    except (yaml.YAMLError, ValueError, RecursionError):
        return None, [SchemaFault(0, "file", "is not valid YAML: a character, a date or the nesting is impossible")]
    if outline.tangled:
        return None, outline.faults
    try:
        contract = _kind_of(data).model_validate(data)
    except ValidationError as error:
        return None, _order(outline, _schema_faults(error.errors(), data))
    return (None, outline.faults) if outline.faults else (contract, [])


def _kind_of(data: Mapping[str, Any]) -> type[Schema] | type[Documents] | type[Federation]:
    """Tell what a file describes by the keys that it has."""
    if "columns" not in data and "clients" in data:
        return Federation
    return Documents if "columns" not in data and data.keys() & {"encoder", "text", "embedding"} else Schema


class Outline:
    """The line of every place in the file, and the faults YAML itself would pass over in silence."""

    def __init__(self, root: yaml.MappingNode) -> None:
        self.lines: dict[Place, int] = {(): 1}
        self.faults: list[SchemaFault] = []
        self.tangled = False  # aliases, impossible dates, keys that hide one another: the content is not read
        self._seen: set[int] = set()
        self._walk(root, ())

    def line(self, place: Place) -> int:
        """Return the line of a place, or of the nearest place around it."""
        while place not in self.lines:
            place = place[:-1]
        return self.lines[place]

    def _fault(self, place: Place, message: str, node: yaml.Node) -> None:
        self.faults.append(SchemaFault(node.start_mark.line + 1, ".".join(place), message))

    def _walk(self, node: yaml.Node, place: Place) -> None:
        if id(node) in self._seen:
            self.tangled = True
            return self._fault(place, "repeats another part by an alias (*); write it out", node)
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._walk_mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.lines[*place, str(index)] = item.start_mark.line + 1
                self._walk(item, (*place, str(index)))
            return None
        if not isinstance(node, yaml.ScalarNode):
            return None
        if node.style is None and node.value == "TODO":
            self._fault(place[:-1] if place[-1].isdigit() else place, TODO, node)
        elif trap := _trap(node, place):
            self.tangled |= node.tag.endswith(":timestamp")
            self._fault(place, trap, node)
        return None

    def _walk_mapping(self, node: yaml.MappingNode, place: Place) -> None:
        for key, value in node.value:
            inner = (*place, str(key.value))
            if not isinstance(key, yaml.ScalarNode) or not key.tag.endswith(":str"):
                self.tangled = True
                self._fault(inner, "must be text: YAML reads this name as something else; put it in quotes", key)
            elif inner in self.lines:
                self.tangled = True
                self._fault(inner, f"is written twice, first on line {self.lines[inner]}", key)
                continue
            self.lines.setdefault(inner, key.start_mark.line + 1)
            self._walk(value, inner)


def _trap(node: yaml.ScalarNode, place: Place) -> str:
    """Say what YAML 1.1 makes of a plain word such as no, 012 or 12:30, if a person would not expect it."""
    if node.style is not None or node.tag.endswith((":str", ":null")):
        return ""
    if node.tag.endswith(":timestamp"):
        return _no_date(node.value)
    if node.tag.endswith(":bool"):
        value = yaml.SafeLoader.bool_values[node.value.lower()]
        expected = place[-1] in SWITCHES or node.value.lower() in ("true", "false")
        return "" if expected else f"YAML reads {node.value} as {str(value).lower()}; put it in quotes to mean the text"
    return "" if PLAIN_NUMBER.fullmatch(node.value) else f"YAML does not read {node.value} as it is written; quote it"


def _no_date(text: str) -> str:
    try:
        yaml.safe_load(text)
    except ValueError:
        return f"{text} is no date of the calendar"
    return ""


def _schema_faults(errors: list[ErrorDetails], data: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Translate pydantic's errors to places in the file and sentences, and check the names that refer to columns."""
    for error in errors:
        cause = error.get("ctx", {}).get("error")
        place = _place(error["loc"], data)
        if isinstance(cause, ColumnFaults):
            yield from (((*place, *key.split(".")), message) for key, message in cause.faults)
        else:
            yield place, _sentence(error, place, data)
    columns, unit = data.get("columns"), data.get("unit")
    if isinstance(columns, dict):
        kinds = {name: _kind(column) for name, column in columns.items()}
        target, user = data.get("target"), unit.get("user") if isinstance(unit, dict) else None
        names = [name if isinstance(name, str) else None for name in (target, user)]
        yield from (((key,), message) for key, message in name_faults(kinds, *names))


def _kind(column: Any) -> str:
    """Return the type a raw column declares, or an empty text when it declares none that exists."""
    kind = column.get("type") if isinstance(column, dict) else None
    return kind if isinstance(kind, str) and kind in KINDS else ""


def _place(loc: tuple[int | str, ...], data: Any) -> Place:
    """Drop from pydantic's location the parts that are no key of the file: the column's type, the union's members."""
    place: list[str] = []
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        if position == 2 and loc[0] == "columns":
            continue
        inside = part in data if isinstance(data, dict) else isinstance(data, list) and isinstance(part, int)
        if inside:
            data = data[part]
        elif not (last and isinstance(data, dict)):
            continue
        place.append(str(part))
    return tuple(place)


def _sentence(error: ErrorDetails, place: Place, data: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return "is no key here" + near(place[-1], _keys(place[:-1], data))
    if kind == "string_pattern_mismatch" and place[-1] in ("sha256", "language"):
        return f"must be written as {context['pattern']}, which is a regular expression"
    if kind == "union_tag_invalid":
        return f"has no type `{context['tag']}`; the types are {', '.join(KINDS)}{near(str(context['tag']), KINDS)}"
    if (place[2:3] == ("values",) and len(place) == 4) or place[2:3] == ("other",):
        return "must be text, a number, or true/false; put it in quotes to mean the text"
    if kind == "value_error":
        return str(context["error"])
    return PHRASES.get(kind, error["msg"]).format(**context) + taken_for_text(error["input"])


def near(word: str, known: Any) -> str:
    """Suggest the known word that was probably meant, as the tail of a sentence."""
    match = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean `{match[0]}`?" if match else ""


def _keys(place: Place, data: Mapping[str, Any]) -> list[str]:
    if place == ():
        return list(_kind_of(data).model_fields)
    if place == ("encoder",):
        return list(Encoder.model_fields)
    if place == ("unit",):
        return list(PrivacyUnit.model_fields)
    if place == ("rows",):
        return list(RowCount.model_fields)
    if place == ("partition",):
        return list(Partition.model_fields)
    if place == ("users",):
        return list(Users.model_fields)
    if place[0] == "clients":
        return list(Client.model_fields)
    return list(KINDS[data["columns"][place[1]]["type"]].model_fields)


def _order(outline: Outline, found: Iterator[tuple[Place, str]]) -> list[SchemaFault]:
    """Join both kinds of fault: one a place, none for a place that YAML or a TODO already explains, by line."""
    told = {fault.where for fault in outline.faults}
    faults = list(outline.faults)
    for place, message in found:
        where = ".".join(place) or "file"
        if not any(_covers(where, other) for other in told):
            told.add(where)
            faults.append(SchemaFault(outline.line(place), where, message))
    return sorted(faults, key=lambda fault: fault.line)


def _covers(where: str, told: str) -> bool:
    return where == told or where.startswith(told + ".") or (where != "columns" and told.startswith(where + "."))
