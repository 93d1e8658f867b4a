"""The passphrase of a private key: from the worker's environment or, at a terminal, from whoever sits there.

Never from a parameter, a configuration file or an option: those are written to logs, to process lists and to servers.
"""

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from dpmodels import tokens
from dpmodels.errors import InvalidArgument
from dpmodels.keys import is_locked, private_key

PASSPHRASE, MODULE = "NACRE_KEY_PASSPHRASE", "NACRE_PKCS11_MODULE"
ask: Callable[[Path], str] | None = None
"""Asks somebody at a terminal; the command line sets it where there is one."""
tokens.driver = lambda: os.environ.get(MODULE, "")


def passphrase_of(key: Path, name: str = "signing_key") -> str:
    """Return the passphrase of a private key; empty for a key that is not encrypted.

    Raises:
        InvalidArgument: the key cannot be read, or is encrypted and nobody says its passphrase.
    """
    if not is_locked(key, name):
        return ""
    if passphrase := os.environ.get(PASSPHRASE):
        return passphrase
    if ask is None:
        raise InvalidArgument(name, key, f"be unlocked: it is encrypted; set {PASSPHRASE} for this process")
    return _asked(key)


def check_signing_key(key: Path, name: str = "signing_key") -> None:
    """Refuse a key that could not sign, before anything is charged or anybody is asked; ``name`` is what it is called.

    Raises:
        InvalidArgument: it cannot be read, or its passphrase is missing or wrong.
    """
    private_key(key, name, passphrase_of(key, name))


@lru_cache(maxsize=8)
def _asked(key: Path) -> str:
    """Ask once in a process, however often the key signs."""
    return ask(key) if ask else ""
