"""The lock on a run: whoever works at it shares it, and whoever removes it wants it alone. It ends with its process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from dpmodels.errors import ArtifactError
from tasks.run.store import Run

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def shared(run: Run) -> Iterator[None]:
    """Keep others from removing a run for the length of the block.

    Raises:
        ArtifactError: the run was removed meanwhile.
    """
    with _locked(run, fcntl.LOCK_SH):
        yield


@contextmanager
def alone(run: Run) -> Iterator[None]:
    """Keep others from a run, and from those of its clients, for the length of the block.

    Raises:
        ArtifactError: a process works at one of them.
    """
    with ExitStack() as locks:
        for one in {party.name: party for party in (run, *run.parties)}.values():
            if one.exists:
                locks.enter_context(_locked(one, fcntl.LOCK_EX | fcntl.LOCK_NB))
        yield


def is_at_work(run: Run) -> bool:
    """Tell whether a process works at a run."""
    try:
        with _locked(run, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return False
    except ArtifactError:
        return run.exists


@contextmanager
def _locked(run: Run, operation: int) -> Iterator[None]:
    descriptor = _opened(run)
    try:
        with suppress(OSError):  # a file system without locks: then nobody can tell who works at the run
            _lock(run, descriptor, operation)
        if not run.exists:  # it was removed between its opening and its lock
            raise _gone(run)
        yield
    finally:
        os.close(descriptor)


def _opened(run: Run) -> int:
    try:
        return os.open(run.control, _FOLDER)
    except OSError:
        raise _gone(run) from None


def _lock(run: Run, descriptor: int, operation: int) -> None:
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        raise ArtifactError(f"a process works on run {run.name}; wait for it, or stop it first") from None


def _gone(run: Run) -> ArtifactError:
    return ArtifactError(f"run {run.name} was removed; start a new one")
