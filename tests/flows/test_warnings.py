"""What a session of work is warned of: once, where something can be done about it."""

from pathlib import Path

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
