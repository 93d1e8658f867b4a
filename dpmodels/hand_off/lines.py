"""A line of a manifest: what was asked for, what it cost, and who paid for it."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AliasChoices, Field, model_validator

from dpmodels.accounting.events import Event
from dpmodels.errors import ArtifactError
from dpmodels.frozen import Frozen
from dpmodels.ledger.approval import Approval

OneLine = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f\x7f]*$")]
Text = Annotated[OneLine, Field(max_length=1000)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Delta = Annotated[float, Field(ge=0, lt=1)]


class ManifestError(ArtifactError):
    """A manifest is not as nacre writes it; ``faults`` are whole sentences, each of which names a field."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = list(faults)
        super().__init__("; ".join(self.faults))


class Target(Frozen):
    """The budget that a line of the plan asked for."""

    epsilon: Annotated[float, Field(gt=0, le=1000)]
    delta: Delta


class Cost(Frozen):
    """The cost of one line, or of all together: epsilon rounded up to 1e-12."""

    epsilon: Annotated[Decimal, Field(ge=0, max_digits=20, decimal_places=12)]
    delta: Delta


class Entry(Frozen):
    """An entry of the ledger: its place, its day, and the hash that nobody without the ledger could know.

    The time of day is left out, because the time that a run takes grows with the data. Early manifests held the time.
    """

    seq: Annotated[int, Field(ge=1, lt=2**63)]
    kind: Literal["reserve", "draw", "seal", "commit"]
    day: Annotated[Text, Field(validation_alias=AliasChoices("day", "time"))]
    hash: Sha256


class Payment(Frozen):
    """Who paid for a line: the key of the charge, and, where the ledger is at hand, its account and its entries."""

    account: Text | None = None
    charge: Sha256 | None = None
    entries: Annotated[tuple[Entry, ...], Field(fail_fast=True, min_length=1)] | None = None


class Family(Frozen):
    """Under which account and run an officer signed for the charges of a family."""

    account: Text
    run: Text


class Price(NamedTuple):
    """What a line asked for, what it cost, and its events."""

    asked: Target
    spent: Cost
    events: tuple[Event, ...]


class Line(Frozen):
    """One line of the plan: what it asked for, what it cost, and who paid.

    Attributes:
        part: the kind of part each of which is charged on its own, such as a document; None for the whole data set.
        asked, spent, events: None in the manifest of an unprotected federation, for which no epsilon holds.
        plan_sha256, and the charge in ``ledger``: None where nothing was charged.
    """

    asked: Target | None = None
    spent: Cost | None = None
    events: Annotated[tuple[Event, ...], Field(fail_fast=True, min_length=1)] | None = None
    plan_sha256: Sha256 | None = None
    part: Literal["document", "user", "client"] | None = None
    ledger: Payment = Payment()

    @property
    def sealed(self) -> bool:
        """Tell whether the line was drawn and sealed. A release always was, for nothing is handed over without it."""
        return True

    @property
    def has_price(self) -> bool:
        """Tell whether an epsilon is stated."""
        return True

    @property
    def is_charged(self) -> bool:
        """Tell whether anything was charged; nothing is where nothing was released under differential privacy."""
        return True

    @property
    def charge(self) -> str:
        """The key of the charge; empty where nothing was charged."""
        return self.ledger.charge or ""

    @property
    def price(self) -> "Price":
        """What was asked for, what it cost, and the events that cost it.

        Raises:
            ManifestError: no epsilon is stated, because none holds.
        """
        if self.asked is None or self.spent is None or self.events is None:
            raise ManifestError(
                ["manifest.json states no epsilon, because none holds for the whole of what it is about"]
            )
        return Price(self.asked, self.spent, self.events)

    @model_validator(mode="after")
    def _has_its_price(self) -> Self:
        for name in ("asked", "spent", "events"):
            if (getattr(self, name) is not None) != self.has_price:
                fault = "lacks the field" if self.has_price else "is of what no epsilon holds for, and has the field"
                raise ValueError(f"{fault} {name}")
        for name, digest in (("plan_sha256", self.plan_sha256), ("ledger.charge", self.ledger.charge)):
            if (digest is not None) != self.is_charged:
                fault = (
                    "lacks the field" if self.is_charged else "is of what nothing was charged for, and has the field"
                )
                raise ValueError(f"{fault} {name}")
        return self


class ReportLine(Line):
    """The line of the charged report. Its scores may have been lost after they were charged for."""

    scores_sha256: Sha256 | None = None

    @property
    def sealed(self) -> bool:
        """Tell whether the scores were drawn and sealed."""
        return self.scores_sha256 is not None


class ClientLine(Line):
    """What one client of a federation released, from which run and account it was paid, and who signed for it."""

    client: Annotated[Text, Field(max_length=100)]
    run: Text
    release_sha256: Sha256
    approved: Approval | None = None


class DiscoveryLine(Line):
    """What the schema was discovered with; ``left_out`` says why the entries of its charge are not known."""

    run: Text
    release_sha256: Sha256
    left_out: Text | None = None

    @model_validator(mode="after")
    def _says_what_is_left_out(self) -> Self:
        if self.ledger.account is None or self.part is not None:
            raise ValueError("has a discovery without an account, or with a part, as none is")
        if (self.ledger.entries is None) != (self.left_out is not None):
            raise ValueError("has a discovery with one of the fields ledger.entries and left_out too many or too few")
        return self
