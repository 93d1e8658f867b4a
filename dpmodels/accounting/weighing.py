"""Hold a charge against every cap above it: what a quote says and a reservation decides."""

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection

from dpmodels.accounting import books
from dpmodels.accounting.books import Limit
from dpmodels.accounting.records import Account, Charge, Quote, Reservation
from dpmodels.accounting.tally import Tally
from dpmodels.errors import BudgetExhausted, LedgerError


@dataclass(frozen=True)
class Weighed:
    """A charge, what it costs, its account's tally with it, and the cap that decides."""

    charge: Charge
    held: Reservation | None
    cost: Tally
    tally: Tally
    limit: Limit
    accepted: bool

    def quote(self) -> Quote:
        """Add up what was spent, and what would be."""
        before = self.limit.spent()
        return Quote(
            account=self.limit.name,
            state=self.held.state if self.held else "new",
            accepted=self.accepted,
            requested_epsilon=Decimal(repr(self.charge.budget.epsilon)),
            spent_before=before,
            spent_after=before if self.held else self.limit.spent(self.cost),
            cap=self.limit.cap,
            delta=self.limit.delta,
        )

    def refusal(self) -> BudgetExhausted:
        """Say what was asked and what remains."""
        asked, limit = Decimal(repr(self.charge.budget.epsilon)), self.limit
        return BudgetExhausted(limit.name, asked, min(limit.remaining(), limit.cap), limit.cap, limit.delta)


def weigh(connection: Connection, charge: Charge, *, write: bool = False) -> Weighed:
    """Compare a charge with the caps of its account, of those above it, and of its run.

    Raises:
        LedgerError: it is about other data, has other terms than the same charge had before, or comes too late.
    """
    path = books.line(connection, charge.account, write=write)
    own = path[-1]
    _check_terms(charge, own.account)
    held = books.find(connection, charge.key)
    if held is not None and held.charge != charge:
        raise LedgerError(f"charge {charge.key} was reserved with other terms; a changed plan needs a new run")
    caps = books.limits(connection, path) + books.run_limit(connection, own.account, charge)
    if held is not None:
        return Weighed(charge, held, held.cost, own.tally, caps[0], held.state != "voided")
    books.refuse_expired(connection, path)
    cost = own.cost(charge.event)
    passed = next((cap for cap in caps if not cap.fits(cost)), None)
    return Weighed(charge, None, cost, own.tally + cost, passed or caps[0], passed is None)


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
