"""One table of a DuckDB file, which is opened to be read, with no way to other files or to the network."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.fs as pafs

from dpmodels.errors import DataError
from dpmodels.reading.data_files import DataFile

CLOSED: dict[str, Any] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "lock_configuration": True,
}
TABLES = "select schema_name, table_name from duckdb_tables() where not internal and not temporary"


def types_of(file: DataFile) -> pa.Schema:
    """Return the names and types of the columns; no row is read."""
    with _selected(file, "limit 0") as answer:
        return pa.schema(answer.to_arrow_reader(1).schema)


def read(file: DataFile, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Read the rows, in the order in which the file holds them."""
    with _selected(file) as answer:
        yield from answer.to_arrow_reader(batch_rows)


@contextmanager
def _selected(file: DataFile, limit: str = "") -> Iterator[Any]:
    """Lend the rows of the table that is named, or of the only one there is; a view may tie rows, so it is none.

    Raises:
        DataError: there is no such table, or more than one, or the file is elsewhere.
    """
    if not isinstance(file.system, pafs.LocalFileSystem):
        raise DataError("", f"{file.uri} must be on this machine: DuckDB reads a file by itself")
    schema, _, name = file.table.rpartition(".")
    with duckdb.connect(file.path, read_only=True, config=CLOSED) as connection:
        tables = connection.execute(TABLES).fetchall()
        matches = [pair for pair in tables if name in ("", pair[1]) and schema in ("", pair[0])]
        if len(matches) != 1:
            raise DataError("", f"{file.uri} must name one table of the file, and no view: FILE.duckdb#TABLE")
        yield connection.sql(f"select * from {'.'.join(map(_quoted, matches[0]))} {limit}")


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
