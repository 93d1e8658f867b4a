"""Values of Excel and DuckDB that would change on their way are refused, and empty rows are rows."""

from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from dpmodels.errors import DataError
from dpmodels.reading import duckdb_tables
from dpmodels.reading.addresses import address_of
from dpmodels.reading.data_files import find_files
from dpmodels.reading.text_records import Malformed
from dpmodels.reading.workbook import _rows, read_sheet
from tasks.run.workbook_file import write_workbook
from tests.kit.errors import refused
from tests.kit.open_tables import workbook


def sheet(place: Path, column: str = "a") -> list[str | None]:
    (file,) = find_files(str(place))
    return [value for batch in read_sheet(file, [column], 2) for value in batch[column].to_pylist()]


def test_a_row_of_nothing_is_a_row_where_another_follows(tmp_path: Path) -> None:
    place = workbook(tmp_path / "c.xlsx", [["a", "b"], [1, 2], [None, None], [None, None], [3, 4], [None, None]])
    assert sheet(place) == ["1", None, None, "3"]


def test_no_more_cells_are_looked_at_than_a_row_has(tmp_path: Path) -> None:
    place = workbook(tmp_path / "c.xlsx", [["a", "b"], [1, 2], [None, None], [3]])
    with _rows(find_files(str(place))[0]) as rows:
        assert max(map(len, rows)) == 2
    with pytest.raises(Malformed):
        sheet(workbook(tmp_path / "d.xlsx", [["a", "b"], [1, 2, None, None, 5]]))


def test_a_span_of_time_says_no_unit_and_is_refused(tmp_path: Path) -> None:
    place = workbook(tmp_path / "c.xlsx", [["a"], [timedelta(seconds=90)]])
    with pytest.raises(Malformed, match="span of time"):
        sheet(place)


@pytest.mark.parametrize("text", ["_x0041_", "a_x005F_b", "plain _x00 text", "=1"])
def test_a_text_comes_back_as_it_was_written(tmp_path: Path, text: str) -> None:
    write_workbook("t", iter(pa.table({"a": [text]}).to_batches()), tmp_path / "c.xlsx", {})
    assert sheet(Path(f"{tmp_path}/c.xlsx#t")) == [text]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**60 + 1]),
        pa.array(["12345678901234567.89"]).cast(pa.decimal128(19, 2)),
        pa.array(["one\r\ntwo"]),
        pa.array(["\ufffe"]),
    ],
    ids=["whole", "decimal", "carriage return", "no letter"],
)
def test_a_value_that_a_cell_would_change_is_not_written(tmp_path: Path, values: pa.Array) -> None:
    with refused(DataError, "does not fit a cell"):
        write_workbook("t", iter(pa.table({"a": values}).to_batches()), tmp_path / "c.xlsx", {})


def test_a_number_of_fifteen_digits_is_written_whatever_its_size(tmp_path: Path) -> None:
    numbers = pa.array([123456789012345, 5_000_000_000_000_000_000])
    write_workbook("t", iter(pa.table({"a": numbers}).to_batches()), tmp_path / "c.xlsx", {})
    assert sheet(Path(f"{tmp_path}/c.xlsx#t")) == ["123456789012345", "5000000000000000000"]


@pytest.mark.parametrize(
    ("column", "fault"),
    [
        ("a uhugeint", "type UHUGEINT"),
        ("a timetz", "TIME WITH TIME ZONE"),
        ("a integer, b double generated always as (random())", "generated column"),
    ],
)
def test_a_column_of_duckdb_that_is_not_read_as_it_is_is_refused(tmp_path: Path, column: str, fault: str) -> None:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute(f"create table visits ({column})")
    (file,) = find_files(f"{tmp_path}/clinic.duckdb#visits")
    with refused(DataError, fault):
        duckdb_tables.types_of(file)


def test_rows_that_are_not_in_the_file_yet_are_not_read(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute("create table visits (a integer)")
    (tmp_path / "clinic.duckdb.wal").write_bytes(b"")
    (file,) = find_files(f"{tmp_path}/clinic.duckdb#visits")
    with refused(DataError, "CHECKPOINT"):
        duckdb_tables.types_of(file)


def test_a_schema_may_be_called_as_its_file(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute("create schema clinic; create table clinic.clinic.visits as select 7 as a")
    (file,) = find_files(f"{tmp_path}/clinic.duckdb#clinic.visits")
    assert [batch["a"].to_pylist() for batch in duckdb_tables.read(file, 8)] == [[7]]
    assert address_of(f"{tmp_path}/clinic.duckdb#clinic.visits").table == "clinic.visits"
