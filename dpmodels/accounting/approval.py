"""An officer's approval: an ed25519 signature of what a run will be charged for, by a key that the account names.

Whoever can write a file, or press a button of a server that knows no identities, can write any name. Only the holder of
the key can sign. What is signed names the account, the run and the hash of every line of its plan, so a signature is
worth nothing for another plan or a second run. The ledger asks for it inside the transaction that charges.
"""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from dpmodels.accounting.keys import key_text, private_key, public_key, signed_by
from dpmodels.errors import LedgerError


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Officer(_Model):
    """Who must approve an account's charges.

    Attributes:
        public_key: the 32 bytes of an ed25519 key, base64.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    public_key: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{43}=$")]

    @classmethod
    def read(cls, name: str, key: Path) -> "Officer":
        """Make an officer of a name and a public key in a PEM file."""
        return cls(name=name, public_key=key_text(public_key(key, "key")))


class Approval(_Model):
    """An officer's word for the charges of one run.

    Attributes:
        plans: the hashes of the lines of the run's plan, in order.
        signature: of ``approval_text``, base64.
    """

    officer: str
    public_key: str
    plans: tuple[str, ...]
    signature: str


def approval_text(account: str, run: str, plans: Sequence[str]) -> str:
    """Write what is signed."""
    words = [("account", account), ("run", run), *(("plan", plan) for plan in plans)]
    return "nacre approval 1\n" + "".join(f"{name} {value}\n" for name, value in words)


def approve(account: str, run: str, plans: Sequence[str], officer: str, key: Path) -> Approval:
    """Sign for a run with a private key in a PEM file."""
    private = private_key(key, "key")
    signature = base64.b64encode(private.sign(approval_text(account, run, plans).encode())).decode()
    public = key_text(private.public_key())
    return Approval(officer=officer, public_key=public, plans=tuple(plans), signature=signature)


def is_approved(account: str, run: str, plan: str, public_key: str, approval: Approval | None) -> bool:
    """Tell whether the holder of a key signed for a run of which this plan is a line."""
    if approval is None or plan not in approval.plans or approval.public_key != public_key:
        return False
    text = approval_text(account, run, approval.plans)
    return signed_by(public_key, approval.signature, text.encode())


def check_approval(
    account: str, run: str, plans: Sequence[str], officer: Officer, approval: Approval | None
) -> Approval:
    """Return the approval of charges if the officer signed it.

    Raises:
        LedgerError: there is none, or it is not of these charges by this officer's key.
    """
    if approval is None:
        raise LedgerError(
            f"account {account} is charged only with the approval of {officer.name}, which run {run} lacks; nothing "
            f"was charged. It is given by `nacre approve {run} --key KEY.pem`; then resume the run"
        )
    if tuple(plans) != approval.plans or not is_approved(account, run, plans[0], officer.public_key, approval):
        raise LedgerError(
            f"the approval of run {run} is not signed by the key of {officer.name} for this account, run and plan; "
            "nothing was charged"
        )
    return approval
