"""A plan says what other bounds on the rows of a user cost, and they cost what it says."""

import json
from pathlib import Path

import pytest

import nacre
from flows.command_line import console
from flows.rows_of_users import HEADINGS
from tests.kit.support import run_cli

COLUMNS = "age: {type: integer, min: 0, max: 120}\n  ward: {type: categorical, values: [north, south]}"


def _schema(folder: Path, unit: str, further: str = "", keep: str = "drop") -> Path:
    """Write a schema of visits, whose rows are of patients."""
    path = folder / "visits.yaml"
    patient = f"patient: {{type: identifier, keep: {keep}}}"
    path.write_text(f"name: visits\nunit: {unit}\n{further}\ncolumns:\n  {patient}\n  {COLUMNS}\n")
    return path


def _plan(folder: Path, *of: str, method: str | None = None) -> "nacre.Planned":
    further = {} if method is None else {"method": method}
    return nacre.plan(_schema(folder, *of), epsilon=1, delta=1e-5, home=folder / "home", **further)


@pytest.mark.parametrize("method", ["nacre", "privbayes", "moments", "dp-merf"])
def test_another_bound_costs_what_the_plan_of_this_one_says(method: str, tmp_path: Path) -> None:
    prices = _plan(tmp_path, "{user: patient, max_rows: 4}", method=method).max_rows
    assert [one["max_rows"] for one in prices] == [1, 2, 4, 8]
    assert [one["planned"] for one in prices] == [False, False, True, False]
    for one in prices:
        facts = _plan(tmp_path, f"{{user: patient, max_rows: {one['max_rows']}}}", method=method).facts
        assert facts[f"noise_stddev of the {one['of']}"].split(";")[0] == f"{one['noise_stddev']:.4g}"
        assert one["relative"] == one["noise_stddev"] / prices[0]["noise_stddev"]


def test_a_row_of_one_user_costs_what_a_record_does(tmp_path: Path) -> None:
    (one, *_) = _plan(tmp_path, "{user: patient, max_rows: 3}").max_rows
    facts = _plan(tmp_path, "record").facts
    assert facts[f"noise_stddev of the {one['of']}"].startswith(f"{one['noise_stddev']:.4g}")


def test_nothing_is_said_where_no_bound_costs_anything(tmp_path: Path) -> None:
    assert _plan(tmp_path, "record").max_rows == [] and "max_rows" not in _plan(tmp_path, "record").facts
    of_one_row = _plan(tmp_path, "{user: patient, max_rows: 1}", "", "drop, unique: true")  # none has a second row
    assert of_one_row.max_rows == [] and "max_rows" not in of_one_row.facts
    planned = _plan(tmp_path, "{user: patient, max_rows: 3}", "users: {}", "regenerate")
    assert planned.max_rows == [] and "max_rows" not in planned.facts


def test_the_terminal_says_which_rows_are_left_out_and_what_users_forbids(tmp_path: Path) -> None:
    path = _schema(tmp_path, "{user: patient, max_rows: 3}")
    words = ["plan", tmp_path / "none.csv", "--schema", path, "--epsilon", 1, "--delta", 1e-5, "--home", tmp_path / "h"]
    (tmp_path / "none.csv").write_text("patient,age,ward\n")
    code, out, _ = run_cli(*words)
    lines = [line.removeprefix("max_rows: ") for line in out.splitlines() if line.startswith("max_rows: ")]
    assert code == 0 and lines[0] == " | ".join(HEADINGS)
    assert [line.split("|")[0].strip() for line in lines[1:4]] == ["1", "3", "6"]
    assert [line.endswith("(this plan)") for line in lines[1:4]] == [False, True, False]
    assert "first rows of each patient" in lines[4] and "`target`" in lines[5] and len(lines) == 6
    code, out, _ = run_cli(*words, "--json")
    assert [one["max_rows"] for one in json.loads(out)["max_rows"]] == [1, 3, 6]


@pytest.mark.parametrize("width", [80, 100])
def test_the_lines_of_the_table_stay_whole_at_a_terminal(
    width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(console, "console", console._Escaping(force_terminal=True, color_system=None))
    facts = _plan(tmp_path, "{user: patient, max_rows: 3}").facts
    console.print_facts("plan", facts)
    lines = capsys.readouterr().out.splitlines()
    for line in facts["max_rows"].split("\n")[:4]:
        assert f"max_rows: {line}" in lines and len(f"max_rows: {line}") <= width
    assert max(len(line) for line in lines if line.startswith("│")) <= width
