"""ed25519 keys that never leave a token (a smart card, a hardware security module), named by a PKCS#11 URI.

    pkcs11:token=nacre;object=sign

``token``, ``serial``, ``object`` and ``id`` say which key is meant. The PIN is never in the URI, which is kept with
every run. Neither is the module, the token's own driver: it runs in this process and is given the PIN, and a URI may
come out of a file that somebody else wrote.

Source: RFC 7512 (the URI); PKCS #11 3.0, section 2.3.14 (CKM_EDDSA).
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.late import lacking

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SCHEME = "pkcs11:"
NAMED = {"token", "serial", "object", "id"}
_POINTS = (b"\x04\x20", b"\x03\x21\x00", b"")
"""What modules write before the 32 bytes of a public key: the head of an octet string, of a bit string, or nothing."""

driver: Callable[[], str] = str
"""Says where the token's driver lies; the process that signs sets it, from its own environment."""


class TokenKey:
    """A private key on a token; it is looked up, with the PIN, when this is made."""

    def __init__(self, uri: str, name: str, pin: str) -> None:
        self._uri, self._name, self._pin, self._terms = uri, name, pin, _terms(uri, name)
        self._public = self._with_token(_public)

    def public_key(self) -> "Ed25519PublicKey":
        """Return the key's public half, which lies beside it."""
        public: Ed25519PublicKey = self._public
        return public

    def sign(self, message: bytes) -> bytes:
        """Have the token sign a message."""

        def work(pkcs11: Any, session: Any, which: dict[str, Any]) -> bytes:
            key = session.get_key(object_class=pkcs11.ObjectClass.PRIVATE_KEY, **which)
            return bytes(key.sign(message, mechanism=pkcs11.Mechanism.EDDSA))

        signature: bytes = self._with_token(work)
        return signature

    def _with_token(self, work: Any) -> Any:
        """Open a session and do work in it.

        Raises:
            InvalidArgument: the module, the token, the key or its PIN is not as the URI says.
        """
        try:
            import pkcs11
        except ModuleNotFoundError as fault:
            raise lacking(fault.name or "") or fault from None
        terms = self._terms
        token = {"token_label": terms.get("token"), "token_serial": terms.get("serial", "").encode() or None}
        which = {
            "key_type": pkcs11.KeyType.EC_EDWARDS,
            "label": terms.get("object"),
            "id": terms.get("id", b"") or None,
        }
        which = {key: value for key, value in which.items() if value is not None}
        try:
            slot_token = pkcs11.lib(driver()).get_token(**{k: v for k, v in token.items() if v is not None})
            with slot_token.open(user_pin=self._pin) as session:
                return work(pkcs11, session, which)
        except (pkcs11.exceptions.PKCS11Error, RuntimeError, OSError) as fault:
            raise InvalidArgument(self._name, self._uri, _rule(type(fault).__name__)) from None


def _rule(fault: str) -> str:
    """Say what to do about a fault of the module, by its kind."""
    rules = {
        "PinIncorrect": "be unlocked by its PIN: the one in NACRE_KEY_PASSPHRASE, or that was typed, is wrong",
        "NoSuchToken": "name a token that the driver knows",
        "NoSuchKey": "name one ed25519 key that the token holds, with its public half beside it",
        "PKCS11Error": "be reached by a driver that NACRE_PKCS11_MODULE names; that file is none",
    }
    return rules.get(fault, f"name one ed25519 key that this process can use: the token says {fault}")


def _public(pkcs11: Any, session: Any, which: dict[str, Any]) -> "Ed25519PublicKey":
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    session.get_key(object_class=pkcs11.ObjectClass.PRIVATE_KEY, **which)
    key = session.get_key(object_class=pkcs11.ObjectClass.PUBLIC_KEY, **which)
    point = bytes(key[pkcs11.Attribute.EC_POINT])
    head = next((head for head in _POINTS if point.startswith(head) and len(point) == len(head) + 32), None)
    if head is None:
        raise OSError("the token's public key is of another curve")
    return Ed25519PublicKey.from_public_bytes(point[len(head) :])


def _terms(uri: str, name: str) -> dict[str, Any]:
    """Read a URI.

    Raises:
        Unsuitable: it names something beside the key, which may be a PIN and is not repeated, or no key.
    """
    pairs = [part.partition("=") for part in uri.removeprefix(SCHEME).split(";")]
    terms: dict[str, Any] = {key: unquote_to_bytes(value) for key, _, value in pairs}
    if set("?&") & set(uri) or terms.keys() - NAMED or not terms.keys() & {"object", "id"}:
        raise Unsuitable(
            f"{name} must be pkcs11:token=TOKEN;object=LABEL, with serial or id if need be, and no more: the PIN comes "
            "from NACRE_KEY_PASSPHRASE, and the token's driver from NACRE_PKCS11_MODULE"
        )
    if not Path(driver()).is_absolute():
        raise Unsuitable(f"{name} lies on a token: set NACRE_PKCS11_MODULE to the whole path of the token's driver")
    return {key: value if key == "id" else value.decode(errors="replace") for key, value in terms.items()}
