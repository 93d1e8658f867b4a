"""Signatures beside a manifest, or beside the list of its records: they show who vouches for these bytes.

An officer signs twice: for the charge, before there are rows (``dpmodels.ledger.approval``), and here for the manifest
of what came of it, with words before its bytes that no other signature has, so that neither is taken for the other.
"""

import base64
import json
import os
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.files import open_plain
from dpmodels.hand_off.manifest import MANIFEST, printable
from dpmodels.keys import fingerprint, key_text, private_key, signed_by
from dpmodels.limits import LARGEST_SIGNATURE

SIGNATURE, OFFICER_SIGNATURE = "manifest.sig", "officer.sig"
NOBODY = "none: nobody vouches for this manifest"
BY_OTHER_KEY = "holds for this manifest, and is not by the key you named"
UNSOUND = "does not hold for this manifest, or is not by the key you named"
NOBODY_AGREED = "no: no officer signed that these files may leave"
MAY_LEAVE = "nacre: the files of this manifest may leave, agreed on {day}: {reason}\n"
"""What an officer signs, before the bytes of the manifest; day and reason are the officer's words."""
OTHER_KEY = "the key you named ({option}) is not the one that signed {what}"
"""What is said where a signature holds, and is by another key than the one that a recipient named."""
OF_FILES, OF_CHARGE = "that the files may leave", "the charge"
ONE_KEY = (
    "the manifest was signed with the key that approved {what}: maker and officer are one, so nobody else is known to "
    "have looked at it"
)
"""What is said of signatures of a maker and an officer that are by one key."""
TWO_KEYS = "maker and officer signed with two different keys"
REASON = re.compile(r"[^\x00-\x1f\x7f]{0,300}")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class OtherKey(ArtifactError):
    """A signature holds, and is by another key than the one that was named.

    Attributes:
        option: that named the key.
        what: was signed with the other one.
    """

    def __init__(self, option: str, what: str) -> None:
        super().__init__(OTHER_KEY.format(option=option, what=what))
        self.option, self.what = option, what


def sign_manifest(
    folder: Path, key: Path, passphrase: str = "", name: str = MANIFEST, signature_name: str = SIGNATURE
) -> None:
    """Sign a folder's manifest, or another file of it, with the user's private key; write the signature beside it.

    Raises:
        InvalidArgument: the key is not a readable ed25519 private key, or it is encrypted by another passphrase.
    """
    private = private_key(key, passphrase=passphrase)
    signature = base64.b64encode(private.sign((folder / name).read_bytes())).decode()
    (folder / signature_name).write_text(_record(key_text(private.public_key()), signature), encoding="utf-8")


def check_signature(
    folder: Path, signed: bytes, key: str, signature_name: str = SIGNATURE, what: str = "the manifest"
) -> tuple[bool, str]:
    """Tell whether this key signed these bytes, and say who did; an empty one stands for any or none.

    Raises:
        ArtifactError: the manifest is signed with another key, or the file beside it is not a signature of it.
    """
    if not os.path.lexists(folder / signature_name):
        if key:
            raise ArtifactError(f"{what} is not signed")
        return False, NOBODY
    with open_plain(folder, folder / signature_name) as file:
        content = file.read(LARGEST_SIGNATURE)
    try:
        record = json.loads(content)
        public, signature = str(record["public_key"]), str(record["signature"])
    except (ValueError, KeyError, TypeError, RecursionError):
        public = signature = ""
    if not signed_by(public, signature, signed) or content != _record(public, signature).encode():
        raise ArtifactError(f"{signature_name} is not a signature of {what.replace('the ', 'this ')}")
    if key and key != public:
        raise OtherKey("--public-key", what)
    if key:
        return True, f"by the key you named, whose SHA-256 is {fingerprint(public)}"
    return False, (
        f"by a key whose SHA-256 is {fingerprint(public)}, and anybody can make a key; "
        "compare it with the signer's, or give that one with --public-key"
    )


def key_in(folder: Path, signature_name: str) -> str:
    """Return the public key that a signature beside a manifest names, which was found to hold; empty where none is."""
    if not os.path.lexists(folder / signature_name):
        return ""
    with open_plain(folder, folder / signature_name) as file:
        return str(json.loads(file.read(LARGEST_SIGNATURE))["public_key"])


def reason_in(folder: Path) -> str:
    """Return why an officer let the files leave, of a signature that was found to hold; empty without any."""
    if not os.path.lexists(folder / OFFICER_SIGNATURE):
        return ""
    with open_plain(folder, folder / OFFICER_SIGNATURE) as file:
        return printable(str(json.loads(file.read(LARGEST_SIGNATURE))["reason"]), 300)


def by_two_keys(folder: Path, approver: str = "") -> str:
    """Say that the maker's key is no officer's, where both signed; the arguments are as for ``by_one_key``."""
    maker, officers = key_in(folder, SIGNATURE), {key_in(folder, OFFICER_SIGNATURE), approver} - {""}
    return TWO_KEYS if maker and officers and maker not in officers else ""


def by_one_key(folder: Path, approver: str = "") -> str:
    """Say that the key of whoever signed the manifest is the officer's as well; empty where it is not.

    Args:
        folder: of the hand-off, whose signatures were found to hold.
        approver: the public key that the charge was approved with; empty where there is none.
    """
    maker, officer = key_in(folder, SIGNATURE), key_in(folder, OFFICER_SIGNATURE)
    signed = [what for what, key in ((OF_FILES, officer), (OF_CHARGE, approver)) if maker and key == maker]
    return ONE_KEY.format(what=" and ".join(signed)) if signed else ""


def check_agreement(key: Path, reason: str, approver: str, passphrase: str = "") -> None:
    """Refuse what ``agree`` would refuse of a key and a reason, and write nothing; the arguments are as for it."""
    if not REASON.fullmatch(reason):
        raise InvalidArgument("reason", reason[:40], "be one line of 300 letters at most")
    private = private_key(key, "key", passphrase)
    if approver and key_text(private.public_key()) != approver:
        rule = f"be that of the officer who approved the charge, whose SHA-256 is {fingerprint(approver)}"
        raise InvalidArgument("key", key, rule)


def agree(folder: Path, key: Path, day: date, reason: str = "", approver: str = "", passphrase: str = "") -> str:
    """Sign, as an officer, that the files of a folder's manifest may leave; write it beside the manifest.

    Args:
        folder: of the hand-off.
        key: the officer's private key.
        day: what the officer dates it.
        reason: what the officer says of it, in a line.
        approver: the public key that the charge was approved with, which must be the same; empty where there is none.
        passphrase: of the key.

    Returns:
        the SHA-256 of the public key.

    Raises:
        InvalidArgument: the key is not a readable ed25519 private key, it is encrypted by another passphrase, or it is
            another than the approver's; or the reason is longer than 300 letters or has more than a line.
    """
    check_agreement(key, reason, approver, passphrase)
    private = private_key(key, "key", passphrase)
    public = key_text(private.public_key())
    said = {"day": day.isoformat(), "reason": reason}
    signature = base64.b64encode(private.sign(_agreed(said, (folder / MANIFEST).read_bytes()))).decode()
    (folder / OFFICER_SIGNATURE).unlink(missing_ok=True)  # whoever sent the folder may have put a link there
    with (folder / OFFICER_SIGNATURE).open("x", encoding="utf-8") as file:
        file.write(_record(public, signature, key_sha256=fingerprint(public), **said))
    return fingerprint(public)


def check_agreed(folder: Path, manifest: bytes, key: str, approver: str = "") -> str:
    """Say which officer signed that the files may leave, on which day, and why.

    ``key`` is the officer's, or empty; ``approver`` that which the charge was approved with, or empty.

    Raises:
        ArtifactError: somebody signed with another key, or the file is not a signature of this manifest.
    """
    if not os.path.lexists(folder / OFFICER_SIGNATURE):
        return NOBODY_AGREED
    with open_plain(folder, folder / OFFICER_SIGNATURE) as file:
        content = file.read(LARGEST_SIGNATURE)
    try:
        record = json.loads(content)
        public, signature, day, why = (str(record[name]) for name in ("public_key", "signature", "day", "reason"))
    except (ValueError, KeyError, TypeError, RecursionError):
        public = signature = day = why = ""
    said = {"day": day, "reason": why}
    sound = DAY.fullmatch(day) and REASON.fullmatch(why) and signed_by(public, signature, _agreed(said, manifest))
    if not sound or content != _record(public, signature, key_sha256=fingerprint(public), **said).encode():
        raise ArtifactError(
            f"{OFFICER_SIGNATURE} is not an officer's signature of this manifest, with this day and reason"
        )
    if key and key != public:
        raise OtherKey("--officer-key", OF_FILES)
    if approver and approver != public:
        raise ArtifactError(f"{OFFICER_SIGNATURE} is by another key than the charge was approved with")
    said_of_it = (
        f"on {day}, by the signer's own word of the day{f', in the words “{printable(why, 300)}”' if why else ''}"
    )
    if key:
        return f"{said_of_it}, by the officer's key you named, whose SHA-256 is {fingerprint(public)}"
    return f"{said_of_it}, by a key whose SHA-256 is {fingerprint(public)}; give the officer's with --officer-key"


def _agreed(said: Mapping[str, str], manifest: bytes) -> bytes:
    return MAY_LEAVE.format(**said).encode() + manifest


def _record(public: str, signature: str, **more: str) -> str:
    return json.dumps({"algorithm": "ed25519", "public_key": public, **more, "signature": signature}, indent=1)
