"""Files with semicolons, decimal commas and dates such as 31.12.2021, by the statements that docs/inputs.md shows."""

import re
from pathlib import Path

import pytest

import nacre
from tests.kit.support import run_cli

INPUTS = Path(__file__).parents[2] / "docs" / "inputs.md"
GERMAN = """visit;admitted;age;fee;ward
0012;31.12.2021;30;4.503,83;Süd
0013;01.02.2022;31;1.234.503,80;
0014;;32;;Ost
0015;05.02.2022;33;0,00;Ost
"""
SCHEMA = """name: visits
unit: record
columns:
  visit: {type: identifier, unique: true}
  admitted: {type: datetime, min: 2021-01-01, max: 2023-12-31, resolution: day, nullable: true}
  age: {type: integer, min: 0, max: 99}
  fee: {type: number, min: 0, max: 2000000, round: 2, zero_inflated: true, nullable: true}
  ward: {type: categorical, values: [Süd, Ost], nullable: true}
"""


def test_a_german_file_is_read_and_written_by_the_statements_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    read, written = re.findall(r"```sql\n(.*?)```", INPUTS.read_text(), re.DOTALL)
    Path("visits.csv").write_text(GERMAN)
    Path("visits.yaml").write_text(SCHEMA)
    duckdb.sql(read)
    assert nacre.validate("plain.csv", "visits.yaml")["success"].all()
    Path("hand-off/synthetic").mkdir(parents=True)
    duckdb.sql("COPY (FROM read_csv('plain.csv', types = {'visit': 'VARCHAR'})) TO 'hand-off/synthetic/part.parquet'")
    duckdb.sql(written)
    assert Path("back.csv").read_text() == GERMAN.replace(";4.503", ";4503").replace("1.234.503", "1234503")
    code, _, err = run_cli("validate", "visits.csv", "--schema", "visits.yaml")
    assert code != 0 and "4.503" not in err


def test_validate_refuses_a_bound_that_may_mean_thousands_as_the_lint_does(tmp_path: Path) -> None:
    (tmp_path / "visits.yaml").write_text(SCHEMA.replace("2000000", "900.000"))
    (tmp_path / "plain.csv").write_text("visit,admitted,age,fee,ward\n1,2021-12-31,30,4503.83,Ost\n")
    for words in (["schema", "lint"], ["validate", tmp_path / "plain.csv", "--schema"]):
        code, out, err = run_cli(*words, tmp_path / "visits.yaml")
        assert code == 1 and "columns.fee.max: is not clear: 900.000 may mean 900 or 900000" in out + err
