"""Whatever ends a run, and wherever, it goes on to one charge and one whole hand-off, and leaves nothing behind."""

from pathlib import Path

import pytest

from tests.crash.disk import Disk
from tests.crash.lives import FAULTS, STATES, Choose, Life, live_on, record

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("crash") / "run")


def a_dozen(disk: Disk) -> list[tuple[int, str]]:
    """Choose the last moments before names appear, where there is most to lose, and one failure of each kind."""
    renamed = [n for n, point in enumerate(disk.points) if point.operation.startswith("os.rename")]
    after = [min(n + 1, len(disk.points) - 1) for n in renamed]
    states = list(STATES)
    chosen = [(after[i * len(after) // 8], states[i % len(states)]) for i in range(8)]
    return chosen + [(renamed[-1], fault) for fault in FAULTS]


def a_hundred(disk: Disk) -> list[tuple[int, str]]:
    states = [*STATES, *FAULTS, "killed at once"]
    return [(i * len(disk.points) // 140, states[i % len(states)]) for i in range(140)]


@pytest.mark.parametrize("choose", [a_dozen, a_hundred])
@pytest.mark.timeout(1800)
@pytest.mark.nightly_if("a_hundred")
def test_a_run_goes_on_from_whatever_state_it_was_left_in(recorded: Path, choose: Choose) -> None:
    lives = live_on(recorded, choose)
    assert [describe(life) for life in lives if life.faults] == []


def describe(life: Life) -> str:
    return f"{life.state} at {life.number}, before {life.operation}: {'; '.join(life.faults)}"
