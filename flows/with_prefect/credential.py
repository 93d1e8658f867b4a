"""The string that opens the Prefect server of a home: one secret in one file, which its owner alone can read."""

import os
import re
import secrets
import stat
from pathlib import Path

from dpmodels.errors import CredentialError

_TEXT = re.compile(r"[!-~]{16,512}")  # printable, so that it fits into a header and a form
_LARGEST = 1024  # bytes


def credential(home: Path) -> str:
    """Return the string of this home's Prefect server, which is made when first asked for.

    Raises:
        CredentialError: the file is a link, not its user's own, readable by others, or holds something else.
    """
    path = credential_file(home)
    if not os.path.lexists(path):
        _make(path)
    return _read(path)


def credential_file(home: Path) -> Path:
    """Return where the string of a home lies."""
    return home.absolute() / "prefect" / "credential"


def new_credential() -> str:
    """Return a fresh string as ``user:password``, which is how curl and web forms ask for one."""
    return f"nacre:{secrets.token_urlsafe(32)}"


def _make(path: Path) -> None:
    """Write a fresh string whole or not at all; whoever else did so first, at the same moment, has decided."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".part-{secrets.token_hex(8)}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(f"{new_credential()}\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(part, path)  # unlike a rename, it replaces nothing
    except FileExistsError:
        pass
    finally:
        part.unlink(missing_ok=True)


def _read(path: Path) -> str:
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


def _fault(status: os.stat_result) -> str:
    """Say who else could know what an opened file holds, or nothing."""
    if not stat.S_ISREG(status.st_mode):
        return "is no plain file"
    if status.st_uid != os.geteuid():
        return "belongs to another user, who knows it"
    return "can be read by other users" if status.st_mode & 0o077 else ""
