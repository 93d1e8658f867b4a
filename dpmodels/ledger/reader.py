"""What is read of the privacy ledger: accounts, entries, balances, and what a charge would be answered."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from dpmodels.accounting.meaning import Together
from dpmodels.ledger import audit, books, opening, store, weighing
from dpmodels.ledger.approval import ApprovalRequest, Officer
from dpmodels.ledger.books import Limit
from dpmodels.ledger.database import Database, integrity_fault
from dpmodels.ledger.declared import Declaration
from dpmodels.ledger.records import Account, Balance, Charge, Earlier, Quote, Reservation, Standing
from dpmodels.ledger.store import Entry

Opens = Account | Sequence[Account] | None
"""Accounts to open in the transaction that charges them, unless they are open."""


class LedgerReader:
    """A ledger that is only looked at."""

    def __init__(self, path_or_url: str | Path) -> None:
        self._database = Database(path_or_url)

    @property
    def is_frozen(self) -> bool:
        """Tell whether the ledger lies where it cannot be written, so that it can be looked at and nothing else."""
        return self._database.frozen is not None

    def accounts(self) -> list[Account]:
        """List the accounts, oldest first."""

        def work(connection: Connection) -> list[Account]:
            names = select(store.entries.c.account).where(store.entries.c.kind == "open").order_by(store.entries.c.seq)
            return [each.account for each in books.books(connection, connection.execute(names).scalars()).values()]

        return self._database.read(work)

    def account(self, name: str) -> Account:
        """Return one account.

        Raises:
            LedgerError: no such account is open, or the entries that it is read from are damaged.
        """
        return self._database.read(lambda connection: books.book(connection, name).account)

    def entries(self, *, account: str | None = None, key: str | None = None) -> list[Entry]:
        """List the entries, oldest first: all, one account's, or one charge's."""
        where = [store.entries.c.account == account] if account is not None else []
        where += [store.entries.c.charge == key] if key is not None else []
        return self._database.read(lambda connection: store.read(connection, *where))

    def entry(self, seq: int) -> Entry | None:
        """Return the entry at one place of the chain, or None."""
        rows = self._database.read(lambda connection: store.read(connection, store.entries.c.seq == seq))
        return rows[0] if rows else None

    def head(self) -> Entry | None:
        """Return the newest entry, or None if the chain is empty."""
        return self._database.read(store.head)

    def balance(self, name: str) -> Balance:
        """Return what an account has spent, with the heaviest line of accounts below it, and what remains."""

        def work(connection: Connection) -> tuple[Limit, int, list[str]]:
            limit = books.limit(connection, books.book(connection, name))
            return limit, books.charges(connection, name), store.children(connection, [name]).get(name, [])

        limit, charges, children = self._database.read(work)
        spent = limit.spent()
        return Balance(
            account=name,
            spent_epsilon=spent,
            renyi_epsilon=spent if limit.order else limit.renyi(),
            remaining_epsilon=limit.remaining(),
            cap=limit.cap,
            delta=limit.delta,
            charges=charges,
            children=tuple(children),
        )

    def is_charged(self, name: str) -> bool:
        """Tell whether an account or one below it has a charge that was not given back, however little it cost."""
        balance = self.balance(name)
        return balance.charges > 0 or any(map(self.is_charged, balance.children))

    def standing(self, *keys: str) -> Standing:
        """Return where an account stood when it was charged for one run, which has these charges.

        Raises:
            LedgerError: there is no such charge.
        """

        def work(connection: Connection) -> tuple[Limit, Account, tuple[int, tuple[Earlier, ...]]]:
            limit = books.around(connection, keys)
            return limit, books.book(connection, limit.name).account, books.earlier(connection, keys)

        limit, account, (charges, earlier) = self._database.read(work)
        after = limit.spent_after()
        together = Together.of(limit.after, float(after), float(limit.delta))
        return Standing(
            account=limit.name,
            delta=limit.delta,
            cap=limit.cap,
            before=limit.spent(),
            after=after,
            remaining=replace(limit, tallies=limit.after).remaining(),
            **(asdict(together) if together else {}),
            charges=charges,
            earlier=earlier,
            owner=account.owner,
            expires=account.expires,
        )

    def history(self, name: str, points: int) -> list[tuple[str, Decimal, Decimal]]:
        """Return time, spent epsilon and cap after ``points`` of the entries that changed them, evenly spread, or all.

        Units: epsilon at the account's delta.
        """
        with_tally = [entry for entry in self.entries(account=name) if entry.kind in store.SPENDING_KINDS]
        return list(books.history(with_tally, points))

    def quote(self, charge: Charge, *others: Charge, first_opens: Opens = None) -> Quote:
        """Say what ``reserve`` would answer, and write nothing; the quote's state is that of the first charge."""
        return self._weigh((charge, *others), first_opens).quote()

    def asked(
        self, charge: Charge, *others: Charge, first_opens: Opens = None, declared: Declaration | None = None
    ) -> tuple[Officer, ApprovalRequest] | None:
        """Return who must sign for charges that ``reserve`` is to make, if anybody must, and what is to be signed."""
        return self._weigh((charge, *others), first_opens).asked(declared)

    def check(self, charge: Charge, *others: Charge, first_opens: Opens = None) -> None:
        """Refuse what ``reserve`` would refuse, the lack of an approval excepted, and write nothing.

        Raises:
            BudgetExhausted: as for ``reserve``.
            LedgerError: as for ``reserve``.
        """
        weighed = self._weigh((charge, *others), first_opens)
        if not weighed.accepted:
            raise weighed.refusal()

    def _weigh(self, charges: Sequence[Charge], first_opens: Opens) -> weighing.Weighing:
        """Weigh charges and write nothing; accounts that are not open are opened in a transaction that is undone."""
        if not first_opens:
            return self._database.read(lambda connection: weighing.weigh(connection, *charges))

        def work(connection: Connection) -> weighing.Weighing:
            opened = opening.open_missing(connection, several(first_opens))
            return replace(weighing.weigh(connection, *charges), opened=opened)

        return self._database.rehearse(work)

    def find(self, key: str) -> Reservation | None:
        """Return a charge and its state, or None."""
        return self._database.read(lambda connection: books.find(connection, [key])).get(key)

    def sealed(self) -> set[str]:
        """Return the digests of all artifacts that were sealed."""
        seals = self._database.read(lambda connection: store.read(connection, store.entries.c.kind == "seal"))
        return {entry.content["artifact_hash"] for entry in seals}

    def declared(self, key: str) -> Declaration:
        """Return what was declared with a charge, which the chain has; of a later version what this one knows."""
        said = self.entries(key=key)[0].content.get("declared", {})
        return Declaration(**{name: words for name, words in said.items() if name in Declaration.model_fields})

    def approval(self, key: str) -> dict[str, Any] | None:
        """Return the signature that a charge was made with, or None; a family's is in the entry of its first charge."""
        signed: dict[str, Any] | None = self.entries(key=key)[0].content.get("approval")
        return self.approval(signed["with"]) if signed and "with" in signed else signed

    def officer(self, name: str) -> tuple[Officer, str] | None:
        """Return who must approve an account's charges: its own officer or that of the nearest account above it.

        The second value is the hash of the entry that opened the officer's account; it names this ledger in what is
        signed.
        """
        return self._database.read(lambda connection: books.officer(books.family(connection, [name]).path(name)))

    def verify(self, released: Mapping[str, Path] | None = None) -> list[str]:
        """Walk the whole chain and name every fault: changed entries or account rows, illegal lives, wrong sums.

        ``released`` maps charge keys to artifacts whose hashes are compared with the sealed ones. Two things cannot
        be seen from inside: that the newest entries were all cut off, and that the whole chain was rewritten with
        new hashes. To notice either, compare the newest entry's hash with one kept elsewhere, as in a manifest.
        """
        return self._database.inspect(lambda connection: audit.audit(connection, released or {}))

    def remarks(self) -> list[str]:
        """Name what is no fault, and still worth a question: a clock that ran backwards, an account nobody signed."""
        return self._database.inspect(audit.remarks)

    @property
    def damage(self) -> str:
        """The first thing that SQLite finds wrong with the ledger's file; empty where all is well."""
        return self._database.inspect(integrity_fault)


def several(opens: Opens) -> Sequence[Account]:
    """List the accounts to open."""
    return [opens] if isinstance(opens, Account) else opens or ()
