"""The embedded Prefect server records a run, and never outlives the process that needed it."""

import logging
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import flows.with_prefect.server
from dpmodels.errors import NacreError
from flows.with_prefect import configured
from flows.with_prefect.server import _CHATTY, PrefectServer, prefect_server
from tests.kit.api import Api
from tests.kit.support import servers_of

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]

HOLD = """
import sys, time
from pathlib import Path
from flows.with_prefect.server import _CHATTY, PrefectServer
with PrefectServer(Path(sys.argv[1])) as server:
    if "ready" in sys.argv: server.wait()
    print(server.pid, server.url, flush=True)
    if "fail" in sys.argv: raise SystemExit(7)
    if "flow" in sys.argv:
        from prefect import flow
        @flow
        def busy():
            print("flow", flush=True)
            time.sleep(60)
        busy()
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Share one home among the tests: migrating a fresh database is the slow part."""
    return tmp_path_factory.mktemp("nacre")


@pytest.fixture
def holder(home: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Collect the parents a test starts, and end those it left."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def hold(home: Path, *options: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def first_line(process: subprocess.Popen[str]) -> tuple[int, str]:
    assert process.stdout
    pid, url = process.stdout.readline().split()
    return int(pid), url


def gone(pid: int, seconds: float = 10) -> bool:
    """Wait for a process to end; one that is dead but not yet reaped counts."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.1)
    return False


def closed(url: str, home: Path) -> bool:
    """Tell whether no process of this home serves there; somebody else may have been given the port since."""
    host, port = url.split("/")[2].split(":")
    with socket.socket() as probe:
        if probe.connect_ex((host, int(port))) != 0:
            return True
    found = (each for each in psutil.net_connections("tcp") if each.status == psutil.CONN_LISTEN and each.pid)
    return not any(each.laddr.port == int(port) and is_of(each.pid, home) for each in found)


def is_of(pid: int, home: Path) -> bool:
    try:
        return str(home) in psutil.Process(pid).environ().get("PREFECT_HOME", "")
    except psutil.NoSuchProcess:
        return False


def rows(home: Path, query: str) -> list[tuple[object, ...]]:
    database = sqlite3.connect(home / "prefect" / "prefect.db")
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


def test_a_flow_is_recorded_down_to_its_last_task(home: Path) -> None:
    from prefect.settings import get_current_settings

    before = dict(os.environ), get_current_settings()
    with PrefectServer(home) as server:
        from prefect import flow, task

        @task
        def double(x: int) -> int:
            return 2 * x

        @flow
        def twice() -> int:
            return double(double(3))

        assert server.wait() == server.url == os.environ["PREFECT_API_URL"]
        assert twice() == 12
        pid = server.pid
    assert pid and not psutil.pid_exists(pid) and closed(server.url, home)
    assert (dict(os.environ), get_current_settings()) == before
    assert rows(home, "select state_name from flow_run where name is not null") == [("Completed",)]
    assert rows(home, "select state_name from task_run") == [("Completed",)] * 2
    assert (home / "prefect" / "server.log").read_text() == ""


def test_what_the_server_keeps_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "a home? #1 50%"
    monkeypatch.chdir(tmp_path)
    with prefect_server(home.relative_to(tmp_path)):
        pass
    assert stat.S_IMODE(home.stat().st_mode) == stat.S_IMODE((home / "prefect").stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "prefect" / "prefect.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("when", ["starting", "ready"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.nightly_if("2-starting", "15-*", "2-ready")
def test_the_server_goes_with_its_parent(
    home: Path, holder: list[subprocess.Popen[str]], number: signal.Signals, when: str
) -> None:
    parent = hold(home, when)
    holder.append(parent)
    pid, url = first_line(parent)
    assert psutil.pid_exists(pid)
    parent.send_signal(number)
    parent.wait(20)
    assert gone(pid) and closed(url, home)


@pytest.mark.parametrize(
    ("number", "state"), [(signal.SIGKILL, "Running"), (signal.SIGTERM, "Crashed"), (signal.SIGINT, "Crashed")]
)
@pytest.mark.nightly
def test_the_server_goes_with_a_parent_inside_a_flow(
    home: Path, holder: list[subprocess.Popen[str]], number: signal.Signals, state: str
) -> None:
    parent = hold(home, "ready", "flow")
    holder.append(parent)
    pid, url = first_line(parent)
    assert parent.stdout and parent.stdout.readline() == "flow\n"
    parent.send_signal(number)
    parent.wait(30)
    assert gone(pid) and closed(url, home)
    assert rows(home, "select state_name from flow_run order by created desc limit 1") == [(state,)]


def test_the_server_goes_when_the_block_fails(home: Path, holder: list[subprocess.Popen[str]]) -> None:
    parent = hold(home, "ready", "fail")
    holder.append(parent)
    pid, url = first_line(parent)
    assert parent.wait(20) == 7
    assert gone(pid, seconds=1) and closed(url, home)


def test_a_configured_server_is_reused(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect import flow, task
    from prefect.events.worker import EventsWorker

    @task
    def nothing() -> None: ...

    @flow(name="borrowed")
    def borrowed() -> None:
        nothing()

    def event_workers() -> list[object]:
        return [one for one in EventsWorker._instances.values() if isinstance(one, EventsWorker)]

    with prefect_server(home) as url:
        lender = os.environ["PREFECT_HOME"]
        with PrefectServer(tmp_path) as second:
            assert second.wait() == url
            assert second.pid is None
            assert os.environ["PREFECT_HOME"] == lender
            borrowed()
            assert event_workers()
        assert not event_workers()  # it would send the events of the next server's runs to this one
        assert not closed(url, home)
    assert list(tmp_path.iterdir()) == []
    assert len(rows(home, "select r.id from flow_run r join flow f on f.id = r.flow_id where f.name = 'borrowed'")) == 1


@pytest.mark.parametrize("source", ["environment", "profile"])
def test_a_fresh_process_reuses_what_prefect_is_configured_for(
    tmp_path: Path, holder: list[subprocess.Popen[str]], source: str
) -> None:
    url = "http://127.0.0.1:1/api"
    if source == "environment":
        settings = {"PREFECT_API_URL": url}
    else:
        (tmp_path / "profiles.toml").write_text(f'active = "own"\n[profiles.own]\nPREFECT_API_URL = "{url}"\n')
        settings = {"PREFECT_PROFILES_PATH": str(tmp_path / "profiles.toml")}
    parent = hold(tmp_path / "home", **settings)
    holder.append(parent)
    assert parent.stdout and parent.stdout.readline() == f"None {url}\n"
    assert psutil.Process(parent.pid).children() == []
    assert not (tmp_path / "home").exists()


def test_a_server_that_cannot_start_says_where_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        flows.with_prefect.server._SERVER_SETTINGS, "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE", "-1"
    )
    with pytest.raises(NacreError, match=r"embedded Prefect server .*server\.log") as caught, prefect_server(tmp_path):
        pass
    assert "ended with code" in str(caught.value)
    assert "batch_size" in (tmp_path / "prefect" / "server.log").read_text()


def test_a_configured_server_that_does_not_answer_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    with pytest.raises(NacreError, match=r"127\.0\.0\.1:1/api, which does not answer"), prefect_server(tmp_path):
        pass


def test_a_server_that_is_too_slow_is_ended(home: Path) -> None:
    with PrefectServer(home) as server:
        pid = server.pid
        with pytest.raises(NacreError, match="did not answer within 0 s"):
            server.wait(timeout=0.01)
    assert pid and gone(pid, seconds=1)


def test_a_test_sees_the_servers_of_its_own_home_only(home: Path, holder: list[subprocess.Popen[str]]) -> None:
    decoy = "import time; print(flush=True); time.sleep(60)"
    words = [sys.executable, "-c", decoy, "flows.with_prefect.api_process"]
    holder.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=home))
    assert holder[0].stdout and holder[0].stdout.readline()
    with PrefectServer(home) as server:
        assert servers_of(home) == {server.pid}
    assert servers_of(home) == set()


def test_a_server_that_asks_for_nothing_is_warned_of_once(
    prefect_api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    configured.warn_if_open.cache_clear()
    monkeypatch.setenv("PREFECT_API_URL", prefect_api.url)
    for _ in range(2):
        with prefect_server(tmp_path):
            pass
    assert [record.getMessage().count("asks for no credential") for record in caplog.records] == [1]


def test_threads_that_send_events_say_nothing_on_the_terminal(home: Path) -> None:
    noisy = [logging.getLogger(name) for name in ("EventsWorker", "APILogWorker")]
    for log in noisy:
        log.setLevel(logging.NOTSET)
    with prefect_server(home):
        assert not any(log.isEnabledFor(logging.ERROR) for log in noisy)
    assert not any(log.isEnabledFor(logging.ERROR) for log in noisy)  # they speak when the process ends


def test_the_loggers_that_are_silenced_are_those_of_prefect() -> None:
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    assert {EventsWorker.__name__, APILogWorker.__name__} == set(_CHATTY)
