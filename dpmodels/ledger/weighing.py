"""Hold a charge against every cap above it: what a quote says and a reservation decides."""

from dataclasses import dataclass, replace
from decimal import Decimal

from sqlalchemy import Connection

from dpmodels.accounting.tally import Tally
from dpmodels.errors import BudgetExhausted, LedgerError
from dpmodels.ledger import books
from dpmodels.ledger.approval import Approval, Asked, Officer
from dpmodels.ledger.books import Limit
from dpmodels.ledger.records import Account, Charge, Quote, Reservation


@dataclass(frozen=True)
class Weighed:
    """Charges that are made together, what each costs, their account's tally before them, and the cap that decides.

    ``fresh`` are those that were not made before, with their costs; ``held`` is the first charge as it stands.
    """

    charges: tuple[Charge, ...]
    held: Reservation | None
    fresh: tuple[tuple[Charge, Tally], ...]
    tally: Tally
    limit: Limit
    accepted: bool
    officer: tuple[Officer, str] | None = None

    def approved(self, approval: Approval | None) -> dict[str, object]:
        """Return what the entries of fresh charges say of their approval.

        Raises:
            LedgerError: the account's officer did not sign them.
        """
        if self.officer is None or not self.fresh:
            return {}
        officer, ledger = self.officer
        first, plans = self.charges[0], tuple(charge.plan_hash for charge in self.charges)
        signed = Asked(ledger, first.account, first.run, plans).check(officer, approval)
        return {"approval": signed.model_dump(mode="json")}

    def quote(self) -> Quote:
        """Add up what was spent, and what would be."""
        before = self.limit.spent()
        return Quote(
            account=self.limit.name,
            state=self.held.state if self.held else "new",
            accepted=self.accepted,
            requested_epsilon=self._asked(),
            spent_before=before,
            spent_after=self.limit.spent(self.cost) if self.fresh else before,
            cap=self.limit.cap,
            delta=self.limit.delta,
        )

    def refusal(self) -> BudgetExhausted:
        """Say what was asked and what remains."""
        limit, asked = self.limit, self.charges[0].budget.delta_exact
        remaining = min(limit.remaining(), limit.cap)
        return BudgetExhausted(limit.name, self._asked(), remaining, limit.cap, limit.delta, asked)

    @property
    def cost(self) -> Tally:
        """What the fresh charges add to the tally."""
        return sum((cost for _, cost in self.fresh), Tally())

    def _asked(self) -> Decimal:
        return sum((charge.budget.epsilon_exact for charge in self.charges), Decimal(0))


def weigh(connection: Connection, *charges: Charge, write: bool = False) -> Weighed:
    """Compare charges of one run, made all or none, with the caps of their account, of those above it, and of the run.

    Raises:
        LedgerError: one is about other data, has other terms than the same charge had before, comes too late.
    """
    first = charges[0]
    path = books.line(connection, first.account, write=write)
    own = path[-1]
    standing = []
    for charge in charges:
        _check_terms(charge, own.account, first)
        known = books.find(connection, charge.key)
        if known is not None and known.charge != charge:
            raise LedgerError(f"charge {charge.key} was reserved with other terms; a changed plan needs a new run")
        standing.append(known)
    caps = books.limits(connection, path) + books.run_limit(connection, own.account, first)
    fresh = tuple((c, own.cost(c.event)) for c, held in zip(charges, standing, strict=True) if held is None)
    held = standing[0]
    accepted, officer = held is None or held.state != "voided", books.officer(path)
    weighed = Weighed(charges, held, fresh, own.tally, caps[0], accepted, officer)
    if not fresh:
        return weighed
    books.refuse_expired(connection, path)
    passed = next((cap for cap in caps if not cap.fits(weighed.cost)), None)
    return replace(weighed, limit=passed or caps[0], accepted=passed is None)


def _check_terms(charge: Charge, account: Account, first: Charge) -> None:
    """Refuse a charge that is about other data than the account, or whose event costs more than it says."""
    from dpmodels.accounting.composition import spent_epsilon

    if (charge.account, charge.run) != (first.account, first.run):
        raise LedgerError("charges that are made together are of one account and one run")
    asked, cap = charge.budget, account.cap
    if (charge.dataset, asked.unit, asked.adjacency) != (account.dataset, cap.unit, cap.adjacency):
        raise LedgerError(
            f"account {account.name} is for data set {account.dataset}, unit {cap.unit}, {cap.adjacency}; "
            f"the charge is for {charge.dataset}, {asked.unit}, {asked.adjacency}"
        )
    if spent_epsilon([charge.event], asked.delta_exact) > asked.epsilon_exact:
        raise LedgerError(
            f"the charge's event costs more than its budget: epsilon={asked.epsilon}, delta={asked.delta}"
        )
