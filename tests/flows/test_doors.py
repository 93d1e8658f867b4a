"""A Prefect server that nacre starts answers nobody but who knows its string, at its address, from its own pages."""

import base64
import http.client
import json
import os
import re
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from benchmarks.postgres import free_port
from dpmodels.errors import NacreError
from flows.with_prefect.credential import credential
from flows.with_prefect.server import PrefectServer, server_of
from tests.kit.api import Api, wait_until
from tests.kit.support import run_cli

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Lasting:
    """The server of `nacre serve`, without the rest of it."""

    home: Path
    pid: int
    port: int
    api: Api

    @property
    def authorization(self) -> str:
        return f"Authorization: Basic {base64.b64encode(self.api.credential.encode()).decode()}"

    def ask(self, target: str, *lines: str, version: str = "1.1", own: bool = True) -> tuple[int, str]:
        """Send a request written by hand, with the right string, and return status and body."""
        host = [f"Host: 127.0.0.1:{self.port}"] if own else []
        words = [f"GET {target} HTTP/{version}", *host, self.authorization, "Connection: close", *lines, "", ""]
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as line:
            line.sendall("\r\n".join(words).encode("latin-1"))
            answer = http.client.HTTPResponse(line)
            answer.begin()
            return answer.status, answer.read().decode() if answer.status != 101 else ""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lasting]:
    home, port = tmp_path_factory.mktemp("doors") / "home", free_port()
    with PrefectServer(home, port=port) as started:
        started.wait()
        assert started.pid
        assert os.environ["PREFECT_API_AUTH_STRING"] == credential(home)
        yield Lasting(home, started.pid, port, Api(started.url, credential(home)))
    assert "PREFECT_API_AUTH_STRING" not in os.environ


HOSTS = (
    "evil.test evil.test:{0} 127.0.0.1 127.0.0.1:80 127.0.0.1:{0}. 127.0.0.1.:{0} me@127.0.0.1:{0} 127.1:{0} [::1]:{0}"
)
HOSTS += (
    " LOCALHOST:{0} localhost:{0} 0.0.0.0:{0} 127.0.0.1:0{0} 127.0.0.1:{0},evil.test 2130706433:{0} 127.0.0.1:{0}/x"
)
ORIGINS = "null https://127.0.0.1:{0} http://127.0.0.1 http://127.0.0.1:80 http://localhost:{0} http://127.0.0.1:{0}/"
ORIGINS += " HTTP://127.0.0.1:{0} http://127.0.0.1:{0}.evil.test http://evil.test http://127.0.0.1:{0},http://evil.test"


def test_it_has_one_address(server: Lasting) -> None:
    for version in ("1.0", "1.1"):
        assert server.ask("/api/flows/count", version=version)[0] == 405  # it is for POST: the string was right
    assert server.ask("/api/admin/version") == (200, json.dumps(server.api.get("admin/version")))
    for host in HOSTS.format(server.port).split():
        status, body = server.ask("/api/admin/version", f"Host: {host}", own=False)
        assert (host, status) == (host, 421) and f"open http://127.0.0.1:{server.port}" in body
    for host in ["", " ", "\t127.0.0.1"]:
        assert server.ask("/api/admin/version", f"Host:{host}", own=False)[0] in (400, 421)
    assert server.ask("/api/admin/version", own=False)[0] == 400
    assert server.ask("/api/admin/version", own=False, version="1.0")[0] == 421
    for second in ("evil.test", f"127.0.0.1:{server.port}"):
        assert server.ask("/api/admin/version", f"Host: {second}")[0] in (400, 421)
    for target in ("http://evil.test/api/admin/version", f"http://127.0.0.1:{server.port}/api/admin/version", "*"):
        assert server.ask(target)[0] == 421
    for lie in ("X-Forwarded-Host: evil.test", "Forwarded: host=evil.test", "X-Forwarded-Proto: https"):
        assert server.ask("/api/admin/version", lie)[0] == 200


def test_it_answers_no_foreign_page(server: Lasting) -> None:
    own = f"Origin: http://127.0.0.1:{server.port}"
    assert server.ask("/api/admin/version", own, "Sec-Fetch-Site: same-origin")[0] == 200
    for origin in ["", *ORIGINS.format(server.port).split()]:
        assert (origin, server.ask("/api/admin/version", f"Origin: {origin}")[0]) == (origin, 403)
    assert server.ask("/api/admin/version", own, "Origin: http://evil.test")[0] == 403
    for site in ("cross-site", "same-site", "SAME-ORIGIN", "", "none\r\nSec-Fetch-Site: cross-site"):
        assert (site, server.ask("/api/admin/version", f"Sec-Fetch-Site: {site}")[0]) == (site, 403)
    followed = ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
    assert server.ask("/api/admin/version", *followed)[0] == 403
    assert server.ask("/v2/", *followed)[0] == 200  # a link to the UI, in a page or a letter
    assert server.ask("/v2/", *followed[:2], "Sec-Fetch-Dest: iframe")[0] == 403
    for target in ("//api/admin/version", "/%61pi/admin/version", "/v2/../api/admin/version"):
        assert '"' not in server.ask(target, *followed)[1][:1]  # the page of the UI at most, and never an answer


SOCKETS = ["events/in", "events/out", "logs/out", "task_runs/subscriptions/scheduled", "work_pools/x/workers/connect"]


@pytest.mark.parametrize("path", SOCKETS)
def test_a_websocket_is_opened_to_who_knows_the_string(server: Lasting, path: str) -> None:
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect

    url = f"ws://127.0.0.1:{server.port}/api/{path}"

    def opens(token: str | None, **options: object) -> bool:
        try:
            with connect(url, subprotocols=["prefect"], open_timeout=30, **options) as line:  # type: ignore[arg-type,list-item]
                line.send(json.dumps({"type": "auth", "token": token}))
                return bool(json.loads(line.recv(30))["type"] == "auth_success")
        except WebSocketException:
            return False

    assert opens(server.api.credential)
    assert opens(server.api.credential, origin=f"http://127.0.0.1:{server.port}")
    assert not opens(None) and not opens("") and not opens(server.api.credential[:-1])
    for origin in ("null", "http://evil.test", f"http://localhost:{server.port}"):
        assert not opens(server.api.credential, origin=origin)
    upgrade = ("Upgrade: websocket", "Connection: upgrade", "Sec-WebSocket-Version: 13")
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    assert server.ask(f"/api/{path}", "Host: evil.test", *upgrade, key, own=False)[0] == 421
    assert server.ask(f"/api/{path}", "Origin: null", *upgrade, key)[0] == 403
    assert server.ask(f"/api/{path}", *upgrade, key)[0] == 403  # an old client, which has no string


def test_these_are_all_websockets_that_the_server_has() -> None:
    import prefect.server.api

    files = Path(prefect.server.api.__file__).parent.rglob("*.py")
    routes = [route for file in files for route in re.findall(r"\.websocket\(\s*\"([^\"]*)", file.read_text())]
    assert sorted(route.rpartition("/")[2] for route in routes) == sorted(path.rpartition("/")[2] for path in SOCKETS)


def test_every_route_asks_for_the_string(server: Lasting) -> None:
    """All but those by which one sees that a server is up; what changes something asks for a page's token as well."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def status(method: str, path: str, **headers: str) -> int:
        line.request(method, path, headers=headers)
        answer = line.getresponse()
        answer.read()
        return answer.status

    line.request("GET", "/openapi.json")
    paths = json.loads(line.getresponse().read())["paths"]
    routes = [(method.upper(), re.sub(r"\{\w+\}", "x", path)) for path, methods in paths.items() for method in methods]
    assert len(routes) > 150
    answers = {(method, path): status(method, f"/api{path}") for method, path in routes}
    open_to_all = {path for (_, path), code in answers.items() if code not in (401, 403)}
    assert open_to_all == {"/health", "/ready"}
    known = {"Authorization": server.authorization.partition(": ")[2]}
    assert {status(method, f"/api{path}", **known) for method, path in routes if method != "GET"} == {403}
    assert status("GET", "/api/admin/version", Authorization="Basic bmFjcmU6bmFjcmU=") == 401
    line.close()


def test_the_string_is_in_no_log_no_command_and_no_database(server: Lasting) -> None:
    from prefect import flow, get_run_logger

    @flow
    def spoken() -> None:
        get_run_logger().info("spoken")

    spoken()
    wait_until(lambda: server.api.ask("logs/filter", {}))
    secrets = [server.api.credential, server.authorization.split()[-1], server.api.credential.partition(":")[2]]
    for process in (psutil.Process(server.pid), *psutil.Process().children(recursive=True)):
        assert not any(each in " ".join(process.cmdline()) for each in secrets)
    folder = server.home / "prefect"
    with sqlite3.connect(folder / "prefect.db") as database:
        database.execute("pragma wal_checkpoint")
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"credential", "prefect.db", "serving", "server.log"} <= {path.name for path in files}
    assert [path.name for path in files if any(each.encode() in path.read_bytes() for each in secrets)] == [
        "credential"
    ]
    assert [path for path in [folder, *folder.rglob("*")] if path.exists() and path.stat().st_mode & 0o077] == []
    assert stat.S_IMODE(server.home.stat().st_mode) == 0o700


def test_ui_opens_the_server_of_its_home_and_shows_the_string_at_a_terminal_alone(
    server: Lasting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = tmp_path / "opened"
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$@" >> {opened}\n')
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(program))
    origin = f"http://127.0.0.1:{server.port}"
    code, out, err = run_cli("ui", "--home", server.home)
    assert (code, err) == (0, "") and origin in out and "prefect/credential" in out
    assert server.api.credential not in out
    wait_until(lambda: opened.exists() and opened.read_text())
    assert opened.read_text() == f"{origin}\n"
    code, out, _ = run_cli("ui", "--home", server.home, "--json")
    assert code == 0 and json.loads(out) == {"url": origin, "credential": str(server.home / "prefect" / "credential")}
    monkeypatch.setattr("flows.command_line.deployments._at_terminal", lambda: True)
    assert server.api.credential in run_cli("ui", "--home", server.home)[1]
    code, out, err = run_cli("ui", "--home", tmp_path / "other")
    assert (code, out) == (1, "") and "no server of the home" in err and "nacre serve" in err
    assert not (tmp_path / "other").exists()


def test_the_pages_that_start_a_server_close_its_doors_by_settings_that_exist() -> None:
    from prefect import settings

    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    starting = [page for page in pages if "prefect server start" in page.read_text()]
    assert [page.name for page in starting] == ["production.md"]
    named = set(re.findall(r"PREFECT_[A-Z_]+", starting[0].read_text()))
    assert named >= {
        "PREFECT_SERVER_API_AUTH_STRING",
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED",
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS",
        "PREFECT_SERVER_ANALYTICS_ENABLED",
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE",
        "PREFECT_API_AUTH_STRING",
    }
    assert [name for name in named if not hasattr(settings, name)] == []


def test_a_home_has_one_lasting_server(server: Lasting) -> None:
    assert server_of(server.home) == f"http://127.0.0.1:{server.port}"
    with pytest.raises(NacreError, match="runs already"), PrefectServer(server.home, port=free_port()):
        pass
    assert server_of(server.home) == f"http://127.0.0.1:{server.port}"
    assert credential(server.home) == server.api.credential


def test_a_run_is_told_what_is_missing_at_a_server_that_is_not_its_own(
    server: Lasting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from prefect.settings import PREFECT_API_AUTH_STRING, temporary_settings

    with PrefectServer(tmp_path) as other:
        assert other.wait() == server.api.url and other.pid is None
    assert caplog.records == []
    hold = "import sys; from flows.with_prefect.configured import *; check_configured(configured_url())"
    environment = {**os.environ, "PREFECT_API_AUTH_STRING": "", "PYTHONPATH": str(ROOT)}
    for wrong in ("", "nacre:wrong"):
        environment["PREFECT_API_AUTH_STRING"] = wrong
        done = subprocess.run([sys.executable, "-c", hold], env=environment, capture_output=True, text=True)
        assert "NacreError: the Prefect server" in done.stderr and "set PREFECT_API_AUTH_STRING" in done.stderr
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "nacre:wrong")
    with temporary_settings({PREFECT_API_AUTH_STRING: "nacre:wrong"}):
        code, _, err = run_cli("deploy")
    assert code == 1 and err.startswith("error: the Prefect server") and "set PREFECT_API_AUTH_STRING" in err
    assert [*tmp_path.iterdir()] == []
