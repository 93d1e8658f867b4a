"""Find the ledger of a home."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from dpmodels import amounts
from dpmodels.authoring.lint import load_named
from dpmodels.errors import NacreError, Unsuitable, near
from dpmodels.ledger import ledger as ledgers
from dpmodels.ledger.database import Database, check_there, is_there
from dpmodels.ledger.records import Account
from dpmodels.plural import counted
from dpmodels.privacy import PrivacyBudget, PrivacyUnit
from flows.forecast import forecast
from flows.planning import check_delta, make_budget
from nacre.given import SchemaLike, schema_file
from nacre.notebook import rows_as_html, rows_as_text
from nacre.places import Place, home_of, url_of
from nacre.words import in_python

__all__ = ["Ledger", "PrivacyBudget", "PrivacyUnit", "ledger"]

MOST_SHOWN = 20
OPENED = "`open_account(SCHEMA, epsilon=3, delta=1e-5)`"
NAMED = "`open_account(NAME, dataset=DATASET, budget_cap=nacre.PrivacyBudget(epsilon=3, delta=1e-5))`"
NO_CAP = NO_TERMS = (None, None)
KEY = ("key", "passphrase")
TERMS = ("owner", "note", "parent", "run_cap", "expires", "composition", "partition", "officer", *KEY)
CHANGES = ("epsilon", "delta", "run_cap", "expires", "officer", *KEY)
"""Keywords of an account that is opened, and of one whose cap is changed, beside those that are written out."""
SPOKEN = ("account", "accounts", "balance", "change_cap", "entries", "history", "open_account", "plan", "verify")
"""Calls whose errors name arguments, as those of every function do."""
HEADINGS = ("account", "data set", "unit", "delta", "cap", "spent", "remaining", "charges")


class Ledger(ledgers.Ledger):
    """The ledger in one SQLite file (or at a PostgreSQL URL), which shows its accounts and what each has left.

    Look with ``accounts``, ``account``, ``balance``, ``entries``, ``history``, ``plan`` and ``verify``, which make
    nothing. ``open_account`` and ``change_cap`` write. The other methods are those that runs call for their charges.
    """

    def __init__(self, path_or_url: str | Path) -> None:
        self.address = str(path_or_url)
        if is_there(self.address):
            super().__init__(self.address)

    @cached_property
    def _database(self) -> Database:  # type: ignore[override]  # an attribute, where the ledger was there at first
        """The database of a ledger that was not there at first: a look never makes it, opening an account does."""
        check_there(self.address)
        return Database(self.address)

    def open_account(
        self,
        name: SchemaLike,
        *,
        dataset: str | None = None,
        budget_cap: PrivacyBudget | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        account: str = "",
        allow_large_delta: bool = False,
        **terms: Any,
    ) -> Account:
        """Open the account of a schema, ``open_account(schema, epsilon=3, delta=1e-5)``, or one by its name and terms.

        A schema says the data set, the unit and the adjacency of the cap; the account is called as the data set is, or
        ``account``. Without a schema ``dataset`` and ``budget_cap``, whose unit is the schema's, say all of it.
        ``terms`` are owner, note, parent, run_cap, expires and composition, and ``key`` that of an officer.

        Raises:
            NacreError: the schema has faults, or the account cannot be opened so.
        """
        check_terms("open_account", terms, ("epsilon", "delta", "account", "dataset", "budget_cap", *TERMS))
        if isinstance(name, str) and dataset is not None and budget_cap is not None and (epsilon, delta) == NO_CAP:
            self._make()
            return super().open_account(name, dataset=dataset, budget_cap=budget_cap, **terms)
        if (dataset, budget_cap) == NO_TERMS and (epsilon is None) != (delta is None):
            lacking, written = (
                ("epsilon", f"epsilon=3, delta={delta}")
                if epsilon is None
                else ("delta", f"epsilon={epsilon}, delta=1e-5")
            )
            raise Unsuitable(f"{lacking} is missing: write `open_account(SCHEMA, {written})`")
        if epsilon is None or delta is None or (dataset, budget_cap) != NO_TERMS:
            raise Unsuitable(f"an account is opened by its schema, {OPENED}, or by its name, {NAMED}")
        with schema_file(name) as file:
            contract = load_named(file)
            check_delta(delta, allow_large_delta)
            cap = make_budget(epsilon, delta, contract.unit, adjacency=contract.adjacency)
        self._make()
        return super().open_account(account or contract.name, dataset=contract.name, budget_cap=cap, **terms)

    def _make(self) -> None:
        """Make the ledger if it is not there."""
        if not is_there(self.address):
            self._database = Database(self.address)

    def plan(self, name: str, *, epsilon: float, delta: float, times: int = 1) -> dict[str, Any]:
        """Say what ``times`` releases would cost an account together, and whether they fit; writes nothing.

        Each is Gaussian, or pure at delta 0. The figures are those of ``nacre ledger plan``: ``spent_before`` and
        ``spent_after``, ``cap``, ``remaining_before`` in one release, ``noise_multiplier`` of each, and ``fits``.

        Raises:
            NacreError: no such account is open, or an amount is impossible.
        """
        return forecast(self, name, epsilon, delta, times)

    def change_cap(self, name: str, *, reason: str, **changes: Any) -> Account:
        check_terms("change_cap", changes, CHANGES)
        return super().change_cap(name, reason=reason, **changes)

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


def check_terms(function: str, terms: Mapping[str, object], known: Sequence[str]) -> None:
    """Refuse a keyword that is none, as every function does.

    Raises:
        TypeError: there is such a one; it says which was probably meant.
    """
    if unknown := next((name for name in terms if name not in known), ""):
        meant = near(unknown, [name for name in known if name not in TERMS]) or near(unknown, known)
        raise TypeError(f"{function}() got an unexpected keyword argument {unknown!r}{meant}")


for _name in SPOKEN:
    setattr(Ledger, _name, in_python(getattr(Ledger, _name)))


def ledger(home: Place | None = None, url: str | None = None) -> Ledger:
    """Return the ledger that ``synthesize`` charges: at a PostgreSQL URL, or the file in the home.

    Without arguments it is the ledger of ``NACRE_LEDGER`` or else of ``NACRE_HOME``, as for every other function.
    Reading a ledger costs nothing and makes none; ``open_account`` and ``change_cap`` write entries that stay for ever.
    """
    return Ledger(url_of(url) or home_of(home) / "ledger.sqlite")
