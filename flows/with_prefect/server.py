"""A Prefect API server that lives exactly as long as the run that needs it.

Prefect's own "ephemeral" server outlives a parent that is killed. This server is a child that watches its parent, so it
ends however the parent ends. A run that is given a ``PREFECT_API_URL`` starts no server. Whoever asks it for anything
must know its string, which each start makes anew; that of a lasting server lies in its home (`credential`).
"""

import fcntl
import http.client
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from dpmodels.errors import NacreError
from flows.with_prefect.api_process import STOP_TIMEOUT
from flows.with_prefect.configured import check_configured, configured_url
from flows.with_prefect.credential import new_credential, renew_credential
from flows.with_prefect.slots import free_slots

START_TIMEOUT = 120.0  # seconds; a fresh database is migrated first, slowly when the machine is busy
_CLIENT_SETTINGS: dict[str, Any] = {
    "PREFECT_LOGGING_LEVEL": "CRITICAL",  # the caller of the flow reports a failure, once
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": None,  # costs a second in each flow run, and nothing listens to it
}
_SERVER_SETTINGS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",  # nothing here uses blocks
    "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    # In memory, the leases of accounts' slots would be lost with a server that is killed, and the slots stay taken.
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    # Task runs are written to the database in batches; written singly, the last would be lost when the server stops.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",  # below 1 it is truncated to 0, a busy loop
    "PREFECT__SERVER_FINAL": "1",
}
_OF_ONE_RUN = {
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",  # no automations
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
    "PREFECT__SERVER_EPHEMERAL": "1",  # leaves out the UI, the scheduler and the other services of a lasting server
}


_CHATTY = ("EventsWorker", "APILogWorker")
"""Loggers of Prefect's threads outside of its own tree, which no setting of its level reaches."""


class PrefectServer:
    """Start, wait for and stop the server of one run; as a context manager it also points Prefect at it.

    ``start`` returns at once, so that other work overlaps with the seconds that the server needs; ``wait`` blocks until
    the server answers and returns its URL. Entering the context starts the server, leaving it stops it, and neither
    waits. While it is entered ``PREFECT_API_AUTH_STRING`` holds the server's string.

    With a port it is a complete server, with UI, scheduler and events, and a configured server is not used. A home has
    one at most. If it ends by itself after `wait`, this process gets a SIGTERM, and leaving the context says why.
    """

    def __init__(self, home: Path, port: int = 0) -> None:
        self.home, self.port = home.absolute() / "prefect", port
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._lost = False
        self._settings = ExitStack()

    @property
    def pid(self) -> int | None:
        """The process id of the server that this object started; ``None`` when it uses a configured one."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Begin to start a server, or use the one that Prefect is already configured for."""
        self._settings.enter_context(_environment({"DO_NOT_TRACK": "1"}))  # Prefect reads it on import
        _end_event_workers(0)  # an old worker of this process would send our events to another server
        self.url = "" if self.port else configured_url()
        if self.url:
            self._settings.enter_context(_prefect_settings({"PREFECT_API_URL": self.url}))
            return
        self.home.mkdir(parents=True, exist_ok=True)
        self.home.parent.chmod(0o700)
        self.home.chmod(0o700)
        self._settings.enter_context(_prefect_settings(self._launch()))

    def _launch(self) -> dict[str, Any]:
        """Start the process of the server, and return the settings of its clients."""
        serving = self._settings.enter_context(_only_server(self.home)) if self.port else None
        secret = renew_credential(self.home.parent) if self.port else new_credential()
        with _listen(self.port) as listener:  # bound here, so no other process can take the port
            origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self.url = f"{origin}/api"
            settings = {"PREFECT_API_URL": self.url} if self.port else _OF_ONE_RUN
            doors = {"PREFECT_SERVER_API_AUTH_STRING": secret, "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": origin}
            if serving:
                serving.write(origin)
                serving.flush()
            self._process = _spawn(self.home, settings | doors, listener, *([serving] if serving else []))
        return {
            "PREFECT_API_URL": self.url,
            "PREFECT_API_AUTH_STRING": secret,
            "PREFECT_CLIENT_CSRF_SUPPORT_ENABLED": True,
            "PREFECT_HOME": self.home,
            **({} if self.port else _CLIENT_SETTINGS),  # flow runs of a lasting server log to it, and are heard of
        }

    def wait(self, timeout: float = START_TIMEOUT) -> str:
        """Block until the server answers and return its API URL.

        Raises:
            NacreError: the server died or did not answer in time, for a reason that ``prefect/server.log`` holds; or
                the server that Prefect is configured for does not answer.
        """
        if self._process is None:
            check_configured(self.url)
        elif not _healthy(self.url, timeout):
            with suppress(subprocess.TimeoutExpired):  # a dying server stops answering a moment before it ends
                self._process.wait(5)
            code = self._process.returncode
            state = f"did not answer within {timeout:.0f} s" if code is None else f"ended with code {code}"
            raise NacreError(
                f"the embedded Prefect server {state}; see {self.home / 'server.log'}, "
                "point PREFECT_API_URL at a running server, or run with --no-prefect"
            )
        elif self.port:
            free_slots(self.home / "concurrency_leases")
            threading.Thread(target=self._end_without, args=(self._process,), daemon=True).start()
        return self.url

    def stop(self) -> None:
        """Send the events that are still queued, end the server if it is ours, and restore Prefect's settings."""
        process, self._process = self._process, None
        try:
            _end_event_workers(STOP_TIMEOUT if process is None or process.poll() is None else 0)
            if process:
                process.terminate()
                try:
                    process.wait(STOP_TIMEOUT)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        finally:
            self._settings.close()

    def _end_without(self, process: "subprocess.Popen[bytes]") -> None:
        """End this process, politely, when its server ends and was not told to."""
        process.wait()
        if self._process is process:
            self._lost = True
            os.kill(os.getpid(), signal.SIGTERM)

    def __enter__(self) -> "PrefectServer":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
        if self._lost:
            raise NacreError(
                f"the Prefect server of this home ended, and so does this process; see {self.home / 'server.log'}, and "
                "start it again: a flow run that was cut off goes on when it is started again, and is charged once"
            ) from None


@contextmanager
def prefect_server(home: Path) -> Iterator[str]:
    """Yield the URL of a server that is ready: the configured one, or one that ends with this block."""
    with PrefectServer(home) as server:
        yield server.wait()


def server_of(home: Path) -> str:
    """Return the address of the UI of the lasting server of a home.

    Raises:
        NacreError: none runs.
    """
    try:
        with open(home.absolute() / "prefect" / "serving", "r+", encoding="ascii") as serving:
            fcntl.flock(serving, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return (home.absolute() / "prefect" / "serving").read_text(encoding="ascii")
    except OSError:
        pass
    raise NacreError(f"no server of the home {home} runs; start it: nacre serve --home {home}")


@contextmanager
def _only_server(folder: Path) -> Iterator[IO[str]]:
    """Hold the file in which a lasting server says where it is; the server inherits it, so it is held while one lives.

    Raises:
        NacreError: another server of this home holds it.
    """
    with open(folder / "serving", "a", encoding="ascii", opener=_private) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NacreError(
                f"a server of {folder.parent} runs already, or is about to end: nacre ui --home {folder.parent}"
            ) from None
        file.truncate(0)
        yield file


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        raise NacreError(f"port {port} is taken; name another with --port") from None


def _spawn(home: Path, settings: dict[str, str], *inherited: socket.socket | IO[str]) -> "subprocess.Popen[bytes]":
    """Start the child in its own session, so that Ctrl-C reaches only the run, which then stops the server.

    It inherits its listening socket, and its string by its environment, which no other user can read.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= settings
    environment |= _SERVER_SETTINGS | {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": "sqlite+aiosqlite:///prefect.db",  # in cwd, so no path needs quoting
        "PYTHONPATH": str(Path(__file__).parents[__name__.count(".")]),
    }
    descriptors = [each.fileno() for each in inherited]
    with open(home / "server.log", "wb", opener=_private) as log:
        return subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.api_process", str(descriptors[0]), str(os.getpid())],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=descriptors,
            start_new_session=True,
        )


def _healthy(url: str, timeout: float) -> bool:
    """Ask for the server's health once; the socket listens already, so the answer comes when the server is up."""
    host = url.split("/")[2]
    connection = http.client.HTTPConnection(host, timeout=timeout)
    try:
        connection.request("GET", "/api/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for the block and restore them afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _prefect_settings(values: dict[str, Any]) -> Iterator[None]:
    """Set Prefect's settings for the block: in the environment for new processes, in Prefect's context for this one."""
    from prefect import settings
    from prefect.logging.configuration import setup_logging

    for name in _CHATTY:  # for good: they speak while they are ended, and when the process ends
        logging.getLogger(name).setLevel(logging.CRITICAL)
    environment = {name: str(value) for name, value in values.items() if value is not None}
    with _environment(environment), settings.temporary_settings({getattr(settings, n): v for n, v in values.items()}):
        setup_logging()
        yield
    setup_logging()


def _end_event_workers(timeout: float) -> None:
    """End the threads that send this process's events, and wait up to ``timeout`` until their queues are empty.

    Prefect keeps one such thread for all servers, connected to the first, because its cache ignores the API URL.
    """
    if "prefect.events.worker" in sys.modules:
        from prefect.events.worker import EventsWorker

        EventsWorker.drain_all(timeout=timeout, at_exit=False)
