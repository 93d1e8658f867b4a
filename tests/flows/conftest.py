"""A Prefect server that lasts, for the tests that read back what it keeps."""

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SETTINGS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "WARNING",
    "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
}


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prefect_api_server(tmp_path_factory.mktemp("prefect")) as url:
        yield url


@contextmanager
def prefect_api_server(home: Path, **settings: str) -> Iterator[str]:
    """Run ``prefect server start`` on a free loopback port and yield its API URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, **SETTINGS, "PREFECT_HOME": str(home), **settings}
    command = [
        sys.executable,
        "-m",
        "prefect",
        "server",
        "start",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-ui",
    ]
    with open(home / "server.log", "wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 200
        while not answers(port):
            assert process.poll() is None and time.monotonic() < end, (home / "server.log").read_text()
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/api"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/api/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
