"""What the command line prints beside its tables."""

import json
from pathlib import Path

import pytest
import typer
from rich.console import Console
from rich.table import Table

from flows.command_line import console, summary
from flows.command_line.app import arranged
from flows.command_line.checks import show_gate
from flows.command_line.console import print_facts, print_table
from flows.command_line.show import warned
from tasks.run.store import Run
from tasks.stages.validate import check_hand_off
from tests.kit.support import run_cli, synthesize_words, write_clinic


def test_what_the_report_warns_of_is_said_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = [{"name": "day"}, {"name": "amount", "warning": "83 % of the records lie in one cell."}]
    (tmp_path / "report.json").write_text(json.dumps({"columns": columns}))
    with warned(tmp_path / "report.json"):
        pass
    printed = capsys.readouterr()
    assert printed.err == "warning: column amount: 83 % of the records lie in one cell.\n" and not printed.out


def test_a_table_of_a_thousand_columns_prints_the_worst_ten_and_how_many_more(tmp_path, capsys) -> None:
    facts = {"expected_distance": 0.1, "released": [], "warning": "is flat."}
    columns = [{"name": f"c{n}", "distance_to_release": n / 1000, **facts} for n in range(498)]
    (tmp_path / "report.json").write_text(json.dumps({"columns": columns, "cautions": ["A rule was bent."]}))
    with pytest.raises(typer.Exit), warned(tmp_path / "report.json", fail_on_checks=True):
        pass
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 12
    assert lines[0] == "warning: column c497: is flat." and lines[9] == "warning: column c488: is flat."
    assert lines[10:] == [
        "warning: 488 more columns have a warning, which the report shows beside each",
        "warning: A rule was bent.",
    ]


def test_what_is_piped_is_cut_nowhere(capsys):
    path = "/data/" + "very-long-folder/" * 40
    print_facts("facts", {"report": path, "charge": "one\ntwo"})
    assert capsys.readouterr().out == f"report: {path}\ncharge: one\ncharge: two\n"
    table = Table("where")
    table.add_row(path)
    print_table(table)
    assert path in capsys.readouterr().out


def test_the_end_of_a_run_says_what_came_of_it_and_keeps_the_times_of_private_rows_off_a_pipe(tmp_path, monkeypatch):
    write_clinic(tmp_path)
    code, out, err = run_cli(*synthesize_words(tmp_path))
    assert code == 0, err
    said = dict(line.split(": ", 1) for line in out.splitlines())
    assert said["spent"] == "epsilon 1 at delta 1e-5, unit record"
    assert said["checks"].startswith("all ") and "fit" in said
    assert said["worst columns"].startswith("sick ") and said["worst columns"].endswith("of 4 more nothing is known")
    assert f"--rows 1000 --out more.parquet --home {tmp_path / 'home'}" in out
    assert f"next: open {tmp_path / 'out' / 'report.html'}" in out and f"next: nacre verify {tmp_path / 'out'}" in out
    stages = [word.split()[0] for word in said["seconds"].split(", ")]
    assert stages == ["train", "sample", "validate", "publish"]

    monkeypatch.setattr(summary, "console", Console(force_terminal=True, width=200))
    run = Run.find(tmp_path / "home", said["run"])
    shown = summary.outcome(run)["seconds"]
    assert [word.split()[0] for word in shown.split(", ")] == ["ingest", "sanitize", *stages[:3], "evaluate", "publish"]
    (run.sensitive / "seconds.json").unlink()
    assert "seconds" not in summary.outcome(run)


@pytest.mark.parametrize(
    ("words", "arranged_words"),
    [
        (["runs", "-q", "--home", "h"], ["-q", "runs", "--home", "h"]),
        (["--json", "runs"], ["runs", "--json"]),
        (["-v", "ledger", "show", "--quiet"], ["--quiet", "-v", "ledger", "show"]),
        (["--json"], ["--json"]),
        (["sample", "--", "-q"], ["sample", "--", "-q"]),
        ([], []),
    ],
)
def test_what_every_command_takes_may_stand_before_or_behind_it(words: list[str], arranged_words: list[str]) -> None:
    assert arranged(words) == arranged_words


def test_text_without_what_stands_behind_it_is_answered_with_what_to_write() -> None:
    for words in (("export", "a", "b.csv", "--text"), ("schema", "init", "a.csv", "--text", "--json")):
        code, out, err = run_cli(*words)
        assert (code, out) == (1, "") and err.endswith(
            'behind it: --text \'{decimal: ",", date_format: "%d.%m.%Y"}\'\n'
        )


def test_json_and_quiet_are_heard_on_both_sides_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "home" / "control").mkdir(parents=True)
    for words in (("--json", "runs"), ("runs", "--json", "-q"), ("-q", "runs", "--json")):
        assert run_cli(*words, "--home", tmp_path / "home")[:2] == (0, "[]\n")


def test_epsilon_is_one_word_for_all_commands(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    words = ["--epsilon" if word == "--target-epsilon" else word for word in synthesize_words(tmp_path)]
    assert run_cli("plan", *words[1:])[1] == run_cli("plan", *synthesize_words(tmp_path)[1:])[1] != ""


@pytest.mark.parametrize("shown", ["facts", "table"])
def test_paths_and_commands_are_copied_whole_from_a_narrow_terminal(capsys, monkeypatch, shown: str) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(console, "console", console._Escaping(force_terminal=True, color_system=None))
    whole = {
        "hand-off": "/srv/nacre/hand-offs/a-data-set-of-a-long-name/2026-11-23/report.html",
        "next": "nacre resume 20261123-101500-abcdef --home /srv/nacre/home --ledger postgresql://nacre@ledger.example/nacre",
        "to the store": "s3://bucket-of-a-clinic/synthetic/visits/of-the-last-quarter/2026/report.html",
    }
    if shown == "facts":
        console.print_facts("hand-off", {**whole, "run": "short", "said": "many words " * 20})
    else:
        table = Table("what", "where")
        for each in whole.items():
            table.add_row(*each)
        console.print_table(table)
    out = capsys.readouterr().out
    for text in whole.values():
        assert text in out
    assert shown == "table" or max(len(line) for line in out.splitlines() if "many" in line or "short" in line) <= 60


NAME = "sick_at_the_time_of_the_visit_to_the_ward"
RULED = f"""name: visits
constraints: [when age < 18 then not {NAME}]
columns:
  age: {{type: integer, min: 0, max: 120}}
  {NAME}: {{type: boolean}}
  tens: {{type: derived, formula: age // 10}}
"""


@pytest.mark.parametrize("width", [80, 100])
def test_the_rules_of_a_table_fit_a_terminal_and_no_name_is_cut(
    width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(console, "console", console._Escaping(force_terminal=True, color_system=None))
    (tmp_path / "visits.yaml").write_text(RULED)
    (tmp_path / "visits.csv").write_text(f"age,{NAME},tens\n3,true,0\n30,true,3\n")
    show_gate(check_hand_off(str(tmp_path / "visits.csv"), tmp_path / "visits.yaml"))
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert max(map(len, lines)) <= width and not any("…" in line for line in lines)
    assert ["tens", "must be `age // 10`", "0 of 2", "holds"] in rows  # which is no path
    assert rows[0][0] == "each row" and rows[0][3] == "broken"
    assert NAME in "".join(about for about, *_ in rows)
