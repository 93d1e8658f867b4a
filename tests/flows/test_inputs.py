"""What a table may be given as: every input is read to the same encoded rows, or refused in one sentence for free."""

import bz2
import gzip
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest

from dpmodels.errors import NacreError
from tests.kit.inputs import (
    KEY,
    SECRET,
    TABLE,
    as_arrow,
    as_csv,
    as_json,
    folder,
    hive,
    ingested,
    parquet,
    same,
)
from tests.kit.support import charges

Source = tuple[object, str]
Write = Callable[[Path], object]


def two(folder: Path) -> Path:
    """Write a folder of two files below another folder, and what others leave beside such files."""
    as_csv(folder / "a" / "1.csv", ";", TABLE.slice(0, 100))
    as_csv(folder / "b" / "2.csv.gz", "|", TABLE.slice(100))
    for name in ("_SUCCESS", ".1.csv.crc", "_temporary/3.csv"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(SECRET)
    return folder


def database(path: Path, columns: str = "*") -> Source:
    """Write the rows into a database of SQLite, which knows neither booleans nor moments."""
    rows = [tuple(row.values()) for row in TABLE.to_pylist()]
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute(f"create table visits ({', '.join(TABLE.column_names)})")
        opened.executemany(f"insert into visits values ({', '.join('?' * TABLE.num_columns)})", rows)
    return f"sqlite:///{path}", f"select {columns} from visits where ward like '%t%' or ward not like '%t%'"


def cut(path: Path, share: float = 0.5) -> Path:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    return path


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def csv_with(path: Path, change: Callable[[bytes], bytes], delimiter: str = ",") -> Path:
    """Write the rows as CSV, with its bytes changed."""
    path.write_bytes(change(as_csv(path.with_name("whole.csv"), delimiter).read_bytes()))
    path.with_name("whole.csv").unlink()
    return path


def lines_with(path: Path, change: Callable[[bytes], bytes]) -> Path:
    """Write the rows as JSON lines, with their bytes changed."""
    path.write_bytes(change(as_json(path).read_bytes()))
    return path


def holding(name: str, values: pa.Array) -> pa.Table:
    """Return the rows with other values in a column."""
    return TABLE.set_column(TABLE.schema.get_field_index(name), name, values)


def link(path: Path, target: Path) -> Path:
    path.symlink_to(target)
    return path


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def beside(write: Callable[[Path], object]) -> Write:
    """Write a folder of the rows and of one file more."""

    def both(f: Path) -> Path:
        write(parquet(f / "t" / "0.parquet").with_name("1.parquet"))
        return f / "t"

    return both


def last(value: object) -> Callable[[dict[str, object]], dict[str, object]]:
    """Give the last rows another age, of whatever kind."""
    return lambda row: {**row, "age": value} if row["patient"] == TABLE["patient"][-1].as_py() else row


def late(row: dict[str, object]) -> dict[str, object]:
    """Give the last rows a key that the first ones have not."""
    return {**row, SECRET: 1} if row["patient"] == TABLE["patient"][-1].as_py() else row


# formats without anything odd are in tests/kinds, for all kinds of data
WORKS: dict[str, Write] = {
    "csv with semicolons": lambda f: as_csv(f / "t.csv", ";"),
    "csv with carets": lambda f: as_csv(f / "t.csv", "^"),
    "csv with control characters": lambda f: as_csv(f / "t.csv", "\x01"),
    "csv with a byte order mark": lambda f: as_csv(f / "t.csv", ";", before=b"\xef\xbb\xbf"),
    "csv, packed": lambda f: as_csv(f / "t.csv.gz", "|"),
    "csv, packed by bzip2": lambda f: csv_with(f / "t.csv.bz2", bz2.compress),
    "csv, packed by zstandard": lambda f: csv_with(f / "t.csv.zst", lambda c: pa.compress(c, "zstd", asbytes=True)),
    "csv, packed line by line": lambda f: csv_with(
        f / "t.csv.gz", lambda content: b"".join(map(gzip.compress, content.splitlines(keepends=True)))
    ),
    "csv with the ends of lines of Windows": lambda f: csv_with(f / "t.csv", lambda c: c.replace(b"\n", b"\r\n")),
    "a folder of csv with different delimiters": lambda f: two(f / "t"),
    "json lines with numbers as text": lambda f: as_json(f / "t.ndjson", lambda row: {**row, "age": str(row["age"])}),
    "json lines without some keys": lambda f: as_json(
        f / "t.jsonl", lambda row: {key: value for key, value in row.items() if value is not None}
    ),
    "json lines with a key that comes late": lambda f: as_json(f / "t.jsonl", late),
    "hive folders": lambda f: hive(f / "t", "ward"),
    "hive folders of numbers and truths": lambda f: hive(f / "t", "ward", "smoker"),
    "hive folders of csv": lambda f: hive(f / "t", "ward", form="csv"),
    "a pattern": lambda f: two(f / "t") / "*" / "*.csv*",
    "a pattern of folders": lambda f: f"{hive(f / 't', 'ward')}/**/*.parquet",
    "a pattern over hive folders": lambda f: f"{hive(f / 't', 'ward')}/ward=*",
    "a link to a file": lambda f: link(f / "l.parquet", parquet(f / "t.parquet")),
    "a link to a folder": lambda f: link(f / "l", parquet(f / "t" / "0.parquet").parent),
    "a file's URI": lambda f: f"file://{parquet(f / 't.parquet')}",
    "sqlite": lambda f: database(f / "clinic.db"),
    "a table of sqlite": lambda f: (database(f / "clinic.db")[0], "visits"),
}
REFUSED: dict[str, tuple[Write, str]] = {
    "nothing": (lambda f: f / "t.parquet", "does not exist"),
    "a pattern of nothing": (lambda f: f / "other*.parquet", "does not exist or holds no files"),
    "an empty folder": (lambda f: (f / "t").mkdir() or f / "t", "holds no files"),
    "an empty file": (lambda f: text(f / "t.csv", ""), "the file is empty"),
    "a header alone": (lambda f: csv_with(f / "t.csv", lambda c: c.partition(b"\n")[0] + b"\n"), "holds no rows"),
    "parquet without rows": (lambda f: parquet(f / "t.parquet", TABLE.slice(0, 0)), "holds no rows"),
    "an empty file among others": (beside(lambda path: text(path, "")), "holds an empty file"),
    "a damaged file among others": (beside(lambda path: cut(parquet(path))), "the file is damaged"),
    "a file of other columns among others": (
        beside(lambda path: parquet(path, TABLE.drop_columns("age"))),
        "column age: is in the schema but not in the data",
    ),
    "a folder of what others left": (lambda f: text(folder(f / "t") / "_SUCCESS", SECRET).parent, "holds no files"),
    "a folder without data": (
        lambda f: text(folder(f / "t") / "a.txt", SECRET).parent,
        "a folder of files of one kind",
    ),
    "a folder named like a file": (lambda f: folder(f / "t.csv"), "does not exist or holds no files"),
    "a link to nothing": (lambda f: link(f / "l.parquet", f / "none"), "does not exist"),
    "a link to nothing among others": (
        beside(lambda path: link(path, path.parent / "none")),
        "a link that leads nowhere",
    ),
    "a folder that holds itself": (beside(lambda path: link(path, path.parent)), "by a link"),
    "a file twice": (
        beside(lambda path: link(path, path.parent / "0.parquet")),
        "holds the same file twice, by a link",
    ),
    "a pipe": (lambda f: pipe(f / "t.csv"), "is neither a file nor a folder"),
    "a pipe among others": (beside(pipe), "something else that is no file"),
    "a device": (lambda f: "/dev/zero", "is neither a file nor a folder"),
    "a workbook": (lambda f: text(f / "t.xls", SECRET), "must be a file of one of these kinds"),
    "text called a workbook": (
        lambda f: text(f / "t.xlsx", SECRET),
        "it is damaged, locked by a password, or no Excel",
    ),
    "no suffix": (lambda f: text(f / "t", SECRET), "must be a file of one of these kinds"),
    "packed parquet": (lambda f: parquet(f / "t.parquet").rename(f / "t.parquet.gz"), "must be a file of one of"),
    "two kinds": (
        lambda f: parquet(f / "t" / "1.parquet").parent and as_csv(f / "t" / "2.csv").parent,
        "a folder of files of one kind",
    ),
    "a Delta table": (
        lambda f: (
            parquet(f / "t" / "1.parquet")
            and text(parquet(f / "t" / "_delta_log" / "c.parquet").with_suffix(".json"), SECRET).parents[1]
        ),
        "cannot be read as a table",
    ),
    "parquet, cut": (lambda f: cut(parquet(f / "t.parquet")), "the file is damaged"),
    "arrow, cut": (lambda f: cut(as_arrow(f / "t.arrow")), "the file is damaged"),
    "csv, packed and cut": (lambda f: cut(as_csv(f / "t.csv.gz"), 0.9), "the file is damaged"),
    "csv called parquet": (lambda f: as_csv(f / "t.csv").rename(f / "t.parquet"), "not what its name says"),
    "parquet called csv": (
        lambda f: parquet(f / "t.parquet").rename(f / "t.csv"),
        "the first line was read as one name, and the schema has 6 columns: its delimiter",
    ),
    "packed, and more behind it": (
        lambda f: csv_with(f / "t.csv.gz", lambda c: gzip.compress(c) + SECRET.encode()),
        "the file is damaged",
    ),
    "packed, and empty": (
        lambda f: csv_with(f / "t.csv.gz", lambda _: gzip.compress(b"")),
        "no column of this schema is in",
    ),
    "an index of pandas": (
        lambda f: csv_with(f / "t.csv", lambda c: b"," + c.replace(b"\n", b"\n7,")[:-2]),
        "an index that pandas wrote (write the file with index=False), lines end with a delimiter",
    ),
    "an index of pandas that was read again": (
        lambda f: csv_with(f / "t.csv", lambda c: b"Unnamed: 0," + c.replace(b"\n", b"\n7,")[:-2]),
        "an index that pandas wrote (write the file with index=False)",
    ),
    "a name in other letters": (
        lambda f: csv_with(f / "t.csv", lambda c: c.replace(b"ward", b" Ward", 1)),
        "column ward: is in the data in other letters",
    ),
    "an index of pandas in parquet": (
        lambda f: parquet(f / "t.parquet", TABLE.append_column("__index_level_0__", pa.array(range(len(TABLE))))),
        "write the file with index=False",
    ),
    "a delimiter of two characters": (
        lambda f: csv_with(f / "t.csv", lambda c: c.replace(b",", b"||")),
        "every second name of the first line is empty: its delimiter has two characters",
    ),
    "a name twice": (
        lambda f: csv_with(f / "t.csv", lambda c: b"\n".join(line + b"," + line for line in c.splitlines())),
        "is in the data more than once",
    ),
    "a name twice in parquet": (
        lambda f: parquet(f / "t.parquet", pa.table([*TABLE.columns, TABLE["age"]], [*TABLE.column_names, "age"])),
        "column age: is in the data more than once",
    ),
    "lists": (
        lambda f: parquet(f / "t.parquet", holding("age", pa.array([[1]] * 300))),
        "a column of its own, or leave",
    ),
    "structures": (
        lambda f: parquet(f / "t.parquet", holding("age", pa.array([{SECRET: 1}] * 300))),
        "it holds values made of parts; give every part a column of its own",
    ),
    "bytes": (lambda f: parquet(f / "t.parquet", holding("ward", TABLE["ward"].cast(pa.binary()))), "it holds binary"),
    "a zone that does not exist": (
        lambda f: parquet(f / "t.parquet", holding("age", pa.array([0] * 300, pa.timestamp("s", "Mars/Base")))),
        "it holds times with a zone",
    ),
    "a decimal comma": (
        lambda f: csv_with(f / "t.csv", lambda c: c.replace(b".", b","), ";"),
        "as the schema says: 1.204,50 is read with `text: {decimal",
    ),
    "a value of another encoding": (
        lambda f: csv_with(f / "t.csv", lambda c: c.replace(b"north", b"n\xf6rth")),
        "is not in UTF-8",
    ),
    "a mark in the middle of a field": (
        lambda f: text(as_csv(f / "t.csv"), (f / "t.csv").read_text() + f'1,2,{SECRET}"s,4,true,no\n'),
        "if quotation marks mean nothing in it, name it .tsv",
    ),
    "lines of an old Mac": (lambda f: csv_with(f / "t.csv", lambda c: c.replace(b"\n", b"\r")), "end in LF or CRLF"),
    "a quote that never ends": (
        lambda f: csv_with(f / "t.csv", lambda c: c + f'1,2,"{SECRET}'.encode()),
        "a quotation mark may stand only around a whole field",
    ),
    "a first line without an end": (lambda f: text(f / "t.csv", SECRET * 100_000), "longer than 1 MiB"),
    "JSON lines, cut": (lambda f: cut(as_json(f / "t.jsonl")), "one JSON object in each line"),
    "JSON lines, packed and cut": (lambda f: cut(as_json(f / "t.jsonl.gz")), "the file is damaged"),
    "JSON of mixed types": (
        lambda f: as_json(f / "t.jsonl", last(SECRET)),
        "another kind of value than the first line (give a frame that pandas.to_numeric mends)",
    ),
    "a list among JSON lines": (
        lambda f: lines_with(f / "t.jsonl", lambda c: c + f'\n["{SECRET}"]\n'.encode()),
        "one JSON object in each line",
    ),
    "a key twice": (
        lambda f: lines_with(f / "t.jsonl", lambda c: c.replace(b'"ward"', f'"age": "{SECRET}", "ward"'.encode())),
        "the file is damaged",
    ),
    "text called packed": (lambda f: text(f / "t.csv.gz", f"{SECRET}\n"), "the file is damaged or not what"),
    "no header": (
        lambda f: text(f / "t.csv", f"1;{SECRET}\n2;{SECRET}\n"),
        "the first row) must hold the names of the sch",
    ),
    "a column too many": (
        lambda f: as_csv(f / "t.csv", ";", TABLE.append_column(SECRET, TABLE["age"])),
        "the data has 1 column that the schema lacks",
    ),
    "text in a number": (
        lambda f: as_csv(f / "t.csv", table=TABLE.set_column(1, "age", pa.array([SECRET] * 300))),
        "column age: must hold numbers in every row",
    ),
    "text of another encoding": (
        lambda f: (f / "t.csv").write_bytes("päts,age\nä,1\n".encode("utf-16")) and f / "t.csv",
        "is in UTF-16; save it as UTF-8",
    ),
    "a JSON array": (lambda f: text(f / "t.json", json.dumps([{SECRET: 1}])), "is a JSON array, which is not read"),
    "a long JSON array": (lambda f: text(f / "t.json", json.dumps([{SECRET: 1}] * 100_000)), "a JSON array, which is"),
    "a JSON array over lines": (lambda f: text(f / "t.json", f'\n[\n{{"{SECRET}": 1}}\n]'), "a JSON array, which is"),
    "JSON over several lines": (lambda f: text(f / "t.json", f'{{\n"patient": "{SECRET}"\n}}'), "damaged or not what"),
    "a row of fewer fields": (lambda f: text(as_csv(f / "t.csv"), (f / "t.csv").read_text() + "1,2\n"), "fewer fields"),
    "nested JSON": (lambda f: as_json(f / "t.jsonl", lambda row: {**row, "age": {SECRET: 1}}), "`type: identifier`"),
    "nested JSON that the schema lacks": (
        lambda f: as_json(f / "t.jsonl", lambda row: {**row, SECRET: {SECRET: 1}}),
        "lists the names, which may be values and are not printed here; nested objects and lists are refused",
    ),
    "a hive column that the schema lacks": (
        lambda f: hive(f / "t", SECRET, table=TABLE.append_column(SECRET, TABLE["ward"])),
        "the data has 1 column that the schema lacks",
    ),
    "a hive column that the files have too": (
        lambda f: parquet(f / "t" / "ward=north" / "0.parquet").parents[1],
        "column ward: is in the data more than once",
    ),
    "hive folders of different columns": (
        lambda f: hive(f / "t", "ward") and parquet(f / "t" / "smoker=true" / "0.parquet").parents[1],
        "must name the same columns in the folders of all files",
    ),
    "a hive value that the schema lacks": (
        lambda f: parquet(f / "t" / f"ward={SECRET}" / "0.parquet", TABLE.drop_columns("ward")).parents[1],
        "column ward",
    ),
    "a key in the URI": (lambda f: f"s3://{KEY}:{KEY}@bucket/t.parquet", "hold no user, password, key or signature"),
    "a signed URI": (
        lambda f: f"https://host/t.parquet?X-Amz-Signature={KEY}",
        "credentials come from the environment",
    ),
    "a token for a user": (lambda f: f"https://{KEY}@host/t.parquet", "hold no user, password, key or signature"),
    "an unknown scheme": (lambda f: "ftp://host/t.parquet", "a URI of s3, gs"),
    "a database without a query": (lambda f: "postgresql://host/clinic", "or a database with a query"),
    "a password in a database's URL": (lambda f: (f"postgresql://me:{KEY}@host/d", "select 1"), "hold no password"),
    "a password behind the URL of a database": (
        lambda f: (f"mssql+pyodbc:///?odbc_connect=PWD%3D{KEY}", "select 1"),
        "hold no password",
    ),
    "a query of no database": (lambda f: (parquet(f / "t.parquet"), "select 1"), "be the URL of a database"),
    "a database that is not there": (lambda f: (f"sqlite:///{f}/none.db", "select 1"), "cannot be reached"),
    "a database without its driver": (lambda f: ("oracle://host/d", "select 1"), "cannot be reached"),
    "a query that is none": (
        lambda f: (database(f / "c.db")[0], f"select '{SECRET}' from nowhere"),
        "the database refuses the query",
    ),
    "a query without rows": (lambda f: (database(f / "c.db")[0], "select * from visits where 1 = 0"), "holds no rows"),
    "a query of two statements": (
        lambda f: (database(f / "c.db")[0], "select * from visits; drop table visits"),
        "one statement without a semicolon",
    ),
    "a query with a name twice": (lambda f: (database(f / "c.db")[0], "select *, age from visits"), "more than once"),
    "a database that is none": (
        lambda f: (f"sqlite:///{text(f / 'c.db', SECRET)}", "select * from visits"),
        "refuses the query",
    ),
    "a query of other columns": (lambda f: database(f / "c.db", "age, ward"), "column patient: is in the schema but"),
    "a query of values that do not fit": (
        lambda f: database(f / "c.db", f"patient, '{SECRET}' as age, ward, dose, smoker, sick"),
        "column age: must hold numbers in every row",
    ),
    "a query of mixed types": (
        lambda f: database(f / "c.db", f"patient, iif(age > 50, '{SECRET}', age) as age, ward, dose, smoker, sick"),
        "column age: holds values of several types",
    ),
    "a query of bytes beside text": (
        lambda f: database(f / "c.db", "patient, age, iif(age > 50, x'00', ward) as ward, dose, smoker, sick"),
        "column ward: holds values of several types",
    ),
}


@pytest.mark.parametrize("case", WORKS)
def test_an_input_that_works(tmp_path, case):
    same(ingested(tmp_path, WORKS[case](tmp_path)))


@pytest.mark.parametrize("case", REFUSED)
def test_an_input_that_is_refused(tmp_path, case, capfd):
    write, sentence = REFUSED[case]
    with pytest.raises(NacreError) as caught:
        ingested(tmp_path, write(tmp_path))
    message = "".join([str(caught.value), *getattr(caught.value, "__notes__", []), *capfd.readouterr()])
    assert sentence in message and "\n" not in message
    assert SECRET not in message and KEY not in message
    ledger = tmp_path / "home" / "ledger.sqlite"
    assert not ledger.exists() or charges(tmp_path / "home") == []
