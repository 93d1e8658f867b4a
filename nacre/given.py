"""Read what a caller gives: schemas in four forms, and data in three."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dpmodels.authoring import draft, lint, tree_draft
from dpmodels.authoring.facts import TODO
from dpmodels.authoring.header import DoubtfulNames
from dpmodels.codec.names import RULE
from dpmodels.contract.schema import Schema as Schema
from dpmodels.contract.tree import Tree
from dpmodels.errors import NacreError, SchemaError, Unsuitable
from dpmodels.plain_yaml import read_yaml, unwritable, write_yaml
from dpmodels.privacy import Sensitive
from dpmodels.reading.frames import are_tables, write_all_names
from dpmodels.reading.public import load_public_frames
from nacre.drafted import Drafted
from nacre.places import Place

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SchemaLike = Place | Mapping[str, Any] | Schema | Tree
"""A schema: a file's path, its YAML text, the dictionary that the text stands for, or a ``Schema``."""


def load_schema(schema: SchemaLike) -> Schema | Tree:
    """Read a schema from a path, YAML text, a dictionary, or a ``Schema``; a string with a line break or a key is text.

    Raises:
        NacreError: the schema has faults; the message names all of them.
    """
    with schema_file(schema) as file:
        contract = lint.load_contract(file)
        return contract if contract.kind == "tree" else lint.load_schema(file)


def draft_schema(
    data: "pd.DataFrame | pa.Table | Place | Mapping[str, Any]",
    *,
    header: bool = False,
    document: Place | None = None,
    sample: Place | None = None,
    table: str = "",
    accept_suggestions: bool = False,
    types: str | Mapping[str, str | Mapping[str, Any]] = "",
    discover_all: bool = False,
    name: str = "",
    target: str = "",
    unit: str = "",
    max_rows: int | None = None,
    query: str = "",
    tables: bool = False,
    text: str | Mapping[str, str] = "",
    rows: Mapping[str, int] | None = None,
    constraints: str | Sequence[str] = (),
    workload: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Write the YAML of a schema from column names and types; what nothing public says is left as a TODO.

    Of a dictionary of frames, or a folder of files for several tables (``tables``), it is a tree's. ``header`` says
    that the first row holds names, without which such as may be values are not written. ``document`` is public
    documentation, of ``table`` where it describes several; ``sample`` a file of public rows. ``types`` are those that
    you know, ``{"age": "integer:0:120", "ward": "categorical:north|south", "income": "number?"}``, ``?`` for nulls, or
    keys of a schema. With ``discover_all``, what a discovery releases is marked. ``target`` is to be predicted, of a
    tree ``table.column``; ``unit`` tells persons apart, of whose rows ``max_rows`` are used. ``query`` asks a database.
    ``text`` is ``{"decimal": ","}``; ``rows``, ``constraints`` and ``workload`` are those of the schema of one table.

    Privacy: reads names and types of the data alone. Fill the TODOs in from what is public, never from the data.

    Raises:
        NacreError: the table cannot be read, its names may be values, or what is asked for can be none.
    """
    name = name or TODO * (path_of(data) is None)
    more = (table, accept_suggestions, types, discover_all, name, target, unit, max_rows, text)
    beside = {"rows": rows, "constraints": constraints, "workload": workload}
    sources = draft.PublicFacts(_file(document), _file(sample), *more, beside=beside)
    if (path := path_of(data)) is not None:
        return Drafted(tree_draft.draft_all(_rows_at(path, query), header, sources, several=tables))
    sensitive = Sensitive(data)
    del data  # a traceback of what follows shows no rows
    return Drafted(_drafted(sensitive, header, sources, query))


def _file(place: Place | None) -> Path | None:
    return None if place is None else Path(place)


def _drafted(rows: Sensitive[Any], header: bool, sources: draft.PublicFacts, query: str) -> str:
    """Draft the schema of rows in memory; names that may be values are refused without the name of a file."""
    if query:
        raise Unsuitable("rows in memory answer no query: give the URL of the database in their place")
    with TemporaryDirectory() as folder:
        place, text = write_all_names(rows, Path(folder), header), ""
        with suppress(DoubtfulNames):
            text = tree_draft.draft_all(place, header, sources, several=place.is_dir())
    if not text:
        because = f"a name should {RULE}"
        raise NacreError(f"the column names may be values: {because}; if you know them for names, say header=True")
    return text


def _rows_at(path: str, query: str) -> Any:
    """Return the path of files, or the query of a database."""
    from tasks.run.source import Source

    return Source(path, query).rows


def path_of(data: object) -> str | None:
    """Return the path or the URI if the data is named by one, or None for rows in memory."""
    return str(os.fspath(data)) if isinstance(data, str | os.PathLike) else None


@contextmanager
def schema_file(schema: SchemaLike) -> Iterator[Path]:
    """Lend a schema as a file, which the rest of nacre reads; errors do not name the file if it is temporary."""
    if (path := _path(schema)) is not None:
        yield path
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "schema.yaml"
        file.write_text(_yaml(schema), encoding="utf-8")
        try:
            yield file
        except SchemaError as error:
            faults = error.faults if isinstance(schema, str) else [replace(fault, line=0) for fault in error.faults]
            raise SchemaError("as given", faults) from None


@contextmanager
def with_public_rows(file: Path, data: Sensitive[Any]) -> Iterator[tuple[Path, Sensitive[Any]]]:
    """Lend the file of a schema with the rows of public tables that are among the frames, and the private frames."""
    contract = lint.read(file)[0] if are_tables(data) else None
    if contract is None or contract.kind != "tree" or not contract.public:
        yield file, data
        return
    contract, private = load_public_frames(contract, data)
    with TemporaryDirectory() as folder:
        (filled := Path(folder) / "schema.yaml").write_text(contract.to_yaml(), encoding="utf-8")
        yield filled, private


def _path(schema: SchemaLike) -> Path | None:
    """Tell a path from YAML text, which has a line break, is a mapping in braces, or has a key and names no file."""
    if isinstance(schema, str):
        is_line = ": " in schema and not os.path.exists(schema)
        return None if is_line or "\n" in schema or schema.lstrip().startswith("{") else Path(schema)
    return Path(schema) if isinstance(schema, os.PathLike) else None


def _with_zeros(schema: Any) -> str:
    """Write a schema with each `zero_inflated: false` that was given, which keeps the lint from asking for it."""
    columns = getattr(schema, "columns", {}).items()
    names = [name for name, one in columns if "zero_inflated" in one.model_fields_set and not one.zero_inflated]
    if not names:
        return str(schema.to_yaml())
    content = read_yaml(schema.to_yaml())
    for name in names:
        content["columns"][name]["zero_inflated"] = False
    return write_yaml(content)


def _yaml(schema: SchemaLike) -> str:
    if isinstance(schema, str):
        return schema
    if isinstance(schema, Schema | Tree):
        return _with_zeros(schema)
    if not isinstance(schema, Mapping):
        raise Unsuitable(f"a schema is a path, YAML text, a dictionary or a Schema, not {type(schema).__name__}")
    if key := unwritable(schema):
        raise Unsuitable(f"YAML cannot write {key} of the schema; use text, numbers, dates, lists and dictionaries")
    return write_yaml(dict(schema))
