"""Walk the whole ledger and name everything that is not as it was written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError
from sqlalchemy import Connection, select

from dpmodels import artifact
from dpmodels.accounting.events import Event
from dpmodels.accounting.tally import Tally
from dpmodels.errors import ArtifactError, LedgerError
from dpmodels.ledger import store
from dpmodels.ledger.approval import Approval, ApprovalRequest, Officer
from dpmodels.ledger.books import books
from dpmodels.ledger.database import integrity_fault
from dpmodels.ledger.records import Account, follow, lives, read_reserve
from dpmodels.ledger.replay import Replay
from dpmodels.ledger.signed import Signatures
from dpmodels.ledger.store import Entry, digest


def audit(connection: Connection, released: Mapping[str, Path]) -> list[str]:
    """Name every fault: edited, deleted or moved entries and account rows, illegal lives, sums, changed artifacts.

    ``released`` maps charge keys to artifacts whose hashes are compared with the sealed ones. The chain is read from
    the table alone; then what a charge asks is asked by the lookups of a charge, and the answers are compared.
    """
    store.plan_by(connection, "table")
    chain = store.read(connection)
    faults = store.chain_faults(chain)
    edited = {seq for seq, _ in faults}
    whole = [entry for entry in chain if entry.seq not in edited]
    damage = integrity_fault(connection)
    problems = [f"the file is damaged: {damage}"] if damage else []
    problems += [message for _, message in faults]
    rows = list(_row_faults(connection, chain, edited))
    problems += rows
    runs = {seq: run for seq, run in connection.execute(select(store.entries.c.seq, store.entries.c.run))}
    problems += [f"{entry} is filed under another run than its own" for entry in whole if entry.run != runs[entry.seq]]
    for key, life in lives(chain).items():
        if not edited & {entry.seq for entry in life}:
            problems += _life_faults(life, released.get(key))
    if not edited:
        replay = Replay()
        try:
            problems += _sum_faults(chain, replay)
            problems += _approval_faults(chain)
            store.plan_by(connection, "index")
            problems += [] if rows else _lookup_faults(connection, chain, replay.tallies)
        except (ValueError, KeyError, TypeError, AttributeError):  # true hashes, and yet not what any version writes
            problems.append("the chain has an entry that a ledger did not write, and can be weighed no further")
    return problems


def remarks(connection: Connection) -> list[str]:
    """Say what is no fault of the chain, and what whoever answers for the ledger wants to know.

    Times are those of the clocks of the machines that wrote. A clock that is corrected steps back a little, once; one
    that was set back hides when something was charged. Versions before this one let anybody open an account beside
    one that has an officer, and raise a cap; what was signed since is no fault any more.
    """
    chain, sentences = store.read(connection), list[str]()
    for before, entry in pairwise(chain):
        if entry.time < before.time:
            by = entry.content.get("by", "an unknown process")
            sentences.append(f"{entry} by {by} says {entry.time[:19]}, before entry {before.seq}, {before.time[:19]}")
    for entry in Signatures.of(chain).remarks:
        sentences.append(f"{entry}: account {entry.account} was without an officer's signature here, and no longer is")
    return sentences


def _row_faults(connection: Connection, chain: list[Entry], edited: set[int]) -> Iterator[str]:
    """Compare the accounts table with the entries that opened the accounts and changed their caps."""
    rows = {row.name: dict(row._mapping) for row in connection.execute(select(store.accounts))}
    opened = _opened(chain)
    changed = {entry.account: entry for entry in chain if entry.kind == "cap"}
    for name in sorted(rows.keys() | opened.keys()):
        if name not in rows or name not in opened:
            yield f"account {name} lacks its row or its opening entry"
            continue
        cap = changed.get(name)
        readable = not edited & {opened[name].seq, cap.seq if cap else 0}
        if readable and rows[name] != Account.written_in(opened[name], cap).row:
            yield f"account {name} differs from its opening entry"


def _opened(chain: list[Entry]) -> dict[str, Entry]:
    """Return the entries that opened the accounts; a second opening of an account opens nothing."""
    return {entry.account: entry for entry in reversed(chain) if entry.kind == "open"}


def _life_faults(life: list[Entry], released: Path | None) -> list[str]:
    """Name what is wrong with one charge's entries, or with its released artifact."""
    try:
        reservation = follow(life)
        if released is not None and reservation.state == "committed":
            artifact.checked(released, reservation.artifact_hash)
    except (LedgerError, ArtifactError, ValidationError, KeyError) as error:
        return [str(error)] if isinstance(error, LedgerError | ArtifactError) else [f"{life[0]} is not a charge"]
    return []


def _sum_faults(chain: list[Entry], replay: Replay) -> Iterator[str]:
    """Add every account's charges up again, and hold the sums to the caps and to the tallies that entries carry."""
    for entry in chain:
        if entry.kind == "open":
            yield from replay.open(entry)
        elif entry.kind == "cap":
            yield from replay.change(entry)
        elif entry.kind == "reserve":
            charge, cost = read_reserve(entry.content)
            account = replay.accounts.get(entry.account)
            if not _dear_enough(charge.priced, cost, account.order if account else 0):
                yield f"{entry} counts less than its event costs"
            yield from replay.reserve(entry, charge, cost)
        elif entry.kind == "void":
            yield from replay.void(entry)
        carried = entry.content.get("tally") if entry.kind in store.SPENDING_KINDS else None
        if carried is not None and Tally.model_validate(carried) != replay.tallies.get(entry.account, Tally()):
            yield f"{entry} carries a tally that does not add up"
    yield from replay.end()


def _lookup_faults(connection: Connection, chain: list[Entry], sums: Mapping[str, Tally]) -> Iterator[str]:
    """Name each account or charge of which the lookups of a charge find something else than the chain holds."""
    opened = _opened(chain)
    whole = lives(chain)
    below: dict[str, list[str]] = {}
    for name in sorted(opened):
        if parent := opened[name].content.get("parent"):
            below.setdefault(parent, []).append(name)
    try:
        indexed_lives = store.lives(connection, whole)
        yield from (
            f"{life[0]} is not found with all its life" for key, life in whole.items() if indexed_lives.get(key) != life
        )
        if store.children(connection, opened) != below:
            yield "the accounts below an account are not all found"
        for name, book in books(connection, opened).items():
            if book.tally != sums.get(name, Tally()):
                yield f"account {name} is found with another tally than its entries add up to"
            if book.account.run_cap is not None:
                yield from _run_faults(connection, name, chain)
    except LedgerError as error:
        yield str(error)


def _run_faults(connection: Connection, name: str, chain: list[Entry]) -> Iterator[str]:
    """Name each run of one account whose charges are not all found by its name."""
    runs: dict[str, list[int]] = {}
    for entry in chain:
        if entry.account == name and entry.kind == "reserve":
            runs.setdefault(entry.run, []).append(entry.seq)
    for run, positions in runs.items():
        indexed_entries = store.read(connection, store.entries.c.account == name, store.entries.c.run == run)
        if [entry.seq for entry in indexed_entries] != positions:
            yield f"the charges of run {run} are not all found in account {name}"


def _approval_faults(chain: list[Entry]) -> Iterator[str]:
    """Name each charge that was made while its account had an officer, and that this officer did not sign.

    And name each account that is as no officer signed for, since it was opened, raised or given another officer so.
    """
    for account, entry in Signatures.of(chain).lacking.items():
        yield f"{entry} is not signed by an officer of this ledger, and account {account} is as it says"
    officers: dict[str, Officer | None] = {}
    opened: dict[str, Entry] = {}
    families: dict[str, _Signed] = {}
    for entry in chain:
        content = entry.content
        if entry.kind in store.ACCOUNT_KINDS:
            opened.setdefault(entry.account, entry)
            if "officer" in content:
                officers[entry.account] = Officer.model_validate(content["officer"]) if content["officer"] else None
        elif entry.kind == "reserve":
            above, path = entry.account, set[str]()
            while above and not officers.get(above) and above not in path:
                path.add(above)
                above = opened[above].content.get("parent", "") if above in opened else ""
            officer = officers.get(above)
            approval = content.get("approval", {})
            if "signature" in approval:
                parent = opened[entry.account].content.get("parent", "") if entry.account in opened else ""
                families[entry.charge] = _Signed.read(entry, parent)
            signed = families.get(approval.get("with", entry.charge))
            if officer is not None and not (signed and signed.covers(entry, officer, opened[above].hash)):
                yield f"{entry} is not signed by {officer.name}, the officer of its account"


@dataclass(frozen=True)
class _Signed:
    """One approval, what its signature is valid for, and the charges that it names."""

    approval: Approval
    requests: tuple[ApprovalRequest, ...]
    signed_for: frozenset[str]

    @classmethod
    def read(cls, entry: Entry, parent: str) -> "_Signed":
        """Read the approval that an entry carries: for one run of its account, or for a family of its parent."""
        approval = Approval.model_validate(entry.content["approval"])
        declared = digest(entry.content.get("declared", {}))
        names = [(entry.account, False), (entry.account, True), *([(parent, True)] if parent else [])]
        requests = tuple(
            ApprovalRequest(
                approval.ledger, name, entry.run, approval.plans, family, declared=declared, figures=approval.figures
            )
            for name, family in names
        )
        return cls(approval, tuple(one for one in requests if one.is_signed(approval)), frozenset(approval.plans))

    def covers(self, entry: Entry, officer: Officer, ledger: str) -> bool:
        """Tell whether the officer signed for a charge: by the charge's key for a family, by its plan for one run."""
        if (self.approval.public_key, self.approval.ledger) != (officer.public_key, ledger):
            return False
        if self.approval.figures and read_reserve(entry.content)[0].figures not in self.approval.figures:
            return False
        return any(
            entry.charge in self.signed_for
            if request.family
            else (request.account, request.run) == (entry.account, entry.run)
            and entry.content["plan_hash"] in self.signed_for
            and not entry.content.get("part")  # charges of parts are a family
            for request in self.requests
        )


def _dear_enough(event: Event, cost: Tally, order: int) -> bool:
    """Tell whether a charge's cost is at least its event's, up to rounding of another machine's logarithms."""
    from dpmodels.accounting.renyi import filter_cost

    if order:
        event_cost = filter_cost([event], order)
        return cost.renyi >= event_cost.renyi * (1 - 1e-9) and cost.delta == event_cost.delta
    return cost == Tally.of([event])
