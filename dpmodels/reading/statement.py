"""The one statement that a database is asked: it may read and nothing else, and its answer has rows of several records.

The text holds no value of the data, yet it is an argument of a run, and whoever may choose it must not be able to make
the database, or this machine, do anything. So a statement is refused by its words, and is then sent where nothing can
be written (``only_reading``).
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmodels.errors import InvalidArgument

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection

NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}")
BEGINS = re.compile(r"(\s|\(|--[^\n]*\n|/\*.*?\*/)*(select|with|values|table|from)\b", re.IGNORECASE | re.DOTALL)
WRITES = re.compile(
    r"\b(into|insert|update|delete|merge|replace\s+into|drop|alter|create|truncate|grant|revoke|call|execute?|copy|attach"
    r"|load|load_file|load_extension|install|export|import|pragma|handler|lock)\b",
    re.IGNORECASE,
)
TIES = {
    "over (": r"\bover\s*\(|\bover\s+\w",
    "group by": r"\bgroup\s+by\b",
    "distinct": r"\bdistinct\b",
    "limit": r"\b(limit|offset|top|fetch\s+(first|next))\b",
    "join": r"\b(join|lateral)\b",
    "union": r"\b(union|except|intersect)\b",
    "recursive": r"\brecursive\b",
    "a second select": r"\bselect\b.*\bselect\b",
    "a subquery": r"[^\s(]\s*\(\s*(select|from|table|with|summarize|describe|show)\b",
    "values": r"\bvalues\b",
    "having": r"\b(having|qualify)\b",
    "a sample": r"\b(tablesample|using\s+sample)\b",
    "pivot": r"\b(un)?pivot\b",
    "rows made of one": r"\b(unnest|explode|flatten|generate_series|generate_subscripts|range|regexp_split_to_table|"
    r"string_split_to_table|json_each|json_tree|json_array_elements\w*|jsonb?_\w*(each|elements)\w*)\s*\(",
    "an aggregate": r"\b(count\w*|\w*sum|sum\w*|total|f?avg|(geo\w*)?mean|min|max|\w+_by|median|mad|mode|std(dev\w*)?|"
    r"var(iance|_pop|_samp)?|kurtosis\w*|skewness|entropy|corr|\w+_agg|reservoir_quantile|"
    r"covar_\w+|regr_\w+|quantile\w*|percentile\w*|approx_\w+|string_agg|array_agg|group_concat|listagg|list|histogram|first|last|"
    r"any_value|arg_(min|max)|bool_(and|or)|bit_(and|or|xor)|json\w*_agg|json_group_\w+|product|every|rank)\s*\(",
}
"""Words by which a row of an answer comes of several rows, gives way to one, or is one of several of a row.

``min`` and ``max`` of several arguments are warned of too, where they are no aggregates: by its words alone no one can
tell.
"""
UNREAD = re.compile(r"'[^']*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""Text and comments in a statement."""
SEVERAL = re.compile(
    r"\bfrom\b(?:(?!\b(select|where|group|order|limit|having|window|qualify|fetch|offset|for)\b).)*,",
    re.IGNORECASE | re.DOTALL,
)
"""A comma among the tables of a statement without what stands in parentheses."""
RULE = (
    "be the name of a table or view, or one statement without a semicolon that begins with select, with, values or "
    "table and only reads; put anything else into a view of the database"
)
READS_ALONE = ("sqlite", "duckdb", "postgresql")
"""Databases that are asked over a connection that cannot write, whatever the statement says."""


def statement_of(text: str, backend: str) -> str:
    """Return the statement that is sent; the name of a table or view stands for all of its rows.

    Raises:
        InvalidArgument: it is none, or may do more than read.
    """
    whole = text.strip()
    if NAME.fullmatch(whole):
        return f"select * from {whole}"
    whole = whole.removesuffix(";").rstrip()
    if ";" in whole or not BEGINS.match(whole) or (backend not in READS_ALONE and WRITES.search(whole)):
        raise InvalidArgument("query", "(hidden)", RULE)
    return whole


def tied(text: str) -> list[str]:
    """Name what in a query may make one row of its answer depend on several records; by its words alone."""
    flat = text = UNREAD.sub(" ", text)
    while (outer := re.sub(r"\([^()]*\)", " ", flat)) != flat:
        flat = outer
    names = [words for words, pattern in TIES.items() if re.search(pattern, text, re.IGNORECASE | re.DOTALL)]
    return names + ["several tables"] * bool(SEVERAL.search(flat))


def connection_of(url: "URL", password: str) -> "Connection":
    """Connect, and have the database refuse whatever is no reading, where it can.

    Raises:
        Exception: of any driver, whose message may quote the URL.
    """
    from sqlalchemy import create_engine

    backend = url.get_backend_name()
    prepare: Callable[[Connection], None] = PREPARE.get(backend, lambda _: None)
    engine = create_engine(url.set(password=password or None), hide_parameters=True, **_options(backend, url))
    connection = engine.connect()
    try:
        prepare(connection)
    except Exception:
        connection.close()
        engine.dispose()
        raise
    return connection.execution_options(stream_results=True)


def _options(backend: str, url: "URL") -> Mapping[str, Any]:
    if backend == "sqlite":
        import sqlite3

        uri = f"{Path(str(url.database)).absolute().as_uri()}?mode=ro"
        return {"creator": lambda: sqlite3.connect(uri, uri=True, check_same_thread=False)}
    if backend == "duckdb":
        closed = {"enable_external_access": False, "lock_configuration": True}
        return {"connect_args": {"read_only": True, "config": closed}}
    return {}


def _authorize(connection: "Connection") -> None:
    """Let SQLite read tables and compute, and nothing else."""
    import sqlite3

    allowed = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_TRANSACTION}

    def decide(action: int, _: str | None, name: str | None, *__: str | None) -> int:
        fine = action in allowed or (action == sqlite3.SQLITE_FUNCTION and (name or "").lower() != "load_extension")
        return sqlite3.SQLITE_OK if fine else sqlite3.SQLITE_DENY

    driver: Any = connection.connection.driver_connection
    driver.set_authorizer(decide)


def _read_only(connection: "Connection") -> None:
    """Begin a transaction that cannot write; after its first query it cannot be made one that can.

    Such a transaction still calls functions that reach files and other servers, if the role may. So a role that may is
    refused.

    Raises:
        InvalidArgument: the role is a superuser, or may read or write files of the server or run programs there.
    """
    connection.exec_driver_sql("set transaction read only")
    roles = ("pg_read_server_files", "pg_write_server_files", "pg_execute_server_program")
    member = " or ".join(f"pg_has_role('{role}', 'member')" for role in roles)
    if connection.exec_driver_sql(f"select {member}").scalar():
        rule = "name a role that only reads tables: this one may reach the server's files, which no query needs"
        raise InvalidArgument("data", "(hidden)", rule)


PREPARE: Mapping[str, Callable[["Connection"], None]] = {"sqlite": _authorize, "postgresql": _read_only}
