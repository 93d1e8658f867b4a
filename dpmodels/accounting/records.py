"""The ledger's words: an account, a charge and its life, a quote, a balance."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from dpmodels.accounting.events import Event
from dpmodels.accounting.store import Entry, digest
from dpmodels.errors import LedgerError
from dpmodels.privacy import PrivacyBudget

# state before, kind of entry -> state after. Whatever is not here is refused.
TRANSITIONS = {
    ("new", "reserve"): "reserved",
    ("reserved", "draw"): "drawing",
    ("drawing", "draw"): "drawing",  # the draw before this one was never sealed, so nobody saw it
    ("drawing", "seal"): "sealed",
    ("sealed", "commit"): "committed",
    ("reserved", "void"): "voided",
}

Text = Annotated[str, Field(min_length=1, max_length=500)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Account(_Model):
    """A data set, a privacy unit and an adjacency, with a hard cap on everything ever released about them."""

    name: Text
    dataset: Text
    cap: PrivacyBudget
    note: str = ""
    created: str = ""

    @property
    def epsilon_cap(self) -> Decimal:
        """The cap as the decimal that was written, not as its nearest float."""
        return Decimal(repr(self.cap.epsilon))

    @property
    def delta_cap(self) -> Decimal:
        """The delta at which everything spent is added up."""
        return Decimal(repr(self.cap.delta))

    @property
    def terms(self) -> dict[str, object]:
        """What the opening entry records; the name and the time stand in the entry itself."""
        return self.model_dump(mode="json", exclude={"name", "created"})

    @classmethod
    def opened_by(cls, entry: Entry) -> "Account":
        """Read an account back from its opening entry."""
        return cls.model_validate({**entry.content, "name": entry.account, "created": entry.time})

    @property
    def scope(self) -> tuple[str, str, str]:
        """What the account is about; there is one account for each."""
        return self.dataset, str(self.cap.unit), str(self.cap.adjacency)

    @property
    def row(self) -> dict[str, str]:
        """The account's row in the accounts table."""
        return {
            "name": self.name,
            "dataset": self.dataset,
            "unit": str(self.cap.unit),
            "adjacency": str(self.cap.adjacency),
            "epsilon_cap": str(self.epsilon_cap),
            "delta_cap": str(self.delta_cap),
            "note": self.note,
            "created": self.created,
        }


class Charge(_Model):
    """One release that a plan wants to make: its event, its target, and the public hashes that identify it."""

    account: Text
    dataset: Text
    mechanism: Text
    event: Event
    budget: PrivacyBudget
    plan_hash: Text
    schema_hash: Text
    run: Text

    @property
    def key(self) -> str:
        """The idempotency key: the same plan in the same run is the same charge, however often it is asked."""
        return digest([self.account, self.plan_hash, self.run])


class Reservation(_Model):
    """A charge and how far its life has gone."""

    charge: Charge
    state: str = "new"
    draws: int = 0
    artifact_hash: str = ""

    @property
    def key(self) -> str:
        """The charge's idempotency key, which is also its id in the ledger and in the artifact's footer."""
        return self.charge.key


class Quote(_Model):
    """What ``reserve`` would answer; epsilons at the account's delta.

    Attributes:
        state: ``new``, or how far the same charge already went; it is then not charged again.
        requested_epsilon: the charge's own target.
        spent_after: what would be spent with the charge, by composition.
    """

    account: str
    state: str
    accepted: bool
    requested_epsilon: Decimal
    spent_before: Decimal
    spent_after: Decimal
    cap: Decimal
    delta: Decimal


class Balance(_Model):
    """What an account has spent and can still spend; epsilons at the account's delta.

    Attributes:
        renyi_epsilon: the same spending by Renyi accounting, looser, for comparison.
        remaining_epsilon: the largest further Gaussian release that would be accepted; not cap - spent.
        charges: the charges that count.
    """

    account: str
    spent_epsilon: Decimal
    renyi_epsilon: Decimal
    remaining_epsilon: Decimal
    cap: Decimal
    delta: Decimal
    charges: int


def lives(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Sort entries by charge, oldest first; the openings of accounts are left out."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.kind != "open":
            found.setdefault(entry.charge, []).append(entry)
    return found


def follow(life: Iterable[Entry]) -> Reservation:
    """Follow one charge through its entries.

    Raises:
        LedgerError: an entry was edited, or is not allowed in the state it meets.
    """
    state, draws, seen = "new", 0, {}
    for entry in life:
        if entry.hash != entry.true_hash:
            raise LedgerError(f"{entry} was edited: its content does not match its hash")
        if (state, entry.kind) not in TRANSITIONS:
            raise LedgerError(f"{entry} meets a charge that is {state}, which is not allowed")
        state = TRANSITIONS[state, entry.kind]
        draws += entry.kind == "draw"
        seen[entry.kind] = entry.content
    sealed = seen.get("seal", {}).get("artifact_hash", "")
    return Reservation(charge=Charge.model_validate(seen["reserve"]), state=state, draws=draws, artifact_hash=sealed)
