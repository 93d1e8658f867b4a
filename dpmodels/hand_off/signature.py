"""The signature beside a manifest, or beside the list of its records: it shows who vouches for these bytes."""

import base64
import json
import os
from pathlib import Path

from dpmodels.errors import ArtifactError
from dpmodels.files import open_plain
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.keys import fingerprint, key_text, private_key, signed_by
from dpmodels.limits import LARGEST_SIGNATURE

SIGNATURE = "manifest.sig"
NOBODY = "none: nobody vouches for this manifest"


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
        raise ArtifactError(f"{what} is signed with another key than the one you named")
    if key:
        return True, f"by the key you named, whose SHA-256 is {fingerprint(public)}"
    return False, (
        f"by a key whose SHA-256 is {fingerprint(public)}, and anybody can make a key; "
        "compare it with the signer's, or give that one with --public-key"
    )


def _record(public: str, signature: str) -> str:
    return json.dumps({"algorithm": "ed25519", "public_key": public, "signature": signature}, indent=1)
