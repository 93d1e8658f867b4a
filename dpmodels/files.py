"""Reading files where somebody else may write: plain files by name, never through a link.

Whoever can write a folder can put a link there that leads into the sensitive zone, or change a file between the look at
it and its use. So a file is opened once, without following a link at any step below a root that is trusted; it must be
a regular file with one name; and what is hashed is what was read from that one descriptor.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from dpmodels.errors import ArtifactError, FileMissing, PathTaken

Place = Annotated[str, BeforeValidator(lambda path: str(path) if isinstance(path, Path) else path)]
"""Where a table lies, in a configuration: a path, a pattern of paths, a URI, or the URL of a database."""
CHUNK = 2**20
SMALL, LEAST_STORED = 2**24, 1 / 64
"""A larger file, of which the disk stores a smaller part, is mostly holes: it cost whoever made it nothing, and costs
whoever hashes or copies it hours. A file system that compresses saves less than that."""
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a named pipe must not make us wait


@contextmanager
def open_plain(root: Path, path: Path) -> Iterator[BufferedReader]:
    """Open a file below a trusted root.

    Raises:
        FileMissing: it is not there.
        ArtifactError: it lies behind a link, is no regular file, has a second name, or is mostly holes.
    """
    with _opened(root, path, directory=False) as descriptor:
        status = os.fstat(descriptor)
        if status.st_nlink == 0:  # it was replaced between its opening and this look
            raise FileMissing(f"{path} is missing")
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise _not_plain(path)
        if status.st_size > SMALL and status.st_blocks * 512 < LEAST_STORED * status.st_size:
            raise ArtifactError(f"{path} is mostly holes, as no file of ours is; nothing was read from it")
        with open(descriptor, "rb", closefd=False) as file:
            yield file


def list_plain(root: Path, folder: Path) -> list[str]:
    """Return the names in a folder below a trusted root, sorted.

    Raises:
        ArtifactError: it is missing, is no folder, or lies behind a link.
    """
    with _opened(root, folder, directory=True) as descriptor:
        return sorted(os.listdir(descriptor))


def read_plain(root: Path, path: Path, most: int = -1) -> bytes:
    """Return a file's bytes; for what fits into memory.

    Raises:
        ArtifactError: it is not plain, or is larger than ``most`` bytes, if that is not negative.
    """
    with open_plain(root, path) as file:
        content = file.read(most + 1 if most >= 0 else -1)
    if 0 <= most < len(content):
        raise ArtifactError(f"{path} is larger than {most // 2**10} KiB, and no file of its kind is")
    return content


def read_at_most(path: Path, most: int) -> bytes:
    """Return the bytes of a file that is to be read whole.

    Raises:
        ArtifactError: it is larger than what such a file may be.
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ArtifactError(f"{path} is larger than {most // 2**10} KiB, and no file of its kind is")
    return content


def size_plain(root: Path, path: Path) -> int:
    """Return the size of a file in bytes."""
    with open_plain(root, path) as file:
        return os.fstat(file.fileno()).st_size


def sha256_plain(root: Path, path: Path) -> str:
    """Hash a file."""
    with open_plain(root, path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_plain(root: Path, path: Path, target: Path) -> str:
    """Copy a file into a new one and return the SHA-256 of what was copied.

    Raises:
        ArtifactError: it is not plain, or the target is there already.
    """
    digest = hashlib.sha256()
    try:
        with open_plain(root, path) as source, open(target, "xb") as copy:
            left = os.fstat(source.fileno()).st_size  # whoever goes on writing must not fill the disk
            while chunk := source.read(min(CHUNK, left + 1)):
                if (left := left - len(chunk)) < 0:
                    raise ArtifactError(f"{path} grew while it was read")
                digest.update(chunk)
                copy.write(chunk)
    except FileExistsError:
        raise PathTaken(target, "already exists; nothing is overwritten") from None
    return digest.hexdigest()


@contextmanager
def _opened(root: Path, path: Path, directory: bool) -> Iterator[int]:
    """Walk down from the root, one name at a time, each opened in the folder before it."""
    parts = path.relative_to(root).parts
    descriptors = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    try:
        for part in parts[:-1]:
            descriptors.append(os.open(part, _PLAIN | os.O_DIRECTORY, dir_fd=descriptors[-1]))
        descriptors.append(os.open(parts[-1], _PLAIN | (os.O_DIRECTORY if directory else 0), dir_fd=descriptors[-1]))
        yield descriptors[-1]
    except OSError as fault:
        if fault.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise _not_plain(path) from None
        if fault.errno == errno.ENOENT:
            raise FileMissing(f"{path} is missing") from None
        raise
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _not_plain(path: Path) -> ArtifactError:
    return ArtifactError(
        f"{path} is a link, lies behind one, or is no plain file; nothing was read from it. "
        "Find out who put it there, remove it, and resume the run"
    )
