"""Compare charges with every cap above them, for a quote and for a reservation."""

from dataclasses import dataclass, replace
from decimal import Decimal

from sqlalchemy import Connection

from dpmodels.accounting.events import check_adjacency
from dpmodels.accounting.tally import Tally
from dpmodels.errors import BudgetExhausted, LedgerError
from dpmodels.ledger import books
from dpmodels.ledger.approval import Approval, ApprovalRequest, Officer
from dpmodels.ledger.books import Family, Limit
from dpmodels.ledger.declared import Declaration
from dpmodels.ledger.records import Account, Charge, Quote, Reservation
from dpmodels.ledger.signed import Signatures
from dpmodels.ledger.store import Draft, digest


@dataclass(frozen=True)
class Weighing:
    """Charges that are made together, what each costs, the accounts that pay, and the cap that decides.

    ``fresh`` are the charges that were not made before, with their costs; ``held`` is the first charge with its state.
    ``opened`` are accounts that were opened for the comparison alone, and are open once the charges are made.
    """

    charges: tuple[Charge, ...]
    first: Reservation | None
    fresh: tuple[tuple[Charge, Tally], ...]
    family: Family
    limit: Limit
    accepted: bool
    opened: frozenset[str] = frozenset()

    def asked(self, declared: Declaration | None) -> tuple[Officer, ApprovalRequest] | None:
        """Return who must sign for the charges, if anybody must, and what is to be signed.

        Raises:
            LedgerError: some of them need the signature of one officer, and some that of another.
        """
        officers = [books.officer(self.family.path(name)) for name in self.family.members]
        if any(each != officers[0] for each in officers):
            raise LedgerError("the accounts of these charges have different officers; charge them in runs of their own")
        if officers[0] is None:
            return None
        officer, ledger = officers[0]
        return officer, replace(asked(ledger, self.family, self.charges), declared=_hash(declared))

    def drafts(self, approval: Approval | None, declared: Declaration | None) -> list[Draft]:
        """Return the entries of the fresh charges; a family's first carries the approval, and the others name it.

        What was declared stands in each of them.

        Raises:
            LedgerError: the account's officer did not sign the charges.
        """
        to_sign = self.asked(declared) if self.fresh else None
        signed = to_sign[1].check(to_sign[0], approval).model_dump(mode="json") if to_sign else None
        tallies = {name: book.tally for name, book in self.family.members.items()}
        alone, drafts = is_one_run(self.charges), list[Draft]()
        for charge, cost in self.fresh:
            tallies[charge.account] += cost
            payload = {**charge.model_dump(mode="json"), "cost": cost.brief, "tally": tallies[charge.account].brief}
            payload |= {"declared": declared.said} if declared and declared.said else {}
            if signed is not None:
                payload["approval"] = signed if alone or not drafts else {"with": drafts[0].charge}
            drafts.append(Draft(charge.account, charge.key, "reserve", 1, payload))
        return drafts

    def quote(self) -> Quote:
        """Return the quote: what was spent, and what would be spent with the charges."""
        before = self.limit.spent()
        return Quote(
            account=self.limit.name,
            opens=self.limit.name in self.opened,
            state=self.first.state if self.first else "new",
            accepted=self.accepted,
            requested_epsilon=self._requested(),
            spent_before=before,
            spent_after=self.limit.spent_after() if self.fresh else before,
            cap=self.limit.cap,
            delta=self.limit.delta,
        )

    def refusal(self) -> BudgetExhausted:
        """Return the error that says what was asked for and what remains."""
        limit, delta = self.limit, self.charges[0].budget.delta_exact
        remaining = min(limit.remaining(), limit.cap)
        costs = limit.cost(sum((cost for _, cost in self.fresh), Tally())) if delta != limit.delta else None
        none_left = limit.spent_after().is_infinite()
        budget = limit.name, self._requested(), remaining, limit.cap, limit.delta
        return BudgetExhausted(*budget, delta, costs, none_left)

    def _requested(self) -> Decimal:
        """Return the epsilon that is asked for in all, of the account of which most is asked."""
        of = dict.fromkeys(self.family.members, Decimal(0))
        for charge in self.charges:
            of[charge.account] += charge.budget.epsilon_exact
        return max(of.values())


def weigh(connection: Connection, *charges: Charge, write: bool = False) -> Weighing:
    """Compare charges, made all or none, with the caps of their accounts, of accounts above, and of their runs.

    Raises:
        LedgerError: their accounts are not siblings; or a charge is about other data than its account, has other terms
            than it had before, or comes after the account's last day.
        InvalidArgument: an event's price is not proved under the adjacency.
    """
    family = books.family(connection, list(dict.fromkeys(charge.account for charge in charges)), write=write)
    reservations = books.find(connection, [charge.key for charge in charges])
    of_key = {key: reservation.charge for key, reservation in reservations.items()}
    for charge in charges:
        check_terms(charge, family.members[charge.account].account)
        if of_key.setdefault(charge.key, charge) != charge:
            raise LedgerError(f"charge {charge.key} was reserved with other terms; a changed plan needs a new run")
    new = {charge.key: charge for charge in charges if charge.key not in reservations}
    fresh = tuple((charge, family.members[charge.account].cost(charge.priced)) for charge in new.values())
    by_account, by_run = dict[str, Tally](), dict[tuple[str, str], Tally]()
    for charge, cost in fresh:
        run = charge.account, charge.run
        by_account[charge.account] = by_account.get(charge.account, Tally()) + cost
        by_run[run] = by_run.get(run, Tally()) + cost
    caps = books.limits(connection, family, by_account)
    for (name, of_run), cost in by_run.items():
        caps += books.run_limit(connection, family.members[name].account, of_run, cost)
    reservation = reservations.get(charges[0].key)
    weighed = Weighing(
        charges, reservation, fresh, family, caps[0], reservation is None or reservation.state != "voided"
    )
    if not fresh:
        return weighed
    for cap in caps:
        for _, cost in fresh:
            check_composition(cap, cost)
    accounts = [*family.above, *family.members.values()]
    Signatures.read(connection).refuse(each.account.name for each in accounts)
    books.refuse_expired(connection, accounts)
    passed = next((cap for cap in caps if not cap.fits()), None)
    return replace(weighed, limit=passed or caps[0], accepted=passed is None)


def _hash(declared: Declaration | None) -> str:
    return digest((declared or Declaration()).said)


def asked(ledger: str, family: Family, charges: tuple[Charge, ...]) -> ApprovalRequest:
    """Return what an officer must sign: the plans of one run of one account, or the charges of a family."""
    first, figures = charges[0], tuple(charge.figures for charge in charges)
    if is_one_run(charges):
        plans = tuple(charge.plan_hash for charge in charges)
        return ApprovalRequest(ledger, first.account, first.run, plans, figures=figures)
    account = family.above[-1].account.name if len(family.members) > 1 else first.account
    return ApprovalRequest(
        ledger, account, first.run, tuple(charge.key for charge in charges), family=True, figures=figures
    )


def is_one_run(charges: tuple[Charge, ...]) -> bool:
    """Tell whether all charges are of one account and one run, so that their plans say which they are.

    Charges of parts are a family: one plan may be charged for documents and again for clients.
    """
    return len({(charge.account, charge.run, charge.part) for charge in charges}) == 1 and not charges[0].part


def check_composition(cap: Limit, cost: Tally) -> None:
    """Refuse what a cap cannot be kept with: a threshold late in a Renyi filter, or what is not pure at a delta of 0.

    Raises:
        LedgerError: it is one of the two.
    """
    if cap.order and cost.delta and any(line.renyi for line in cap.tallies):
        raise LedgerError(
            f"account {cap.name} is a Renyi filter, which keeps its cap where thresholds are charged before "
            "anything else: discover values first, or under an account of their own"
        )
    if not cap.delta and cost.pure_epsilon is None:
        raise _impure(f"account {cap.name} has")


def check_terms(charge: Charge, account: Account, slack: Decimal = Decimal(1)) -> None:
    """Refuse a charge about other data than the account's, or one whose event costs more than its target.

    Raises:
        LedgerError: it is about other data, or costs more than ``slack`` times its target.
        InvalidArgument: its event's price is not proved under the adjacency.
    """
    from dpmodels.accounting.composition import spent_epsilon

    budget, cap = charge.budget, account.cap
    if (charge.dataset, budget.unit, budget.adjacency) != (account.dataset, cap.unit, cap.adjacency):
        raise LedgerError(
            f"account {account.name} is for data set {account.dataset}, unit {cap.unit}, {cap.adjacency}; "
            f"the charge is for {charge.dataset}, {budget.unit}, {budget.adjacency}"
        )
    check_adjacency([charge.event], budget.adjacency)
    spent = spent_epsilon([charge.priced], budget.delta_exact)
    if spent.is_infinite():
        raise _impure("the charge's budget has")
    if spent > budget.epsilon_exact * slack:
        raise LedgerError(
            f"the charge's event costs more than its budget: epsilon={budget.epsilon}, delta={budget.delta}"
        )


def _impure(whose: str) -> LedgerError:
    return LedgerError(f"{whose} a delta of 0, which only pure releases keep, and what is asked for is not pure")
