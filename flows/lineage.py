"""Tell a lineage server, or a file, what a run did, where the worker's environment names one.

    OPENLINEAGE_URL        a server; OPENLINEAGE_ENDPOINT its path, OPENLINEAGE_API_KEY what it asks for
    NACRE_LINEAGE          a file, to which a line of JSON is added for each event
    OPENLINEAGE_NAMESPACE  of the jobs, ``nacre`` if it is not set; OPENLINEAGE_DISABLED=true sends nothing

Nothing is told before a run ends, and then everything at once: whoever is told when each stage ended would learn how
many private rows there are. A server that refuses, or is slow, makes no run fail and delays none by more than
``MOST_SECONDS``.
"""

import json
import os
import stat
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from tasks.engine.progress import LOG
from tasks.run.store import Handle, Run

MOST_SECONDS = 10.0
"""How long a run waits, once it is at its end, for a server to take its events."""
SERVER, FILE = "OPENLINEAGE_URL", "NACRE_LINEAGE"
Call = Callable[..., Handle]


class Refusing(urllib.request.HTTPRedirectHandler):
    """Goes to no other place than the one that the operator named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow no redirection."""


@contextmanager
def told(run: Run, call: Call) -> Iterator[Call]:
    """Note what each stage came to while the block calls them, and tell it once the block ends, or fails."""
    if not wanted(os.environ):
        yield call
        return
    stages: list[tuple[str, bool]] = []

    def noted(stage: Callable[..., Handle], *handles: Any) -> Handle:
        stages.append((stage.policy.name, False))  # type: ignore[attr-defined]
        handle = call(stage, *handles)
        stages[-1] = (stages[-1][0], True)
        return handle

    try:
        yield noted
    except BaseException:
        tell(run, stages, False)
        raise
    tell(run, stages, True)


def wanted(environment: Mapping[str, str]) -> bool:
    """Tell whether the operator of this worker asked for lineage."""
    off = environment.get("OPENLINEAGE_DISABLED", "").lower() in ("true", "1")
    return not off and any(environment.get(name) for name in (SERVER, FILE))


def tell(run: Run, stages: Sequence[tuple[str, bool]], complete: bool) -> None:
    """Tell what a process did for a run; whatever goes wrong here is a warning, and no more."""
    try:
        from tasks.run.lineage import NAMESPACE, Ended, events_of

        day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        namespace = os.environ.get("OPENLINEAGE_NAMESPACE") or NAMESPACE
        events = events_of(run, [Ended(*one) for one in stages], complete, day, _nominal(), namespace)
        lines = [json.dumps(event).encode() for event in events]
    except Exception as error:  # what a run is charged and hands over does not depend on it
        return LOG.warning("warning: no lineage of run %s could be written (%s)", run.name, type(error).__name__)
    if file := os.environ.get(FILE):
        _append(file, lines)
    if server := os.environ.get(SERVER):
        _send(server, lines)


def _nominal() -> datetime | None:
    """Return the time for which the present flow run was scheduled; None without Prefect, or without a schedule."""
    if "prefect" not in sys.modules:
        return None
    from flows.with_prefect.worker import nominal

    return nominal()


def _append(file: str, lines: Sequence[bytes]) -> None:
    """Add lines to a plain file, all at once."""
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(file, flags, 0o640), "ab", buffering=0) as target:
            if not stat.S_ISREG(os.fstat(target.fileno()).st_mode):
                raise OSError
            target.write(b"".join(line + b"\n" for line in lines))
    except OSError:
        LOG.warning("warning: %s names no file that can be written; the run's lineage was not kept", FILE)


def _send(server: str, lines: Sequence[bytes]) -> None:
    """Send events to a server, one after the other, until one is refused or the time is over."""
    place = os.environ.get("OPENLINEAGE_ENDPOINT") or "api/v1/lineage"
    address, key = f"{server.rstrip('/')}/{place.lstrip('/')}", os.environ.get("OPENLINEAGE_API_KEY", "")
    if not address.lower().startswith(("http://", "https://")):
        return LOG.warning("warning: %s is no address of a server (https://...); no lineage was sent", SERVER)
    taken: list[bool] = []
    sender = threading.Thread(target=_post_all, args=(address, key, lines, taken), daemon=True)
    sender.start()
    sender.join(MOST_SECONDS)
    if len(taken) < len(lines):
        LOG.warning("warning: the server of %s took %d of %d events of lineage", SERVER, len(taken), len(lines))


def _post_all(address: str, key: str, lines: Sequence[bytes], taken: list[bool]) -> None:
    opener = urllib.request.build_opener(Refusing)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        for line in lines:
            request = urllib.request.Request(address, line, headers, method="POST")
            with opener.open(request, timeout=MOST_SECONDS):
                taken.append(True)
    except Exception:  # of a library, whose words quote the address
        return
