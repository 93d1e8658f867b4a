"""The ledger's models: an account, a charge and its life, a quote, a balance."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from dpmodels import amounts
from dpmodels.accounting.events import Event, priced
from dpmodels.accounting.tally import Tally
from dpmodels.errors import LedgerError, near
from dpmodels.frozen import Frozen
from dpmodels.ledger.approval import Officer, figures_of
from dpmodels.ledger.declared import Said
from dpmodels.ledger.store import ACCOUNT_KINDS, UNCHARGED, Entry, digest
from dpmodels.plural import counted
from dpmodels.privacy import PrivacyBudget

# (state before, kind of entry) -> state after; every other transition is refused.
TRANSITIONS = {
    ("new", "reserve"): "reserved",
    ("reserved", "draw"): "drawing",
    ("drawing", "draw"): "drawing",  # the earlier draw was never sealed, so nobody saw it
    ("drawing", "seal"): "sealed",
    ("sealed", "commit"): "committed",
    ("reserved", "void"): "voided",
}

# What a reserve entry holds beside its charge; entries of earlier versions lack some of it.
BESIDE = ("cost", "tally", "approval", "declared")

# The fields that an account's `cap` entry may change; all others stay as they were opened.
MOST_EARLIER = 10
"""Earlier charges that the card of a hand-off names, the last ones."""
LARGEST_CAP = Decimal(1000)
"""The largest epsilon of any budget."""
CAP_TERMS = ("cap", "run_cap", "expires", "officer")

Text = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Account(Frozen):
    """A data set, a privacy unit and an adjacency, with a hard cap on everything ever released about them.

    Attributes:
        owner: who answers for the account.
        parent: the account above; what a child spends counts there too, in parallel with what its siblings spend.
        run_cap: the epsilon that all charges of one run may spend together at the cap's delta.
        expires: the last day on which a charge is accepted. What was spent stays spent: a budget never refreshes.
        composition: ``exact`` composes what was released; ``renyi_filter`` holds a cap on one Renyi divergence, which
            is valid for any releases whose budgets were chosen after seeing earlier ones.
        order: the order of the Renyi filter; 0 when the composition is exact.
        partition: the column whose values separate this account's data from its siblings', if they are partitions.
        officer: who must sign every charge of this account, and of accounts below that have no officer of their own.
    """

    name: Text
    dataset: Text
    cap: PrivacyBudget
    owner: str = ""
    note: str = ""
    parent: str = ""
    run_cap: Annotated[float, Field(gt=0)] | None = None
    expires: date | None = None
    composition: Literal["exact", "renyi_filter"] = "exact"
    order: Annotated[int, Field(ge=0)] = 0
    partition: str = ""
    officer: Officer | None = None
    created: str = ""

    @property
    def epsilon_cap(self) -> Decimal:
        """The cap as the decimal that was written, not as its nearest float."""
        return self.cap.epsilon_exact

    @property
    def delta_cap(self) -> Decimal:
        """The delta at which everything spent is added up."""
        return self.cap.delta_exact

    @property
    def terms(self) -> dict[str, object]:
        """The payload of the opening entry; the name and the time have fields of their own in the entry."""
        return self.model_dump(mode="json", exclude={"name", "created"})

    @classmethod
    def written_in(cls, opening: Entry, changed: Entry | None) -> "Account":
        """Read an account from the entry that opened it and the newest one that changed its caps."""
        content = {key: value for key, value in opening.content.items() if key not in (*UNCHARGED, "approval")}
        content |= {"name": opening.account, "created": opening.time}
        if changed is not None:
            content |= {term: changed.content[term] for term in CAP_TERMS if term in changed.content}
        return cls.model_validate(content)

    @property
    def filter_order(self) -> int | None:
        """The order of the Renyi filter, or None where composition is exact."""
        return self.order or None

    def __repr__(self) -> str:
        cap = f"cap epsilon={amounts.written(self.epsilon_cap)} at delta={amounts.written(self.delta_cap)}"
        return f"<account {self.name}: data set {self.dataset}, unit {self.cap.unit}, {cap}, {self.cap.adjacency}>"

    @property
    def scope(self) -> tuple[str, str, str]:
        """Data set, unit and adjacency: there is at most one account for each such triple."""
        return self.dataset, self.cap.unit.code, str(self.cap.adjacency)

    @property
    def row(self) -> dict[str, str]:
        """The account's row in the accounts table."""
        return {
            "name": self.name,
            "dataset": self.dataset,
            "unit": self.cap.unit.code,
            "adjacency": str(self.cap.adjacency),
            "epsilon_cap": str(self.epsilon_cap),
            "delta_cap": str(self.delta_cap),
            "note": self.note,
            "created": self.created,
            "parent": self.parent,
        }


class Charge(Frozen):
    """One release that a plan wants to make: its event, its target, and the public hashes that identify it.

    Attributes:
        part: the kind of part that each release of a family is made from, such as document, client or night; empty for
            the whole data set. With a part, the event is what each part is charged, in parallel, and the number of
            parts is not written: it may be private or huge. An empty part is left out of the entry, as it is in entries
            that are older than this field.
    """

    account: Text
    dataset: Text
    mechanism: Text
    event: Event
    budget: PrivacyBudget
    plan_hash: Text
    schema_hash: Text
    run: Text
    part: Annotated[str, Field(max_length=100)] = ""

    @model_serializer(mode="wrap")
    def _without_no_part(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in write(self).items() if key != "part" or value}

    @property
    def key(self) -> str:
        """The idempotency key: the same plan in the same run is the same charge, however often it is asked."""
        return digest([self.account, self.plan_hash, self.run, *([self.part] if self.part else [])])

    @property
    def figures(self) -> str:
        """The hash of what a hand-off says of the charge, which an officer signs."""
        target, protects = (self.budget.epsilon, self.budget.delta), (str(self.budget.unit), str(self.budget.adjacency))
        return figures_of(self.plan_hash, "" if self.part else self.schema_hash, target, protects, [self.event])

    @property
    def priced(self) -> Event:
        """The event that the account is charged, once for all parts of a family."""
        return priced(self.event, self.part)


class Reservation(Frozen):
    """A charge, its state, and what it added to its account's tally."""

    charge: Charge
    state: str = "new"
    draws: int = 0
    artifact_hash: str = ""
    cost: Tally = Tally()

    @property
    def key(self) -> str:
        """The charge's idempotency key, which is also its id in the ledger and in the artifact's footer."""
        return self.charge.key


class Quote(Frozen):
    """What ``reserve`` would answer; epsilons at the account's delta.

    Attributes:
        account: the account whose cap decides: the charge's own, or one above it.
        opens: whether that account is not open yet, and opens with the charge.
        state: ``new``, or how far the same charge already went; it is then not charged again.
        requested_epsilon: the charge's own target.
        spent_after: what would be spent with the charge, by composition.
    """

    account: str
    opens: bool
    state: str
    accepted: bool
    requested_epsilon: Decimal
    spent_before: Decimal
    spent_after: Decimal
    cap: Decimal
    delta: Decimal

    def __repr__(self) -> str:
        answer = "accepted" if self.accepted else "refused"
        spent = f"epsilon {amounts.spent(self.spent_before)} spent before, {amounts.spent(self.spent_after)} after"
        return f"<quote of {self.account}: {answer}; {spent}, cap {amounts.written(self.cap)}>"


class Balance(Frozen):
    """What an account has spent and can still spend; epsilons at the account's delta.

    Attributes:
        renyi_epsilon: the same spending by Renyi accounting, looser, for comparison.
        remaining_epsilon: the epsilon of the largest further release that would be accepted. Of a Gaussian release it
            is not cap - spent; at delta 0 the release is pure, and it is.
        charges: the number of the account's own charges that were not voided.
        children: the accounts directly below; what the heaviest of them spent is part of this balance.
    """

    account: str
    spent_epsilon: Decimal
    renyi_epsilon: Decimal
    remaining_epsilon: Decimal
    cap: Decimal
    delta: Decimal
    charges: int
    children: tuple[str, ...] = ()

    def __repr__(self) -> str:
        left = f"{amounts.spent(self.spent_epsilon)} spent, {amounts.remaining(self.remaining_epsilon)} remaining"
        cap = f"cap {amounts.written(self.cap)}, at delta={amounts.written(self.delta)}"
        return f"<balance of {self.account}: epsilon {left}, {cap}; {counted(self.charges, 'charge')}>"

    @property
    def used(self) -> float:
        """The part of the cap that is spent, 0 to 1."""
        return float(self.spent_epsilon / self.cap)


class Earlier(Frozen):
    """A charge that an account had paid before another; what its operator declared is public for ever.

    Attributes:
        spent: epsilon that the account had spent right after it, composed at the account's delta; None where its entry
            does not tell: there are accounts below, a charge was given back, or an earlier version wrote it.
    """

    day: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    run: Said
    epsilon: Annotated[Decimal, Field(ge=0, le=LARGEST_CAP)]
    delta: Annotated[Decimal, Field(ge=0, lt=1)]
    purpose: Said = Field(default="", exclude_if=lambda words: not words)
    recipient: Said = Field(default="", exclude_if=lambda words: not words)
    spent: Annotated[Decimal, Field(ge=0)] | None = Field(default=None, exclude_if=lambda amount: amount is None)

    @classmethod
    def written_in(cls, reserve: Entry, spent: Decimal | None = None) -> "Earlier":
        """Read it from the entry that reserved the charge."""
        budget = read_reserve(reserve.content)[0].budget
        said = {key: reserve.content.get("declared", {}).get(key, "") for key in ("purpose", "recipient")}
        epsilon, delta = budget.epsilon_exact, budget.delta_exact
        return cls(day=reserve.time[:10], run=reserve.run, epsilon=epsilon, delta=delta, spent=spent, **said)


class Standing(Frozen):
    """Where an account stood when it was charged for a run: what it had spent before, and what remained after.

    Attributes:
        delta, cap: at which everything is added up, and what may be spent in all; as they are now.
        before, after: epsilon spent right before the run's charges and right after them; those of the run that were
            given back since are left out.
        remaining: the epsilon of the largest further release that would have been accepted then.
        right_guesses, beyond: what all of it means together (``Together``); None where that takes long to reckon.
        charges: how many had been made before, and were not given back; earlier: the last of them, oldest first.
        owner, expires: who answers for the account, and its last day, as they are now.
    """

    account: str
    delta: Decimal
    cap: Decimal
    before: Decimal
    after: Decimal
    remaining: Decimal
    right_guesses: float | None = Field(default=None, ge=0.5, le=1, exclude_if=lambda share: share is None)
    beyond: float | None = Field(default=None, ge=0, le=1, exclude_if=lambda share: share is None)
    charges: int = Field(default=0, ge=0, exclude_if=lambda number: not number)
    earlier: tuple[Earlier, ...] = Field(default=(), max_length=MOST_EARLIER, exclude_if=lambda charges: not charges)
    owner: str = Field(default="", exclude_if=lambda words: not words)
    expires: date | None = Field(default=None, exclude_if=lambda day: day is None)


def lives(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Sort entries by charge, oldest first; entries about accounts are left out."""
    lives_by_key: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.kind not in ACCOUNT_KINDS:
            lives_by_key.setdefault(entry.charge, []).append(entry)
    return lives_by_key


def follow(life: Iterable[Entry]) -> Reservation:
    """Follow one charge through its entries.

    Raises:
        LedgerError: an entry was edited, is not allowed in the charge's state, or is filed under another key or
            account.
    """
    state, draws, contents = "new", 0, {}
    life = list(life)
    for entry in life:
        if entry.hash != entry.true_hash:
            raise LedgerError(f"{entry} was edited: its content does not match its hash")
        if (state, entry.kind) not in TRANSITIONS:
            raise LedgerError(f"{entry} meets a charge that is {state}, which is not allowed")
        if entry.account != life[0].account:
            raise LedgerError(f"{entry} is filed under another account than its charge")
        state = TRANSITIONS[state, entry.kind]
        draws += entry.kind == "draw"
        contents[entry.kind] = entry.content
    sealed = contents.get("seal", {}).get("artifact_hash", "")
    charge, cost = read_reserve(contents["reserve"])
    if (life[0].charge, life[0].account) != (charge.key, charge.account):
        raise LedgerError(f"{life[0]} is filed under another key or account than those of its charge")
    return Reservation(charge=charge, state=state, draws=draws, artifact_hash=sealed, cost=cost)


def read_reserve(content: dict[str, Any]) -> tuple[Charge, Tally]:
    """Read the charge and its cost from a reserve entry; ledgers older than tallies wrote the charge only."""
    charge_fields = {key: value for key, value in content.items() if key not in (*BESIDE, *UNCHARGED)}
    charge = Charge.model_validate(charge_fields)
    cost = Tally.model_validate(content["cost"]) if "cost" in content else Tally.of([charge.priced])
    return charge, cost


def meant_or_opened(name: str, names: Iterable[str]) -> str:
    """Say which of the open accounts was probably meant by a name that none has, and what opens one of this name."""
    meant = near(name, sorted(names)).removeprefix("; ")
    how = f"`nacre ledger open {name} --schema SCHEMA --epsilon EPSILON --delta DELTA` opens it"
    return f"{meant} Otherwise {how}" if meant else how
