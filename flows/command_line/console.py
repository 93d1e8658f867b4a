"""How the commands print: tables for people at a terminal, whole lines for programs that read a pipe."""

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from dpmodels.errors import NacreError
from dpmodels.escapes import escaped
from flows.command_line.options import WIDE
from flows.command_line.printing import UNCHARGED, echo, interruptible, unwind
from flows.description import as_lines

if TYPE_CHECKING:
    from tasks.run.store import Run


class _Escaping(Console):
    """Writes out what a terminal would obey in the names that tables and lines hold; styles stay markup."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Lay text out, with what a terminal would obey written out."""
        return super().render_str(escaped(text), **options)


console = _Escaping()
COPIED = re.compile(r"\bnacre [a-z]|(^|[\s(`])(~|\.{0,2}/(?!/)|\w+://)\S")
"""What a person copies from a terminal: a command or a path. The terminal may wrap it, but nobody else breaks it."""
CELLS = " | "
"""Stands between the cells of a fact that is a table itself, whose lines stay whole as well."""
FAILED_CHECKS = 3


@contextmanager
def resumable(run: "Run", begins: bool = False) -> Iterator[Callable[[], None]]:
    """Say what a run was charged, if it is cut off, and how it goes on; lend what says so when the run has begun.

    A run whose data are refused leaves nothing that could go on, so it has begun once they were read.

    Raises:
        Interrupted: there was a Ctrl-C.
    """
    from tasks.run.runs import resume_command

    def begun() -> None:
        note(f"run {run.name}; if it is interrupted: {resume_command(run)}")
        note_new_ledger(run.ledger)

    unwind()
    go_on = "to go on, without a second charge"
    with interruptible(
        lambda: f"{_charged(run)}; {go_on}: {resume_command(run)}" if run.exists else UNCHARGED, refusals=begins
    ):
        yield begun


def note_new_ledger(url: "str | Path") -> None:
    """Say where a ledger is that has no entry yet."""
    from tasks.run.accounts import new_ledger

    if said := new_ledger(url):
        note(said)


def confirm(title: str, facts: Mapping[str, str], question: str, yes: bool, as_json: bool) -> None:
    """Show what a command is about to do, and ask; JSON is left to what the command prints once it is done.

    Raises:
        Abort: the answer is no.
        NacreError: nobody is there to answer.
    """
    if not as_json:
        print_facts(title, facts)
    elif not yes:
        echo("\n".join(as_lines(facts)), err=True)
    try:
        agreed = yes or typer.confirm(escaped(question), err=True)
    except typer.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            raise NacreError("nobody answered; where there is no terminal, add --yes to agree") from None
        raise
    if not agreed:
        raise typer.Abort


def ask_again(
    said: str, as_json: bool = False, refuse: Callable[[str], object] = str, question: str = "Charge again?"
) -> None:
    """Warn of what is to be charged and, where a person sees it and can answer, ask before the charge.

    A schedule, a pipe and a program that reads JSON cannot be asked, so ``refuse`` may raise there, by what is said.
    With ``--again`` nothing is said of a plan that a run has released.

    Raises:
        Abort: the answer is no.
    """
    seen = not as_json and all(map(_is_terminal, (sys.stdin, sys.stdout, sys.stderr)))
    if not seen:
        refuse(said)
    echo(f"warning: {said}", err=True)
    if seen and not typer.confirm(question, err=True):
        raise typer.Abort


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def say(text: str, facts: Mapping[str, Any], as_json: bool) -> None:
    """Print what a command did: a sentence, or facts for a program."""
    if as_json:
        return print_json(facts)
    echo(text)


def exit_on(failed: bool) -> None:
    """End with the exit code of checks that fail, if some do and whoever called wanted that."""
    if failed:
        raise typer.Exit(FAILED_CHECKS)


def note(text: str) -> None:
    """Print something to know, on standard error, unless only results are wanted."""
    if logging.getLogger("nacre").level <= logging.WARNING:
        echo(text, err=True)


def _charged(run: "Run") -> str:
    """Say what a run was charged so far."""
    from tasks.run.remove import charged_for

    try:
        charges = [one for one in charged_for(run) if one.state != "voided"]
    except (NacreError, OSError):
        return f"`nacre ledger entries --home {run.home}` says what run {run.name} was charged"
    costs = [f"epsilon={one.charge.budget.epsilon}, delta={one.charge.budget.delta} ({one.state})" for one in charges]
    return f"run {run.name} was charged {' and '.join(costs) or 'nothing'}"


def print_table(table: Table) -> None:
    """Print a table in the width of the terminal, or, where that would cut what is copied, each row on one line."""
    cells = [str(cell) for column in table.columns for cell in column.cells]
    wide = console.measure(table, options=console.options.update(width=WIDE)).maximum > console.width
    cut = wide and any(map(COPIED.search, cells))
    if console.is_terminal and not cut:
        console.print(table)
    else:
        _Escaping(width=WIDE).print(table, soft_wrap=True)


def print_json(facts: Any) -> None:
    """Print facts for a program."""
    echo(json.dumps(facts, indent=1))


def print_facts(title: str, facts: Mapping[str, str], as_json: bool = False) -> None:
    """Print facts as a table; without a terminal, one on each line; or as JSON."""
    if as_json:
        return print_json(facts)
    if not console.is_terminal:
        echo("\n".join(as_lines(facts)))
        return
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    room = console.width - max(map(len, facts), default=0) - len("│  │  │")
    wide = {name: value for name, value in facts.items() if _width(value) > room}
    whole = {name: value for name, value in wide.items() if COPIED.search(value) or CELLS in value}
    for name, value in facts.items():
        if name not in whole:
            table.add_row(escape(name), escape(value))
    console.print(table if table.rows else title)
    for line in as_lines(whole):
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def _width(value: str) -> int:
    return max(map(len, value.split("\n")))
