"""From a file that nobody has described to a finished schema, by the commands that the draft itself proposes."""

import random
import shlex

import pytest

from tests.kit.support import run_cli

SECRET = "Zwettl-8412"


@pytest.fixture
def visits(tmp_path, monkeypatch):
    """A folder with a text file of 3,000 visits, where commands run as they are printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NACRE_HOME", "state")
    chance = random.Random(3)
    rows = [f"{i},{chance.choice(['north', 'south'])},{chance.randint(20, 80)}" for i in range(2999)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,ward,points", *rows, f"2999,{SECRET},50", ""]))
    return tmp_path


def test_the_commands_that_a_draft_proposes_finish_the_schema(visits):
    words = ("schema", "init", "visits.csv", "--discover-all", "--types", "points=integer", "--out", "visits.yaml")
    code, out, err = run_cli(*words)
    assert (code, out) == (0, "") and "no TODO is left" in err
    assert "columns left to discovery: 2; by --epsilon 0.1 --delta 1e-6 a value of one alone needs about 2" in err
    proposed = [shlex.split(line)[1:] for line in err.splitlines() if line.startswith("nacre ")]
    assert [one[:2] for one in proposed] == [["ledger", "open"], ["schema", "discover"]]
    for one in proposed:
        code, _, err = run_cli(*one)
        assert code == 0, err
    finished = visits / proposed[-1][-1]
    assert finished.name == "visits-discovered.yaml" and run_cli("schema", "lint", finished)[0] == 0
    assert '"north", "south"' in finished.read_text() and SECRET not in finished.read_text() + err
    code, _, err = run_cli(*words)
    assert code == 1 and "visits.yaml already exists and is not overwritten" in err and "charged" not in err


def test_a_draft_without_a_mark_proposes_no_discovery(visits):
    code, out, err = run_cli("schema", "init", "visits.csv")
    assert code == 0 and "columns with a TODO left: 3" in err and "discover" not in err and "discover" in out
    err = run_cli("schema", "init", "visits.csv", "--discover-all")[2]
    assert "columns with a TODO left: 1;" in err and "--schema DRAFT.yaml" in err and "--out visits.yaml" in err
