"""The privacy ledger: it knows what each account may spend and has spent, and refuses every charge beyond its cap.

A charge lives through reserve -> draw -> seal -> commit, each durable before the next. Entries are appended, never
changed; what is spent is read from them, never stored beside them. A reserved charge counts as spent, whatever
happens to it afterwards, unless it is voided before any noise was drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from sqlalchemy import Connection

from dpmodels import artifact
from dpmodels.accounting.tally import Tally
from dpmodels.errors import ChargeState, InvalidArgument, LedgerError
from dpmodels.ledger import audit, books, opening, store, weighing
from dpmodels.ledger.approval import Approval
from dpmodels.ledger.database import lock
from dpmodels.ledger.declared import Declaration
from dpmodels.ledger.reader import LedgerReader, Opens, several
from dpmodels.ledger.records import (
    TRANSITIONS,
    Account,
    Balance,
    Charge,
    Quote,
    Reservation,
    follow,
)
from dpmodels.ledger.signed import Signatures
from dpmodels.ledger.store import Draft, Entry
from dpmodels.privacy import PrivacyBudget

Proof = Callable[[Connection, Reservation], Mapping[str, object]]

__all__ = ["Account", "Balance", "Charge", "Entry", "Ledger", "Quote", "Reservation"]


class Ledger(LedgerReader):
    """The ledger in one SQLite file (or at a PostgreSQL URL), safe for threads, processes and forks."""

    def open_account(
        self,
        name: str,
        *,
        dataset: str,
        budget_cap: PrivacyBudget,
        key: Path | None = None,
        passphrase: str = "",
        **terms: Any,
    ) -> Account:
        """Open an account, or return it if it is open with exactly these terms.

        Where any account of this ledger has an officer, one without a parent is a new budget and needs the signature of
        an officer, as does one that has an officer of its own. The officer's private ``key`` (PEM, unlocked by
        ``passphrase``) signs the account's name and all its terms.

        ``terms`` are the other fields of ``Account``: owner, note, parent, run_cap, expires, composition. A child has
        its parent's unit, adjacency and composition; opening it declares its data disjoint from its siblings'.

        Raises:
            LedgerError: the name is open with other terms, another account has this data set, unit and adjacency, or
                the parent is of another kind.
            AccountMissing: no officer signed for it.
            InvalidArgument: a term is impossible.
        """
        account = opening.new_account(name, dataset, budget_cap, terms)
        approval = (
            self._signed(lambda connection: opening.fitted(connection, account), key, passphrase) if key else None
        )
        return self._database.write(lambda connection: opening.open_account(connection, account, approval))

    def _signed(self, account: Callable[[Connection], Account], key: Path, passphrase: str) -> Approval | None:
        """Sign for an account as it is to be, before the transaction that writes it."""

        def work(connection: Connection) -> tuple[Signatures, Account]:
            return Signatures.read(connection), account(connection)

        signatures, requested = self._database.read(work)
        return signatures.sign(requested, key, passphrase)

    def change_cap(
        self, name: str, *, reason: str, key: Path | None = None, passphrase: str = "", **changes: Any
    ) -> Account:
        """Change an account's epsilon, delta, run_cap, expires or officer; an entry keeps change and reason for ever.

        Where any account of this ledger has an officer, whatever lets more be spent, or names another officer, needs
        the signature of the account's officer, or of the nearest above it, or of any where there is none: the private
        ``key`` (PEM, unlocked by ``passphrase``). With it, terms that nobody signed for are signed as they are.

        Privacy:
            Nothing is given back: what was spent counts against the new cap, and a cap below it is refused. A cap that
            is raised after looking at releases promises the new cap only.

        Raises:
            LedgerError: the new cap is below what is spent, there is no reason, or an officer did not sign.
            InvalidArgument: a term is impossible.
        """
        if not reason.strip():
            raise LedgerError("a cap is changed for a reason, which stays in the ledger")

        def changed(connection: Connection) -> Account:
            return opening.with_changes(books.book(connection, name).account, changes)

        approval = self._signed(changed, key, passphrase) if key else None
        return self._database.write(lambda connection: opening.change(connection, name, changes, reason, approval))

    def reserve(
        self,
        charge: Charge,
        *others: Charge,
        approval: Approval | None = None,
        first_opens: Opens = None,
        alone: bool = False,
        declared: Declaration | None = None,
    ) -> Reservation:
        """Charge the account, or return the charge made before under the same key; with others, all or none.

        The other charges are of the same account or of its siblings, such as the clients of a federation or the nights
        of a month. The whole family must then fit under the cap of every child and of every account above.
        ``first_opens`` are accounts that are opened in the same transaction where their names are not open yet, so a
        charge that fails leaves no account behind; with ``alone`` only where no account is open at all. What is
        ``declared`` is kept in the entry of each new charge.

        Privacy:
            The balances are read and the charges are written in one transaction that excludes every other writer of
            the accounts, so the caps hold under any concurrency; a refusal happens before any noise exists.

        Raises:
            BudgetExhausted: the cap of the account, of one above it, or of one run would be passed.
            LedgerError: an account is for other data or has expired, a charge costs more than its own budget, the
                first was voided, a key belongs to a different charge, the accounts are no siblings, or their officer
                did not sign.
            AccountMissing: an account was to be opened, and others are open, or an officer did not sign for it.
        """
        if any(Tally.of([each.priced]).others for each in (charge, *others)):
            # this slow computation is remembered, so that it is not made while the lock is held
            self.quote(charge, *others, first_opens=first_opens)

        terms = several(first_opens), alone, approval, declared
        answer = self._database.write(lambda connection: _charged(connection, (charge, *others), *terms))
        if isinstance(answer, weighing.Weighing):
            raise answer.refusal()
        return answer

    def begin_draw(self, key: str) -> Reservation:
        """Record that noise is about to be drawn, also where an earlier draw was never sealed."""
        return self._advance(key, "draw", {})

    def seal(self, key: str, artifact_hash: str) -> Reservation:
        """Record the SHA-256 of the drawn artifact; from then on no other draw can take its place."""
        if len(artifact_hash) != 64 or set(artifact_hash) - set("0123456789abcdef"):
            raise InvalidArgument("artifact_hash", artifact_hash, "be a sha256 in lower-case hexadecimal digits")
        return self._advance(key, "seal", {"artifact_hash": artifact_hash})

    def commit(self, key: str) -> Reservation:
        """Record that the sealed artifact is released."""
        return self._advance(key, "commit", {})

    def void(self, key: str, reason: str) -> Reservation:
        """Give a charge back whose draw never began; an entry keeps the reason and the proof.

        Privacy:
            A draw is recorded durably before it begins, so a chain without a draw entry proves that there was no draw;
            after the void entry no draw can begin.

        Raises:
            LedgerError: a draw began, or there is no reason.
        """
        if not reason.strip():
            raise LedgerError("a charge is voided for a reason, which stays in the ledger")

        def proof(connection: Connection, reservation: Reservation) -> Mapping[str, object]:
            (reserve,) = store.read(connection, store.entries.c.charge == key, store.entries.c.kind == "reserve")
            tally = books.book(connection, reservation.charge.account).tally - reservation.cost
            return {
                "reason": reason,
                "proof": {"reserve": reserve.hash, "draws": reservation.draws},
                "tally": tally.brief,
            }

        return self._advance(key, "void", proof)

    def _advance(self, key: str, kind: str, payload: Mapping[str, object] | Proof) -> Reservation:
        """Append one transition of a charge, if its state allows it."""

        def work(connection: Connection) -> Reservation:
            life = _life(connection, key)
            account = life[0].account
            if lock(connection, [account]):  # another writer may have appended before the lock was taken
                life = _life(connection, key)
            reservation = follow(life)
            if (reservation.state, kind) not in TRANSITIONS:
                raise ChargeState(key, reservation.state, f"{kind} is not allowed")
            content = payload(connection, reservation) if callable(payload) else payload
            attempt = reservation.draws + 1 if kind == "draw" else 1
            return follow([*life, *store.append(connection, [Draft(account, key, kind, attempt, content)])])

        return self._database.write(work)

    def release(
        self,
        charge: Charge,
        *,
        staged: Path,
        released: Path,
        draw: Callable[[Path, str], None],
        announced: bool = False,
    ) -> Path:
        """Release one artifact for one charge; after a crash, call it again with the same arguments.

        ``draw`` writes the artifact to the path it is given, with the charge's key in its footer. An ``announced`` draw
        calls ``begin_draw`` itself, right before its first noise; if it fails before, the charge can be voided.

        Privacy:
            One charge pays for one artifact. A draw is first staged inside the sensitive zone and leaves it only
            after its hash is sealed, and a charge is sealed at most once. A draw that a crash kept from being sealed
            was therefore seen by nobody outside the zone: it is sealed if it is complete, and otherwise deleted and
            drawn again. So the outside sees one output of the mechanism.

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
            reservation = self.reserve(charge)
            if reservation.state in ("reserved", "drawing") and not staged.exists():
                # 2. Draw, into the sensitive zone; a staged file that exists is a complete earlier draw.
                reservation = reservation if announced else self.begin_draw(key)
                artifact.write_whole(staged, lambda part: self._draw(draw, part, key))
                reservation = self.find(key) or reservation
            return self._finish(reservation, staged, released)

    def recover(self, key: str, *, staged: Path, released: Path) -> Reservation:
        """Finish what a crash left of one charge, as far as that needs no draw, and return where it stands.

        A complete draw is sealed and released. A charge whose draw never began, or was never completed, stays charged
        until its run is resumed; if the draw never began, the charge can also be voided.

        Raises:
            ArtifactError: a sealed artifact is missing or was changed.
        """
        reservation = self.find(key) or _unknown(key)
        if reservation.state == "sealed" or (reservation.state == "drawing" and staged.exists()):
            artifact.prepare_places(staged, released)
            with artifact.exclusive(staged):
                self._finish(self.find(key) or reservation, staged, released)
        return self.find(key) or reservation

    def _draw(self, draw: Callable[[Path, str], None], part: Path, key: str) -> None:
        """Draw, and check that the ledger has an entry of the draw."""
        draw(part, key)
        if (self.find(key) or _unknown(key)).state != "drawing":
            raise LedgerError(f"charge {key} was drawn without a word to the ledger; the artifact is not sealed")

    def _finish(self, reservation: Reservation, staged: Path, released: Path) -> Path:
        """Seal a complete draw and release it."""
        if reservation.state == "drawing":
            # 3. Seal: from here on this artifact and no other.
            reservation = self.seal(reservation.key, artifact.sha256_of(staged))
        if reservation.state == "sealed":
            # 4. Commit, once the artifact stands in its released place.
            artifact.publish(staged, released, reservation.artifact_hash)
            self.commit(reservation.key)
        return artifact.checked(released, reservation.artifact_hash)

    def grant(self, role: str) -> None:
        """Let a role of PostgreSQL charge this ledger, and neither change nor delete an entry; for the tables' owner.

        Raises:
            LedgerError: the ledger is a file, there is no such role, or this process may not grant anything.
        """
        self._database.grant(role)

    def mend(self) -> None:
        """Make the indices of a damaged file anew, if its entries and accounts are whole.

        Raises:
            LedgerError: they are not; nothing was changed.
        """

        def check(connection: Connection) -> None:
            if faults := audit.audit(connection, {}):
                raise LedgerError(f"the ledger is damaged beyond its indices ({faults[0]}); put the newest copy back")

        if self.damage:
            self._database.mend(check)


def _charged(
    connection: Connection,
    charges: Sequence[Charge],
    opens: Sequence[Account],
    alone: bool,
    approval: Approval | None,
    declared: Declaration | None,
) -> Reservation | weighing.Weighing:
    """Write charges, and return the first; where they pass a cap, return what they weigh."""
    opening.open_missing(connection, opens, alone)
    weighed = weighing.weigh(connection, *charges, write=True)
    if weighed.first is not None and weighed.first.state == "voided":
        raise ChargeState(charges[0].key, "voided", "it stays so; start a new run")
    if not weighed.accepted and opens:
        raise weighed.refusal()  # raising rolls the opening back
    if not weighed.accepted:
        return weighed
    if weighed.fresh:
        store.append(connection, weighed.drafts(approval, declared))
    costs = {fresh.key: cost for fresh, cost in weighed.fresh}
    return weighed.first or Reservation(charge=charges[0], state="reserved", cost=costs[charges[0].key])


def _life(connection: Connection, key: str) -> list[Entry]:
    return store.lives(connection, [key]).get(key) or _unknown(key)


def _unknown(key: str) -> NoReturn:
    raise ChargeState(key, "not reserved", "no entry of the ledger names it")
