"""The string that opens the Prefect server of a home: a secret of that one server, in one file of its owner's.

Each start makes another. A tab of the last server's UI sends its string by itself, to whoever listens at that address
once the server has ended; by then the string opens nothing.
"""

import os
import re
import secrets
import stat
from pathlib import Path

from dpmodels.artifact import write_text
from dpmodels.errors import CredentialError

_TEXT = re.compile(r"[!-~]{16,512}")  # printable, so that it fits into a header and a form
_LARGEST = 1024  # bytes


def renew_credential(home: Path) -> str:
    """Return a fresh string for the server of this home that is about to start, in the place of the last server's.

    Raises:
        CredentialError: something other than a file or a link lies in its place.
    """
    path, text = credential_file(home), new_credential()
    for folder in (home, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        write_text(path, f"{text}\n", mode=0o600)
    except OSError:
        raise CredentialError(path, "cannot be replaced") from None
    return text


def credential(home: Path) -> str:
    """Return the string of this home's Prefect server, the one that runs or the last.

    Raises:
        CredentialError: there is no file, or it is a link, not its user's own, readable by others, or holds something
            else.
    """
    path = credential_file(home)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        raise CredentialError(path, "cannot be opened, or is a link") from None
    try:
        fault, text = _fault(os.fstat(descriptor)), ""
        if not fault:
            text = os.read(descriptor, _LARGEST).decode("ascii", "replace").strip()
            fault = "" if _TEXT.fullmatch(text) else "holds no string of 16 to 512 printable characters"
    finally:
        os.close(descriptor)
    if fault:
        raise CredentialError(path, fault)
    return text


def credential_file(home: Path) -> Path:
    """Return where the string of a home lies."""
    return home.absolute() / "prefect" / "credential"


def new_credential() -> str:
    """Return a fresh string as ``user:password``, which is how curl and web forms ask for one."""
    return f"nacre:{secrets.token_urlsafe(32)}"


def _fault(status: os.stat_result) -> str:
    """Say who else could know what an opened file holds, or nothing."""
    if not stat.S_ISREG(status.st_mode):
        return "is no plain file"
    if status.st_uid != os.geteuid():
        return "belongs to another user, who knows it"
    return "can be read by other users" if status.st_mode & 0o077 else ""
