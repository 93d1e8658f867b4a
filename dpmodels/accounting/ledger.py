"""The privacy ledger: what each account may spend, what was spent, and the refusal of everything beyond.

A charge lives through reserve -> draw -> seal -> commit, each durable before the next. Entries are appended, never
changed; what is spent is read from them, never stored beside them. A reserved charge counts as spent, whatever
happens to it afterwards, unless it is voided before any noise was drawn.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

from sqlalchemy import Connection, insert, select

from dpmodels.accounting import artifact, store
from dpmodels.accounting.events import Event
from dpmodels.accounting.records import TRANSITIONS, Account, Balance, Charge, Quote, Reservation, follow, lives
from dpmodels.accounting.store import Entry
from dpmodels.errors import ArtifactError, BudgetExhausted, InvalidArgument, LedgerError
from dpmodels.privacy import PrivacyBudget

__all__ = ["Account", "Balance", "Charge", "Entry", "Ledger", "Quote", "Reservation"]


class Ledger:
    """The ledger in one SQLite file (or at a database URL), safe for threads and processes."""

    def __init__(self, path_or_url: str | Path) -> None:
        self._engine = store.connect(path_or_url)

    def open_account(self, name: str, *, dataset: str, budget_cap: PrivacyBudget, note: str = "") -> Account:
        """Open an account, or return it if it is open with exactly these terms.

        Raises:
            LedgerError: the name is open with other terms, or its data set, unit and adjacency have an account.
        """
        wanted = Account(name=name, dataset=dataset, cap=budget_cap, note=note)
        with store.transaction(self._engine, write=True) as connection:
            for known in _accounts(connection, _whole_chain(connection)):
                if known == wanted.model_copy(update={"created": known.created}):
                    return known
                if known.name == name:
                    raise LedgerError(f"account {name} is already open with other terms; a cap is never changed")
                if known.scope == wanted.scope:
                    raise LedgerError(
                        f"data set {dataset} already has account {known.name} for this unit and adjacency; "
                        "a second account would be a second budget"
                    )
            opened = wanted.model_copy(update={"created": store.now()})
            connection.execute(insert(store.accounts).values(opened.row))
            store.append(connection, opened.created, name, name, "open", 1, opened.terms)
        return opened

    def accounts(self) -> list[Account]:
        """List the accounts, oldest first."""
        with store.transaction(self._engine) as connection:
            return _accounts(connection, _whole_chain(connection))

    def account(self, name: str) -> Account:
        """Return one account.

        Raises:
            LedgerError: no such account is open, or the chain is broken.
        """
        with store.transaction(self._engine) as connection:
            return _account(connection, _whole_chain(connection), name)

    def entries(self, *, account: str | None = None, key: str | None = None) -> list[Entry]:
        """List the entries, oldest first: all, one account's, or one charge's."""
        where = [store.entries.c.account == account] if account is not None else []
        where += [store.entries.c.charge == key] if key is not None else []
        with store.transaction(self._engine) as connection:
            return store.read(connection, *where)

    def balance(self, name: str) -> Balance:
        """Add up an account."""
        from dpmodels.accounting.composition import remaining_epsilon, renyi_epsilon, spent_epsilon

        with store.transaction(self._engine) as connection:
            chain = _whole_chain(connection)
            account = _account(connection, chain, name)
        events = _spent_events(chain, name)
        cap, delta = account.epsilon_cap, account.delta_cap
        return Balance(
            account=name,
            spent_epsilon=spent_epsilon(events, delta),
            renyi_epsilon=renyi_epsilon(events, delta),
            remaining_epsilon=remaining_epsilon(events, cap, delta),
            cap=cap,
            delta=delta,
            charges=len(events),
        )

    def quote(self, charge: Charge) -> Quote:
        """Say what ``reserve`` would answer to this charge, and write nothing."""
        with store.transaction(self._engine) as connection:
            return _quote(connection, charge)[0]

    def find(self, key: str) -> Reservation | None:
        """Return a charge and its state, or None."""
        with store.transaction(self._engine) as connection:
            return _find(connection, key)

    def reserve(self, charge: Charge) -> Reservation:
        """Charge the account, or return the charge made before under the same key.

        Privacy:
            The balance is read and the charge is written in one transaction that excludes every other writer, so
            the cap holds under any concurrency; a refusal happens before any noise exists.

        Raises:
            BudgetExhausted: the account's cap would be passed.
            LedgerError: the account is for other data, the charge costs more than its own budget, was voided, or
                its key belongs to a different charge.
        """
        from dpmodels.accounting.composition import remaining_epsilon

        with store.transaction(self._engine, write=True) as connection:
            quote, events = _quote(connection, charge)
            if quote.state == "voided":
                raise LedgerError(f"charge {charge.key} is voided and stays so; start a new run")
            if not quote.accepted:
                remaining = remaining_epsilon(events, quote.cap, quote.delta)
                raise BudgetExhausted(charge.account, quote.requested_epsilon, remaining, quote.cap, quote.delta)
            if quote.state == "new":
                payload = charge.model_dump(mode="json")
                store.append(connection, store.now(), charge.account, charge.key, "reserve", 1, payload)
            return _known(connection, charge.key)

    def begin_draw(self, key: str) -> Reservation:
        """Record that noise is about to be drawn; again if the draw before was never sealed."""
        return self._advance(key, "draw", {})

    def seal(self, key: str, artifact_hash: str) -> Reservation:
        """Record the sha256 of the drawn artifact; from here on no other draw can ever take its place."""
        if len(artifact_hash) != 64 or set(artifact_hash) - set("0123456789abcdef"):
            raise InvalidArgument("artifact_hash", artifact_hash, "be a sha256 in lower-case hexadecimal digits")
        return self._advance(key, "seal", {"artifact_hash": artifact_hash})

    def commit(self, key: str) -> Reservation:
        """Record that the sealed artifact is released."""
        return self._advance(key, "commit", {})

    def void(self, key: str, reason: str) -> Reservation:
        """Give a charge back whose draw never began; the entry and its reason stay."""
        return self._advance(key, "void", {"reason": reason})

    def _advance(self, key: str, kind: str, payload: Mapping[str, object]) -> Reservation:
        """Append one transition of a charge, if its state allows it."""
        with store.transaction(self._engine, write=True) as connection:
            held = _known(connection, key)
            if (held.state, kind) not in TRANSITIONS:
                raise LedgerError(f"charge {key} is {held.state}: {kind} is not allowed")
            attempt = held.draws + 1 if kind == "draw" else 1
            store.append(connection, store.now(), held.charge.account, key, kind, attempt, payload)
            return _known(connection, key)

    def release(self, charge: Charge, *, staged: Path, released: Path, draw: Callable[[Path, str], None]) -> Path:
        """Release one artifact for one charge; after a crash, call it again with the same arguments.

        ``draw`` writes the artifact to the path it is given, with the charge's key in its footer.

        Privacy:
            One charge pays for one artifact. A draw is first staged inside the sensitive zone and leaves it only
            after its hash is sealed, and a charge is sealed at most once. A draw that a crash kept from being sealed
            was therefore seen by nobody outside the zone: it is deleted, or sealed if it is complete, and drawing
            again is the first draw the outside could see. What the outside sees is one output of the mechanism.

        Raises:
            BudgetExhausted: the cap would be passed; ``draw`` was not called.
            ArtifactError: a place is taken, the disk is full, or a sealed artifact is missing or was changed.
            LedgerError: as for ``reserve``.
        """
        key = charge.key
        artifact.prepare_places(staged, released)
        with artifact.exclusive(staged):
            # 1. Reserve: the budget is charged, or refused, before any noise exists.
            if (self.find(key) or Reservation(charge=charge)).state in ("new", "reserved"):
                artifact.check_free(staged, released)
            held = self.reserve(charge)
            if held.state in ("reserved", "drawing"):
                # 2. Draw, into the sensitive zone; a staged file that exists is a complete earlier draw.
                if not staged.exists():
                    self.begin_draw(key)
                    artifact.write_whole(staged, lambda part: draw(part, key))
                # 3. Seal: from here on this artifact and no other.
                held = self.seal(key, artifact.sha256_of(staged))
            if held.state == "sealed":
                # 4. Commit, once the artifact stands in its released place.
                artifact.publish(staged, released, held.artifact_hash)
                self.commit(key)
        return artifact.checked(released, held.artifact_hash)

    def verify(self, released: Mapping[str, Path] | None = None) -> list[str]:
        """Walk the chain and name every fault: edited, deleted or moved entries, account rows, illegal lives.

        ``released`` maps charge keys to artifacts whose hashes are compared with the sealed ones. Two things cannot
        be seen from inside: that the newest entries were all cut off, and that the whole chain was rewritten with
        new hashes. Against both, compare the newest entry's hash with one kept elsewhere, as in a manifest.
        """
        with store.transaction(self._engine) as connection:
            chain = store.read(connection)
            rows = {row.name: dict(row._mapping) for row in connection.execute(select(store.accounts))}
        faults = store.chain_faults(chain)
        edited = {seq for seq, _ in faults}
        found = [message for _, message in faults]
        opened = {entry.account: entry for entry in chain if entry.kind == "open"}
        for name in sorted(rows.keys() | opened.keys()):
            if name not in rows or name not in opened:
                found.append(f"account {name} lacks its row or its opening entry")
            elif opened[name].seq not in edited and rows[name] != Account.opened_by(opened[name]).row:
                found.append(f"account {name} differs from its opening entry")
        for key, life in lives(chain).items():
            if not edited & {entry.seq for entry in life}:
                found += _life_faults(life, (released or {}).get(key))
        return found


def _whole_chain(connection: Connection) -> list[Entry]:
    """Read every entry and refuse to reckon with a broken chain."""
    chain = store.read(connection)
    if faults := store.chain_faults(chain):
        raise LedgerError(f"the chain is broken: {faults[0][1]}; `nacre ledger verify` lists every fault")
    return chain


def _accounts(connection: Connection, chain: list[Entry]) -> list[Account]:
    return [_account(connection, chain, entry.account) for entry in chain if entry.kind == "open"]


def _account(connection: Connection, chain: list[Entry], name: str) -> Account:
    opening = next((entry for entry in chain if entry.kind == "open" and entry.account == name), None)
    if opening is None:
        raise LedgerError(f"account {name} is not open")
    account = Account.opened_by(opening)
    row = connection.execute(select(store.accounts).where(store.accounts.c.name == name)).one_or_none()
    if row is None or dict(row._mapping) != account.row:
        raise LedgerError(f"account {name} differs from its opening entry; `nacre ledger verify` lists every fault")
    return account


def _find(connection: Connection, key: str) -> Reservation | None:
    life = store.read(connection, store.entries.c.charge == key, store.entries.c.kind != "open")
    return follow(life) if life else None


def _known(connection: Connection, key: str) -> Reservation:
    held = _find(connection, key)
    if held is None:
        raise LedgerError(f"charge {key} is not reserved")
    return held


def _spent_events(chain: list[Entry], name: str) -> list[Event]:
    held = [follow(life) for life in lives(entry for entry in chain if entry.account == name).values()]
    return [one.charge.event for one in held if one.state != "voided"]


def _quote(connection: Connection, charge: Charge) -> tuple[Quote, list[Event]]:
    """Compare a charge with its account; also return the events that already count."""
    from dpmodels.accounting.composition import spent_epsilon

    chain = _whole_chain(connection)
    account = _account(connection, chain, charge.account)
    _check_terms(charge, account)
    held = _find(connection, charge.key)
    if held is not None and held.charge != charge:
        raise LedgerError(f"charge {charge.key} was reserved with other terms; a changed plan needs a new run")
    events = _spent_events(chain, charge.account)
    before = spent_epsilon(events, account.delta_cap)
    after = before if held else spent_epsilon([*events, charge.event], account.delta_cap)
    quote = Quote(
        account=account.name,
        state=held.state if held else "new",
        accepted=held.state != "voided" if held else after <= account.epsilon_cap,
        requested_epsilon=Decimal(repr(charge.budget.epsilon)),
        spent_before=before,
        spent_after=after,
        cap=account.epsilon_cap,
        delta=account.delta_cap,
    )
    return quote, events


def _check_terms(charge: Charge, account: Account) -> None:
    """Refuse a charge that is about other data than the account, or whose event costs more than it says."""
    from dpmodels.accounting.composition import spent_epsilon

    asked, cap = charge.budget, account.cap
    if (charge.dataset, asked.unit, asked.adjacency) != (account.dataset, cap.unit, cap.adjacency):
        raise LedgerError(
            f"account {account.name} is for data set {account.dataset}, unit {cap.unit}, {cap.adjacency}; "
            f"the charge is for {charge.dataset}, {asked.unit}, {asked.adjacency}"
        )
    if spent_epsilon([charge.event], Decimal(repr(asked.delta))) > Decimal(repr(asked.epsilon)):
        raise LedgerError(
            f"the charge's event costs more than its budget: epsilon={asked.epsilon}, delta={asked.delta}"
        )


def _life_faults(life: list[Entry], released: Path | None) -> list[str]:
    """Name what is wrong with one charge's entries, or with its released artifact."""
    try:
        held = follow(life)
        if released is not None and held.state == "committed":
            artifact.checked(released, held.artifact_hash)
    except (LedgerError, ArtifactError) as error:
        return [str(error)]
    return []
