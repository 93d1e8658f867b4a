"""What server and clients of a Flower federation send each other, once in each direction.

    offer    server -> client    the plan of all clients' lines, and the public part that the plan names
    answer   client -> server    the released file and the ledger's receipt; or why there is none

Privacy: an answer holds what was released, entries of the client's ledger by day and hash, and one of a few fixed
sentences. How long a client takes to answer depends on its records, as on its machine, and the server can see that.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from flwr.app import ConfigRecord, RecordDict

from dpmodels.contract.dropped import ABSENT, CHARGED, DISAGREED, FAILED, REFUSED, UNFIT
from dpmodels.methods.federations.public_part import PublicPart
from dpmodels.releases.plan import Plan

NAME = "nacre"
REASONS = ("", ABSENT, CHARGED, DISAGREED, FAILED, REFUSED, UNFIT)
"""What a client may say of itself: the server takes no other words into a report."""


@dataclass(frozen=True)
class Offer:
    """What a server asks its clients to release."""

    plan: Plan
    public: bytes

    def pack(self) -> Any:
        """Return the offer as a record of Flower's."""
        return RecordDict({NAME: ConfigRecord({"plan": self.plan.model_dump_json(), "public": self.public})})

    @classmethod
    def unpack(cls, record: Any) -> "Offer":
        """Read an offer back."""
        fields = record[NAME]
        return cls(Plan.model_validate_json(fields["plan"]), bytes(fields["public"]))

    @property
    def part(self) -> PublicPart:
        """The public part.

        Raises:
            ArtifactError: it is damaged.
        """
        return PublicPart.of_bytes(self.public)


@dataclass(frozen=True)
class Answer:
    """What a client released, from which run, and who paid; ``reason`` says why it released nothing, if so."""

    client: str
    reason: str = ""
    run: str = ""
    release: bytes = b""
    paid: dict[str, Any] = field(default_factory=dict)

    def pack(self) -> Any:
        """Return the answer as a record of Flower's."""
        fields = {"client": self.client, "reason": self.reason, "run": self.run, "paid": json.dumps(self.paid)}
        return RecordDict({NAME: ConfigRecord({**fields, "release": self.release})})

    @classmethod
    def unpack(cls, record: Any) -> "Answer":
        """Read an answer back, which anybody may have written; one that cannot be read is nobody's."""
        try:
            fields = record[NAME]
            texts = {name: str(fields[name]) for name in ("client", "reason", "run")}
            answer = cls(**texts, release=bytes(fields["release"]), paid=dict(json.loads(fields["paid"])))
        except (KeyError, TypeError, ValueError, RecursionError):
            return cls("", FAILED)
        return answer if answer.reason in REASONS else cls(answer.client, FAILED)
