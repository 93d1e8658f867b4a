"""Files and folders that are either whole or absent: written aside, synced, renamed; hashed before they are believed.

Whatever appears under its name was synced before, with everything in it, and the folder that lists the name is synced
after. So neither a process that dies nor a machine that loses its power leaves a part of anything under its name.

What is being written lies in a folder ``.part-…`` beside its target. Its writer holds a lock on that folder, which ends
with the writer however it dies; so what a dead one left can be told from what a live one is writing.
"""

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from dpmodels.errors import ArtifactError, PathTaken
from dpmodels.files import sha256_plain, size_plain
from dpmodels.limits import LARGEST_RELEASE

LEFT = re.compile(r"\.part-.*|checkpoint\.tmp", re.DOTALL)
"""The names that a writer which died leaves; the last is one of earlier versions."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def sha256_of(path: Path) -> str:
    """Hash a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checked(path: Path, digest: str) -> Path:
    """Return the path if its file is the sealed one.

    Raises:
        ArtifactError: the file is missing, is larger than a release may be or mostly holes, or differs from what was
            sealed.
    """
    if path.is_symlink() or not path.is_file():
        raise ArtifactError(f"artifact {path.name} is missing; its sealed sha256 is {digest}")
    if size_plain(path.parent, path) > LARGEST_RELEASE:
        raise ArtifactError(f"artifact {path.name} is larger than a release may be; its sealed sha256 is {digest}")
    if sha256_plain(path.parent, path) != digest:
        raise ArtifactError(f"artifact {path.name} was changed after it was sealed with sha256 {digest}")
    return path


@contextmanager
def aside(target: Path, owner: str = "") -> Iterator[Path]:
    """Yield a path beside the target at which it is written; what is still there at the end is deleted.

    The path has the target's name and lies in a folder of its own, so that no other writer has it. ``owner`` goes into
    that folder's name where the target's folder does not tell whose it is.
    """
    while True:
        folder = target.absolute().with_name(f"{_part(owner)}{token_hex(4)}")
        folder.mkdir(mode=0o700)
        descriptor = os.open(folder, _FOLDER)
        with suppress(OSError):  # a file system without locks: then nobody else gets one either, and nothing is swept
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if folder.exists():  # it was not swept before it was locked
            break
        os.close(descriptor)
    try:
        yield folder / target.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def settle(part: Path, target: Path) -> None:
    """Give a file or folder that is complete its name, in one durable step: all of it is synced before."""
    sync_all(part)
    os.replace(part, target)
    sync(target.parent)


def write_whole(target: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a file beside the target, then make it the target in one durable step.

    Raises:
        ArtifactError: the disk is full, or ``write`` left no file.
    """
    try:
        with aside(target) as part:
            write(part)
            if not part.is_file():
                raise ArtifactError(f"artifact {target.name} was not written")
            settle(part, target)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise ArtifactError(
                f"the disk is full, or files may not be that large, while writing {target.name}; free space and "
                "give the command again"
            ) from error
        raise


def write_text(target: Path, text: str, mode: int = 0o666) -> None:
    """Write a small file of UTF-8 text as ``write_bytes`` does."""
    write_bytes(target, text.encode(), mode)


def write_bytes(target: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a small file, whole or not at all; a link in its place is replaced, not followed.

    Who else may read it is what the process's mask leaves of ``mode``.
    """

    def write(part: Path) -> None:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)

    write_whole(target, write)


def replace_folder(part: Path, target: Path) -> None:
    """Give a finished folder its name, in the place of an unfinished one.

    Raises:
        ArtifactError: the folder that holds the target is a link, which could lead to other files.
    """
    if target.parent.is_symlink():
        raise ArtifactError(f"{target.parent} is a link; nothing was replaced behind it")
    if target.exists():
        shutil.rmtree(target)
    settle(part, target)


def sweep(zone: Path, name: str, left: re.Pattern[str] = LEFT, deep: bool = True) -> None:
    """Delete what writers that died left in a folder of a zone, and below it; no link is followed.

    What a live process writes stays, and so does everything where locks cannot be had.
    """
    with suppress(OSError):
        root = os.open(zone, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for _, folders, files, descriptor in os.fwalk(name, dir_fd=root):
                for leftover in filter(left.fullmatch, [*folders, *files]):
                    with suppress(OSError):
                        _sweep_one(leftover, descriptor)
                folders[:] = [one for one in folders if deep and not left.fullmatch(one)]
        finally:
            os.close(root)


def left_by(owner: str) -> re.Pattern[str]:
    """Return the names that ``aside`` gives to what this owner writes."""
    return re.compile(re.escape(_part(owner)) + "[0-9a-f]{8}")


def _part(owner: str) -> str:
    return f".part-{owner}-" if owner else ".part-"


def _sweep_one(name: str, folder: int) -> None:
    """Delete a left-over, unless it is a folder on which its writer, who lives, has the lock."""
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=folder)
    except OSError:  # it is a file or a link, as earlier versions left them
        os.unlink(name, dir_fd=folder)
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(name, dir_fd=folder)
    finally:
        os.close(descriptor)


def publish(staged: Path, released: Path, digest: str) -> None:
    """Move the sealed file to its released place, or copy it where that is another mount; done already if it is there.

    Raises:
        ArtifactError: the file was changed, or the folder was swapped for a link, behind which nothing is written.
    """
    if not os.path.lexists(released):
        checked(staged, digest)
        with _plain_folder(released.parent) as folder:
            try:
                os.replace(staged, released.name, dst_dir_fd=folder)
            except OSError as fault:
                if fault.errno != errno.EXDEV:  # volumes of containers, though they lie on one file system
                    raise
                _copy_into(folder, staged, released.name)
            os.fsync(folder)
    checked(released, digest)
    if staged.parent.exists():
        staged.unlink(missing_ok=True)  # a copy is there
        sync(staged.parent)


def _copy_into(folder: int, source: Path, name: str) -> None:
    """Copy a file into an open folder, where it has its name only after it is whole and synced."""
    part = f"{_part('')}{token_hex(4)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with source.open("rb") as sealed, os.fdopen(os.open(part, flags, 0o600, dir_fd=folder), "wb") as copy:
            shutil.copyfileobj(sealed, copy)
            copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(source.stat().st_mode))
            os.fsync(copy.fileno())
        os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(part, dir_fd=folder)
        raise


def prepare_places(staged: Path, released: Path) -> None:
    """Make both folders, the staging one for the owner alone, and see that they lie on one file system.

    Raises:
        ArtifactError: others can look into the staging folder, a link is in the place of the other, or the folders lie
            on different file systems.
    """
    make_folder(staged.parent, mode=0o700)
    if not os.path.lexists(released.parent):
        make_folder(released.parent)
    with _plain_folder(released.parent):
        pass
    if stat.S_IMODE(staged.parent.stat().st_mode) & 0o077:
        raise ArtifactError(f"the staging folder {staged.parent} must be closed to others: chmod 700 it")
    if staged.parent.stat().st_dev != released.parent.stat().st_dev:
        raise ArtifactError(f"{staged.parent} and {released.parent} must lie on one file system")


@contextmanager
def _plain_folder(folder: Path) -> Iterator[int]:
    """Open a folder that may be none by now.

    Raises:
        ArtifactError: a link or a file is in its place.
    """
    try:
        descriptor = os.open(folder, _FOLDER)
    except OSError:
        raise ArtifactError(
            f"{folder} is no folder, but a link or a file; nothing was written behind it. Find out who put it there, "
            "remove it, and resume the run"
        ) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def check_free(*paths: Path) -> None:
    """See that nothing stands where a new artifact is to go.

    Raises:
        PathTaken: something is there.
    """
    for path in paths:
        if os.path.lexists(path):
            raise PathTaken(path, "already exists; nothing was charged for and nothing is overwritten")


def sync(path: Path) -> None:
    """Force a file, or a folder's list of names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(path: Path) -> None:
    """Force a file, or a folder with everything in it, to the disk; a folder's list of names after what it names."""
    if path.is_dir():
        for folder, _, files in os.walk(path, topdown=False):
            for name in files:
                sync(Path(folder, name))
            sync(Path(folder))
    else:
        sync(path)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and its missing parents, and have the disk keep them."""
    for part in reversed([part for part in (folder, *folder.parents) if not part.exists()]):
        part.mkdir(mode=mode, exist_ok=True)
        sync(part.parent)


@contextmanager
def exclusive(target: Path) -> Iterator[None]:
    """Let one thread of one process at a time work on the target; the lock ends with its holder, however it dies.

    Whoever can read the file that is locked can hold the lock: the target lies where nobody else reads.
    """
    descriptor = os.open(lock_of(target), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def lock_of(target: Path) -> Path:
    """Return the file that ``exclusive`` locks."""
    return target.with_name(f".lock-{target.name}")
