"""Check a hand-off by itself: for whoever receives one, without access to our store or ledger.

What can be seen: that every file is the one the manifest names and none is missing or added, that the budget is what
the events cost, that the charge and its entries hang together, and who signed the manifest. What cannot: that the
manifest is true. A signature says whose word that is; the ledger's hashes in it let an auditor check it there.
"""

import base64
import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from dpmodels.accounting.artifact import sha256_of
from dpmodels.accounting.events import Event
from dpmodels.accounting.store import digest
from dpmodels.errors import ArtifactError, InvalidArgument

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
LIFE = ["reserve", "draw", "seal", "commit"]
_EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event])


@dataclass
class Verified:
    """What was found: faults, the number of files that are as they should be, and a sentence on the signature."""

    faults: list[str] = field(default_factory=list)
    files: int = 0
    signature: str = "none: nobody vouches for this manifest"


def sign_manifest(folder: Path, key: Path) -> None:
    """Sign a folder's manifest with the user's private key, beside it.

    Raises:
        InvalidArgument: the key is no readable, unencrypted ed25519 private key.
    """
    private = private_key(key)
    signature = private.sign((folder / MANIFEST).read_bytes())
    (folder / SIGNATURE).write_text(_record(_raw(private.public_key()), signature), encoding="utf-8")


def verify_hand_off(folder: Path, public_key: Path | None = None) -> Verified:
    """Check every file of a hand-off, its budget and its signature; with a key, it must be signed with that one.

    Raises:
        ArtifactError: there is no manifest that could be read.
        InvalidArgument: the key cannot be read.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        artifacts = dict(manifest["artifacts"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ArtifactError(f"{folder} has no manifest that can be read") from None
    found = Verified()
    _check_files(folder, artifacts, found)
    try:
        lines = [manifest, *([manifest["report"]] if "report" in manifest else [])]
        for line in lines:
            _check_budget(line, found)
            _check_charge(line, manifest["run"], found)
        if "report" in manifest:
            _check_total(manifest, found)
    except (KeyError, TypeError, ValueError, ArithmeticError, ValidationError) as error:
        found.faults.append(f"{MANIFEST} is not as nacre writes it: {type(error).__name__}")
    _check_signature(folder, _public_key(public_key) if public_key else None, found)
    return found


def _check_files(folder: Path, artifacts: dict[str, str], found: Verified) -> None:
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
    for name in sorted(present - artifacts.keys() - {MANIFEST, SIGNATURE}):
        found.faults.append(f"{name} is not in the manifest")
    for name, sha256 in artifacts.items():
        if name not in present:
            found.faults.append(f"{name} is missing")
        elif sha256_of(folder / name) != sha256:
            found.faults.append(f"{name} was changed")
        else:
            found.files += 1


def _check_total(manifest: dict[str, Any], found: Verified) -> None:
    """Reckon what both lines cost together."""
    from dpmodels.accounting.composition import spent_epsilon

    events = _EVENTS.validate_python([*manifest["events"], *manifest["report"]["events"]])
    said = manifest["total_spent"]
    reckoned = spent_epsilon(events, Decimal(repr(said["delta"])))
    if said["delta"] != manifest["asked"]["delta"] or abs(reckoned - Decimal(said["epsilon"])) > Decimal("1e-9"):
        found.faults.append(f"release and report cost epsilon={reckoned} together, the manifest says {said['epsilon']}")


def _check_budget(line: dict[str, Any], found: Verified) -> None:
    """Reckon the epsilon of a line's events again."""
    from dpmodels.accounting.composition import spent_epsilon

    events = _EVENTS.validate_python(line["events"])
    asked, said = line["asked"], line["spent"]
    reckoned = spent_epsilon(events, Decimal(repr(said["delta"])))
    if asked["delta"] != said["delta"] or abs(reckoned - Decimal(said["epsilon"])) > Decimal("1e-9"):
        found.faults.append(f"the events cost epsilon={reckoned}, the manifest says {said['epsilon']}")
    if reckoned > Decimal(repr(asked["epsilon"])):
        found.faults.append(f"the events cost more than was asked for: epsilon={asked['epsilon']}")


def _check_charge(line: dict[str, Any], run: str, found: Verified) -> None:
    """See that the charge's key is that of its plan and run, and that its life is complete and in order."""
    ledger = line["ledger"]
    if ledger["charge"] != digest([ledger["account"], line["plan_sha256"], run]):
        found.faults.append("the charge is not that of this plan and run")
    entries = ledger["entries"]
    kinds = [entry["kind"] for entry in entries]
    places = [entry["seq"] for entry in entries]
    whole = LIFE if "release_sha256" in line or "scores_sha256" in line else LIFE[: len(set(kinds))]  # lost scores
    if list(dict.fromkeys(kinds)) != whole or places != sorted(set(places)):
        found.faults.append("the charge's entries are not a complete life: reserve, draw, seal, commit")


def _check_signature(folder: Path, wanted: "Ed25519PublicKey | None", found: Verified) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not (folder / SIGNATURE).exists():
        found.faults += ["the manifest is not signed"] if wanted else []
        return
    try:
        record = json.loads((folder / SIGNATURE).read_bytes())
        raw = base64.b64decode(record["public_key"], validate=True)
        signature = base64.b64decode(record["signature"], validate=True)
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, (folder / MANIFEST).read_bytes())
    except (InvalidSignature, ValueError, KeyError, TypeError):
        found.faults.append(f"{SIGNATURE} is not a signature of this manifest")
        return
    if (folder / SIGNATURE).read_bytes() != _record(raw, signature).encode():
        found.faults.append(f"{SIGNATURE} is not as nacre writes it")
    if wanted is None:
        found.signature = f"by key {_text(raw)}; compare it with the signer's, or give it with --public-key"
    elif _raw(wanted) == raw:
        found.signature = "by the key you named"
    else:
        found.faults.append("the manifest is signed with another key than the one you named")


def private_key(path: Path) -> "Ed25519PrivateKey":
    """Read an ed25519 private key (PEM), such as ``openssl genpkey -algorithm ed25519`` writes.

    Raises:
        InvalidArgument: it is not one.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidArgument("signing_key", path, "be an unencrypted ed25519 private key in a PEM file")
    return key


def _public_key(path: Path) -> "Ed25519PublicKey":
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(path.read_bytes())
    except (OSError, ValueError):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidArgument("public_key", path, "be an ed25519 public key in a PEM file")
    return key


def _record(public_key: bytes, signature: bytes) -> str:
    record = {"algorithm": "ed25519", "public_key": _text(public_key), "signature": _text(signature)}
    return json.dumps(record, indent=1)


def _raw(key: "Ed25519PublicKey") -> bytes:
    return key.public_bytes_raw()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
