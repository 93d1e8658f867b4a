"""What the command line prints beside its tables."""

import json
from pathlib import Path

import pytest
from rich.table import Table

from flows.command_line.console import print_facts, print_table
from flows.command_line.show import print_warnings


def test_what_the_report_warns_of_is_said_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = [{"name": "day"}, {"name": "amount", "warning": "83 % of the records lie in one cell."}]
    (tmp_path / "report.json").write_text(json.dumps({"columns": columns}))
    print_warnings(tmp_path / "report.json")
    printed = capsys.readouterr()
    assert printed.err == "warning: column amount: 83 % of the records lie in one cell.\n" and not printed.out


def test_what_is_piped_is_cut_nowhere(capsys):
    path = "/data/" + "very-long-folder/" * 40
    print_facts("facts", {"report": path, "charge": "one\ntwo"})
    assert capsys.readouterr().out == f"report: {path}\ncharge: one\ncharge: two\n"
    table = Table("where")
    table.add_row(path)
    print_table(table)
    assert path in capsys.readouterr().out
