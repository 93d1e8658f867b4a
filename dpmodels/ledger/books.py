"""An account as its entries have it, and the caps that a charge must fit under; constant work, however many entries.

What is reckoned with is checked first: the entries that opened the account, last changed its caps and last changed
its tally must match their hashes and both of their neighbours. The tally stands inside such an entry, so it cannot be
lowered without breaking the chain there. The rest of the chain is left to ``audit``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection, func, select

from dpmodels.accounting.events import Event
from dpmodels.accounting.tally import MAX_KINDS, Tally, heaviest
from dpmodels.errors import LedgerError
from dpmodels.ledger import store
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.database import lock
from dpmodels.ledger.records import Account, Charge, Reservation, follow, lives, read_reserve
from dpmodels.privacy import exact_decimal

VERIFY = "`nacre ledger verify` lists every fault"


@dataclass(frozen=True)
class Book:
    """An account, everything it has spent itself, and the hash of the entry that opened it."""

    account: Account
    tally: Tally
    opened: str = ""

    def cost(self, event: Event) -> Tally:
        """Return what an event adds to this account's tally.

        Raises:
            LedgerError: too many different kinds of releases for exact composition.
        """
        if self.account.order:
            from dpmodels.accounting.renyi import filter_cost

            return filter_cost([event], self.account.order)
        cost = Tally.of([event])
        if len((self.tally + cost).others) > MAX_KINDS:
            raise LedgerError(
                f"account {self.account.name} composes at most {MAX_KINDS} different kinds of non-Gaussian releases; "
                "an account that is a Renyi filter has no such limit"
            )
        return cost


@dataclass(frozen=True)
class Limit:
    """One cap, and the tallies of which none may pass it.

    There is one tally for each line of accounts downward. A privacy unit is in the data of at most one child of each
    account, so it meets the releases of one such line and no others: those of its siblings' data do not change with it
    and are, given everything seen before, as likely with it as without. Its privacy loss is therefore the composition
    along its own line, and the loss of any unit is at most the largest of these (parallel composition; McSherry 2009,
    theorem 4). This needs the children's data to be disjoint in units, by a rule that looks at each unit alone.
    """

    name: str
    tallies: tuple[Tally, ...]
    cap: Decimal
    delta: Decimal
    order: int | None

    def spent(self, cost: Tally | None = None) -> Decimal:
        """Return the epsilon of the heaviest line, with a further cost on it."""
        from dpmodels.accounting.composition import spent_epsilon

        lines = [tally + cost if cost else tally for tally in self.tallies]
        return max(spent_epsilon(line, self.delta, self.order) for line in lines)

    def fits(self, cost: Tally) -> bool:
        """Tell whether a further cost stays under the cap; Renyi accounting, an upper bound, is asked first."""
        from dpmodels.accounting.composition import renyi_epsilon, spent_epsilon

        def under(tally: Tally) -> bool:
            surely = tally.others and renyi_epsilon(tally, self.delta) <= self.cap
            return bool(surely) or spent_epsilon(tally, self.delta, self.order) <= self.cap

        return all(under(tally + cost) for tally in self.tallies)

    def renyi(self) -> Decimal:
        """Return the epsilon of the heaviest line by Renyi accounting."""
        from dpmodels.accounting.composition import renyi_epsilon

        return max(renyi_epsilon(tally, self.delta) for tally in self.tallies)

    def remaining(self) -> Decimal:
        """Return the largest further Gaussian release that fits."""
        from dpmodels.accounting.composition import remaining_epsilon

        return min(remaining_epsilon(tally, self.cap, self.delta, self.order) for tally in self.tallies)


def book(connection: Connection, name: str) -> Book:
    """Read one account, from what `newest` finds and the row that mirrors it.

    Raises:
        LedgerError: it is not open, or the entries it is read from are not whole.
    """
    ends = store.newest(connection, name)
    if faults := store.link_faults(connection, ends.values()):
        raise LedgerError(f"the chain is broken: {faults[0]}; {VERIFY}")
    row = store.account_row(connection, name)
    if "open" not in ends and row is None:
        raise LedgerError(f"account {name} is not open")
    if "open" not in ends or row is None:
        raise LedgerError(f"account {name} lacks its row or its opening entry; {VERIFY}")
    account = Account.written_in(ends["open"], ends.get("cap"))
    if row != account.row:
        raise LedgerError(f"account {name} differs from its opening entry; {VERIFY}")
    return Book(account, _tally(connection, max(ends.values(), key=lambda entry: entry.seq)), ends["open"].hash)


def line(connection: Connection, name: str, *, write: bool = False) -> list[Book]:
    """Read an account and those above it, root first; for writing, hold them as a charge needs it."""
    names: list[str] = []
    above: str | None = name
    while above and above not in names:
        names.insert(0, above)
        above = (store.account_row(connection, above) or {}).get("parent")
    if write:
        lock(connection, names)
    return [book(connection, each) for each in names]


def officer(path: list[Book]) -> tuple[Officer, str] | None:
    """Return who must approve charges of the last account of a path, its own officer or the nearest above it.

    With the hash of the entry that opened the officer's account.
    """
    own = next((each for each in reversed(path) if each.account.officer), None)
    return (own.account.officer, own.opened) if own and own.account.officer else None


def limits(connection: Connection, path: list[Book]) -> list[Limit]:
    """Return the caps over the last account of a path, its own first, then those above it."""
    found = []
    tallies = _below(connection, path[-1].account.name)
    for each in reversed(path):
        account = each.account
        tallies = [tally + each.tally for tally in tallies]
        cap, delta = account.epsilon_cap, account.delta_cap
        found.append(Limit(account.name, tuple(tallies), cap, delta, account.filter_order))
    return found


def run_limit(connection: Connection, account: Account, charge: Charge) -> list[Limit]:
    """Return the cap on what one run may spend from the account, if it has one."""
    if account.run_cap is None:
        return []
    of_run = (store.entries.c.account == account.name, store.entries.c.run == charge.run)
    keys = [entry.charge for entry in store.read(connection, *of_run)]
    held = [find(connection, key) for key in keys]
    spent = sum((one.cost for one in held if one and one.state != "voided"), Tally())
    cap, delta = exact_decimal(account.run_cap), account.delta_cap
    return [Limit(f"{account.name} (one run)", (spent,), cap, delta, account.filter_order)]


def find(connection: Connection, key: str) -> Reservation | None:
    """Return a charge and its state, or None."""
    life = store.life(connection, key)
    return follow(life) if life else None


def refuse_expired(connection: Connection, path: list[Book]) -> None:
    """Refuse a charge after an account's last day; a clock set back to before the newest entry changes nothing.

    Raises:
        LedgerError: the account, or one above it, has expired.
    """
    for account in (each.account for each in path):
        if account.expires is not None:
            end = store.head(connection)
            today = max(store.now(), end.time if end else "")[:10]
            if today > account.expires.isoformat():
                raise LedgerError(
                    f"account {account.name} expired on {account.expires}; nothing was drawn. What it spent stays "
                    "spent; to go on under the same cap: `nacre ledger cap` with a new day and a reason"
                )


def charges(connection: Connection, name: str) -> int:
    """Count an account's charges that count."""
    kinds = select(store.entries.c.kind, func.count()).where(store.entries.c.account == name)
    count = {kind: number for kind, number in connection.execute(kinds.group_by(store.entries.c.kind))}
    return int(count.get("reserve", 0) - count.get("void", 0))


def history(changes: list[store.Entry], points: int) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Yield time, spent epsilon and cap after some of an account's own changes, always the first and the last."""
    from dpmodels.accounting.composition import spent_epsilon

    opening, cap, tally = changes[0], None, Tally()
    reserved: dict[str, Tally] = {}
    last = len(changes) - 1
    shown = {round(step * last / max(1, points - 1)) for step in range(points)} if last >= points else None
    for index, entry in enumerate(changes):
        cap = entry if entry.kind == "cap" else cap
        if entry.kind == "reserve":
            reserved[entry.charge] = read_reserve(entry.content)[1]
            tally += reserved[entry.charge]
        elif entry.kind == "void":
            tally -= reserved[entry.charge]
        if shown is None or index in shown:
            account = Account.written_in(opening, cap)
            yield entry.time, spent_epsilon(tally, account.delta_cap, account.filter_order), account.epsilon_cap


def _below(connection: Connection, name: str) -> list[Tally]:
    """Return the tally of each line of accounts below one, those left out that another exceeds for certain."""
    lines = [
        book(connection, child).tally + deeper
        for child in store.children(connection, name)
        for deeper in _below(connection, child)
    ]
    return heaviest(lines) or [Tally()]


def _tally(connection: Connection, last: store.Entry) -> Tally:
    """Read an account's tally from the entry that changed it last."""
    if last.kind == "open":
        return Tally()
    if "tally" in last.content:
        return Tally.model_validate(last.content["tally"])
    # Written before entries carried tallies: add up once, from a chain that is whole; the next charge writes it down.
    chain = store.read(connection)
    if faults := store.chain_faults(chain):
        raise LedgerError(f"the chain is broken: {faults[0][1]}; {VERIFY}")
    held = [follow(life) for life in lives(entry for entry in chain if entry.account == last.account).values()]
    return sum((one.cost for one in held if one.state != "voided"), Tally())
