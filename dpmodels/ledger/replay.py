"""Weigh every charge of a chain again, by the caps that were in force when it was made.

Adding a release never lowers what is spent. So the last charge decides for all before it since something was given back
or a cap was changed, and it alone is weighed; a long chain takes little more than a short one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal

from dpmodels.accounting.tally import Tally, heaviest
from dpmodels.errors import InvalidArgument, LedgerError, Unsuitable
from dpmodels.ledger.books import Limit, check_day
from dpmodels.ledger.records import Account, Charge
from dpmodels.ledger.store import Entry
from dpmodels.ledger.weighing import check_composition, check_terms
from dpmodels.privacy import exact_decimal

SLACK = Decimal("1.000001")
"""What another machine's logarithms, or an earlier version's grouping of distributions, may differ by."""

Line = tuple[Tally, Entry | None]
"""What a line of accounts downward has spent, and its newest charge; after this charge exactly that was spent."""


@dataclass
class Replay:
    """The accounts as they stand after some entries of a chain, and what they have spent themselves."""

    accounts: dict[str, Account] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    _opened: dict[str, Entry] = field(default_factory=dict)
    _above: dict[str, str] = field(default_factory=dict)
    _below: dict[str, list[str]] = field(default_factory=dict)
    _changed: dict[str, int] = field(default_factory=dict)
    _newest: dict[str, Entry] = field(default_factory=dict)
    _runs: dict[str, dict[str, Line]] = field(default_factory=dict)
    _costs: dict[tuple[str, str], tuple[str, Tally]] = field(default_factory=dict)
    _charge_titles: set[tuple[int, str]] = field(default_factory=set)
    _latest: str = ""

    def open(self, entry: Entry) -> Iterator[str]:
        """Follow an opening; the account above it is open by then, and of the same kind."""
        account = Account.written_in(entry, None)
        parent = self.accounts.get(account.parent)
        if parent is not None:
            self._above[entry.account] = parent.name
            self._below.setdefault(parent.name, []).append(entry.account)
        if account.parent and (parent is None or _kind(parent) != _kind(account)):
            yield f"{entry} opens an account below {account.parent}, which is of another kind or not open"
        self.accounts[entry.account], self._opened[entry.account] = account, entry

    def change(self, entry: Entry) -> Iterator[str]:
        """Weigh what an account has spent by its cap until now, and follow the change of the cap."""
        name = entry.account
        if name in self.accounts:
            yield from self._weighed(name)
            self.accounts[name] = Account.written_in(self._opened[name], entry)
            self._changed[name] = entry.seq

    def reserve(self, entry: Entry, charge: Charge, cost: Tally) -> Iterator[str]:
        """Hold a charge to what the ledger asks of one, apart from its caps, and add it."""
        name, run = entry.account, charge.run
        try:
            self._check(entry, charge, cost)
        except (LedgerError, InvalidArgument, Unsuitable) as error:
            yield f"{entry} is a charge that a ledger refuses: {error}"
        self.tallies[name] = self.tallies.get(name, Tally()) + cost
        self._newest[name] = entry
        self._costs[name, entry.charge] = run, cost
        runs = self._runs.setdefault(name, {})
        runs[run] = runs.get(run, (Tally(), None))[0] + cost, entry

    def _check(self, entry: Entry, charge: Charge, cost: Tally) -> None:
        """Ask what is asked before a charge is written, of its account and of those above."""
        self._latest = max(self._latest, entry.time)
        at = entry.account
        if at in self.accounts:
            check_terms(charge, self.accounts[at], SLACK)
        while at in self.accounts:
            account = self.accounts[at]
            check_day(account, self._latest)
            late = cost.delta and account.order
            if late or not account.delta_cap:
                lines = tuple(tally for tally, _ in self._lines(at)) if late else ()
                cap = account.epsilon_cap, account.delta_cap, account.filter_order
                check_composition(Limit(at, lines, *cap), cost)
            at = self._above.get(at, "")

    def void(self, entry: Entry) -> Iterator[str]:
        """Weigh all that a charge is part of, and give it back, once and to the account that paid."""
        name = entry.account
        if (name, entry.charge) not in self._costs:
            return
        lines, at = self._lines(name), name
        yield from self._passed(at, lines)
        while at in self._above:
            at = self._above[at]
            lines = [self._joined(at, line) for line in lines]
            yield from self._passed(at, lines)
        run, cost = self._costs.pop((name, entry.charge))
        spent, newest = self._runs[name][run]
        yield from self._run_passed(name, [(spent, newest)])
        self._runs[name][run] = spent - cost, newest
        self.tallies[name] -= cost

    def end(self) -> Iterator[str]:
        """Weigh every account as it stands now."""
        for name in self.accounts:
            yield from self._weighed(name)

    def _weighed(self, name: str) -> Iterator[str]:
        yield from self._passed(name, self._lines(name))
        yield from self._run_passed(name, self._runs.get(name, {}).values())

    def _lines(self, name: str) -> list[Line]:
        below = [line for child in self._below.get(name, ()) for line in self._lines(child)]
        return [self._joined(name, line) for line in below or [(Tally(), None)]]

    def _joined(self, name: str, line: Line) -> Line:
        both = [entry for entry in (line[1], self._newest.get(name)) if entry is not None]
        tally = self.tallies.get(name)
        return line[0] + tally if tally else line[0], max(both, key=lambda entry: entry.seq, default=None)

    def _run_passed(self, name: str, lines: Iterable[Line]) -> Iterator[str]:
        account = self.accounts.get(name)
        if account is not None and account.run_cap is not None:
            yield from self._passed(name, lines, f"{name} (one run)", exact_decimal(account.run_cap))

    def _passed(self, name: str, lines: Iterable[Line], title: str = "", cap: Decimal | None = None) -> Iterator[str]:
        """Name the newest charge of each line that is above a cap; charges before the cap's last change had another."""
        if name not in self.accounts:
            return
        account, since = self.accounts[name], self._changed.get(name, 0)
        some = {tally.key: (tally, entry) for tally, entry in lines if entry is not None and entry.seq > since}
        cap, title = account.epsilon_cap if cap is None else cap, title or name
        limit = Limit(title, (), cap * SLACK, account.delta_cap, account.filter_order)
        if not some or replace(limit, after=tuple(heaviest(tally for tally, _ in some.values()))).fits():
            return
        for tally, entry in some.values():
            if (entry.seq, title) not in self._charge_titles and not replace(limit, after=(tally,)).fits():
                self._charge_titles.add((entry.seq, title))
                yield f"{entry} passes the cap of account {title}: epsilon={cap}, delta={account.delta_cap}"


def _kind(account: Account) -> tuple[object, ...]:
    return *account.scope[1:], account.composition, account.order
