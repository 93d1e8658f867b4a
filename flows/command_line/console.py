"""How the commands print: tables for people at a terminal, whole lines for programs that read a pipe."""

import json
from collections.abc import Mapping
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.description import as_lines

console = Console()
WIDE = 100_000
"""Width that is assumed without a terminal, so large that piped lines are never broken."""


def print_table(table: Table) -> None:
    """Print a table in the width of the terminal; without one, each row on one line."""
    (console if console.is_terminal else Console(width=WIDE)).print(table)


def print_json(facts: Any) -> None:
    """Print facts for a program."""
    typer.echo(json.dumps(facts, indent=1))


def print_facts(title: str, facts: Mapping[str, str], as_json: bool = False) -> None:
    """Print facts as a table; without a terminal, one on each line; or as JSON."""
    if as_json:
        return print_json(facts)
    if not console.is_terminal:
        typer.echo("\n".join(as_lines(facts)))
        return
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(escape(name), escape(value))
    console.print(table)
