"""The one way from a command to the terminal: what somebody else named moves no cursor and hides no letter."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from dpmodels.escapes import escaped


class Interrupted(Exception):
    """A Ctrl-C ended the command; the message says what it did until then."""


def unwind() -> None:
    """Have a Ctrl-C end in order what is under way, from here on; a process that ignores it goes on doing so."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def interruptible(sentence: str) -> Iterator[None]:
    """Say after a Ctrl-C what the block did until then.

    Raises:
        Interrupted: there was one.
    """
    unwind()
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(sentence) from None


def echo(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print text, with what a terminal would obey written out."""
    typer.echo(escaped(str(text)), err=err, nl=nl)
