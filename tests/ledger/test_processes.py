"""Fifty processes at one budget, hundreds of kills in the middle of charges, on both databases."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]


def run(*words: object) -> dict[str, object]:
    command = [sys.executable, "-m", "tests.ledger.processes", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stderr) == (0, "")
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.mark.nightly_if("postgresql")
def test_fifty_processes_fight_for_the_last_of_a_budget(place: str) -> None:
    answer = run("race", place, 50, 0.25)
    assert 5 < answer["affordable"] < 20
    assert answer["won"] == answer["charges"] == answer["affordable"]
    assert answer["refused"] == 50 - answer["won"]
    assert answer["failed"] == answer["faults"] == []


@pytest.mark.slow
@pytest.mark.nightly_if("*postgresql*", "*205*")
@pytest.mark.parametrize("times", [70, 205])
def test_killed_many_times_no_draw_is_without_its_charge(place: str, tmp_path: Path, times: int) -> None:
    answer = run("crash", place, tmp_path, times, 1)
    assert answer["faults"] == []
    assert answer["killed"] >= 0.97 * times
    assert answer["charges"] > times / 4
    # The instants reach every state that a charge can be left in.
    assert {"new", "reserved", "drawing", "sealed", "committed"} <= set(answer["states"])
    assert sum(count for state, count in answer["states"].items() if state != "new") > 0.29 * times
