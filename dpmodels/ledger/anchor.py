"""An anchor: place and hash of a ledger's newest entry, signed, and kept where nobody who writes the ledger changes it.

No chain shows from inside that its newest entries were cut off. Whoever can put back the disk of a home puts ledger and
home back together, and the cap is spent again. What was anchored elsewhere before then lacks its entry. The hash of the
newest entry covers all entries before it, so also every account and every cap.

Privacy: an anchor leaves the sensitive zone. It holds what the manifest of a hand-off holds of an entry, and less: its
    place in the chain, its day, and its hash, which a random nonce keeps from being guessed.
"""

import base64
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from dpmodels.errors import LedgerError
from dpmodels.frozen import Frozen
from dpmodels.keys import key_text, private_key, signed_by
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.store import canonical_json

LARGEST_ANCHOR = 2**12
"""Bytes that are read of one anchor at most."""
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Anchor(Frozen):
    """Where a ledger stood.

    Attributes:
        ledger: the hash of the ledger's first entry, which no other ledger has.
        position, hash, day: of the entry that was the newest.
    """

    ledger: Hash
    position: Annotated[int, Field(ge=1, lt=2**63)]
    hash: Hash
    day: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]

    @classmethod
    def of(cls, ledger: Ledger) -> "Anchor":
        """Return where a ledger stands.

        Raises:
            LedgerError: it has no entry yet.
        """
        first, head = ledger.entry(1), ledger.head()
        if first is None or head is None:
            raise LedgerError("the ledger has no entry yet, so there is nothing to anchor")
        return cls(ledger=first.hash, position=head.seq, hash=head.hash, day=head.time[:10])

    @property
    def name(self) -> str:
        """The name of the anchor's file; names sort by position, and no other state of a ledger has the same one."""
        return f"anchor-{self.position:012d}-{self.hash[:16]}.json"

    @property
    def text(self) -> str:
        """The text that is signed, in canonical form."""
        return canonical_json({"nacre": "anchor 1", **self.model_dump()}) + "\n"

    def signed(self, key: Path, passphrase: str = "") -> str:
        """Sign with a private key in a PEM file, and return the content of the anchor's file."""
        private = private_key(key, passphrase=passphrase)
        signature = base64.b64encode(private.sign(self.text.encode())).decode()
        public = key_text(private.public_key())
        return SignedAnchor(anchor=self, public_key=public, signature=signature).model_dump_json(indent=1)

    def fault(self, ledger: Ledger) -> str:
        """Say what a ledger lacks of what was anchored; empty if nothing."""
        first, entry = ledger.entry(1), ledger.entry(self.position)
        if first is None or first.hash != self.ledger:
            return f"an anchor of {self.day} is of another ledger than this one"
        if entry is None:
            return f"the ledger lacks entry {self.position}, which was anchored on {self.day}: it was put back"
        if entry.hash != self.hash:
            return f"{entry} is not the one that was anchored on {self.day}: the chain was written anew"
        return ""


class SignedAnchor(Frozen):
    """An anchor as it lies in its file."""

    anchor: Anchor
    public_key: str
    signature: str

    @classmethod
    def read(cls, content: bytes, public_key: str) -> Anchor | None:
        """Return the anchor in a file, or None where it is none that the holder of a key has signed."""
        try:
            signed_anchor = cls.model_validate_json(content)
        except ValidationError:
            return None
        sound = signed_anchor.public_key == public_key
        return (
            signed_anchor.anchor
            if sound and signed_by(public_key, signed_anchor.signature, signed_anchor.anchor.text.encode())
            else None
        )
