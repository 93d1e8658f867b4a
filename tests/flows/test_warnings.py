"""What a session of work is warned of: once, where something can be done about it."""

from pathlib import Path

import pytest

from tests.kit.support import run_cli

DATES = """\
name: stays
unit: record
columns:
  start: {type: datetime, min: 2020-01-01, max: 2022-12-31, resolution: day}
  end: {type: datetime, min: 2020-01-01, max: 2022-12-31, resolution: day}
constraints: [start <= end]
"""


def test_of_rules_between_dates_lint_and_run_alone_say_how_far_they_go(tmp_path: Path) -> None:
    schema, data, home = tmp_path / "stays.yaml", tmp_path / "stays.csv", tmp_path / "home"
    schema.write_text(DATES)
    data.write_text("start,end\n" + "".join(f"2021-01-0{i % 9 + 1},2021-02-0{i % 8 + 1}\n" for i in range(300)))
    budget = ("--schema", schema, "--epsilon", 1, "--delta", 1e-5, "--home", home)
    sentence = "`start <= end` keeps the order of two dates, but not how far apart"
    assert sentence in run_cli("schema", "lint", schema)[1]
    assert sentence not in "".join(map(str, run_cli("plan", data, *budget)))
    code, out, err = run_cli("synthesize", data, *budget, "--out", tmp_path / "out", "--no-prefect")
    assert code == 0 and (out + err).count(sentence) == 1
    (run,) = (folder.name for folder in (home / "released").iterdir())
    assert sentence not in "".join(map(str, run_cli("report", run, "--home", home)))
    assert sentence in (tmp_path / "out" / "report.json").read_text()


def test_a_run_says_in_short_what_the_lint_says_at_length(tmp_path: Path) -> None:
    schema, data = tmp_path / "stays.yaml", tmp_path / "stays.csv"
    schema.write_text(DATES.replace("columns:", "columns:\n  patient: {type: identifier}"))
    data.write_text("patient,start,end\na,2021-01-02,2021-01-01\n")
    budget = ("--schema", schema, "--epsilon", 1, "--delta", 1e-5, "--home", tmp_path / "home")
    code, _, err = run_cli("synthesize", data, *budget, "--out", tmp_path / "out", "--no-prefect")
    assert code == 1 and "error: " in err
    warned = [line for line in err.splitlines() if "nacre schema lint" in line]
    assert [line.partition(":")[0] for line in warned] == ["warning", "warning"]
    assert all(len(line.split()) < 28 for line in warned), warned
    out = run_cli("schema", "lint", schema)[1]
    assert "`unit: {user: patient, max_rows: N}` hides all rows" in out and "days_between(start, end)" in out


@pytest.mark.parametrize(
    ("epsilon", "rows", "words"),
    [
        (0.001, "", "unless there are known to be many more, spend more or leave out columns; if there are"),
        (0.001, "rows: {min: 1000}\n", "spend more or leave out columns; if there are"),
        (0.001, "rows: {min: 1000, max: 5000}\n", "by the schema (rows: max) there are at most 5,000 rows"),
        (0.001, "rows: {min: 1000000}\n", ""),
        (1, "", ""),
    ],
)
def test_an_epsilon_that_says_next_to_nothing_is_warned_of(
    tmp_path: Path, epsilon: float, rows: str, words: str
) -> None:
    schema, data = tmp_path / "stays.yaml", tmp_path / "stays.csv"
    schema.write_text(DATES + rows)
    data.write_text("start,end\n2021-01-01,2021-01-02\n")
    out = run_cli(
        *("plan", data, "--schema", schema, "--epsilon", epsilon, "--delta", 1e-5, "--home", tmp_path / "home")
    )[1]
    assert "stands out: only with more than" in out and ("spend more" in out) == bool(words) and words in out


def test_a_run_says_it_before_its_charge(tmp_path: Path) -> None:
    schema, data = tmp_path / "stays.yaml", tmp_path / "stays.csv"
    schema.write_text(DATES)
    data.write_text("start,end\nno date,2021-01-02\n")
    words = ("--epsilon", 0.001, "--delta", 1e-5, "--home", tmp_path / "home", "--out", tmp_path / "out")
    code, _, err = run_cli("synthesize", data, "--schema", schema, *words, "--no-prefect")
    assert code == 1 and "nothing was charged" in err and "warning: noise amounts to about " in err, err
