"""The one way from a command to the terminal: what somebody else named moves no cursor and hides no letter."""

import typer

from dpmodels.escapes import escaped


def echo(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print text, with what a terminal would obey written out."""
    typer.echo(escaped(str(text)), err=err, nl=nl)
