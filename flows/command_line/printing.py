"""The one way from a command to the terminal: what somebody else named moves no cursor and hides no letter."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from dpmodels.errors import UNCHARGED as UNCHARGED
from dpmodels.errors import NacreError, shortened
from dpmodels.escapes import escaped

NO_ROOM = ("disk I/O error", "disk is full", "File too large", "No space left")


class Interrupted(Exception):
    """A Ctrl-C ended the command; the message says what it did until then."""


def unwind() -> None:
    """Have a Ctrl-C end in order what is under way, from here on; a process that ignores it goes on doing so."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def interruptible(charged: Callable[[], str], refusals: bool = True) -> Iterator[None]:
    """Say, after a Ctrl-C or in an error's note, what the block charged until then and how it goes on.

    An error is one of nacre's, or of a file that cannot be written; without ``refusals`` it is of such a file alone.

    Raises:
        Interrupted: there was a Ctrl-C.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(charged()) from None
    except Exception as error:
        told = unwritten(error) is not None or (refusals and isinstance(error, NacreError))
        if told and (said := charged()) not in str(error):
            error.add_note(said)
        raise


def unwritten(error: BaseException | None) -> str | None:
    """Return which file could not be read or written and why, of whatever library says so; None of other errors."""
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        fault = os.strerror(error.errno) if error.errno else error.strerror or str(error)
        return f"{shortened(error.filename or 'a file')}: {fault.lower()}"
    if isinstance(error, NacreError):
        return None if unwritten(error.__cause__) is None else str(error)
    library, reason = type(error).__module__.partition(".")[0], str(getattr(error, "orig", error)).partition("\n")[0]
    if library not in ("sqlalchemy", "safetensors", "safetensors_rust") or not any(one in reason for one in NO_ROOM):
        return None
    return f"a file could not be written ({escaped(reason)}): make room, or lift the limit on the size of files"


def echo(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print text, with what a terminal would obey written out."""
    typer.echo(escaped(str(text)), err=err, nl=nl)
