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
    """A charge, what it would cost, its account's tally with it, and the cap that decides."""

    quote: Quote
    limit: Limit
    cost: Tally
    tally: Tally
    held: Reservation

    def refusal(self) -> BudgetExhausted:
        """Say what was asked and what remains."""
        remaining = min(self.limit.remaining(), self.limit.cap)
        return BudgetExhausted(
            self.limit.name, self.quote.requested_epsilon, remaining, self.limit.cap, self.limit.delta
        )


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
    cost = held.cost if held else own.cost(charge.event)
    caps = books.limits(connection, path) + books.run_limit(connection, own.account, charge)
    if held is None:
        books.refuse_expired(connection, path)
    deciding, after = caps[0], caps[0].spent(None if held else cost)
    if held is None:
        deciding, after = _first_passed(caps, cost) or (deciding, after)
    quote = Quote(
        account=deciding.name,
        state=held.state if held else "new",
        accepted=held.state != "voided" if held else after <= deciding.cap,
        requested_epsilon=Decimal(repr(charge.budget.epsilon)),
        spent_before=deciding.spent(),
        spent_after=after,
        cap=deciding.cap,
        delta=deciding.delta,
    )
    after_it = own.tally if held else own.tally + cost
    return Weighed(quote, deciding, cost, after_it, held or Reservation(charge=charge, cost=cost))


def _first_passed(caps: list[Limit], cost: Tally) -> tuple[Limit, Decimal] | None:
    """Return the first cap that a cost would pass, and by what."""
    spent = ((cap, cap.spent(cost)) for cap in caps)
    return next(((cap, after) for cap, after in spent if after > cap.cap), None)


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
