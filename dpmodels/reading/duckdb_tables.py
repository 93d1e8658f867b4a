"""One table of a DuckDB file, which is opened to be read, with no way to other files or to the network."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
TABLES = "select database_name, schema_name, table_name, sql from duckdb_tables() where not internal and not temporary"
WITHOUT_ARROW = {"UHUGEINT", "TIME WITH TIME ZONE"}
"""Types whose values change on their way."""
NOT_WHOLE = "{} has changes beside it, in a .wal file: close the program that writes it, or run CHECKPOINT there"
GENERATED = (
    "{} has a generated column, whose values may change or come of other rows; write its rows into a table of their own"
)


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
        DataError: there is no such table, or more than one, the file is elsewhere, or its values would not be read as
            they are.
    """
    if not isinstance(file.system, pafs.LocalFileSystem):
        raise DataError("", f"{file.uri} must be on this machine: DuckDB reads a file by itself")
    if Path(f"{file.path}.wal").exists():
        raise DataError("", NOT_WHOLE.format(file.uri))
    schema, _, name = file.table.rpartition(".")
    with duckdb.connect(file.path, read_only=True, config=CLOSED) as connection:
        tables = connection.execute(TABLES).fetchall()
        matches = [table for table in tables if name in ("", table[2]) and schema in ("", table[1])]
        if len(matches) != 1:
            raise DataError("", f"{file.uri} must name one table of the file, and no view: FILE.duckdb#TABLE")
        *parts, statement = matches[0]
        if "GENERATED ALWAYS AS" in statement.upper():
            raise DataError("", GENERATED.format(file.uri))
        rows = connection.sql(f"select * from {'.'.join(map(_quoted, parts))} {limit}")
        if changed := WITHOUT_ARROW & set(map(str, rows.types)):
            raise DataError(
                "", f"{file.uri} has a column of type {changed.pop()}, which cannot be read exactly; cast it"
            )
        yield rows


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
