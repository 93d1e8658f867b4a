"""Find the ledger of a home."""

import os
from pathlib import Path

from dpmodels import amounts
from dpmodels.errors import NacreError
from dpmodels.ledger import ledger as ledgers
from dpmodels.ledger.records import Account
from dpmodels.plural import counted
from dpmodels.privacy import PrivacyBudget, PrivacyUnit
from flows.sections import HOME
from flows.settings import from_environment
from nacre.notebook import rows_as_html, rows_as_text

__all__ = ["Ledger", "PrivacyBudget", "PrivacyUnit", "home_of", "ledger", "url_of"]

Place = str | os.PathLike[str]
MOST_SHOWN = 20
HEADINGS = ("account", "data set", "unit", "delta", "cap", "spent", "remaining", "charges")


class Ledger(ledgers.Ledger):
    """The ledger in one SQLite file (or at a PostgreSQL URL), which shows its accounts and what each has left."""

    def __init__(self, path_or_url: str | Path) -> None:
        self.address = str(path_or_url)
        super().__init__(path_or_url)

    def __repr__(self) -> str:
        caption, rows = self._overview()
        return "\n  ".join([f"<{caption}", *(rows_as_text(HEADINGS, rows) if rows else ())]) + ">"

    def _repr_html_(self) -> str:
        caption, rows = self._overview()
        return rows_as_html(caption, HEADINGS, rows)

    def _overview(self) -> tuple[str, list[tuple[str, ...]]]:
        """Name the ledger and what is not shown of it, and describe its first accounts, a row each."""
        try:
            accounts = self.accounts()
            rows = [self._described(account) for account in accounts[:MOST_SHOWN]]
        except NacreError as fault:
            return f"nacre ledger at {self.address}: {fault}", []
        caption = f"nacre ledger at {self.address}, {counted(len(accounts), 'account')}"
        caption += "; what remains is for one release" if rows else ""
        more = f"; the first {MOST_SHOWN} are shown, and accounts() lists all" if len(accounts) > MOST_SHOWN else ""
        return caption + more, rows

    def _described(self, account: Account) -> tuple[str, ...]:
        balance = self.balance(account.name)
        left = (amounts.spent(balance.spent_epsilon), amounts.remaining(balance.remaining_epsilon))
        about = (account.name, account.dataset, str(account.cap.unit), amounts.written(balance.delta))
        return (*about, amounts.written(balance.cap), *left, str(balance.charges))


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
