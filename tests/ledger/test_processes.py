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


def test_fifty_processes_fight_for_the_last_of_a_budget(place: str) -> None:
    answer = run("race", place, 50, 0.25)
    assert 5 < answer["affordable"] < 20
    assert answer["won"] == answer["charges"] == answer["affordable"]
    assert answer["refused"] == 50 - answer["won"]
    assert answer["failed"] == answer["faults"] == []


@pytest.mark.slow
@pytest.mark.nightly_if("postgresql")
def test_killed_two_hundred_times_no_draw_is_without_its_charge(place: str, tmp_path: Path) -> None:
    answer = run("crash", place, tmp_path, 205, 1)
    assert answer["faults"] == []
    assert answer["killed"] >= 200
    assert answer["charges"] > 50
    # The random instants reach every state that a charge can be left in.
    assert {"new", "reserved", "drawing", "sealed", "committed"} <= set(answer["states"])
    assert sum(count for state, count in answer["states"].items() if state != "new") > 60
