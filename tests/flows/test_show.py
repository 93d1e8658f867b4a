"""What the command line prints beside its tables."""

import json
from pathlib import Path

import pytest

from flows.command_line.show import print_warnings


def test_what_the_report_warns_of_is_said_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = [{"name": "day"}, {"name": "amount", "warning": "83 % of the records lie in one cell."}]
    (tmp_path / "report.json").write_text(json.dumps({"columns": columns}))
    print_warnings(tmp_path / "report.json")
    printed = capsys.readouterr()
    assert printed.err == "warning: column amount: 83 % of the records lie in one cell.\n" and not printed.out
