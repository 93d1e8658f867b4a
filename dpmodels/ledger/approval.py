"""An officer's approval: an ed25519 signature of what a run will be charged for, by a key that the account names.

Whoever can write a file, or press a button of a server that knows no identities, can write any name. Only the holder of
the key can sign. The signed text names the ledger, the account, the run, the hash of every line of its plan and that of
what the operator declares, so a signature is worth nothing for another plan, purpose or recipient, a second run, or
accounts of these names in another ledger. It also has a hash of each charge's figures, by which a recipient, who has no
plan, sees that the officer signed for the unit, the noise and the schema of a hand-off. The ledger checks the signature
inside the transaction that charges.
"""

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dpmodels.accounting.events import Event
from dpmodels.errors import NotSigned
from dpmodels.frozen import Frozen
from dpmodels.keys import key_text, private_key, public_key, signed_by
from dpmodels.ledger.store import canonical_json, digest


class Officer(Frozen):
    """Who must approve an account's charges.

    Attributes:
        public_key: the 32 bytes of an ed25519 key, base64.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    public_key: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{43}=$")]

    @classmethod
    def read(cls, name: str, key: Path) -> "Officer":
        """Make an officer from a name and a public key in a PEM file."""
        return cls(name=name, public_key=key_text(public_key(key, "key")))


class Approval(Frozen):
    """An officer's signature for the charges of one run, or of a family.

    Attributes:
        ledger: the hash of the entry that opened the account whose officer signed; no other ledger has it.
        plans: the hashes of the lines of the run's plan, in order; for a family the keys of its charges.
        signature: the signature of ``ApprovalRequest.text``, base64.
        declared: the SHA-256 of what the operator declared, where the officer signed it too; approvals of versions
            before 0.3 are of plans alone.
        figures: by plan the hash of what a hand-off says of its charge (``figures_of``); none where not ``declared``.
    """

    officer: str
    public_key: str
    ledger: str
    plans: tuple[str, ...]
    signature: str
    declared: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$", exclude_if=lambda sha256: not sha256)] = ""
    figures: Annotated[tuple[str, ...], Field(exclude_if=lambda hashes: not hashes)] = ()


def figures_of(
    plan: str | None, schema: str, target: tuple[float, float], protects: tuple[str, str], events: Sequence[Event]
) -> str:
    """Return the hash of what is charged; the plan's own hash, which nobody else has, hides it from other members.

    Args:
        plan: the hash of the line of the plan.
        schema: the hash of the contract; empty where the charge is that of each of many parts.
        target: the epsilon and the delta that were asked for.
        protects: the unit and the adjacency, as a manifest writes them.
        events: what is charged.
    """
    written = [event.model_dump(mode="json") for event in events]
    return digest([plan, schema, [*target], [*protects], written])


@dataclass(frozen=True)
class ApprovalRequest:
    """What an officer is asked to sign: the charges of one run of one account, by the hashes of their plans.

    Or it is the charges of a family: those of the children of one account, or of several runs of one account. A family
    is named by the keys of its charges, each of which is the hash of a charge's account, plan and run; so whoever
    receives the signature with the hand-off of one member learns neither the names nor the plans of the others. Or it
    is a new account, by the hash of its terms; then there is no run. ``declared`` is the SHA-256 of what the operator
    declares, which is one thing for all charges that are made together.
    """

    ledger: str
    account: str
    run: str
    plans: tuple[str, ...]
    family: bool = False
    opening: bool = False
    declared: str = ""
    figures: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text that is signed, in canonical form."""
        terms = asdict(self)
        family, opening = terms.pop("family"), terms.pop("opening")
        if not self.declared:
            del terms["declared"], terms["figures"]
        kind = f"approval {2 if self.declared else 1}" + (
            " of a family" if family else " of an account" if opening else ""
        )
        return canonical_json({"nacre": kind, **terms}) + "\n"

    def approve(self, officer: str, key: Path, passphrase: str = "") -> Approval:
        """Sign with a private key in a PEM file."""
        private = private_key(key, "key", passphrase)
        signature = base64.b64encode(private.sign(self.text.encode())).decode()
        return self.signed(Officer(name=officer, public_key=key_text(private.public_key())), signature)

    def check_key(self, officer: Officer, key: Path, passphrase: str = "") -> None:
        """Refuse a private key that is not the officer's, before anybody is asked to sign with it.

        Raises:
            NotSigned: it is another one.
        """
        if key_text(private_key(key, "key", passphrase).public_key()) != officer.public_key:
            fact = f"{key} is another key than that of {officer.name}, who is to approve run {self.run}"
            raise NotSigned(self.account, f"{fact}; nothing was signed", officer.name)

    def signed(self, officer: Officer, signature: str) -> Approval:
        """Return the approval that a signature of the text is."""
        named = {"officer": officer.name, "public_key": officer.public_key, "signature": signature}
        return Approval(ledger=self.ledger, plans=self.plans, declared=self.declared, figures=self.figures, **named)

    def check(self, officer: Officer, approval: Approval | None) -> Approval:
        """Return the approval if the officer signed it.

        Raises:
            NotSigned: there is no approval, or it is for other charges or by another key.
        """
        run = self.run
        if approval is None:
            fact = (
                f"account {self.account} is charged only with the approval of {officer.name}, which run {run} lacks; "
                f"nothing was charged. It is given by `nacre approve {run} --key KEY.pem`; then resume the run"
            )
        elif approval.public_key != officer.public_key:
            fact = f"run {run} is signed with another key than that of {officer.name}; nothing was charged"
        elif not self.is_signed(approval):
            fact = (
                f"the approval of run {run} is not signed by the key of {officer.name} for this ledger, account, run, "
                "plan and declaration; nothing was charged"
            )
        else:
            return approval
        raise NotSigned(self.account, fact, officer.name)

    def is_signed(self, approval: Approval) -> bool:
        """Tell whether the holder of the approval's key signed exactly this, or the plans of it alone, as once."""
        same = (approval.ledger, approval.plans) == (self.ledger, self.plans)
        text = replace(self, declared=approval.declared, figures=approval.figures).text
        whole = (approval.declared, approval.figures) in (("", ()), (self.declared, self.figures))
        return same and whole and signed_by(approval.public_key, approval.signature, text.encode())
