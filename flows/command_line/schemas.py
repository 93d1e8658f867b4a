"""The commands of ``nacre schema``: draft the public contract of a table, and check it."""

import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmodels.errors import UNCHARGED, PathTaken
from dpmodels.escapes import escaped
from flows.command_line.options import NUMBER, AllowLargeDelta, AsJson, Data, Home, QueryText, Url
from flows.command_line.printing import echo, interruptible, unwind
from flows.similar_files import similar_file

if TYPE_CHECKING:
    from flows.discover import Discovered

FROM = (
    "Public documentation of the columns: a data dictionary (.csv, .xlsx, or a table or list in .md or .txt), SQL that "
    "creates the table (.sql), or a dbt schema, JSON Schema, pandera schema or Great Expectations suite (.yml, .json)."
)
SAMPLE = (
    "Rows that are public (.csv, .parquet, .jsonl, .xlsx): types, bounds and categories are read off them, and the "
    "schema says so."
)
ACCEPT = "Take the suggestions by name and type, such as 0 to 120 for an age, for what is not documented."
TYPES = (
    "Types of columns, with bounds, or with all values: 'age=integer:0:120 day=date:2000-01-01:2020-12-31 "
    "ward=categorical:north|south'; ? behind one says that values may be missing: 'income=number:0:100000?'. Of "
    "several tables TABLE.COLUMN=TYPE."
)
DISCOVER = "Leave what `nacre schema discover` can release to it, and take the types that names suggest."
NAME = "Name of the data set and of its account. (default: that of the file or folder)"
TARGET = "The column that rows should teach to predict; of several tables TABLE.COLUMN."
UNIT = "The column that tells persons apart who may have several rows: all rows of one are hidden then."
MAX_ROWS = "Rows of one person that are used, with --unit. (default: 1)"
TABLES = "Each file of the folder is a table of its own, called as the file is. (default: if their columns differ)"
TEXT = 'How numbers and dates of text are written: \'{decimal: ",", thousands: ".", date_format: "%d.%m.%Y"}\'.'
EDITOR = "Begin with a line that tells editors where the output of `nacre schema json-schema` is."
DISCOVERY = ("0.1", "1e-6")
"""Epsilon and delta of the discovery that a draft proposes."""
app = typer.Typer(no_args_is_help=True, help="Draft and check schemas, the public contract of a table.")


@app.command("init")
def schema_init(
    data: Data,
    query: QueryText = "",
    header: Annotated[bool, typer.Option("--header", help="You have seen that the file's names are names.")] = False,
    document: Annotated[Path | None, typer.Option("--from", help=FROM)] = None,
    sample: Annotated[Path | None, typer.Option("--from-sample", help=SAMPLE)] = None,
    table: Annotated[str, typer.Option(help="The table, where the documentation describes several.")] = "",
    accept: Annotated[bool, typer.Option("--accept-suggestions", help=ACCEPT)] = False,
    types: Annotated[str, typer.Option(help=TYPES)] = "",
    discover_all: Annotated[bool, typer.Option("--discover-all", help=DISCOVER)] = False,
    name: Annotated[str, typer.Option(help=NAME)] = "",
    target: Annotated[str, typer.Option(help=TARGET)] = "",
    unit: Annotated[str, typer.Option(metavar="COLUMN", help=UNIT)] = "",
    max_rows: Annotated[int | None, typer.Option(metavar="N", help=MAX_ROWS)] = None,
    out: Annotated[Path | None, typer.Option(help="File to write the draft to. (default: print it)")] = None,
    editor: Annotated[str, typer.Option(metavar="PATH", help=EDITOR)] = "",
    tables: Annotated[bool, typer.Option("--tables", help=TABLES)] = False,
    written: Annotated[str, typer.Option("--text", help=TEXT)] = "",
) -> None:
    """Draft a schema from column names and types, and from public documentation; the rest is left for you to fill in.

    Of a folder with a file for each of several tables, keys are proposed by the names of columns alone.

    Example: nacre schema init flights.csv --types "delay=integer:0:9999? carrier=categorical" --out flights.yaml
    """
    from dpmodels.authoring.draft import PublicFacts
    from dpmodels.authoring.header import DoubtfulNames
    from dpmodels.authoring.tree_draft import draft_all, places_in
    from tasks.run.source import Source

    source = Source(data, query).rows
    sources = PublicFacts(document, sample, table, accept, types, discover_all, name, target, unit, max_rows, written)
    if out is not None:
        check_new(out, "")
    try:
        text = draft_all(source, header, sources, editor, tables)
    except DoubtfulNames as doubt:
        if not sys.stdin.isatty() or not typer.confirm(escaped(f"{doubt}. Print them as names?"), err=True):
            raise
        text = draft_all(source, True, sources, editor, tables)
    _tell_names(header, data, query)
    _tell_tables(len(places_in(source, tables)), tables)
    _show_draft(text, data, query, out)
    if discover_all and (untyped := _untyped(text)):
        echo(f"no type is known of {', '.join(untyped)}: --types '{untyped[0]}=categorical' gives one", err=True)


def _tell_names(affirmed: bool, data: str, query: str) -> None:
    """Say where the names of a draft are from, unless a person has said that they are names."""
    if not affirmed:
        echo(f"{_names_from(data, query)}: check them", err=True)


def _tell_tables(several: int, asked: bool) -> None:
    """Say that a folder is taken as several tables, and why; nothing of one table."""
    if several:
        why = "as --tables says" if asked else "since the columns of its files differ"
        echo(f"the folder is taken as {several} tables, {why}; how they join is proposed by names alone", err=True)


def _show_draft(text: str, data: str, query: str, out: Path | None) -> None:
    """Print a draft, or write it to a file, and say what was not read, and what is left to write and to discover."""
    from dpmodels.artifact import write_text
    from dpmodels.authoring.draft import UNREAD
    from dpmodels.plain_yaml import read_yaml

    if out is None:
        echo(text, nl=False)
    else:
        write_text(out, text)
    for line in text.splitlines():
        if line.startswith(UNREAD):
            echo(line.removeprefix("# "), err=True)
    content = read_yaml(text)
    echo(_left(content), err=True)
    for line in _to_discover(content, data, query, out):
        echo(line, err=True)


def _untyped(text: str) -> list[str]:
    """Name the columns of a draft whose type is open, those of several tables behind their table."""
    from dpmodels.authoring.facts import TODO
    from dpmodels.plain_yaml import read_yaml

    content = read_yaml(text)
    tables = content.get("tables", {"": content})
    return [
        f"{table}.{name}" if table else name
        for table, facts in tables.items()
        for name, keys in facts["columns"].items()
        if keys.get("type") == TODO
    ]


def _left(content: Any) -> str:
    """Say how many columns of a draft have a TODO, and how many keys of its tables."""
    from dpmodels.authoring.facts import TODO

    tables = content.get("tables", {"": content}).values()
    columns = sum(TODO in column.values() for table in tables for column in table["columns"].values())
    keys = sum(value == TODO for table in tables for value in table.values())
    left = [f"columns with a TODO left: {columns}"] if columns else []
    left += [f"keys of tables with a TODO left: {keys}"] if keys else []
    nothing = "no TODO is left" + "; is `unit` right, and is there a `target`?" * ("columns" in content)
    return "; ".join([*left, "nacre schema lint names them"]) if left else nothing


def _to_discover(content: Any, data: str, query: str, out: Path | None) -> Iterator[str]:
    """Yield what a discovery of a draft's marks takes, and the commands that open its account and run it."""
    from dpmodels.contract.discovery.discovery import marks

    if not marks(content):
        return
    from flows.discover import rows_to_discover

    columns, least, alone = rows_to_discover(content, *map(float, DISCOVERY))
    spends, name = "--epsilon {} --delta {}".format(*DISCOVERY), content["name"]
    draft, finished = out or Path("DRAFT.yaml"), f"{name}.yaml"
    finished = f"{name}-discovered.yaml" if draft.name == finished else finished
    asked = f" --query {shlex.quote(query)}" if query else ""
    yield (
        f"columns left to discovery: {columns}; by {spends} a value of one alone needs about {alone:,.0f} rows to be "
        f"found, and with all of them {least:,.0f}: leave no more than is needed, and settle `unit` before; where "
        "values may be missing, add `nullable: true, max_null_share: discover`"
    )
    yield f"nacre ledger open {name} --schema {shlex.quote(str(draft))} --epsilon 3 --delta 1e-5"
    yield (
        f"nacre schema discover {shlex.quote(data)}{asked} --schema {shlex.quote(str(draft))} {spends} --out {finished}"
    )


def _names_from(data: str, query: str) -> str:
    """Say where the names of a draft are from."""
    from dpmodels.reading.addresses import address_of
    from dpmodels.reading.data_files import FORMATS

    kind = FORMATS.get(PurePosixPath(address_of(data).base).suffix.lower()) if not query else "query"
    if kind == "csv":
        return "the first line of the file is taken as names"
    if kind == "excel":
        return "the first row of the sheet is taken as names"
    if kind == "json":
        return "the first line of the file, which alone was read, is taken as names (add keys that other lines have)"
    where = {"query": "the answer to the query", None: "the source, of CSV files from their first line"}
    return f"names and types of the columns are taken from {where.get(kind, 'what the file records of them')}"


@app.command("discover")
def schema_discover(
    data: Data,
    schema: Annotated[Path, typer.Option(help="The draft, in which `discover` stands for what is to be found.")],
    epsilon: Annotated[float, typer.Option(help="Epsilon to spend, 0.001 to 1000.", **NUMBER)],
    delta: Annotated[float, typer.Option(help="Delta, above 0 and below 1; never from the row count.", **NUMBER)],
    query: QueryText = "",
    out: Annotated[Path | None, typer.Option(help="File to write the schema to. (default: print it)")] = None,
    account: Annotated[str | None, typer.Option(help="Account that pays. (default: the data set's)")] = None,
    allow_large_delta: AllowLargeDelta = None,
    home: Home = None,
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """Release what a draft marks `discover`, as one charge, and complete the schema; given again, it costs nothing.

    Example: nacre schema discover flights.parquet --schema draft.yaml --epsilon 0.1 --delta 1e-6 --out flights.yaml
    """
    from dpmodels.artifact import write_text
    from flows.command_line.console import note
    from flows.command_line.show import caution
    from flows.config import SynthesizeConfig
    from flows.discover import discover, stands_out
    from flows.settings import placed

    options = {"data": data, "schema": schema, "target_epsilon": epsilon, "delta": delta, "query": query, "home": home}
    options |= {"ledger": ledger, "account": account, "allow_large_delta": allow_large_delta, "out": out or Path("-")}
    config = SynthesizeConfig.build(placed(options))
    if out is not None:
        check_new(out)
    caution(config.privacy)
    note(stands_out(config))
    unwind()
    with interruptible(lambda: "the same command goes on, and what was charged is not charged again"):
        answer = discover(config)
        if out is not None:
            write_text(out, answer.schema)
    _show_discovered(answer, epsilon, delta, out, as_json)


def _show_discovered(answer: "Discovered", epsilon: float, delta: float, out: Path | None, as_json: bool) -> None:
    """Say what was charged and what the author should know, and print the schema unless it was written to a file."""
    from flows.command_line.console import note, print_json

    if answer.warning:
        note(f"WARNING: {answer.warning}")
    paid = f"run {answer.run.name}, epsilon={epsilon}, delta={delta}: "
    note(paid + ("charged once, for ever" if answer.charged else "was charged before; printed again, for nothing"))
    for remark in answer.remarks:
        note(remark)
    if as_json:
        warned = {"warning": answer.warning} if answer.warning else {}
        facts = {"run": answer.run.name, "charged": answer.charged, "remarks": answer.remarks, "schema": answer.schema}
        print_json({**warned, **facts})
    elif out is None:
        echo(answer.schema, nl=False)


def check_new(out: Path, more: str = f"; {UNCHARGED}") -> None:
    """Refuse a place where a file is, or where none can be written, before anything is charged."""
    from tasks.run.ready import check_writable

    if out.exists():
        raise PathTaken(out, f"already exists and is not overwritten{more}")
    check_writable(out.absolute().parent)


@app.command("json-schema")
def schema_json_schema() -> None:
    """Print the JSON Schema of a schema's file, by which editors complete keys, explain them, and mark faults.

    Example: nacre schema json-schema > nacre.json; nacre schema init flights.parquet --editor nacre.json > flights.yaml
    """
    from dpmodels.contract.discovery.discovery import editor_schema

    dialect = "https://json-schema.org/draft/2020-12/schema"
    echo(json.dumps({"$schema": dialect, **editor_schema()}, indent=2))


@app.command("lint")
def schema_lint(schema: Path, as_json: AsJson = False) -> None:
    """Explain the faults of a schema, twenty at a time, each with its line.

    Example: nacre schema lint patients.yaml
    """
    from dpmodels.authoring.cautions import faults_and_cautions
    from dpmodels.escapes import on_one_line
    from flows.command_line.console import print_json

    faults, cautions = faults_and_cautions(schema)
    if as_json:
        print_json([asdict(fault) for fault in faults])
    else:
        for fault in faults:
            hint = similar_file([str(schema)], f"{schema} {fault}")
            echo(f"{schema}: {on_one_line(str(fault))}{hint}", err=True)
    if faults:
        raise typer.Exit(1)
    if not as_json:
        echo(f"{schema}: no faults")
        for caution in cautions:
            echo(f"{schema}: {caution}")
