"""The contract of a federation: which parties hold data, what their records look like, and what of it is public."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from dpmodels.contract.base import UndiscoveredContract
from dpmodels.frozen import Strict
from dpmodels.limits import LONGEST_CLIENT, LONGEST_NAME
from dpmodels.privacy import Adjacency, PrivacyUnit

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
CENTRAL = "one noise for the exact sums of all clients, drawn by a trusted aggregator"
"""The name of an event that pays for a draw about the records of all clients; each client is charged it."""
SCORES = "federated-scores"
"""The method whose lines pay for certainty scores alone, beside models that travel as they were trained."""
ROUNDS = "federated-rounds"
"""The method of a federation whose algorithm asks for no scores: nothing is drawn, so it has no line and no charge."""
KEPT_INSIDE = (
    "NO EPSILON HOLDS FOR THE MODELS: they are trained on the clients' records without any noise, and may hold any of "
    "them. So they stay in the sensitive zone, and nothing is handed over. "
)
STAYS_INSIDE = {
    SCORES: f"{KEPT_INSIDE}What is charged pays for the certainty scores alone; it says nothing of the models.",
    ROUNDS: f"{KEPT_INSIDE}Nothing is released under differential privacy, so nothing is charged. That it costs "
    "nothing does not make it private.",
}
"""By method what is said where models travel between clients and server as they are trained."""


class Client(Strict):
    """One party.

    Attributes:
        size: its number of records, where the sizes are public; None where they are private.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=LONGEST_CLIENT)]
    size: Annotated[int, Field(ge=1)] | None = None


class Federation(UndiscoveredContract):
    """The public contract of a federation, or of one client of it; everything in it is public by declaration.

    A federation is ``clinics``, and its client ``clinics.north`` has the same contract under that name. So a client has
    a data set, and an account, of its own, and each contract says who the others are.

    Attributes:
        clients: all of them. Either the sizes of all are public, and a record is hidden by replacing it; or none is,
            and a record is hidden by adding or removing it.
        features: the number of coordinates that the public extractor makes of a record; classes: of records, by name.
        extractor: hash of the public extractor's weights.
        negatives: number of public auxiliary records that clients tell their own from; auxiliary: hash of their
            features, as they are sent to the clients.
        most_records: of a client; where the sizes are private, a client with more is refused.
    """

    model_config = ConfigDict(strict=True)
    written: ClassVar[str] = "federation"
    kind: ClassVar[Literal["federation"]] = "federation"
    about: ClassVar[Literal["a federation"]] = "a federation"
    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]+(\.[a-z0-9_-]+)?$", max_length=LONGEST_NAME)]
    clients: Annotated[tuple[Client, ...], Field(min_length=1, strict=False)]
    features: Annotated[int, Field(ge=1, le=8192)]
    classes: Annotated[tuple[str, ...], Field(min_length=2, strict=False)]
    extractor: Sha256
    negatives: Annotated[int, Field(ge=1)]
    auxiliary: Sha256
    most_records: Annotated[int, Field(ge=1, le=10**7)] = 20_000

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [client.name for client in self.clients]
        if len(set(names)) < len(names) or len(set(self.classes)) < len(self.classes):
            raise ValueError("two clients, or two classes, have one name; name each once")
        if len({client.size is None for client in self.clients}) > 1:
            raise ValueError("give the size of every client, which makes them public, or of none")
        if any((client.size or 0) > self.most_records for client in self.clients):
            raise ValueError("a client has more than `most_records`; raise that number")
        if self.client and self.client not in names:
            raise ValueError("after the point stands the name of one of the `clients`")
        return self

    @property
    def client(self) -> str:
        """The client that this contract is about; empty for the federation."""
        return self.name.partition(".")[2]

    def of(self, client: str) -> "Federation":
        """Return the contract of one client.

        Raises:
            ValueError: there is no such client.
        """
        return Federation.model_validate({**self.model_dump(), "name": f"{self.name.partition('.')[0]}.{client}"})

    @property
    def whole(self) -> Self:
        """The contract of the federation that a client belongs to."""
        return self.model_validate({**self.model_dump(), "name": self.name.partition(".")[0]})

    @property
    def size(self) -> int | None:
        """The number of records of the client, or of all clients; None where it is private."""
        sizes = [client.size for client in self.clients if self.client in ("", client.name)]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def most(self) -> int:
        """The most records that the client, or all clients together, may hold."""
        return self.size or self.most_records * (1 if self.client else len(self.clients))

    @property
    def unit(self) -> PrivacyUnit:
        """Whose presence is hidden."""
        return PrivacyUnit()

    @property
    def adjacency(self) -> Adjacency:
        """How two neighboring data sets differ; a record is replaced within its client."""
        return Adjacency.ADD_OR_REMOVE_ONE if self.size is None else Adjacency.REPLACE_ONE

    @property
    def part(self) -> str:
        """The kind of part that is charged on its own: a client, unless all clients are measured together."""
        return "client" if self.client else ""
