"""The benchmark convention: arguments, tables, the record, and what a child process took."""

import json
import platform
import sys
from pathlib import Path

import pytest

from benchmarks import common


def test_a_table_shows_words_counts_numbers_and_the_spread_of_seeds() -> None:
    table = common.Table("Adult", ["system", "rows", "AUROC", "F1"], digits=2)
    table.add("pearl", 1000, 0.9, [0.5, 0.6, 0.7])
    table.add("real", 0, [0.25], [])
    assert table.markdown().splitlines() == [
        "### Adult",
        "",
        "| system | rows | AUROC | F1 |",
        "| --- | --- | --- | --- |",
        "| pearl | 1000 | 0.90 | 0.60 ± 0.10 |",
        "| real | 0 | 0.25 | – |",
    ]


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells for the 2 columns of T"):
        common.Table("T", ["a", "b"]).add(1.0)


def test_the_report_and_the_record_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = common.parse("Doc.", argv=["--quick", "--json", str(tmp_path / "record.json")])
    table = common.Table("T", ["system", "score"])
    table.add("nacre", [0.1, 0.3])
    common.report("example", [table], seeds=[1, 2], args=args)
    printed = capsys.readouterr().out
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["benchmark"] == "example" and record["quick"] and record["seeds"] == [1, 2]
    assert record["tables"][0]["rows"] == [["nacre", [0.1, 0.3]]]
    assert "| nacre | 0.200 ± 0.141 |" in printed and "quick: not a result" in printed and "seeds 1, 2" in printed
    for fact in (record["date"][:10], record["commit"], record["machine"]["cpu"]):
        assert fact and fact in printed
    assert platform.node() not in printed + json.dumps(record)


def test_a_benchmark_may_add_arguments() -> None:
    args = common.parse("Doc.", lambda parser: parser.add_argument("--seeds", type=int, default=5), [])
    assert (args.seeds, args.quick, args.json) == (5, False, None)


def test_data_lie_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_DATA", str(tmp_path))
    assert common.data_dir() == tmp_path
    monkeypatch.setenv("NACRE_DATA", str(tmp_path / "absent"))
    with pytest.raises(SystemExit, match="set NACRE_DATA"):
        common.data_dir()


def test_a_child_is_timed_and_its_descendants_are_weighed() -> None:
    hog = "import time; block = b'x' * (100 * 2**20); time.sleep(0.5)"
    script = f"import subprocess, sys; print('hello'); {hog[:-15]}subprocess.run([sys.executable, '-c', {hog!r}])"
    small = common.measure([sys.executable, "-c", "import sys, time; time.sleep(0.3); sys.exit(3)"])
    large = common.measure([sys.executable, "-c", script])
    assert small.code == 3 and 0.3 <= small.seconds < 10 and 1 < small.peak_mib < 90
    assert large.code == 0 and large.output == "hello\n" and 200 < large.peak_mib < 300
