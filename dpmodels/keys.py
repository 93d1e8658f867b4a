"""ed25519 keys in PEM files: those that sign manifests, and those of the officers who approve charges."""

import base64
from pathlib import Path
from typing import TYPE_CHECKING

from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.files import read_at_most
from dpmodels.limits import LARGEST_KEY

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def private_key(path: Path, name: str = "signing_key") -> "Ed25519PrivateKey":
    """Read a private key; ``name`` is the argument that the error is about.

    Raises:
        InvalidArgument: it is no readable, unencrypted ed25519 private key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(read_at_most(path, LARGEST_KEY), password=None)
    except (OSError, ValueError, TypeError, ArtifactError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidArgument(name, path, "be an unencrypted ed25519 private key in a PEM file")
    return key


def public_key(path: Path, name: str = "public_key") -> "Ed25519PublicKey":
    """Read a public key; ``name`` is the argument that the error is about.

    Raises:
        InvalidArgument: it is no readable ed25519 public key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(read_at_most(path, LARGEST_KEY))
    except (OSError, ValueError, ArtifactError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidArgument(name, path, "be an ed25519 public key in a PEM file")
    return key


def key_text(key: "Ed25519PublicKey") -> str:
    """Write a public key as the base64 of its 32 bytes."""
    return base64.b64encode(key.public_bytes_raw()).decode()


def signed_by(public: str, signature: str, message: bytes) -> bool:
    """Tell whether a base64 signature of a message is by a key of ``key_text``."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        raw, given = base64.b64decode(public, validate=True), base64.b64decode(signature, validate=True)
        Ed25519PublicKey.from_public_bytes(raw).verify(given, message)
    except (InvalidSignature, ValueError):
        return False
    return True
