"""An officer's agreement that a hand-off may leave: looked at whole, then signed beside its manifest.

Privacy: reads a hand-off, which is public.
"""

from datetime import UTC, datetime
from pathlib import Path

from dpmodels.errors import ArtifactError
from dpmodels.hand_off.manifest import parse_manifest, read_bytes
from dpmodels.hand_off.signature import OFFICER_SIGNATURE
from dpmodels.hand_off.signature import agree as sign
from dpmodels.hand_off.verification import Verification
from dpmodels.hand_off.verify import verify_hand_off
from tasks.run.signing import passphrase_of


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
    approved = parse_manifest(read_bytes(folder)).approved
    approver = approved.public_key if approved else ""
    fingerprint = sign(folder, key, datetime.now(UTC).date(), reason, approver, passphrase_of(key, "key"))
    return folder / OFFICER_SIGNATURE, fingerprint
