"""An officer's agreement that a hand-off may leave: looked at whole, then signed beside its manifest.

Privacy: reads a hand-off, which is public.
"""

from datetime import UTC, datetime
from pathlib import Path

from dpmodels.errors import ArtifactError
from dpmodels.hand_off.manifest import parse_manifest, read_bytes
from dpmodels.hand_off.signature import OFFICER_SIGNATURE
from dpmodels.hand_off.signature import agree as sign
from dpmodels.hand_off.signature import check_agreement as check
from dpmodels.hand_off.verification import Verification
from dpmodels.hand_off.verify import verify_hand_off
from tasks.run.signing import passphrase_of

REASON_OF_A_CHARGE = (
    "be left out, since RUN names no folder of a hand-off: you sign for a charge with what its operator declares, so "
    "the reason goes into `--why` of the run; a reason of yours is signed with `nacre approve FOLDER --key KEY "
    "--reason REASON`"
)
"""What must be done with an officer's reason where a charge is signed for, whose signed text has no place for one."""


def look(folder: Path) -> Verification:
    """Check a hand-off before an officer signs for it.

    Raises:
        ArtifactError: something is wrong with it.
    """
    verified = verify_hand_off(folder)
    faults = [fault for fault in verified.faults if OFFICER_SIGNATURE not in fault]
    if faults:
        raise ArtifactError(f"{folder} is not to leave as it is: {faults[0]}")
    return verified


def agree(folder: Path, key: Path, reason: str = "") -> tuple[Path, str]:
    """Sign that a hand-off may leave; returns the file of the signature, and the SHA-256 of the public key.

    Raises:
        InvalidArgument: it is no private key that can be read, or not that of whoever approved the charge.
    """
    today, passphrase = datetime.now(UTC).date(), passphrase_of(key, "key")
    return folder / OFFICER_SIGNATURE, sign(folder, key, today, reason, _approver(folder), passphrase)


def check_agreement(folder: Path, key: Path, reason: str) -> None:
    """Refuse a key and a reason with which nobody could sign, before a hand-off is shown to whoever is to sign.

    Raises:
        InvalidArgument: as for ``agree``, or the reason is too long.
    """
    check(key, reason, _approver(folder), passphrase_of(key, "key"))


def _approver(folder: Path) -> str:
    """Return the public key that approved the charge of a hand-off; empty where none did."""
    approved = parse_manifest(read_bytes(folder)).approved
    return approved.public_key if approved else ""
