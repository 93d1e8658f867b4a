"""Where the state of runs lies: the home and the ledger that a call gives, or those of the environment."""

import os
from pathlib import Path

from flows.sections import HOME
from flows.settings import from_environment

Place = str | os.PathLike[str]


def home_of(home: Place | None) -> Path:
    """Return the folder of all state: the given one, else ``NACRE_HOME``, else ``.nacre`` in the working folder."""
    return Path(home or from_environment("home") or HOME).absolute()


def url_of(url: str | None) -> str | None:
    """Return the URL of a shared ledger: the given one, else ``NACRE_LEDGER``, else None for the home's own."""
    return url or from_environment("ledger")
