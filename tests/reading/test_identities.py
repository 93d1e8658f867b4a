"""Rows are known whatever names lead to them: files of tables that a library reads, and tables within a file."""

from collections.abc import Callable
from pathlib import Path
from shutil import copy

import duckdb
import pytest

from dpmodels.errors import Unsuitable
from tasks.kinds.each_document import refuse_overlap
from tests.kit.errors import refused
from tests.kit.inputs import TABLE
from tests.kit.open_tables import delta, iceberg, marked, place_of, vector, workbook


def scanned_delta(path: Path) -> tuple[str, str]:
    visits = delta(path / "visits")
    marked(visits, vector(0))
    return str(visits), f"{visits}@v0"


def scanned_iceberg(path: Path) -> tuple[str, str]:
    table = iceberg(path, TABLE.rename_columns({"age": "years"}))
    with table.update_schema() as change:
        change.rename_column("years", "age")
    metadata = place_of(table)
    return metadata, copy(metadata, metadata.replace(".metadata.json", "-copy.metadata.json"))


def book(path: Path) -> str:
    return str(workbook(path / "c.xlsx", p=[["id"], [1]], u=[["id"], [2]]))


def database(path: Path) -> str:
    with duckdb.connect(str(path / "c.duckdb")) as connection:
        connection.execute("create table p as select 1 id")
        connection.execute("create table u as select 2 id")
    return f"{path}/c.duckdb"


SAME: dict[str, Callable[[Path], tuple[str, str]]] = {
    "a scanned Delta table": scanned_delta,
    "a scanned Iceberg table": scanned_iceberg,
    "a sheet": lambda path: (f"{book(path)}#p",) * 2,
    "a sheet, and the only one": lambda path: (f"{book(path)}#p", f"{path}/c.xlsx"),
    "a table": lambda path: (f"{database(path)}#p",) * 2,
    "a table, and the only one": lambda path: (database(path), f"{path}/c.duckdb#p"),
    "a table, and its schema": lambda path: (f"{database(path)}#main.p", f"{path}/c.duckdb#P"),
}


@pytest.mark.parametrize("places", SAME.values(), ids=SAME)
def test_candidates_that_are_the_documents_are_refused(
    tmp_path: Path, places: Callable[[Path], tuple[str, str]]
) -> None:
    documents, candidates = places(tmp_path)
    with refused(Unsuitable, "holds documents that are to be protected"):
        refuse_overlap(documents, candidates)


@pytest.mark.parametrize("write", [book, database])
def test_other_tables_of_the_file_are_other_documents(tmp_path: Path, write: Callable[[Path], str]) -> None:
    file = write(tmp_path)
    refuse_overlap(f"{file}#p", f"{file}#u")
