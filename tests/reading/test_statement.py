"""What a query may do: read. Whatever else it asks for leaves no trace in the database or on the disk."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import postgres
from dpmodels.errors import DataError, InvalidArgument
from dpmodels.reading.database import Query, names_of_query
from dpmodels.reading.statement import statement_of, tied
from tasks.run.source import Source
from tests.kit.errors import refused

WRITES = {
    "sqlite": [
        "delete from visits", "drop table visits", "attach '{f}/new.db' as n", "vacuum into '{f}/new.db'",
        "pragma user_version = 7", "select load_extension('{f}/x')", "with x as (select 1) delete from visits",
        "select * from pragma_user_version", "select 1; drop table visits", "create temp table x as select 1",
    ],
    "duckdb": [
        "copy visits to '{f}/new.csv'", "delete from visits", "delete from visits; commit", "attach '{f}/new.db'",
        "with x as (select 1) insert into visits values (2)", "select * from '{f}/raw.csv'",
        "export database '{f}/new'", "select * from read_csv('{f}/raw.csv')", "select * from glob('{f}/*')",
        "set enable_external_access = true",
        "from read_text('{f}/raw.csv')", "install httpfs", "pragma database_list", "select 1; drop table visits",
    ],
    "postgresql": [
        "delete from visits", "with x as (delete from visits returning a) select * from x", "commit",
        "copy visits to program 'touch {f}/new.csv'", "select * into more from visits",
        "select 1; drop table visits", "set transaction read write",
        "select set_config('transaction_read_only', 'off', false), lo_create(0)", "select nextval('numbers')",
        "select a from visits for update", "begin", "table visits; commit",
    ],
}  # fmt: skip


def sqlite(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "c.db")) as made, made:
        made.execute("create table visits as select 1 as a")
    return f"sqlite:///{folder / 'c.db'}"


def duckdb(folder: Path) -> str:
    pytest.importorskip("duckdb_engine", reason="needs pip install duckdb-engine")
    with pytest.importorskip("duckdb").connect(str(folder / "c.duckdb")) as made:
        made.execute("create table visits as select 1 as a")
    return f"duckdb:///{folder / 'c.duckdb'}"


@pytest.fixture(scope="module")
def server():
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    psycopg = pytest.importorskip("psycopg")
    with postgres.server() as url:
        database = postgres.new_database(url, "clinic")
        with psycopg.connect(database, autocommit=True) as made:
            made.execute("create table visits as select 1 as a")
            made.execute("create sequence numbers")
            made.execute("create role reader login")
            made.execute("grant select on visits to reader")
        yield database.replace("postgres@", "reader@")


@pytest.mark.parametrize(("kind", "query"), [(kind, query) for kind, queries in WRITES.items() for query in queries])
def test_a_query_that_does_more_than_read_does_nothing(tmp_path: Path, request, kind: str, query: str) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text("a\n7\n")
    database = (
        {"sqlite": sqlite, "duckdb": duckdb}[kind](tmp_path)
        if kind != "postgresql"
        else request.getfixturevalue("server")
    )
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises((InvalidArgument, DataError)) as caught:
        list(names_of_query(Query(database, query.format(f=tmp_path))))
        rows_of(database, query.format(f=tmp_path))
    assert "\n" not in str(caught.value) and "7" not in str(caught.value)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert rows_of(database, "select a from visits") == [(1,)] == rows_of(database, "visits")


def test_a_role_that_reaches_the_files_of_a_server_is_refused(server: str) -> None:
    """A transaction that only reads calls functions all the same, and those of a superuser write files."""
    psycopg = pytest.importorskip("psycopg")
    for role in ("postgres", "filer"):
        if role == "filer":
            with psycopg.connect(server.replace("reader@", "postgres@"), autocommit=True) as made:
                made.execute("create role filer login in role pg_write_server_files")
        with refused(InvalidArgument, "a role that only reads tables", name="data"):
            rows_of(server.replace("reader@", f"{role}@"), "select lo_export(1, '/tmp/never')")


def rows_of(database: str, text: str) -> list[tuple[object, ...]]:
    """Return all rows of an answer."""
    from dpmodels.reading.database import _answer

    with _answer(Query(database, text), 10) as (_, chunks):
        return [tuple(row) for chunk in chunks for row in chunk]


@pytest.mark.parametrize("text", ["select a from t", "SELECT a", "(select 1)", "with x as (select 1) select * from x",
                                  "values (1)", "-- all\nselect 1", "/* a */ select 1;", "table visits"])  # fmt: skip
def test_what_reads_is_sent_as_it_is_written(text: str) -> None:
    assert statement_of(text, "postgresql") == text.removesuffix(";")


@pytest.mark.parametrize("text", ["select 1 into outfile '/tmp/x'", "select load_file('/etc/passwd')", "",
                                  "call p()", "with x as (select 1) delete from t", "explain select 1",
                                  "select * from t for update"])  # fmt: skip
def test_of_a_database_that_has_no_such_connection_the_words_are_refused(text: str) -> None:
    with refused(InvalidArgument, name="query"):
        statement_of(text, "mysql")


def test_a_file_database_is_opened_by_its_path_alone(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument):
        names_of_query(Query(sqlite(tmp_path) + "?mode=rwc&uri=true", "visits"))


def test_words_that_tie_rows_together_are_named() -> None:
    assert tied("select avg(x) over (partition by y) from t") == ["over (", "an aggregate"]
    assert tied("select distinct a from t group  by a limit 3") == ["group by", "distinct", "limit"]
    assert tied("select a, limited, over_all from visits where joined = 1") == []
    assert tied("(select a from visits where (b = 1 or c in (1, 2)))") == []
    summaries = (
        "max_by(a, b)",
        "mad(a)",
        "kurtosis(a)",
        "count_if(a)",
        "count_star()",
        "fsum(a)",
        "entropy(a)",
        "geomean(a)",
    )
    for text in (
        "from t where a > all (table cut)",
        "from (summarize t)",
        "from t where a in (from u)",
        *(f"from t having {each} > 1" for each in summaries),
        *(f"from t select {each}" for each in summaries),
    ):
        assert tied(text), text


@pytest.mark.parametrize(
    "text",
    [
        "select max(age), 'x' as ward from visits",
        "select a.age, b.ward from visits a, visits b",
        "select age from visits a, (values (1), (2)) b",
        "select age, (select 1) from visits",
        "from visits using sample 10",
        "pivot visits on ward",
        "select unnest([age, age]) age from visits",
        "select age from visits, generate_series(1, 100)",
        "with x as (select a, b from t) from x, y",
        "select string_agg(ward, ',') ward from visits",
    ],
)
def test_a_query_whose_rows_are_not_those_of_one_table_is_warned_of(text: str) -> None:
    assert tied(text)


@pytest.mark.parametrize(
    "text",
    [
        "select age, case when x in (1, 2) then 1 else 2 end c from visits where ward in ('a', 'from b, c')",
        "select coalesce(age, 0), cast(x as int) from clinic.visits as v where v.x between 1 and 2 order by a, b",
        "select extract(year from seen), ward from visits -- from a, b",
    ],
)
def test_a_query_of_one_table_row_by_row_is_not_warned_of(text: str) -> None:
    assert tied(text) == []


def test_a_plan_warns_of_a_query_that_ties_rows_together(tmp_path: Path, caplog) -> None:
    database = sqlite(tmp_path)
    Source(database, "visits").check()
    assert not caplog.records
    Source(database, "select distinct a from visits limit 3").check()
    assert [record.getMessage().count("`") for record in caplog.records] == [4]
