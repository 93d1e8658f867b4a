"""Files that are either whole or absent: written aside, synced, renamed; hashed before they are believed."""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpmodels.errors import ArtifactError


def sha256_of(path: Path) -> str:
    """Hash a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checked(path: Path, digest: str) -> Path:
    """Return the path if its file is the sealed one.

    Raises:
        ArtifactError: the file is missing or differs from what was sealed.
    """
    if path.is_symlink() or not path.is_file():
        raise ArtifactError(f"artifact {path.name} is missing; its sealed sha256 is {digest}")
    if sha256_of(path) != digest:
        raise ArtifactError(f"artifact {path.name} was changed after it was sealed with sha256 {digest}")
    return path


def write_whole(target: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a file beside the target, then make it the target in one durable step.

    Raises:
        ArtifactError: the disk is full, or ``write`` left no file.
    """
    part = target.with_name(f".part-{target.name}")
    part.unlink(missing_ok=True)
    try:
        write(part)
        if not part.is_file():
            raise ArtifactError(f"artifact {target.name} was not written")
        sync(part)
        os.replace(part, target)
        sync(target.parent)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ArtifactError(
                f"the disk is full while writing {target.name}; free space and run `nacre resume`: "
                "the charge is kept and is not made twice"
            ) from error
        raise
    finally:
        part.unlink(missing_ok=True)


def publish(staged: Path, released: Path, digest: str) -> None:
    """Move the sealed file to its released place; done already if it is there."""
    if not os.path.lexists(released):
        os.replace(checked(staged, digest), released)
        sync(released.parent)
        sync(staged.parent)
    checked(released, digest)


def prepare_places(staged: Path, released: Path) -> None:
    """Make both folders, the staging one for the owner alone, and see that one rename can lead between them.

    Raises:
        ArtifactError: others can look into the staging folder, or the folders lie on different file systems.
    """
    staged.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    released.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_IMODE(staged.parent.stat().st_mode) & 0o077:
        raise ArtifactError(f"the staging folder {staged.parent} must be closed to others: chmod 700 it")
    if staged.parent.stat().st_dev != released.parent.stat().st_dev:
        raise ArtifactError(f"{staged.parent} and {released.parent} must lie on one file system")


def check_free(*places: Path) -> None:
    """See that nothing stands where a new artifact is to go.

    Raises:
        ArtifactError: a place is taken.
    """
    for place in places:
        if os.path.lexists(place):
            raise ArtifactError(f"{place} already exists; nothing was charged for and nothing is overwritten")


def sync(path: Path) -> None:
    """Force a file, or a folder's list of names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(target: Path) -> Iterator[None]:
    """Let one thread of one process at a time work on the target; the lock ends with its holder, however it dies."""
    descriptor = os.open(target.with_name(f".lock-{target.name}"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
