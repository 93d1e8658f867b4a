"""The answer of a database to a query, as a stream of batches; the connection is read and never written."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.codec.convert import families
from dpmodels.codec.text_values import cast_text
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.errors import DataError, InvalidArgument
from dpmodels.reading.pictures import Batches
from dpmodels.reading.statement import connection_of, statement_of
from dpmodels.urls import check_url

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, CursorResult

FILE_DATABASES = ("sqlite", "duckdb")
CATALOGS = {
    "sqlite": "select name, type from sqlite_master where type in ('table', 'view')",
    "duckdb": "select table_name, table_type from information_schema.tables",
}
"""What names the tables and views of a database in a file, and tells one from the other."""
COMPUTED = re.compile(r"\b(query|query_table)\s*\(", re.IGNORECASE)
"""Functions of DuckDB that read a table whose name is computed."""
NO_ANSWER = "the database refuses the query, or cannot give all of its rows; try it in the client of it"
DRIVERS = {"postgresql": "postgresql+psycopg", "sqlite": "sqlite+pysqlite"}
"""The driver that nacre's extras bring, where SQLAlchemy would take another."""


@dataclass(frozen=True)
class Query:
    """A query and the database that answers it; the password is the worker's, and is shown nowhere."""

    database: str
    text: str
    password: str = field(default="", repr=False)


def check_database(database: str, name: str = "data") -> "URL":
    """Read the URL of a database.

    Raises:
        InvalidArgument: it is none, or holds a password, which would be kept with the run.
    """
    kind = "the URL of a database, such as postgresql://user@host/clinic, since there is a query"
    instead = "put it into NACRE_DATABASE_PASSWORD, or where the database's own client takes it from"
    url = check_url(database, name, kind, instead)
    if url.get_backend_name() in FILE_DATABASES and url.query:
        rule = "hold nothing behind a question mark, which would open the file otherwise"
        raise InvalidArgument(name, "(hidden)", rule)
    return url


def check_query(database: str, text: str) -> str:
    """Return the statement that a database is sent; nothing is sent yet.

    Raises:
        InvalidArgument: the URL is none or holds a password, or the query may do more than read.
    """
    return statement_of(text, check_database(database).get_backend_name())


def settled_database(database: str) -> str:
    """Return a URL by which the database is found from any folder."""
    url = check_database(database)
    if url.get_backend_name() in FILE_DATABASES and url.database not in (None, "", ":memory:"):
        url = url.set(database=str(Path(str(url.database)).absolute()))
    return url.render_as_string(hide_password=True)


def read_query(
    query: Query,
    kinds: Mapping[str, pa.DataType],
    check: Callable[[Sequence[str]], None],
    batch_rows: int,
    form: TextForm | None = None,
) -> Batches:
    """Send a query, check the names of its columns, and read those that have a kind as they are asked for.

    ``form``: how text writes values of another kind.

    Raises:
        DataError: the database cannot be reached or refuses the query, or its columns do not pass the check.
    """
    batches = _batches(query, kinds, check, batch_rows, form)
    next(batches)
    return batches


def names_of_query(query: Query) -> list[str]:
    """Return the names of the columns of a query; no row is fetched."""
    with _answer(query, 1) as (names, _):
        return names


def tables_of(query: Query) -> tuple[list[str], list[Path]]:
    """Name the tables of a database in a file that a query reads, by its words, and the files that hold them.

    A query that names a view or no table, or computes a name, may read any. Of a server's database there is none.

    Raises:
        DataError: the database cannot be read.
    """
    url = check_database(query.database)
    if url.get_backend_name() not in FILE_DATABASES:
        return [], []
    with _answer(Query(query.database, CATALOGS[url.get_backend_name()]), 1024) as (_, chunks):
        kinds = {name: kind for rows in chunks for name, kind in rows}
    words = set(re.findall(r"\w+", query.text.lower()))
    named = [name for name in kinds if set(re.findall(r"\w+", name.lower())) <= words]
    whole = not named or any("view" in kinds[name].lower() for name in named) or COMPUTED.search(query.text)
    paths = [Path(f"{url.database}{suffix}") for suffix in ("", "-wal", ".wal")]
    return list(kinds) if whole else named, [path for path in paths if path.exists()]


def _batches(
    query: Query,
    kinds: Mapping[str, pa.DataType],
    check: Callable[[Sequence[str]], None],
    batch_rows: int,
    form: TextForm | None,
) -> Iterator[pa.RecordBatch]:
    """Yield an empty batch when the names were checked, then the rows."""
    with _answer(query, batch_rows) as (names, chunks):
        check(names)
        yield pa.RecordBatch.from_arrays([], [])
        met: dict[str, set[type]] = {}
        while rows := _next(chunks):
            columns = zip(names, zip(*rows, strict=True), strict=True)
            arrays = {name: _column(name, values, kinds[name], met, form) for name, values in columns if name in kinds}
            yield pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))


@contextmanager
def _answer(query: Query, batch_rows: int) -> Iterator[tuple[list[str], Iterator[Sequence[Any]]]]:
    """Lend the names and rows of an answer; what was begun in the database is rolled back."""
    statement = check_query(query.database, query.text)
    connection = _connect(query)
    if connection is None:
        raise DataError("", "the database cannot be reached: check its URL, its password, and that its driver is there")
    result = None
    try:
        if (result := _send(connection, statement, batch_rows)) is None:
            raise DataError("", NO_ANSWER)
        yield list(result.keys()), iter(result.partitions(batch_rows))
    finally:
        _close(connection, result)


def _connect(query: Query) -> "Connection | None":
    """Connect, or return None: what drivers raise quotes the URL, and what they log or note may, too."""
    url = check_database(query.database)
    if url.get_backend_name() in FILE_DATABASES and not Path(str(url.database)).is_file():
        return None  # which connecting would make
    try:
        return connection_of(url.set(drivername=DRIVERS.get(url.drivername, url.drivername)), query.password)
    except InvalidArgument:
        raise
    except Exception:
        return None


def _send(connection: "Connection", text: str, batch_rows: int) -> "CursorResult[Any] | None":
    """Send the query as it is written; None for a refusal, whose message quotes the query."""
    options = {"max_row_buffer": batch_rows, "no_parameters": True}  # so that a % stays what it is
    try:
        result = connection.execution_options(**options).exec_driver_sql(text)
    except Exception:
        return None
    return result if result.returns_rows else None


def _next(chunks: Iterator[Sequence[Any]]) -> Sequence[Any]:
    """Fetch the next rows; none at the end."""
    try:
        return next(chunks, ())
    except Exception:
        rows = None
    if rows is None:
        raise DataError("", NO_ANSWER)
    return rows


def _close(connection: "Connection", result: "CursorResult[Any] | None") -> None:
    """Take back whatever was begun; a connection that broke has nothing left to take back."""
    with suppress(Exception):
        if result is not None:
            result.close()
        connection.rollback()
    with suppress(Exception):
        connection.close()
        connection.engine.dispose()


def _column(
    name: str, values: Sequence[Any], kind: pa.DataType, met: dict[str, set[type]], form: TextForm | None = None
) -> pa.Array:
    """Lay the values of a column out as Arrow; text becomes what it is to be, as in a CSV file.

    Privacy: all that was met of a column is of one family, so neither one record nor where batches end decides how
        others are read. A NaN of a database is a number, as what is missing is NULL there.
    """
    met[name] = met.get(name, set()) | families(values) | {float for value in values if isinstance(value, float)}
    if met[name] == {UUID}:
        values = [None if value is None else str(value) for value in values]
    try:
        array = None if len(met[name]) > 1 else pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        array = None  # the message quotes the value
    if array is None:
        raise DataError(
            name, "holds values of several types, or of one that is none of a table's; cast it in the query"
        )
    if pa.types.is_string(array.type):
        return cast_text(array, kind, name, form)
    if kind == pa.bool_() and pa.types.is_integer(array.type):  # SQLite knows no booleans
        return array.cast(pa.bool_()) if pc.all(pc.is_in(array, pa.array([0, 1, None], array.type))).as_py() else array
    return array
