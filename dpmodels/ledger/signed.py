"""What an officer must have signed before anything is charged: new budgets, and whatever lets more be spent.

Whoever may charge a ledger may append to it, so an entry alone does not show that somebody was asked. As soon as an
account of a ledger has an officer, these entries need an officer's signature: one that opens an account without a
parent, one that names another officer or none, and one that raises a cap. A signature of a change names the entry
before it, so it is worth nothing a second time. What is lowered needs none.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, select

from dpmodels.errors import NotSigned
from dpmodels.keys import key_text, private_key
from dpmodels.ledger import store
from dpmodels.ledger.approval import Approval, ApprovalRequest, Officer
from dpmodels.ledger.records import Account
from dpmodels.ledger.store import Entry, digest

Named = tuple[Officer, str]
"""An officer, and the hash of the entry that opened the account whose officer this is; it names the ledger."""


@dataclass
class Signatures:
    """What the entries about accounts leave when they are read in their order, but for those that lacked a signature.

    Attributes:
        accounts: as last signed for, or as they need no signature; of plain children those that were asked for.
        officers: of accounts that have one of their own.
        lacking: by account, the entry by which it is as nobody signed for.
        mended: entries that lacked a signature, before somebody signed for the account or its cap was lowered again.
    """

    accounts: dict[str, Account] = field(default_factory=dict)
    officers: dict[str, Named] = field(default_factory=dict)
    lacking: dict[str, Entry] = field(default_factory=dict)
    mended: list[Entry] = field(default_factory=list)
    _opened: dict[str, Entry] = field(default_factory=dict)
    _plain: dict[str, Entry] = field(default_factory=dict)
    _last: dict[str, Entry] = field(default_factory=dict)

    @classmethod
    def read(cls, connection: Connection) -> "Signatures":
        """Read them from a ledger; of one that never had an officer there is nothing to read."""
        of_accounts = (
            select(store.entries.c.seq)
            .join_from(store.accounts, store.entries, store.entries.c.account == store.accounts.c.name)
            .where(store.entries.c.kind.in_(store.ACCOUNT_KINDS))
        )
        if connection.execute(of_accounts.where(store.entries.c.payload.contains('"officer":{')).limit(1)).first():
            return cls.of(store.read(connection, store.entries.c.seq.in_(of_accounts)))
        return cls()

    @classmethod
    def of(cls, chain: Iterable[Entry]) -> "Signatures":
        """Follow the entries of a chain, oldest first."""
        signatures = cls()
        for entry in chain:
            if entry.kind in store.ACCOUNT_KINDS:
                signatures._follow(entry)
        return signatures

    def asked(self, account: Account) -> tuple[list[Named], tuple[str, ...]]:
        """Return who may sign for an account as it is to be, nobody where that needs no signature, and for what."""
        before, last = self._known(account.name), self._last.get(account.name)
        if last is None:
            is_more = not account.parent or account.officer is not None
        else:
            is_more = before is None or _is_more(before, account)
        if not (is_more and self.officers):
            return [], ()
        return self._signers(account), (digest(account.terms), *([last.hash] if last else []))

    def _signers(self, account: Account) -> list[Named]:
        """Return who may sign for an account: its officer, or the nearest above it; otherwise any of the ledger."""
        path, above = [account.name], account.parent
        while above and above not in path:
            path.append(above)
            account_above = self._known(above)
            above = account_above.parent if account_above else ""
        nearest = [self.officers[name] for name in path if name in self.officers]
        return nearest[:1] or list(self.officers.values())

    def proof(self, account: Account, approval: Approval | None) -> dict[str, object] | None:
        """Return what an entry keeps of the signature for an account as it is to be; None where it needs another."""
        needed, terms = self.asked(account)
        if not needed:
            return {}
        signed = approval is not None and any(_signed(approval, account, one, terms) for one in needed)
        return {"approval": approval.model_dump(mode="json")} if signed and approval else None

    def sign(self, account: Account, key: Path, passphrase: str) -> Approval | None:
        """Sign for an account as it is to be, if this is the private key of somebody who may."""
        needed, terms = self.asked(account)
        public = key_text(private_key(key, "key", passphrase).public_key())
        for officer, ledger in needed:
            if officer.public_key == public:
                return asked(ledger, account, terms).approve(officer.name, key, passphrase)
        return None

    def refuse(self, names: Iterable[str]) -> None:
        """Refuse to charge accounts as nobody signed for.

        Raises:
            NotSigned: one of them was opened, raised or given another officer without the signature of an officer.
        """
        for name in names:
            if name in self.lacking:
                raise NotSigned(
                    name,
                    f"account {name} is as {self.lacking[name]} made it, which no officer of this ledger signed, so "
                    f"nothing is charged to it: have `nacre ledger cap {name} --epsilon EPSILON --reason TEXT --key "
                    "KEY.pem` given by its officer",
                )

    def _known(self, name: str) -> Account | None:
        if name not in self.accounts and name in self._plain:
            self.accounts[name] = Account.written_in(self._plain[name], None)
        return self.accounts.get(name)

    def _follow(self, entry: Entry) -> None:
        name = entry.account
        if entry.kind == "open" and name in self._opened:
            self.lacking[name] = entry
            self.mended.append(entry)
            return
        if entry.kind == "open" and _is_plain(entry.content):  # of which there may be ten thousand
            self._plain[name] = self._opened[name] = self._last[name] = entry
            return
        opened = self._opened.setdefault(name, entry)
        account = Account.written_in(opened, entry if entry.kind == "cap" else None)
        if self.proof(account, _approval(entry)) is None:
            self.lacking[name] = entry
            self.mended.append(entry)
        else:
            self.lacking.pop(name, None)
            self.accounts[name] = account
            self.officers.pop(name, None)
            if account.officer is not None:
                self.officers[name] = account.officer, opened.hash
        self._last[name] = entry

    @property
    def remarks(self) -> list[Entry]:
        """The entries that lacked a signature and no longer matter."""
        return [entry for entry in self.mended if entry not in self.lacking.values()]


def asked(ledger: str, account: Account, terms: tuple[str, ...]) -> ApprovalRequest:
    """Return what an officer signs for an account as it is to be: its name and terms, and the entry before a change."""
    return ApprovalRequest(ledger, account.name, "", terms, opening=True)


def _approval(entry: Entry) -> Approval | None:
    try:
        return Approval.model_validate(entry.content.get("approval"))
    except ValidationError:
        return None


def _signed(approval: Approval, account: Account, by: Named, terms: tuple[str, ...]) -> bool:
    officer, ledger = by
    return approval.public_key == officer.public_key and asked(ledger, account, terms).is_signed(approval)


def _is_plain(content: dict[str, Any]) -> bool:
    """Tell whether an opening is of an account below another without an officer of its own."""
    return bool(content.get("parent")) and content.get("officer") is None


def _is_more(before: Account, after: Account) -> bool:
    """Tell whether more may be spent, or somebody else signs."""
    looser = after.epsilon_cap > before.epsilon_cap or after.delta_cap > before.delta_cap
    one_run = after.run_cap is None or (before.run_cap is not None and after.run_cap > before.run_cap)
    longer = after.expires is None or (before.expires is not None and after.expires > before.expires)
    renamed = after.officer != before.officer
    return looser or renamed or (one_run and before.run_cap is not None) or (longer and before.expires is not None)
