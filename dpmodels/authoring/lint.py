"""Find every fault of a contract's file and say on which line it is and what to write instead.

A file with ``columns`` is the schema of a table, one with ``tables`` that of a tree of them; one with ``encoder``,
``text`` or ``embedding`` describes documents.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dpmodels.authoring.faults.listings import listed_once
from dpmodels.authoring.faults.misspelt import KINDS, explained_by, misspelt_in
from dpmodels.authoring.faults.phrases import PHRASES
from dpmodels.authoring.meant import meant_by, not_of_type, one_of_meant, type_meant
from dpmodels.authoring.outline import MOST_KEPT, Outline
from dpmodels.authoring.rules_lint import rule_faults
from dpmodels.authoring.unclear import unclear_numbers
from dpmodels.contract.base import ColumnFaults
from dpmodels.contract.branch import Branch
from dpmodels.contract.columns import Identifier
from dpmodels.contract.discovery.discovery import WAITING, WORD, Discovery, columns_of, contract_of, is_derived, marks
from dpmodels.contract.discovery.discovery_charge import DiscoveryCharge
from dpmodels.contract.discovery.stand_in import stand_in
from dpmodels.contract.documents import Documents, Encoder
from dpmodels.contract.family import Users
from dpmodels.contract.federation import Client, Federation
from dpmodels.contract.partition import Partition
from dpmodels.contract.public import PublicTable, Reference
from dpmodels.contract.schema import RowCount, Schema, name_faults
from dpmodels.contract.sizes import size_fault
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.contract.tree import Tree
from dpmodels.contract.workload import Tables
from dpmodels.errors import ArtifactError, SchemaError, SchemaFault, Unsuitable, near, taken_for_text
from dpmodels.files import read_at_most
from dpmodels.limits import LARGEST_YAML
from dpmodels.plain_yaml import DEEPEST, Place, YamlFault, read_yaml
from dpmodels.privacy import PrivacyUnit
from dpmodels.reading.data_files import FORMATS

Finding = tuple[Place, Callable[[], str]]
"""Where a fault is, and what makes its sentence."""
MOST_FAULTS = 20
"""Faults that are listed; of the others the number is told."""
MOST_ERRORS = 2**16
"""Of more errors only the number is told: to write them down alone would take a gigabyte."""
PARTS: dict[str, type[BaseModel]] = {
    "encoder": Encoder,
    "unit": PrivacyUnit,
    "rows": RowCount,
    "partition": Partition,
    "users": Users,
    "clients": Client,
    "discovered": DiscoveryCharge,
    "text": TextForm,
    "workload": Tables,
}
"""What stands below a contract's keys that are no columns."""
SEVERAL: dict[str, type[BaseModel]] = {"tables": Branch, "public": PublicTable}
TOO_LARGE = f"is larger than {LARGEST_YAML // 2**20} MiB, and no contract is"
TABLES = FORMATS.keys() - {".json"}
"""Endings of files that are no YAML, of which JSON is a part."""


def lint(path: str | Path) -> list[SchemaFault]:
    """List the faults of a contract's file by line; an empty list means it can be used for a new run."""
    contract, faults, text = _read(path)
    return faults if contract is None or contract.kind == "federation" else _run_faults(contract, text)


def load_for_run(path: str | Path) -> Schema | Documents | Tree:
    """Read a contract's file for a new run, which may not do all that a release of an earlier version did.

    Raises:
        SchemaError: the file has faults; every one is in it, with its line.
    """
    contract, text = _load(path)
    if faults := _run_faults(contract, text):
        raise SchemaError(str(path), faults)
    return contract


def load_to_check(path: str | Path) -> Schema | Documents | Tree:
    """Read a contract's file to hold rows to it, which asks what its bounds mean, as a run does."""
    contract, text = _load(path)
    if faults := unclear_numbers(contract, text):
        raise SchemaError(str(path), faults)
    return contract


def load_contract(path: str | Path) -> Schema | Documents | Tree:
    """Read the file of a table's schema or of a contract of documents; what it holds tells which.

    Raises:
        SchemaError: the file has faults; every one is in it, with its line.
    """
    return _load(path)[0]


def _load(path: str | Path) -> tuple[Schema | Documents | Tree, str]:
    """Return the contract of a file beside its text: a pipe can be read once, and a file may change meanwhile."""
    contract, faults, text = _read(path)
    if contract is None:
        raise SchemaError(str(path), faults)
    if contract.kind == "federation":
        raise SchemaError(str(path), [SchemaFault(1, "file", "describes a federation, whose contract is no input")])
    return contract, text


def load_schema(path: str | Path, needs: str = "this needs the schema of a table") -> Schema:
    """Read the schema of a table; ``needs`` ends the sentence of who gives the contract of something else.

    Raises:
        SchemaError: the file has faults.
        Unsuitable: it describes something else.
    """
    contract, faults = read(path)
    if contract is None:
        raise SchemaError(str(path), faults)
    if not contract.is_table:
        raise Unsuitable(f"{path} describes {contract.about}; {needs}")
    return contract


def read(path: str | Path) -> tuple[Schema | Documents | Federation | Tree | None, list[SchemaFault]]:
    """Read a contract's file: the contract, or None and every fault found."""
    return _read(path)[:2]


def _read(path: str | Path) -> tuple[Schema | Documents | Federation | Tree | None, list[SchemaFault], str]:
    try:
        text = read_at_most(Path(path), LARGEST_YAML).decode()
    except FileNotFoundError:
        fault = "does not exist; `nacre schema init DATA` drafts one"
    except IsADirectoryError:
        fault = "is a folder; name a file in it"
    except (OSError, UnicodeDecodeError):
        fault = "cannot be read as UTF-8 text"
    except ArtifactError:
        fault = TOO_LARGE
    else:
        contract, faults = parse(text)
        if contract is not None or not _is_table(path):
            return contract, faults, text
    fault = "is a table and no schema; `nacre schema init DATA` drafts one" if _is_table(path) else fault
    return None, [SchemaFault(0, "file", fault)], ""


def _is_table(path: str | Path) -> bool:
    return Path(path).suffix.lower() in TABLES and Path(path).is_file()


def _run_faults(contract: Schema | Documents | Tree, text: str) -> list[SchemaFault]:
    """List what a new run refuses in a contract that can be read."""
    if not contract.is_table:
        return unclear_numbers(contract, text)
    user, faults = contract.unit.user, dict[Place, str]()
    column = contract.columns[user] if user else None
    if isinstance(column, Identifier) and column.keep != "drop" and contract.users is None:
        faults["columns", str(user), "keep"] = (
            "must be drop: without `users` synthetic rows are not grouped by user, and fresh numbers would make each "
            "row a user"
        )
    if message := size_fault(contract):
        faults["columns",] = message
    outline = Outline()
    read_yaml(text, outline)
    told = [SchemaFault(outline.line(place), ".".join(place), message) for place, message in faults.items()]
    return [*told, *unclear_numbers(contract, text)]


def parse(text: str) -> tuple[Schema | Documents | Federation | Tree | None, list[SchemaFault]]:
    """Parse a contract's YAML text: the contract, or None and the first faults found, with the number of others."""
    if len(text) > LARGEST_YAML:
        return None, [SchemaFault(0, "file", TOO_LARGE)]
    outline = Outline()
    try:
        data = read_yaml(text, outline)
    except YamlFault as fault:
        return None, [SchemaFault(fault.line, "file", f"is not valid YAML: {fault.problem}")]
    if not isinstance(data, dict):
        what = "is empty" if data is None else "is not a mapping"
        return None, [SchemaFault(0, "file", f"{what}; it must hold name, unit, target and columns")]
    if outline.tangled:
        return None, _first(outline.faults, outline.more)
    waiting = marks(data)
    content = stand_in(data) if waiting else data
    try:
        contract = _kind_of(data).model_validate(content)
    except ValidationError as error:
        if error.error_count() > MOST_ERRORS:
            return None, _first([SchemaFault(0, "file", "is no contract")], error.error_count() - 1)
        rules = (((*key.split("."),), _said(message)) for key, message in rule_faults(content))
        findings = chain(_schema_faults(error.errors(include_url=False), data), rules)
        misspelt = map(".".join, misspelt_in(data))
        return None, _order(outline, findings, _waiting(data, outline), {*misspelt})
    if waiting:
        return None, _order(outline, _schema_faults(list(_derived_errors(data)), data), _waiting(data, outline))
    return (None, _first(outline.faults, outline.more)) if outline.faults else (contract, [])


def _derived_errors(data: Mapping[str, Any]) -> Iterator[ErrorDetails]:
    """Find what is wrong with derived and computed columns of a draft by themselves, whatever is discovered."""
    for column, place in columns_of(data).values():
        if is_derived(column) and (kind := column.get("type")) in KINDS:
            try:
                KINDS[kind].model_validate(column)
            except ValidationError as error:
                for one in error.errors(include_url=False):
                    yield {**one, "loc": (*place, kind, *one["loc"])}


def _waiting(data: Mapping[str, Any], outline: Outline) -> list[SchemaFault]:
    """Say in one sentence that something is to be discovered yet, at the first column that is."""
    columns = columns_of(data)
    key_paths = [(*columns[name][1], key) for name, keys in marks(data).items() for key in keys]
    return [SchemaFault(outline.line(key_path), ".".join(key_path), WAITING) for key_path in key_paths[:1]]


def load_draft(path: str | Path) -> tuple[str, Discovery]:
    """Read the draft of a schema that leaves something to be discovered: its text, and the contract of what that is.

    Raises:
        SchemaError: the draft has other faults, or leaves nothing to be discovered.
    """
    contract, faults, text = _read(path)
    if contract is None and not all(fault.message == WAITING for fault in faults):
        raise SchemaError(str(path), [fault for fault in faults if fault.message != WAITING])
    if contract is not None:
        message = f"marks nothing with `{WORD}`, such as `values: {WORD}` or `min: {WORD}` (docs/discover.md)"
        raise SchemaError(str(path), [SchemaFault(0, "file", message)])
    data = read_yaml(text)
    checked = cast(Schema | Tree, _kind_of(data).model_validate(stand_in(data)))
    if checked.image:
        fault = SchemaFault(0, "file", "has an image, and a table of images has no such columns")
        raise SchemaError(str(path), [fault])
    return text, contract_of(data, checked)


def load_named(path: str | Path) -> Schema | Documents | Tree | Discovery:
    """Read a contract of which only name, unit and adjacency count; the draft of a schema has these as well.

    Raises:
        SchemaError: the file has faults.
    """
    contract, faults = read(path)
    waits = contract is None and any(fault.message == WAITING for fault in faults)
    return load_draft(path)[1] if waits else load_contract(path)


def _kind_of(data: Mapping[str, Any]) -> type[Schema] | type[Documents] | type[Federation] | type[Tree]:
    """Tell what a file describes by the keys that it has."""
    if "columns" not in data and "clients" in data:
        return Federation
    if "columns" not in data and "tables" in data:
        return Tree
    return Documents if "columns" not in data and data.keys() & {"encoder", "text", "embedding"} else Schema


def _schema_faults(errors: list[ErrorDetails], data: Mapping[str, Any]) -> Iterator[Finding]:
    """Translate pydantic's errors to places in the file and sentences, and check the names that refer to columns."""
    misspelt = misspelt_in(data)
    explained = {*explained_by(misspelt, data)}
    for error in errors:
        cause = error.get("ctx", {}).get("error")
        key_path = _place(error["loc"], data)
        if error["type"] == "missing" and key_path in explained:
            continue
        if key_path in misspelt:
            yield key_path, _said(f"is no key here; did you mean `{misspelt[key_path]}`?")
        elif isinstance(cause, ColumnFaults):
            yield from (((*key_path, *key.split(".")), _said(message)) for key, message in cause.faults)
        else:
            yield key_path, partial(_sentence, error, key_path, data)
    columns, unit = data.get("columns"), data.get("unit")
    if isinstance(columns, dict):
        kinds = {name: _kind(column) for name, column in columns.items()}
        target, user = data.get("target"), unit.get("user") if isinstance(unit, dict) else None
        names = [name if isinstance(name, str) else None for name in (target, user)]
        yield from (((key,), _said(message)) for key, message in name_faults(kinds, *names))


def _said(message: str) -> Callable[[], str]:
    return lambda: message


def _kind(column: Any) -> str:
    """Return the type a raw column declares, or an empty text when it declares none that exists."""
    kind = column.get("type") if isinstance(column, dict) else None
    return kind if isinstance(kind, str) and kind in KINDS else ""


def _place(loc: tuple[int | str, ...], data: Any) -> Place:
    """Drop from pydantic's location the parts that are no key of the file: the column's type, the union's members."""
    key_path: list[str] = []
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        if (position == 2 and loc[0] == "columns") or (position == 4 and loc[0] in SEVERAL and loc[2] == "columns"):
            continue
        inside = part in data if isinstance(data, dict) else isinstance(data, list) and isinstance(part, int)
        if inside:
            data = data[part]
        elif not (last and isinstance(data, dict)):
            continue
        key_path.append(str(part))
    return tuple(key_path)


def _sentence(error: ErrorDetails, key_path: Place, data: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return "is no key here" + not_of_type(key_path, error["input"], near(key_path[-1], _keys(key_path[:-1], data)))
    if kind == "string_pattern_mismatch" and key_path[-1] in ("sha256", "language"):
        return f"must be written as {context['pattern']}, which is a regular expression"
    if kind == "union_tag_invalid":
        return type_meant(str(context["tag"]), KINDS)
    if (key_path[2:3] == ("values",) and len(key_path) == 4) or key_path[2:3] == ("other",):
        return "must be text, a number, or true/false; put it in quotes to mean the text"
    if kind == "value_error":
        return f"{context['error']}{one_of_meant(str(context['error']), error['input'])}"
    kind = "list_type" if kind == "string_type" and isinstance(error["input"], list) else kind
    sentence = PHRASES.get(kind, error["msg"]).format(**{"kinds": ", ".join(KINDS), **context}) + taken_for_text(
        error["input"]
    )
    options = str(context["expected"]) if kind == "literal_error" else ""
    return sentence + one_of_meant(options, error["input"]) + meant_by(kind, key_path, error["input"])


def _keys(key_path: Place, data: Mapping[str, Any]) -> list[str]:
    """List the keys that there are below a place."""
    if key_path == ():
        return list(_kind_of(data).model_fields)
    if key_path[0] in SEVERAL and key_path[2:3] == ("columns",) and len(key_path) > 3:
        return _keys(key_path[2:], data[key_path[0]][key_path[1]])
    if key_path[0] in SEVERAL:
        return list((Reference if key_path[2:3] == ("refers",) else SEVERAL[key_path[0]]).model_fields)
    model = PARTS[key_path[0]] if key_path[0] in PARTS else KINDS[data["columns"][key_path[1]]["type"]]
    return list(model.model_fields)


def _order(
    outline: Outline, findings: Iterator[Finding], waiting: list[SchemaFault], misspelt: Collection[str] = ()
) -> list[SchemaFault]:
    """Join both kinds of fault: one a place, none for a place that YAML or a TODO already explains, by line.

    A misspelt key is a fault beside those of its value.

    Sentences are made of the first faults only: to write one may take a look at every name there is.
    """
    faults, more = [*outline.faults, *waiting], outline.more
    reported, above = set[str](), set[str]()
    for fault in outline.faults:
        _tell(fault.where, reported, above)
    above -= {*misspelt}
    for line, key_path, message in sorted(
        ((outline.line(key_path), key_path, message) for key_path, message in findings), key=lambda one: one[0]
    ):
        where = ".".join(key_path) or "file"
        if where in above or not reported.isdisjoint(_and_above(where)):
            continue
        _tell(where, reported, above)
        if len(faults) < MOST_KEPT:
            meant = outline.thousands(key_path)
            faults.append(SchemaFault(line, where, message() + (f"; {meant}" if meant else "")))
        else:
            more += 1
    return _first(faults, more)


def _first(faults: list[SchemaFault], more: int) -> list[SchemaFault]:
    """Return the first faults by line, and the number of the others."""
    faults = [*listed_once(sorted(faults, key=lambda fault: fault.line))]
    more += len(faults[MOST_FAULTS:])
    rest = [SchemaFault(faults[:MOST_FAULTS][-1].line, "file", f"has {more:,} more faults")] if more else []
    return [*faults[:MOST_FAULTS], *rest]


def _and_above(where: str) -> list[str]:
    """Return a place and the places around it."""
    parts = where.split(".")[:DEEPEST]
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _tell(where: str, reported: set[str], above: set[str]) -> None:
    """Note a place that has a fault, and the places around it, which need none of their own; but the columns do."""
    reported.add(where)
    above.update(set(_and_above(where)[:-1]) - {"columns"})
