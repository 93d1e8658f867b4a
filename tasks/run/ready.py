"""Check everything public that could make a run fail before anything is reserved: a typo must not spend budget."""

import os
import shutil
import tempfile
from pathlib import Path

from dpmodels.errors import ArtifactError, InvalidArgument, PathTaken, shortened
from dpmodels.files import Place
from dpmodels.late import SYNTHESIS, check_installed, torch
from tasks.run.bucket import Bucket, local
from tasks.run.signing import check_signing_key

LONGEST_PART, LONGEST_PATH = 255, 3072
"""Bytes of a file's or folder's name, and of a whole path, to which the names of what lies below are added."""
LEAST_FREE = 64 * 2**20
"""Bytes that must be free where the run keeps its state and where it hands over."""


def check_ready(device: str, out: Place | Path, signing_key: Path | None) -> None:
    """Refuse what would make a later stage fail for a public reason.

    Raises:
        NacreError: a package that a later stage needs is not installed.
        InvalidArgument: there is no such device, or the key cannot sign.
        ArtifactError: the hand-off's place is taken, cannot be written, or is full.
        InvalidArgument: its place is a URI that nobody can write to, that holds a secret, or where something lies.
    """
    check_installed(SYNTHESIS)
    pick_device(device)
    if signing_key is not None:
        check_signing_key(signing_key)
    check_out(out)
    if local(out) is None:
        Bucket(str(out)).check()


def check_out(out: Place | Path) -> None:
    """Refuse a place for a hand-off that is taken or that nothing can be made in; leaves nothing there.

    Raises:
        ArtifactError: the folder is taken, cannot be written, or its disk is full.
        InvalidArgument: it is a URI that nobody can write to, that holds a secret, or where something lies.
    """
    folder = local(out)
    if folder is None:
        return Bucket(str(out)).check_free()
    check_folder(folder)
    check_room(folder)


def check_folder(folder: Path) -> None:
    """Refuse a folder for a hand-off that is taken, or in whose place nothing can be put.

    Raises:
        ArtifactError: it is such.
    """
    check_free(folder, " by --out")
    if os.path.ismount(folder):
        raise ArtifactError(f"{folder} is where a disk begins; name a folder in it, as nothing can be put in its place")
    check_entry(folder.parent if folder.exists() else folder)  # a hand-off is made beside its place and renamed


def pick_device(device: str) -> str:
    """Return the torch device to use; ``auto`` takes a GPU where there is one.

    Raises:
        InvalidArgument: this machine lacks the device, or torch's float64 sums do not run on it.
    """
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    devices = ["cpu", *(["cuda", *(f"cuda:{card}" for card in range(cards))] if cards else [])]
    if device == "auto":
        return "cuda" if cards else "cpu"
    if device not in devices:
        raise InvalidArgument("device", device, f"be auto or one that this machine has: {', '.join(devices)}")
    return device


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be made or written, or whose disk is full.

    Raises:
        ArtifactError: the folder cannot be made or written, or its disk is full.
    """
    check_entry(folder)
    check_room(folder)


def check_entry(folder: Path) -> None:
    """Refuse a folder that cannot be made or written.

    Raises:
        ArtifactError: it is such.
    """
    check_names(folder)
    try:
        with tempfile.TemporaryFile(dir=_there(folder)):  # permissions alone do not tell of a read-only disk
            pass
    except OSError:
        fault = f"{folder} cannot be written: {_there(folder)} is no folder that this process may write to"
        raise ArtifactError(fault) from None


def check_room(folder: Path) -> None:
    """Refuse a folder whose disk is full.

    Raises:
        ArtifactError: it is.
    """
    there = _there(folder)
    if shutil.disk_usage(there).free < LEAST_FREE:
        least = f"{LEAST_FREE // 2**20} MiB"
        raise ArtifactError(
            f"the disk of {there} has less than {least} free, which a run needs; make room and try again"
        )


def _there(folder: Path) -> Path:
    """Return the folder that is there of those that lead to a folder, wherever links and `..` lead."""
    real = Path(os.path.realpath(folder))
    return next(part for part in (real, *real.parents) if part.exists())


def check_names(path: Path) -> None:
    """Refuse a path that no file system takes.

    Raises:
        ArtifactError: a name in it, or all of it, is too long, or is no text.
    """
    if not fits(str(path)):
        fault = f"no file system takes the path {shortened(path)!r}"
        raise ArtifactError(f"{fault}: have {LONGEST_PART} bytes of text at most in a name, {LONGEST_PATH} in all")


def fits(path: str) -> bool:
    """Tell whether file systems take a path."""
    try:
        return len(os.fsencode(path)) <= LONGEST_PATH and all(
            len(os.fsencode(part)) <= LONGEST_PART for part in path.split("/")
        )
    except UnicodeEncodeError:
        return False


def check_new_file(out: Path) -> None:
    """Refuse a file that is there already, or whose folder cannot be made or written.

    Raises:
        ArtifactError: the place is taken, or cannot be written.
    """
    if os.path.lexists(out):
        raise PathTaken(out, "is there already; name a new file")
    check_writable(out.absolute().parent)
    out.absolute().parent.mkdir(parents=True, exist_ok=True)


def check_free(out: Path, how: str = "") -> None:
    """Refuse a hand-off folder that is already taken; ``how`` ends the sentence, with the option that names another.

    Raises:
        ArtifactError: the folder holds files, or is itself a file, or no file system takes its name.
    """
    check_names(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise PathTaken(out, f"already holds files; name a new folder{how}")
