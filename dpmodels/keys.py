"""ed25519 keys in PEM files: those that sign manifests, and those of the officers who approve charges.

A public key of a small order is refused wherever one is read: for such a key signatures of any message can be computed
by everybody, so it says nothing of who signed. So is a key whose bytes are not the one encoding of a point.

Source: RFC 8032, section 5.1.3 (an encoding's y must be below the prime); Chalkias, Garillot and Nikolaenko, "Taming
the many EdDSAs" (2020), table 1 (the points of small order); the check is that of libsodium's ge25519_has_small_order.
"""

import base64
import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.files import read_at_most
from dpmodels.limits import LARGEST_KEY
from dpmodels.tokens import SCHEME, TokenKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ENCRYPTED = b"ENCRYPTED"
IS_PRIVATE = (
    "; this file holds a private key, which stays with its owner: `openssl pkey -in IT -pubout` makes the public one"
)
PRIME = 2**255 - 19
_EIGHTH = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
SMALL_ORDER = frozenset({0, 1, PRIME - 1, _EIGHTH, PRIME - _EIGHTH})
"""The y of the eight points whose order divides 8: (0, 1), (0, -1), the two with y = 0, and the four of order 8."""
_SPKI = bytes.fromhex("302a300506032b6570032100")
"""What stands before the 32 bytes of an ed25519 key in DER (RFC 8410, section 4)."""


def private_key(path: Path, name: str = "signing_key", passphrase: str = "") -> "Ed25519PrivateKey | TokenKey":
    """Read a private key, or find it on a token by its PKCS#11 URI; ``name`` is the argument that the error is about.

    The file must be a plain one, reached by no link, that its owner alone can read, and its owner must be whoever reads
    it; otherwise somebody else may have put it there, or may have it.

    Raises:
        InvalidArgument: it is no readable ed25519 private key of that kind, or it is encrypted by another passphrase.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if is_on_token(path):
        return TokenKey(str(path), name, passphrase)
    content = _kept_private(path, name)
    locked = ENCRYPTED in content
    if locked and not passphrase:
        raise InvalidArgument(name, path, "be unlocked: it is encrypted, and no passphrase was given")
    try:
        key = load_pem_private_key(content, password=passphrase.encode() if locked else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        rule = "be encrypted by the passphrase that was given, and be" if locked else "be"
        raise InvalidArgument(name, path, f"{rule} an ed25519 private key in a PEM file")
    return key


def is_on_token(path: Path) -> bool:
    """Tell whether a private key is named by a PKCS#11 URI."""
    return str(path).startswith(SCHEME)


def is_locked(path: Path, name: str = "signing_key") -> bool:
    """Tell whether a private key is encrypted, or lies behind a PIN.

    Raises:
        InvalidArgument: it cannot be read as a private key should be.
    """
    return is_on_token(path) or ENCRYPTED in _kept_private(path, name)


def public_key(path: Path, name: str = "public_key") -> "Ed25519PublicKey":
    """Read a public key; ``name`` is the argument that the error is about.

    Raises:
        InvalidArgument: it is no readable ed25519 public key, or one for which everybody can sign.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(read_at_most(path, LARGEST_KEY))
    except (OSError, ValueError, ArtifactError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        there = (IS_PRIVATE if _is_private(path) else "") if os.path.exists(path) else ": it does not exist"
        raise InvalidArgument(name, path, f"be an ed25519 public key in a PEM file{there}")
    if is_weak(key.public_bytes_raw()):
        raise InvalidArgument(name, path, "be another key: it is of small order, so anybody can sign for it")
    return key


def _is_private(path: Path) -> bool:
    """Tell whether a file says that it holds a private key."""
    try:
        return b"PRIVATE KEY-----" in read_at_most(path, LARGEST_KEY)
    except (OSError, ArtifactError):
        return False


def is_weak(raw: bytes) -> bool:
    """Tell whether the 32 bytes of a public key are a point of small order, or not the one encoding of a point."""
    y = int.from_bytes(raw, "little") & (2**255 - 1)  # the last bit is the sign of x
    return y >= PRIME or y in SMALL_ORDER


def key_text(key: "Ed25519PublicKey") -> str:
    """Write a public key as the base64 of its 32 bytes."""
    return base64.b64encode(key.public_bytes_raw()).decode()


def fingerprint(public: str) -> str:
    """Return the SHA-256 of a key of ``key_text``, in DER: what OpenSSL prints of the key's file.

    ``openssl pkey -pubin -in KEY.pub -outform DER | openssl dgst -sha256`` prints the same.
    """
    return hashlib.sha256(_SPKI + base64.b64decode(public)).hexdigest()


def signed_by(public: str, signature: str, message: bytes) -> bool:
    """Tell whether a base64 signature of a message is by a key of ``key_text``, which must not be a weak one."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        raw, signature_bytes = base64.b64decode(public, validate=True), base64.b64decode(signature, validate=True)
        if is_weak(raw):
            return False
        Ed25519PublicKey.from_public_bytes(raw).verify(signature_bytes, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _kept_private(path: Path, name: str) -> bytes:
    """Read a file that only whoever reads it can have written or read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        there = "" if os.path.lexists(path) else ": it does not exist"
        raise InvalidArgument(
            name, path, f"be a readable ed25519 private key in a PEM file, and no link{there}"
        ) from None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        content = file.read(LARGEST_KEY) if stat.S_ISREG(status.st_mode) else b""
        if b"BEGIN PUBLIC KEY" in content:
            raise InvalidArgument(name, path, "be the private key: this is a public one")
        if not stat.S_ISREG(status.st_mode):
            raise InvalidArgument(name, path, "be an ed25519 private key in a PEM file")
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            rule = "belong to the user who signs, and be readable by nobody else (chmod 600)"
            raise InvalidArgument(name, path, rule)
        return content
