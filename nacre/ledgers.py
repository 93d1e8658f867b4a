"""Find the ledger of a home."""

import os
from pathlib import Path

from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget, PrivacyUnit
from flows.sections import HOME
from flows.settings import from_environment

__all__ = ["Ledger", "PrivacyBudget", "PrivacyUnit", "home_of", "ledger", "url_of"]

Place = str | os.PathLike[str]


def ledger(home: Place | None = None, url: str | None = None) -> Ledger:
    """Return the ledger that ``synthesize`` charges: at a PostgreSQL URL, or the file in the home.

    Without arguments it is the ledger of ``NACRE_LEDGER`` or else of ``NACRE_HOME``, as for every other function.
    Reading a ledger costs nothing; ``open_account`` and ``change_cap`` write entries that stay for ever.
    """
    return Ledger(url_of(url) or home_of(home) / "ledger.sqlite")


def home_of(home: Place | None) -> Path:
    """Return the folder of all state: the given one, else ``NACRE_HOME``, else ``.nacre`` in the working folder."""
    return Path(home or from_environment("home") or HOME).absolute()


def url_of(url: str | None) -> str | None:
    """Return the URL of a shared ledger: the given one, else ``NACRE_LEDGER``, else None for the home's own."""
    return url or from_environment("ledger")
