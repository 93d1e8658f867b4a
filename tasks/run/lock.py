"""The locks on a run, which end with their process.

Whoever works at a run shares the one, and whoever removes it wants it alone. The other is for one process at a time, at
the round of a federation or at a client's part in it, and others wait for it.

The file that is locked lies in none of the zones. Whoever can read a file can hold its lock for as long as they like,
and a worker without data reads the control zone; the sensitive zone may be deleted at any time.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dpmodels.artifact import exclusive, lock_of
from dpmodels.errors import ArtifactError
from tasks.run.folders import make_private
from tasks.run.store import Run

LOCKS = ".locks"
_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def shared(run: Run) -> Iterator[None]:
    """Keep others from removing a run for the length of the block.

    Raises:
        ArtifactError: the run was removed meanwhile.
    """
    with _locked(run, fcntl.LOCK_SH):
        yield


@contextmanager
def waited_for(run: Run) -> Iterator[None]:
    """Let one process at a time work at a round, or at a client's part in it; whoever comes later waits."""
    make_private(_file(run).parent)
    with exclusive(_file(run)):
        yield


@contextmanager
def alone(run: Run) -> Iterator[None]:
    """Keep others from a run, and from those of its clients, for the length of the block.

    Raises:
        ArtifactError: a process works at one of them.
    """
    with ExitStack() as locks:
        parties = {party.name: party for party in (run, *run.parties)}.values()
        for one in parties:
            if one.exists:
                locks.enter_context(_locked(one, fcntl.LOCK_EX | fcntl.LOCK_NB))
        yield
        for one in parties:
            if not one.exists:
                _file(one).unlink(missing_ok=True)
                lock_of(_file(one)).unlink(missing_ok=True)


def is_at_work(run: Run) -> bool:
    """Tell whether a process works at a run."""
    try:
        with _locked(run, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return False
    except ArtifactError:
        return run.exists
    except OSError:  # a home that can only be read
        return False


@contextmanager
def _locked(run: Run, operation: int) -> Iterator[None]:
    if not run.exists:
        raise _gone(run)
    make_private(_file(run).parent)
    descriptor = os.open(_file(run), _FILE, 0o600)
    try:
        with suppress(OSError):  # a file system without locks: then nobody can tell who works at the run
            _lock(run, descriptor, operation)
        if not run.exists:  # it was removed between its opening and its lock
            raise _gone(run)
        yield
    finally:
        os.close(descriptor)


def _file(run: Run) -> Path:
    return run.home / LOCKS / run.name


def _lock(run: Run, descriptor: int, operation: int) -> None:
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        raise ArtifactError(f"a process works on run {run.name}; wait for it, or stop it first") from None


def _gone(run: Run) -> ArtifactError:
    return ArtifactError(f"run {run.name} was removed; start a new one")
