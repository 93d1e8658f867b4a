"""A Prefect API server that lives exactly as long as the run that needs it.

Prefect's own "ephemeral" server outlives a parent that is killed. This server is a child that watches its parent, so it
ends however the parent ends. A run that is given a ``PREFECT_API_URL`` starts no server.
"""

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from dpmodels.errors import NacreError

START_TIMEOUT = 120.0  # seconds; a fresh database is migrated first, slowly when the machine is busy
STOP_TIMEOUT = 8.0
_WATCH_SECONDS = 0.5
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


class PrefectServer:
    """Start, wait for and stop the server of one run; as a context manager it also points Prefect at it.

    ``start`` returns at once, so that other work overlaps with the seconds that the server needs; ``wait`` blocks until
    the server answers and returns its URL. Entering the context starts the server, leaving it stops it, and neither
    waits. With a port it is a complete server, with UI, scheduler and events, and a configured server is not used.
    """

    def __init__(self, home: Path, port: int = 0) -> None:
        self.home, self.port = home.absolute() / "prefect", port
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = ExitStack()

    @property
    def pid(self) -> int | None:
        """The process id of the server that this object started; ``None`` when it uses a configured one."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Begin to start a server, or use the one that Prefect is already configured for."""
        self._settings.enter_context(_environment({"DO_NOT_TRACK": "1"}))  # Prefect reads it on import
        _end_event_workers(0)  # an old worker of this process would send our events to another server
        self.url = "" if self.port else _configured_url()
        if self.url:
            self._settings.enter_context(_prefect_settings({"PREFECT_API_URL": self.url}))
            return
        self.home.mkdir(parents=True, exist_ok=True)
        self.home.parent.chmod(0o700)
        self.home.chmod(0o700)
        with _listen(self.port) as listener:  # bound here, so no other process can take the port
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
            self._process = _spawn(self.home, listener, {"PREFECT_API_URL": self.url} if self.port else _OF_ONE_RUN)
        own = {} if self.port else _CLIENT_SETTINGS  # flow runs of a lasting server log to it, and are heard of
        self._settings.enter_context(_prefect_settings(own | {"PREFECT_API_URL": self.url, "PREFECT_HOME": self.home}))

    def wait(self, timeout: float = START_TIMEOUT) -> str:
        """Block until the server answers and return its API URL.

        Raises:
            NacreError: the server died or did not answer in time, for a reason that ``prefect/server.log`` holds; or
                the server that Prefect is configured for does not answer.
        """
        if self._process is None:
            _check_configured(self.url)
        elif not _healthy(self.url, timeout):
            with suppress(subprocess.TimeoutExpired):  # a dying server stops answering a moment before it ends
                self._process.wait(5)
            code = self._process.returncode
            state = f"did not answer within {timeout:.0f} s" if code is None else f"ended with code {code}"
            raise NacreError(
                f"the embedded Prefect server {state}; see {self.home / 'server.log'}, "
                "point PREFECT_API_URL at a running server, or run with --no-prefect"
            )
        return self.url

    def stop(self) -> None:
        """Send the events that are still queued, end the server if it is ours, and restore Prefect's settings."""
        try:
            _end_event_workers(STOP_TIMEOUT)
            if self._process:
                self._process.terminate()
                try:
                    self._process.wait(STOP_TIMEOUT)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
        finally:
            self._process = None
            self._settings.close()

    def __enter__(self) -> "PrefectServer":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()


@contextmanager
def prefect_server(home: Path) -> Iterator[str]:
    """Yield the URL of a server that is ready: the configured one, or one that ends with this block."""
    with PrefectServer(home) as server:
        yield server.wait()


def _configured_url() -> str:
    """Return the API URL of Prefect's environment or active profile, empty when there is none."""
    from prefect.settings import get_current_settings

    return get_current_settings().api.url or os.environ.get("PREFECT_API_URL", "")


def _check_configured(url: str) -> None:
    """Check the health of a server that is not ours with Prefect's client, which knows how to log in."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        problem = client.api_healthcheck()
    if problem is not None:
        raise NacreError(
            f"Prefect is configured for the server {url}, which does not answer ({type(problem).__name__}); "
            "start it, unset PREFECT_API_URL, or run with --no-prefect"
        )


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        raise NacreError(f"port {port} is taken; name another with --port") from None


def _spawn(home: Path, listener: socket.socket, settings: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start the child in its own session, so that Ctrl-C reaches only the run, which then stops the server."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= settings
    environment |= _SERVER_SETTINGS | {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": "sqlite+aiosqlite:///prefect.db",  # in cwd, so no path needs quoting
        "PYTHONPATH": str(Path(__file__).parents[__name__.count(".")]),
    }
    descriptor = listener.fileno()
    with open(home / "server.log", "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", __name__, str(descriptor), str(os.getpid())],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(descriptor,),
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


def _end_with(parent: int) -> None:
    """End this process, politely at first, once ``parent`` is no longer its parent, without any help of the parent."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os.kill(os.getpid(), 15)
    time.sleep(STOP_TIMEOUT / 2)
    os._exit(1)


def _serve(descriptor: int, parent: int) -> None:
    """Run the API on an inherited listening socket."""
    os.umask(0o077)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    import uvicorn

    config = uvicorn.Config(
        "prefect.server.api.server:create_app",
        factory=True,
        log_level="error",
        lifespan="on",
        timeout_graceful_shutdown=3,
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
