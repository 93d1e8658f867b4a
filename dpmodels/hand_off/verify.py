"""Check a hand-off by itself: for whoever receives one, without access to our store or ledger.

What can be seen: that every file is the one the manifest names and none is missing or added, that the budget is what
the events cost, that the charge and its entries hang together, and who signed the manifest. What cannot: that the
manifest is true. A signature says whose word that is; the ledger's hashes in it let an auditor check it there.
"""

import base64
import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dpmodels.accounting.events import Event
from dpmodels.errors import ArtifactError
from dpmodels.files import read_plain, sha256_plain
from dpmodels.keys import key_text, private_key, signed_by
from dpmodels.keys import public_key as read_public_key
from dpmodels.ledger.approval import Approval, Asked
from dpmodels.ledger.store import digest

MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
HANDED_OVER = re.compile(r"synthetic/part-\d{5}\.parquet|schema\.yaml|report\.html|report\.json|checks\.html")
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
    signature = base64.b64encode(private.sign((folder / MANIFEST).read_bytes())).decode()
    (folder / SIGNATURE).write_text(_record(key_text(private.public_key()), signature), encoding="utf-8")


def verify_hand_off(folder: Path, public_key: Path | None = None) -> Verified:
    """Check every file of a hand-off, its budget and its signature; with a key, it must be signed with that one.

    Raises:
        ArtifactError: there is no manifest that could be read.
        InvalidArgument: the key cannot be read.
    """
    try:
        manifest = json.loads(read_plain(folder, folder / MANIFEST))
        artifacts = dict(manifest["artifacts"])
    except (ArtifactError, OSError, ValueError, KeyError, TypeError):
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
        if "approved" in manifest:
            _check_approved(manifest, found)
    except (KeyError, TypeError, ValueError, ArithmeticError, ValidationError) as error:
        found.faults.append(f"{MANIFEST} is not as nacre writes it: {type(error).__name__}")
    _check_signature(folder, key_text(read_public_key(public_key)) if public_key else "", found)
    return found


def _check_files(folder: Path, artifacts: dict[str, str], found: Verified) -> None:
    """Compare every file with the manifest; what no nacre hands over is a fault, whatever the manifest says."""
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}
    for name in sorted(present - artifacts.keys() - {MANIFEST, SIGNATURE}):
        found.faults.append(f"{name} is not in the manifest")
    for name, sha256 in artifacts.items():
        if not HANDED_OVER.fullmatch(name):
            found.faults.append(f"{name} is no file that nacre hands over")
        elif name not in present:
            found.faults.append(f"{name} is missing")
        else:
            _check_file(folder, name, sha256, found)


def _check_file(folder: Path, name: str, sha256: str, found: Verified) -> None:
    try:
        if sha256_plain(folder, folder / name) == sha256:
            found.files += 1
        else:
            found.faults.append(f"{name} was changed")
    except (ArtifactError, OSError):
        found.faults.append(f"{name} is a link, or cannot be read as a plain file")


def _check_approved(manifest: dict[str, Any], found: Verified) -> None:
    """See that the officer's signature is of this run's lines."""
    signed = Approval.model_validate(manifest["approved"])
    lines = [manifest, *([manifest["report"]] if "report" in manifest else [])]
    asked = Asked(signed.ledger, manifest["ledger"]["account"], manifest["run"], signed.plans)
    if not asked.is_signed(signed) or not {line["plan_sha256"] for line in lines} <= set(signed.plans):
        found.faults.append("the officer's approval is not a signature of this run and its plan")


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


def _check_signature(folder: Path, wanted: str, found: Verified) -> None:
    if not (folder / SIGNATURE).exists():
        found.faults += ["the manifest is not signed"] if wanted else []
        return
    content, manifest = read_plain(folder, folder / SIGNATURE), read_plain(folder, folder / MANIFEST)
    try:
        record = json.loads(content)
        public, signature = str(record["public_key"]), str(record["signature"])
    except (ValueError, KeyError, TypeError):
        public = signature = ""
    if not signed_by(public, signature, manifest) or content != _record(public, signature).encode():
        found.faults.append(f"{SIGNATURE} is not a signature of this manifest")
    elif not wanted:
        found.signature = f"by key {public}; compare it with the signer's, or give it with --public-key"
    elif wanted == public:
        found.signature = "by the key you named"
    else:
        found.faults.append("the manifest is signed with another key than the one you named")


def _record(public: str, signature: str) -> str:
    return json.dumps({"algorithm": "ed25519", "public_key": public, "signature": signature}, indent=1)
