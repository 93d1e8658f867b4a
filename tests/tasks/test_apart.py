"""Stages that run apart: what a run asks for in the zone of control, and what is heard from the released zone."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dpmodels.errors import NacreError
from flows.generate import SECRETS, CanRead, check_blind, serve_requests, serve_waiting
from tasks.run.apart import (
    BEAT,
    SILENCE,
    STATUS,
    WAITING,
    Status,
    beat,
    heard_of,
    is_alive,
    request,
    requests,
    tell,
    wait_for,
    withdraw,
)
from tasks.run.store import Run, write_text
from tests.kit.api import wait_until
from tests.kit.support import read_only, run_cli

pytestmark = pytest.mark.processes


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(home=tmp_path, name="night")
    for folder in (run.control, run.released):
        folder.mkdir(parents=True)
    return run


def test_a_request_is_there_until_it_is_withdrawn(run: Run) -> None:
    first, second = request(run), request(run)
    assert list(requests(run.home)) == [("night", second)] and first != second
    folder = run.home / "control" / WAITING
    (folder / "..x").write_text("{}")
    (folder / "other").write_text('{"token": "../../x"}')
    (folder / "link").symlink_to(folder / "night")
    assert [name for name, _ in requests(run.home)] == ["night"]
    withdraw(run)
    withdraw(run)
    assert list(requests(run.home)) == []


def test_what_is_said_of_a_run_is_a_number_and_known_words(run: Run) -> None:
    asked = request(run)
    honest = Status(token=asked.token, stage="train", state="works", percent=40)
    file, secret = run.released / STATUS, run.home / "secret"
    assert heard_of(run, asked) is None
    tell(run, honest)
    assert heard_of(run, asked) == honest
    content = honest.model_dump()
    lies = [content | change for change in (
        {"token": "0" * 16}, {"percent": 101}, {"percent": -1}, {"stage": "sanitize"}, {"state": "/etc/passwd"},
        {"reason": "\x1b[2J"}, {"percent": "many"}, {"stage": None},
    )]  # fmt: skip
    long = json.dumps(content) + " " * 2000
    for said in (*map(json.dumps, lies), "", "[" * 900, "{" * 10**6, "null", long):
        write_text(file, said)
        assert heard_of(run, asked) is None, said[:50]
    file.write_bytes(b"\xff\xfe")
    assert heard_of(run, asked) is None
    secret.write_text(json.dumps(content))
    file.unlink()
    file.symlink_to(secret)
    assert heard_of(run, asked) is None
    file.unlink()
    os.link(secret, file)
    assert heard_of(run, asked) is None
    file.unlink()
    os.mkfifo(file)
    assert heard_of(run, asked) is None  # and nobody waits for whoever should write


def test_a_sign_of_life_is_a_plain_file_of_late(run: Run) -> None:
    assert not is_alive(run.home)
    beat(run.home)
    assert is_alive(run.home)
    sign, old = run.home / "released" / BEAT, time.time() - SILENCE - 1
    os.utime(sign, (old, old))
    assert not is_alive(run.home)
    sign.unlink()
    sign.symlink_to(run.control)
    assert not is_alive(run.home)


@pytest.mark.parametrize(
    ("reason", "said"), [("sensitive", "can read the data"), ("refused", "refused"), ("", "failed")]
)
def test_a_failed_stage_fails_the_waiting_run_with_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch, reason: str, said: str
) -> None:
    monkeypatch.setattr("tasks.run.apart.LOOK", 0.01)

    def fail() -> None:
        while not (found := list(requests(run.home))):
            time.sleep(0.01)
        fields = {"token": found[0][1].token, "stage": "train", "state": "failed", "reason": reason}
        tell(run, Status.model_validate(fields))

    worker = threading.Thread(target=fail)
    worker.start()
    with pytest.raises(NacreError, match=said) as failure:
        wait_for(run, "train", 1)
    worker.join()
    assert "start this flow run again" in str(failure.value) and list(requests(run.home)) == []


def test_nobody_is_waited_for_for_ever(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.run.apart.LOOK", 0.01)
    with pytest.raises(NacreError, match="nobody made stage train of run night"):
        wait_for(run, "train", 1e-6)
    assert list(requests(run.home)) == []


@pytest.mark.parametrize(
    "variable", ["PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "OPENLINEAGE_URL", "NACRE_LEDGER", "PGPASSWORD"]
)
def test_a_train_worker_that_could_ask_somebody_does_not_start(
    run: Run, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    assert variable.startswith(SECRETS)
    check_blind(run.home)
    monkeypatch.setenv(variable, "x")
    with pytest.raises(NacreError, match=f"unset {variable}"):
        serve_waiting(run.home, lambda: True)


@pytest.mark.parametrize("sensitive", ["sensitive", "prefect", "ledger.sqlite"])
def test_a_train_worker_that_can_read_what_is_sensitive_does_not_start(run: Run, sensitive: str) -> None:
    (run.home / sensitive).mkdir()
    with pytest.raises(CanRead) as refusal:
        serve_waiting(run.home, lambda: True)
    assert refusal.value.paths == [str(run.home / sensitive)]


def test_a_train_worker_that_can_write_what_others_believe_says_so_and_ends(run: Run) -> None:
    code, _, err = run_cli("train-worker", "--home", run.home)
    sentence = f"error: this worker can write {run.home}/control, which others believe: mount it read-only there"
    assert (code, err.splitlines()) == (1, [sentence]) and not is_alive(run.home)


@pytest.mark.skipif(subprocess.run([*read_only(Path("/tmp")), "true"]).returncode != 0, reason="nobody may mount here")
def test_a_train_worker_whose_control_zone_is_mounted_read_only_begins(run: Run) -> None:
    command = [*read_only(run.control.parent), sys.executable, "-m", "nacre", "train-worker", "--home", str(run.home)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}) as worker:
        wait_until(lambda: is_alive(run.home), 60)
        worker.terminate()


def test_a_run_that_cannot_be_served_is_told_once_and_the_others_go_on(run: Run) -> None:
    asked, looks = request(run), []
    serve_requests(run.home, lambda: len(looks) > 3 or looks.append(1) is not None, look=0.01)
    status = heard_of(run, asked)
    assert status is not None and (status.state, status.reason) == ("failed", "")  # it has no settings
    assert is_alive(run.home)
