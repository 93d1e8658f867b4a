"""The command line. Slow modules are imported inside the commands, so that ``nacre --help`` answers at once."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from dpmodels.errors import NacreError
from flows.command_line import audits, deployments, free, ledger, reports, runs, schemas

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Turn sensitive data into synthetic data under one cumulative privacy account.",
)
for commands in (runs, free, reports, audits, deployments):
    app.add_typer(commands.app)
app.add_typer(ledger.app, name="ledger")
app.add_typer(schemas.app, name="schema")


def main() -> NoReturn:
    """Run the command line; an error for the user is one sentence on standard error and exit code 1."""
    with _heeded_signals():
        try:
            app()
        except NacreError as error:
            typer.echo(f"error: {error}", err=True)
            sys.exit(1)
        sys.exit(0)


@contextmanager
def _heeded_signals() -> Iterator[None]:
    """End on SIGTERM through every `finally`, and on each signal even if it arrives during a finalizer.

    Python reports and drops any exception in a finalizer or a weak reference's callback, even that of a Ctrl-C, and
    third-party libraries have many of these. Such a signal is sent again, a moment later.
    """
    report = sys.unraisablehook
    signals: dict[type[BaseException], int] = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}

    def send_again(dropped: "sys.UnraisableHookArgs") -> None:
        number = signals.get(dropped.exc_type)
        if number is None:
            report(dropped)
        else:
            timer = threading.Timer(0.1, os.kill, (os.getpid(), number))
            timer.daemon = True
            timer.start()

    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = report
        signal.signal(signal.SIGTERM, before)
