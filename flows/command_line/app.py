"""The command line. Slow modules are imported inside the commands, so that ``nacre --help`` answers at once."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from dpmodels.errors import AwaitsOfficer, DataError, NacreError, SchemaError, Unsuitable
from dpmodels.escapes import escaped
from flows.command_line import audits, deployments, disclosure, free, ledger, removal, reports, runs, schemas
from flows.command_line.options import WIDE
from flows.command_line.printing import UNCHARGED, Interrupted, echo, unwind, unwritten
from flows.similar_files import similar_file
from tasks.engine.progress import Terminal
from tasks.run import signing

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout.isatty() else None,  # boxes would break and cut lines that are piped
    context_settings={} if sys.stdout.isatty() else {"terminal_width": WIDE},
    help="Turn sensitive data into synthetic data under one cumulative privacy account.",
    epilog="Each command has an example: nacre COMMAND --help. Shell completion: nacre --install-completion.",
)
for commands in (runs, removal, free, reports, disclosure, audits, deployments):
    app.add_typer(commands.app)
app.add_typer(ledger.app, name="ledger")
app.add_typer(schemas.app, name="schema")


LOADING = (
    *("synthesize", "embed-documents", "federate", "plan", "plan-documents", "plan-federation"),
    *("resume", "fit", "schema"),
)
"""Commands that load for seconds before they begin anything. A Ctrl-C ends them at once: libraries may swallow it."""
AWAITS_OFFICER = 5
"""The exit code of a run that stopped until an officer signs for it, which is no error."""
LOUDNESS = ("-q", "--quiet", "-v", "--verbose")
AS_JSON = "--json"
MISUSED = 2
"""The exit code of the parser of options, which has said what is wrong."""
INTERRUPTED = 130
"""The exit code after a Ctrl-C."""


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            echo(f"nacre {version('nacre')}")
        except PackageNotFoundError:
            echo("nacre, from a folder that is not installed: no package says its version")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results, warnings and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the seconds of each stage as well.")] = False,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Set how much every command says on standard error."""
    if context.invoked_subcommand not in LOADING:
        unwind()
    level = logging.INFO if verbose else logging.ERROR if quiet else logging.WARNING
    log = logging.getLogger("nacre")
    log.setLevel(level)
    log.handlers = [Terminal()]
    log.propagate = False
    if sys.stdin is not None and sys.stdin.isatty():
        signing.ask = _ask_passphrase


def _ask_passphrase(key: Path) -> str:
    return str(typer.prompt(escaped(f"passphrase of {key}"), hide_input=True, err=True))


def main() -> NoReturn:
    """Run the command line; an error for the user is one sentence on standard error and exit code 1."""
    with _heeded_signals():
        try:
            check_text(sys.argv[1:])
            app(arranged(sys.argv[1:]), prog_name="nacre")
        except Exception as error:
            sys.exit(_said(error))
        except SystemExit as end:
            if end.code == INTERRUPTED:  # typer takes a Ctrl-C for this, and says nothing
                echo(f"interrupted: {UNCHARGED}", err=True)
            elif end.code == MISUSED and _lacks_run(arranged(sys.argv[1:])):
                echo("RUN is the name of a run, or the folder that it handed over: `nacre runs` lists them", err=True)
            raise
        sys.exit(0)


def _said(error: Exception) -> int:
    """Print what a person can act on, and return the exit code; any other error is raised again."""
    if isinstance(error, Interrupted) or _is_interrupted(error):
        echo(f"interrupted: {error if isinstance(error, Interrupted) else UNCHARGED}", err=True)
        return INTERRUPTED
    fault = unwritten(error)
    if isinstance(error, AwaitsOfficer):
        echo(f"waiting: {error}", err=True)
    elif isinstance(error, NacreError):
        _say(error)
    elif fault is not None:
        echo(f"error: {fault}", err=True)
    else:
        raise error
    for sentence in getattr(error, "__notes__", ()):
        echo(sentence, err=True)
    return AWAITS_OFFICER if isinstance(error, AwaitsOfficer) else 1


def _is_interrupted(error: BaseException | None) -> bool:
    """Tell whether an error is what a library made of a Ctrl-C while it was being loaded."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def check_text(words: list[str]) -> None:
    """Refuse ``--text`` with nothing behind it, where the parser of options would not say what to write.

    Raises:
        Unsuitable: nothing stands behind it, or another option.
    """
    following = words[words.index("--text") + 1 :] if "--text" in words else ["written"]
    if not following or following[0].startswith("--"):
        example = '--text \'{decimal: ",", date_format: "%d.%m.%Y"}\''
        raise Unsuitable(f"--text says how numbers and dates are written, which stands behind it: {example}")


def arranged(words: list[str]) -> list[str]:
    """Let ``-q``, ``-v`` and ``--json`` stand before the command, behind it, and between its words."""
    end = words.index("--") if "--" in words else len(words)
    heard, rest = words[:end], words[end:]
    command = next((number for number, word in enumerate(heard) if not word.startswith("-")), len(heard))
    first = [word for word in heard[command:] if word in LOUDNESS]
    last = [AS_JSON] if AS_JSON in heard and command < len(heard) else []
    before, behind = ([word for word in part if word not in last] for part in (heard[:command], heard[command:]))
    return [*first, *before, *(word for word in behind if word not in LOUDNESS), *last, *rest]


def _say(error: NacreError) -> None:
    """Print an error; several faults stand one a line."""
    faults = getattr(error, "faults", ())
    if isinstance(error, SchemaError) and len(faults) > 1:
        echo(f"error: schema {error.source} has {len(faults)} faults", err=True)
    else:
        name, text = getattr(error, "name", ""), str(error)
        if isinstance(error, DataError):  # whose sentence has its faults; several stand below it
            faults = faults if len(faults) > 1 else ()
            if faults:
                text = text.replace("; ".join(faults), f"the data breaks {len(faults)} rules of its schema")
        dashes = "--" if text.startswith(f"{name}=") and _is_option(name) else ""
        text = (text.replace(name, name.replace("_", "-"), 1) if dashes else text) + similar_file(sys.argv[1:], text)
        echo(f"error: {dashes}{text}", err=True)
        faults = () if isinstance(error, SchemaError) else faults
    for fault in faults:
        echo(f"  {fault}", err=True)


def _lacks_run(words: list[str]) -> bool:
    """Tell whether a command is given without the run that it needs."""
    command, rest = _command(words)
    try:
        command.make_context("", rest)
    except Exception as refusal:  # of the parser, which has said so in its words
        return getattr(getattr(refusal, "param", None), "name", "") == "run"
    return False


def _command(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command that words name, and the words behind it."""
    command: Any = typer.main.get_command(app)
    rest = words
    for number, word in enumerate(words, start=1):
        if word in getattr(command, "commands", {}):
            command, rest = command.commands[word], words[number:]
    return command, rest


def _is_option(name: str) -> bool:
    """Tell whether the command that was given has an option of this name; a key of its file has none."""
    command, _ = _command(arranged(sys.argv[1:]))
    return any(f"--{name.replace('_', '-')}" in one.opts for one in command.params)


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
