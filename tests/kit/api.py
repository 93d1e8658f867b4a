"""A real Prefect server for tests, and what is asked of its API over HTTP."""

import base64
import http.client
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.postgres import free_port

SETTINGS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "5",  # a schedule may be activated half a minute ahead
    "PREFECT_LOGGING_LEVEL": "WARNING",
    "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
}


@dataclass(frozen=True)
class Api:
    """The API of a Prefect server, and the string that it asks for, if it does."""

    url: str
    credential: str = ""

    def get(self, path: str) -> Any:
        """Get what has an address."""
        return self._send(urllib.request.Request(f"{self.url}/{path}"))

    def ask(self, path: str, body: object, method: str = "POST") -> Any:
        """Post a question; return what is answered."""
        headers = {"Content-Type": "application/json"}
        return self._send(
            urllib.request.Request(f"{self.url}/{path}", json.dumps(body).encode(), headers, method=method)
        )

    def _send(self, request: urllib.request.Request) -> Any:
        """Send a request, again while the server says that its database is busy, as Prefect's own client does.

        What only asks is sent again too where no answer comes: the server has lost a request on a crowded machine.
        """
        if self.credential:
            request.add_header("Authorization", f"Basic {base64.b64encode(self.credential.encode()).decode()}")
            if request.get_method() != "GET":
                request.add_header("Prefect-Csrf-Client", "tests")
                request.add_header("Prefect-Csrf-Token", self.get("csrf-token?client=tests")["token"])
        asks = request.get_method() == "GET"
        for _ in range(20):
            try:
                with urllib.request.urlopen(request, timeout=15 if asks else 60) as answer:
                    content = answer.read()
                return json.loads(content) if content else None
            except urllib.error.HTTPError as refusal:
                if refusal.code != 503:
                    raise
                time.sleep(0.5)
            except TimeoutError:
                if not asks:
                    raise
        raise AssertionError("the server stayed busy")

    def flow_runs(self, name: str) -> list[dict[str, Any]]:
        """Return the flow runs whose name has this in it, as that of a run."""
        found: list[dict[str, Any]] = self.ask("flow_runs/filter", {"flow_runs": {"name": {"like_": name}}})
        return found

    def artifacts(self, key: str) -> list[dict[str, Any]]:
        """Return the artifacts of a key, oldest first."""
        wanted = {"artifacts": {"key": {"any_": [key]}}, "sort": "CREATED_DESC"}
        found: list[dict[str, Any]] = self.ask("artifacts/filter", wanted)
        return found[::-1]

    def budget_events(self, account: str) -> list[str]:
        """Return the names of the budget events of an account, oldest first."""
        resource = {"id": [f"nacre.account.{account}"]}
        wanted = {"event": {"prefix": ["nacre.budget."]}, "resource": resource, "order": "ASC"}
        return [event["event"] for event in self.ask("events/filter", {"filter": wanted})["events"]]

    def resume_when_paused(self, name: str, signature: str) -> None:
        """Wait until a flow run pauses, and resume it with this signature; a moment early the form is not there yet."""

        def resumed() -> bool:
            (run,) = self.flow_runs(name) or [{"state_type": "PENDING"}]
            if run["state_type"] != "PAUSED":
                return False
            answer = self.ask(f"flow_runs/{run['id']}/resume", {"run_input": {"signature": signature}})
            return bool(answer["status"] == "ACCEPT")

        wait_until(resumed)


@contextmanager
def prefect_api_server(home: Path, **settings: str) -> Iterator[Api]:
    """Run ``prefect server start`` on a free loopback port and yield its API."""
    import prefect.settings  # noqa: F401  read from the environment when imported: before a test names this server there

    port = free_port()
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
        yield Api(f"http://127.0.0.1:{port}/api")
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


def wait_until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Ask again until the answer is yes."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.2)
