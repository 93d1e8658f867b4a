"""An account as its entries state it, and the caps that a charge must fit under; constant work, however many entries.

Entries are checked before they are used: those that opened the account, last changed its caps and last changed its
tally must match their hashes and both of their neighbors. The tally stands inside such an entry, so it cannot be
lowered without breaking the chain there. The rest of the chain is left to ``audit``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlalchemy import Connection, func, select

from dpmodels.accounting.events import Event
from dpmodels.accounting.tally import MAX_KINDS, Tally, heaviest
from dpmodels.errors import ChainBroken, ChargeState, LedgerError
from dpmodels.ledger import records, store
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.database import lock
from dpmodels.ledger.records import MOST_EARLIER, Account, Earlier, Reservation, follow, lives, read_reserve
from dpmodels.privacy import exact_decimal


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
    """One cap, the tallies of which none may pass it, and the same tallies with the charges that are asked for.

    There is one tally for each line of accounts downward, from parent to child to grandchild. A privacy unit is in the
    data of at most one child of each account, so it takes part in the releases of one such line and no others: releases
    about other children's data do not depend on the unit and are, given everything seen before, as likely with it as
    without. The unit's privacy loss is therefore the composition along its own line, and the loss of any unit is at
    most the largest of these (parallel composition; McSherry 2009, theorem 4). This needs the children's data to be
    disjoint in units, by a rule that looks at each unit alone; under replace-one it needs, besides, that what replaces
    a unit is in the data of the same child.
    """

    name: str
    tallies: tuple[Tally, ...]
    cap: Decimal
    delta: Decimal
    order: int | None
    after: tuple[Tally, ...] = ()

    def spent(self) -> Decimal:
        """Return the epsilon of the heaviest line."""
        return self._largest(self.tallies)

    def spent_after(self) -> Decimal:
        """Return the epsilon of the heaviest line with the charges that are asked for."""
        return self._largest(self.after)

    def cost(self, tally: Tally) -> Decimal:
        """Return the epsilon of a tally alone, at the cap's delta."""
        return self._largest((tally,))

    def _largest(self, lines: tuple[Tally, ...]) -> Decimal:
        from dpmodels.accounting.composition import spent_epsilon

        return max(spent_epsilon(line, self.delta, self.order) for line in lines)

    def fits(self) -> bool:
        """Tell whether every line stays under the cap; Renyi accounting, a quick upper bound, is tried first."""
        from dpmodels.accounting.composition import renyi_epsilon, spent_epsilon

        def under(tally: Tally) -> bool:
            surely = tally.others and renyi_epsilon(tally, self.delta) <= self.cap
            return bool(surely) or spent_epsilon(tally, self.delta, self.order) <= self.cap

        return all(under(tally) for tally in self.after)

    def renyi(self) -> Decimal:
        """Return the epsilon of the heaviest line by Renyi accounting."""
        from dpmodels.accounting.composition import renyi_epsilon

        return max(renyi_epsilon(tally, self.delta) for tally in self.tallies)

    def remaining(self) -> Decimal:
        """Return the largest further release that fits."""
        from dpmodels.accounting.composition import remaining_epsilon

        return min(remaining_epsilon(tally, self.cap, self.delta, self.order) for tally in self.tallies)


@dataclass(frozen=True)
class Family:
    """Accounts that are charged together, by name, and the accounts above all of them, root first."""

    above: tuple[Book, ...]
    members: dict[str, Book]

    def path(self, name: str) -> list[Book]:
        """Return one account and those above it, root first."""
        return [*self.above, self.members[name]]


def books(connection: Connection, names: Iterable[str]) -> dict[str, Book]:
    """Read accounts from the rows and entries that ``standing`` finds.

    Raises:
        LedgerError: an account is not open, or the entries that it is read from are damaged.
    """
    names = list(names)
    rows = store.standing(connection, names)
    if faults := store.link_faults(connection, [entry for _, ends in rows.values() for entry in ends.values()]):
        raise ChainBroken(f"the chain is broken: {faults[0]}")
    for name in names:
        if name not in rows and not store.read(connection, store.entries.c.account == name):
            raise LedgerError(f"account {name} is not open; {_instead(connection, name)}")
        if name not in rows or "open" not in rows[name][1]:
            raise ChainBroken(f"account {name} lacks its row or its opening entry")
    return {name: _book(connection, *rows[name]) for name in names}


def _instead(connection: Connection, name: str) -> str:
    """Say which account pays for the data set of a name that no account has, or else what opens one."""
    payers = connection.execute(select(store.accounts.c.name).where(store.accounts.c.dataset == name)).scalars().all()
    if not payers:
        return records.meant_or_opened(name, connection.execute(select(store.accounts.c.name)).scalars())
    payer = " or ".join(sorted(payers))
    return f"account {payer} pays for data set {name}: give that name"


def _book(connection: Connection, row: dict[str, str], ends: dict[str, store.Entry]) -> Book:
    account = Account.written_in(ends["open"], ends.get("cap"))
    if row != account.row:
        raise ChainBroken(f"account {row['name']} differs from its opening entry")
    return Book(account, _tally(connection, max(ends.values(), key=lambda entry: entry.seq)), ends["open"].hash)


def book(connection: Connection, name: str) -> Book:
    """Read one account."""
    return books(connection, [name])[name]


def family(connection: Connection, names: Sequence[str], *, write: bool = False) -> Family:
    """Read one account, or siblings, and the accounts above; with ``write`` take the locks that charges need.

    Raises:
        LedgerError: several accounts do not share one parent, or as for ``books``.
    """
    above: list[str] = []
    parents = {row["parent"] for row, _ in store.standing(connection, names).values()}
    if len(names) > 1 and (len(parents) != 1 or not any(parents)):
        raise LedgerError("accounts that are charged together are the children of one account")
    parent: str | None = next(iter(parents), "")
    while parent:
        if parent in (*above, *names):
            raise _below_itself(connection, parent)
        above.insert(0, parent)
        parent = (store.account_row(connection, parent) or {}).get("parent")
    if write:
        lock(connection, names, above)
    books_by_name = books(connection, [*above, *names])
    return Family(tuple(books_by_name[name] for name in above), {name: books_by_name[name] for name in names})


def officer(path: list[Book]) -> tuple[Officer, str] | None:
    """Return who must approve charges of a path's last account: its own officer or that of the nearest account above.

    The second value is the hash of the entry that opened the officer's account.
    """
    with_officer = next((each for each in reversed(path) if each.account.officer), None)
    return (
        (with_officer.account.officer, with_officer.opened) if with_officer and with_officer.account.officer else None
    )


def limit(connection: Connection, one: Book) -> Limit:
    """Return the cap of one account, with what the account and those below it have spent."""
    name = one.account.name
    return _limit(one.account, [one.tally + line for line in _below(connection, [name])[name]])


def around(connection: Connection, keys: Sequence[str]) -> Limit:
    """Return the cap of the account of some charges of one run, as it was right before them, and with them.

    Raises:
        LedgerError: there is no such charge, or its entries were edited.
    """
    reserves = [entry for entry in store.read(connection, store.entries.c.charge.in_(keys)) if entry.kind == "reserve"]
    if not reserves:
        raise ChargeState(next(iter(keys), ""), "not reserved", "no entry of the ledger names it")
    reservations, name = find(connection, keys), reserves[0].account
    charge_cost = sum((one.cost for one in reservations.values() if one.state != "voided"), Tally())
    before = _tally_before(connection, reserves[0])
    lines = [before + below for below in _below(connection, [name])[name]]
    return _limit(book(connection, name).account, lines, [line + charge_cost for line in lines])


def earlier(connection: Connection, keys: Sequence[str]) -> tuple[int, tuple[Earlier, ...]]:
    """Return how many charges an account had before some charges of one run, and the last of them, oldest first.

    Charges that were given back, until now, are left out.
    """
    entry = store.entries.c
    first = connection.execute(
        select(entry.account, entry.seq).where(entry.charge.in_(keys)).order_by(entry.seq)
    ).first()
    if first is None:
        return 0, ()
    voided = select(entry.charge).where(entry.account == first.account, entry.kind == "void")
    before = (
        entry.account == first.account,
        entry.kind == "reserve",
        entry.seq < first.seq,
        entry.charge.not_in(voided),
    )
    number = connection.execute(select(func.count()).where(*before)).scalar_one()
    newest = select(entry.seq).where(*before).order_by(entry.seq.desc()).limit(MOST_EARLIER)
    last = list(connection.execute(newest).scalars())
    account = None if store.children(connection, [first.account]) else book(connection, first.account).account
    back = _given_back(connection, first.account)
    return number, tuple(
        Earlier.written_in(
            one, _spent_after(one, account) if account and not any(one.seq in span for span in back) else None
        )
        for one in store.read(connection, entry.seq.in_(last))
    )


def _given_back(connection: Connection, name: str) -> list[range]:
    """Return between which entries each charge of an account stood that was given back later."""
    entry = store.entries.c
    voids = connection.execute(select(entry.charge, entry.seq).where(entry.account == name, entry.kind == "void")).all()
    reserved = (entry.account == name, entry.kind == "reserve", entry.charge.in_([one.charge for one in voids]))
    begins = {one.charge: one.seq for one in connection.execute(select(entry.charge, entry.seq).where(*reserved))}
    return [range(begins[one.charge], one.seq) for one in voids if one.charge in begins]


def _spent_after(reserve: store.Entry, account: Account) -> Decimal | None:
    """Return what an account had spent right after one of its charges, where only its own charges count in it.

    Of charges of accounts below it, and of those that were given back later, its entries say nothing.
    """
    if "tally" not in reserve.content:
        return None
    return _limit(account, [Tally.model_validate(reserve.content["tally"])]).spent()


def _tally_before(connection: Connection, first: store.Entry) -> Tally:
    """Return what an account had spent itself before one of its charges."""
    if "tally" in first.content:
        return Tally.model_validate(first.content["tally"]) - read_reserve(first.content)[1]
    chain = store.read(connection, store.entries.c.account == first.account, store.entries.c.seq < first.seq)
    earlier = [follow(life) for life in lives(chain).values()]  # the entry is older than tallies in entries
    return sum((one.cost for one in earlier if one.state != "voided"), Tally())


def limits(connection: Connection, requested: Family, costs: Mapping[str, Tally]) -> list[Limit]:
    """Return the caps that a family's charges must fit under, nearest above first; a lone account's own leads."""
    below = _below(connection, requested.members)
    before = {name: [member.tally + line for line in below[name]] for name, member in requested.members.items()}
    after = {name: [line + costs.get(name, Tally()) for line in lines] for name, lines in before.items()}
    own_limits = [_limit(requested.members[name].account, before[name], after[name]) for name in requested.members]
    lines, lines_after = (heaviest(line for some in each.values() for line in some) for each in (before, after))
    limits_above = []
    for book in reversed(requested.above):
        lines, lines_after = ([line + book.tally for line in each] for each in (lines, lines_after))
        limits_above.append(_limit(book.account, lines, lines_after))
    return [*own_limits, *limits_above] if len(own_limits) == 1 else [*limits_above, *own_limits]


def run_limit(connection: Connection, account: Account, run: str, cost: Tally) -> list[Limit]:
    """Return the cap on what one run may spend from the account, if it has one."""
    if account.run_cap is None:
        return []
    of_run = (store.entries.c.account == account.name, store.entries.c.run == run)
    reservations = find(connection, [entry.charge for entry in store.read(connection, *of_run)])
    spent = sum((one.cost for one in reservations.values() if one.state != "voided"), Tally())
    of_one = _limit(account, [spent], [spent + cost])
    return [replace(of_one, name=f"{account.name} (one run)", cap=exact_decimal(account.run_cap))]


def _limit(account: Account, before: list[Tally], after: Sequence[Tally] = ()) -> Limit:
    cap, delta, order = account.epsilon_cap, account.delta_cap, account.filter_order
    return Limit(account.name, tuple(before), cap, delta, order, tuple(after))


def find(connection: Connection, keys: Iterable[str]) -> dict[str, Reservation]:
    """Return charges and their states by key; a charge that was never made is left out."""
    return {key: follow(life) for key, life in store.lives(connection, keys).items()}


def refuse_expired(connection: Connection, some: Iterable[Book]) -> None:
    """Refuse a charge after an account's last day; setting the clock back before the newest entry does not help.

    Raises:
        LedgerError: one of the accounts has expired.
    """
    end = store.head(connection)
    for each in some:
        check_day(each.account, max(store.now(), end.time if end else ""))


def check_day(account: Account, time: str) -> None:
    """Refuse a charge at a time after the account's last day.

    Raises:
        LedgerError: the account has expired.
    """
    if account.expires is not None and time[:10] > account.expires.isoformat():
        raise LedgerError(
            f"account {account.name} expired on {account.expires}; nothing was drawn. What it spent stays "
            "spent; to go on under the same cap: `nacre ledger cap` with a new day and a reason"
        )


def charges(connection: Connection, name: str) -> int:
    """Return the number of an account's charges that were not voided."""
    kinds = select(store.entries.c.kind, func.count()).where(store.entries.c.account == name)
    count = {kind: number for kind, number in connection.execute(kinds.group_by(store.entries.c.kind))}
    return int(count.get("reserve", 0) - count.get("void", 0))


def history(changes: list[store.Entry], points: int) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Yield time, spent epsilon and cap after some of an account's own entries, the first and the last among them."""
    from dpmodels.accounting.composition import spent_epsilon

    opening, cap, tally = changes[0], None, Tally()
    reserved: dict[str, Tally] = {}
    last = len(changes) - 1
    indices = {round(step * last / max(1, points - 1)) for step in range(points)} if last >= points else None
    for index, entry in enumerate(changes):
        cap = entry if entry.kind == "cap" else cap
        if entry.kind == "reserve":
            reserved[entry.charge] = read_reserve(entry.content)[1]
            tally += reserved[entry.charge]
        elif entry.kind == "void":
            tally -= reserved[entry.charge]
        if indices is None or index in indices:
            account = Account.written_in(opening, cap)
            yield entry.time, spent_epsilon(tally, account.delta_cap, account.filter_order), account.epsilon_cap


def _below_itself(connection: Connection, name: str) -> ChainBroken:
    """Return the error of an account that was opened below itself, or below one of those below it."""
    first, *_ = store.read(connection, store.entries.c.account == name, store.entries.c.kind == "open")
    return ChainBroken(f"{first} opens account {name} below itself, as no ledger does")


def _below(connection: Connection, names: Iterable[str], above: Set[str] = frozenset()) -> dict[str, list[Tally]]:
    """Return the tally of each line of accounts below the named ones, without tallies that another surely exceeds.

    Raises:
        ChainBroken: an account is below itself.
    """
    names = list(names)
    if twice := sorted(above & set(names)):
        raise _below_itself(connection, twice[0])
    children = store.children(connection, names)
    if not children:
        return {name: [Tally()] for name in names}
    child_books = books(connection, [child for some in children.values() for child in some])
    deeper = _below(connection, child_books, above | set(names))
    lines = {name: [child_books[c].tally + line for c in some for line in deeper[c]] for name, some in children.items()}
    return {name: heaviest(lines.get(name, ())) or [Tally()] for name in names}


def _tally(connection: Connection, last: store.Entry) -> Tally:
    """Read an account's tally from the entry that changed it last."""
    if last.kind == "open":
        return Tally()
    if "tally" in last.content:
        return Tally.model_validate(last.content["tally"])
    # The entry is older than tallies in entries: add up once, from a whole chain; the next charge writes the tally.
    chain = store.read(connection)
    if faults := store.chain_faults(chain):
        raise ChainBroken(f"the chain is broken: {faults[0][1]}")
    reservations = [follow(life) for life in lives(entry for entry in chain if entry.account == last.account).values()]
    return sum((one.cost for one in reservations if one.state != "voided"), Tally())
