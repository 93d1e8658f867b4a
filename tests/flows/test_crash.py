"""Killed at any stage, a run resumes to one hand-off and one charge."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.kit.children import ends_at
from tests.kit.kills import MOMENTS, only_run
from tests.kit.support import charges, run_cli, servers_of, synthesize_words, write_clinic

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]


def kill_at(folder: Path, moment: str, before: bool) -> None:
    assert ends_at(*MOMENTS[moment], before, *synthesize_words(folder)) == -signal.SIGKILL


# the moments that every kind of data has are in tests/kinds
@pytest.mark.parametrize(
    ("moment", "before"),
    [("train", True), ("train", False), ("evaluate", True)],
)
def test_killed_and_resumed_there_is_one_charge_and_one_hand_off(tmp_path, moment, before):
    write_clinic(tmp_path, rows=60)
    kill_at(tmp_path, moment, before)
    assert not (tmp_path / "out").exists()
    drawn = charges(tmp_path / "home").count("draw")
    code, _, err = run_cli("resume", only_run(tmp_path), "--home", tmp_path / "home", "--no-prefect")
    assert code == 0, err
    kinds = charges(tmp_path / "home")
    assert [kinds.count(kind) for kind in ("reserve", "seal", "commit")] == [1, 1, 1]
    assert kinds.count("draw") - drawn <= 1  # a draw nobody saw may be drawn again, under the same charge
    assert run_cli("ledger", "verify", "--home", tmp_path / "home")[0] == 0
    assert pq.read_table(tmp_path / "out" / "synthetic").num_rows >= 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".part")) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
@pytest.mark.nightly_if("killed")
@pytest.mark.timeout(600)
def test_an_interrupted_prefect_run_leaves_no_server_and_resumes(tmp_path, how):
    write_clinic(tmp_path, rows=60)
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text().replace("steps: 6", "steps: 1000000"))  # training will not end by itself
    words = [str(word) for word in synthesize_words(tmp_path) if word != "--no-prefect"]
    child = subprocess.Popen(
        [sys.executable, "-m", "nacre", *words],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job inherits "ignore"
    )
    try:
        wait_until(lambda: (tmp_path / "home" / "released").exists() and training(tmp_path), child)
        assert servers_of(tmp_path / "home")
        child.send_signal(how)  # once
        child.wait(100)
    finally:
        child.kill()  # whatever failed, nothing trains on
        child.wait()
    wait_until(lambda: not servers_of(tmp_path / "home"))
    settings = tmp_path / "home" / "control" / only_run(tmp_path) / "settings.json"
    settings.write_text(settings.read_text().replace("1000000", "6"))
    (tmp_path / "home" / "released" / only_run(tmp_path) / "checkpoint.safetensors").unlink(missing_ok=True)
    assert run_cli("resume", only_run(tmp_path), "--home", tmp_path / "home", "--no-prefect")[0] == 0
    assert charges(tmp_path / "home") == ["reserve", "draw", "seal", "commit"]


DROPPED = """
import signal, sys, time, weakref
from flows.command_line import app as cli
class Thing: ...
def app(words, prog_name):
    thing = Thing()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(int(sys.argv[1])))
    del thing
    try:
        time.sleep(60)
    finally:
        print("ended in order")
cli.app = app
cli.main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)])
def test_a_signal_that_falls_into_a_finalizer_is_not_lost(number, code):
    words = [sys.executable, "-c", DROPPED, str(int(number))]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert (ended.returncode, ended.stdout) == (code, "ended in order\n"), ended.stderr


def training(folder: Path) -> bool:
    return bool(list((folder / "home" / "control").glob("*/stages/sanitize.json")))


def wait_until(condition: object, child: subprocess.Popen[bytes] | None = None, seconds: float = 200) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it took too long"
        assert child is None or child.poll() is None, "the run ended by itself"
        time.sleep(0.2)
