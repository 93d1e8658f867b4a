"""The process that never sees the data: it trains and samples what runs wait for, from their releases alone.

It knows no Prefect server, holds no credential, and is asked by nobody but the files of the control zone, which it can
only read. What it makes is received as untrusted by the side with the data.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dpmodels.errors import ArtifactError, NacreError
from dpmodels.reading.addresses import address_of
from tasks.engine.progress import LISTENER, TOLD_EVERY
from tasks.run.apart import Request, Status, beat, requests, tell
from tasks.run.stopping import pause
from tasks.run.store import Run
from tasks.stages.sample import sample
from tasks.stages.train import train

LOG = logging.getLogger("nacre.train-worker")
SECRETS = ("PREFECT_API", "OPENLINEAGE", "NACRE_LEDGER", "NACRE_DASK", "PGPASS", "PGHOST", "PGSERVICE")
"""How the names of variables begin that would let this process ask others for something."""
TRIES, BEAT_SECONDS, LOOK = 3, 30.0, 2.0


class CanRead(NacreError):
    """The process can read what it must not; ``paths`` says what."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(f"this worker can read {', '.join(paths)}; it must mount neither, nor run on their machine")
        self.paths = paths


def serve_waiting(home: Path, is_over: Callable[[], bool], look: float = LOOK) -> None:
    """Train and sample the runs that wait, one after the other, until this process is to stop.

    Raises:
        NacreError: this process can read what is sensitive or write what others believe, or could ask a server or a
            ledger for something.
    """
    check_blind(home)
    if os.access(home / "control", os.W_OK):  # root can, whatever the modes say, unless it is mounted so
        raise NacreError(f"this worker can write {home / 'control'}, which others believe: mount it read-only there")
    serve_requests(home, is_over, look)


def serve_requests(home: Path, is_over: Callable[[], bool], look: float = LOOK) -> None:
    """Train and sample the runs that wait, and give signs of life, until this process is to stop."""
    over, tried = threading.Event(), dict[str, str]()
    beats = threading.Thread(target=_beat, args=(home, over), daemon=True)
    beats.start()
    try:
        while not is_over():
            for name, request in requests(home):
                if not is_over() and tried.get(name) != request.token:
                    tried[name] = request.token
                    _serve(Run(home=home, name=name), request)
            pause(look, is_over)
    finally:
        over.set()
        beats.join()


def check_blind(home: Path) -> None:
    """Refuse to start where something sensitive can be read, or somebody else could be asked for it.

    Raises:
        NacreError: it can.
    """
    if secrets := sorted(name for name in os.environ if name.startswith(SECRETS)):
        raise NacreError(f"unset {', '.join(secrets)}: the train worker must know no server, ledger or cluster")
    _check_unreadable(home / "sensitive", home / "prefect", home / "ledger.sqlite")
    if not (home / "released").is_dir() or not (home / "control").is_dir():
        raise NacreError(f"{home} has no released and control zone; mount both there, control read-only")


def generate(run: Run) -> None:
    """Train and sample a run from its release alone; it must have one, and its data must be out of reach.

    Raises:
        NacreError: it is not so.
    """
    settings = run.settings
    _check_unreadable(*(Path(address_of(path).base) for path in (settings.data, settings.parents) if path))
    release = run.finished("sanitize")
    if release is None:
        raise ArtifactError(f"run {run.name} has no sealed release yet")
    sample(run, train(run, release))


def _check_unreadable(*paths: Path) -> None:
    if readable := [str(path) for path in paths if os.access(path, os.R_OK)]:
        raise CanRead(readable)


def _serve(run: Run, request: Request) -> None:
    """Make what a run waits for, and say how far it is and how it ended."""
    last = [-TOLD_EVERY]
    status = Status(token=request.token, stage="train", state="works")

    def listen(stage: str, percent: float) -> None:
        nonlocal status
        if stage in ("train", "sample") and time.monotonic() >= last[0] + TOLD_EVERY:
            last[0] = time.monotonic()
            update = {"stage": stage, "percent": max(0, min(100, int(percent)))}
            status = status.model_copy(update=update)
            tell(run, status)

    mark = LISTENER.set(listen)
    LOG.info("run %s waits; training begins", run.name)
    try:
        tell(run, status)
        _generate_again(run)
        LOG.info("run %s is trained and sampled", run.name)
    except Exception as fault:  # one run must not keep the others from being served
        reason = "sensitive" if isinstance(fault, CanRead) else "refused" if isinstance(fault, NacreError) else ""
        LOG.error("run %s failed: %s", run.name, fault)
        with suppress(OSError):  # the folder of the run may be gone
            tell(run, status.model_copy(update={"state": "failed", "reason": reason}))
    finally:
        LISTENER.reset(mark)


def _generate_again(run: Run) -> None:
    """Try a few times, unless the error is one that somebody must act on."""
    for number in range(TRIES):
        try:
            return generate(run)
        except NacreError:
            raise
        except Exception:
            if number == TRIES - 1:
                raise
            LOG.warning("run %s is tried again", run.name, exc_info=True)


def _beat(home: Path, over: threading.Event) -> None:
    while True:
        beat(home)
        if over.wait(BEAT_SECONDS):
            return
