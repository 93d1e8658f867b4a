"""The commands of ``nacre schema``: draft the public contract of a table, and check it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.command_line.options import Data, QueryText

app = typer.Typer(no_args_is_help=True, help="Draft and check schemas, the public contract of a table.")


@app.command("init")
def schema_init(
    data: Data,
    query: QueryText = "",
    header: Annotated[bool, typer.Option("--header", help="You have seen that the file's names are names.")] = False,
) -> None:
    """Draft a schema from column names and types only; every bound and category is left for you to fill in."""
    from dpmodels.schema.draft import draft
    from dpmodels.schema.header import DoubtfulNames
    from tasks.source import source_of

    source = source_of(data, query)
    try:
        text = draft(source, header)
    except DoubtfulNames as doubt:
        if not sys.stdin.isatty() or not typer.confirm(f"{doubt}. Print them as names?", err=True):
            raise
        text = draft(source, affirmed=True)
    typer.echo("the first line of a CSV file, or what the file says of itself, is taken as names: check them", err=True)
    typer.echo(text)


@app.command("lint")
def schema_lint(schema: Path) -> None:
    """Explain every fault of a schema with its line."""
    from dpmodels.schema.lint import lint

    faults = lint(schema)
    for fault in faults:
        typer.echo(f"{schema}: {fault}", err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo(f"{schema}: no faults")
