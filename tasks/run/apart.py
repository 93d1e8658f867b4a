"""Stages that run apart, in a process that cannot read the data: how they are asked for, and what is heard of them.

The two sides share nothing but the zones of a home. A request lies in the control zone, which the process apart reads
and cannot write. What it makes, and what it says of its progress, lies in the released zone, which nobody believes: a
status is a small plain file of numbers and of words that are known.
"""

import json
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpmodels.artifact import write_text
from dpmodels.errors import ArtifactError, NacreError
from dpmodels.files import open_plain
from dpmodels.frozen import Frozen
from tasks.engine.progress import progress_bar
from tasks.run.store import NAME, Handle, Run

WAITING, STATUS, BEAT = ".waiting", "apart.json", ".train-worker"
LARGEST = 1024
"""Bytes of a request and of a status."""
SILENCE = 600.0
"""Seconds without a sign of life after which nobody counts as there."""
LOOK = 1.0
REASONS = {
    "": "the train worker failed in stage {}",
    "sensitive": "the train worker can read the data, and refused stage {}: mount the released zone and control alone",
    "refused": "the train worker refused stage {}",
}
_TOKEN = r"^[0-9a-f]{16}$"


class Request(Frozen):
    """That a run waits for its free stages; a new attempt has a new token."""

    token: str = Field(pattern=_TOKEN)


class Status(BaseModel):
    """What a process apart says of a run, which may be a lie."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    token: str = Field(pattern=_TOKEN)
    stage: Literal["train", "sample"]
    state: Literal["works", "failed"]
    percent: int = Field(default=0, ge=0, le=100)
    reason: Literal["", "sensitive", "refused"] = ""


def request(run: Run) -> Request:
    """Ask for the free stages of a run."""
    folder = run.home / "control" / WAITING
    folder.mkdir(mode=0o755, exist_ok=True)
    new_request = Request(token=token_hex(8))
    write_text(folder / run.name, new_request.model_dump_json())
    return new_request


def withdraw(run: Run) -> None:
    """Ask no more."""
    (run.home / "control" / WAITING / run.name).unlink(missing_ok=True)


def requests(home: Path) -> Iterator[tuple[str, Request]]:
    """Yield the names of runs that wait, the longest waiting first."""
    folder = home / "control" / WAITING
    if not folder.is_dir():
        return
    names = [entry for entry in os.scandir(folder) if re.fullmatch(NAME, entry.name)]
    for entry in sorted(names, key=lambda one: one.stat(follow_symlinks=False).st_mtime):
        try:
            yield entry.name, Request.model_validate_json(_read(folder, Path(entry.path)))
        except (ArtifactError, ValidationError, OSError):  # withdrawn meanwhile
            continue


def tell(run: Run, status: Status) -> None:
    """Say how far a run is, for whoever waits for it."""
    write_text(run.released / STATUS, status.model_dump_json())


def heard_of(run: Run, open_request: Request) -> Status | None:
    """Return what is said of a request, or nothing where nothing is said that can be read."""
    try:
        status = Status.model_validate_json(_read(run.released.parent, run.released / STATUS))
    except (ArtifactError, ValidationError, OSError, RecursionError):
        return None
    return status if status.token == open_request.token else None


def beat(home: Path) -> None:
    """Leave a sign of life."""
    write_text(home / "released" / BEAT, json.dumps({}))


def is_alive(home: Path) -> bool:
    """Tell whether a process apart left a sign of life lately."""
    try:
        sign = os.lstat(home / "released" / BEAT)
    except OSError:
        return False
    return stat.S_ISREG(sign.st_mode) and abs(time.time() - sign.st_mtime) < SILENCE


def wait_for(run: Run, stage: str, hours: float) -> Handle:
    """Return the artifact of a free stage once a process apart has made it.

    A process that dies meanwhile is waited for: started again it goes on.

    Raises:
        NacreError: it failed, or has not made the artifact in time.
    """
    if handle := run.finished(stage):
        return handle
    open_request, end = request(run), time.monotonic() + hours * 3600
    try:
        with progress_bar(stage) as tick:
            while not (handle := run.finished(stage)):
                status = heard_of(run, open_request)
                if status and status.state == "failed":
                    reason = REASONS[status.reason].format(status.stage)
                    raise NacreError(f"{reason}; its own log says why; start this flow run again to go on")
                if status and status.stage == stage:
                    tick(min(status.percent, 99), 100)
                if time.monotonic() > end:
                    raise NacreError(f"nobody made stage {stage} of run {run.name} in {hours:g} hours; start a train "
                                     "worker (nacre train-worker), and start this flow run again to go on")  # fmt: skip
                time.sleep(LOOK)
            tick(100, 100)
    finally:
        withdraw(run)
    return handle


def _read(root: Path, path: Path) -> bytes:
    with open_plain(root, path) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ArtifactError(f"{path} is larger than what is said of a run")
    return content
