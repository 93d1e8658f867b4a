"""Parquet files that lie in ways that Arrow's writer cannot: written here byte by byte."""

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.gate.made_files import read_batches
from dpmodels.limits import MOST_COLUMNS
from dpmodels.parquet_pages import check_file
from tests.kit.errors import refused

Field = tuple[int, int, bytes]
WHOLE, LONG, TEXT, LIST, STRUCT = 5, 6, 8, 9, 12
X = Schema.model_validate({"name": "x", "columns": {"x": {"type": "integer", "min": 0, "max": 9}}})


def varint(number: int) -> bytes:
    """Write a number of any length, without a sign."""
    more = number >> 7
    return bytes([number & 127 | 128]) + varint(more) if more else bytes([number])


def whole(name: int, number: int, kind: int = WHOLE) -> Field:
    return name, kind, varint(number << 1)


def text(name: int, content: bytes) -> Field:
    return name, TEXT, varint(len(content)) + content


def many(name: int, kind: int, items: list[bytes]) -> Field:
    return name, LIST, bytes([0xF0 | kind]) + varint(len(items)) + b"".join(items)


def record(*fields: Field) -> bytes:
    """Write a struct, each of whose fields names itself in full."""
    return b"".join(bytes([kind]) + varint(name << 1) + content for name, kind, content in fields) + b"\0"


def chunk(name: str, rows: int, size: int, at: int = 4) -> bytes:
    """Write the place of a column's values in a row group; they have no dictionary."""
    path = many(3, TEXT, [varint(len(name)) + name.encode()])
    encodings = many(2, WHOLE, [varint(0)])
    sizes = [whole(number, size, LONG) for number in (6, 7)]
    facts = record(whole(1, 2), encodings, path, whole(4, 0), whole(5, rows, LONG), *sizes, whole(9, at, LONG))
    return record(whole(2, at, LONG), (3, STRUCT, facts))


def group(names: list[str], rows: int, size: int, at: int = 4) -> bytes:
    chunks = [chunk(name, rows, size, at) for name in names]
    return record(many(1, STRUCT, chunks), whole(2, size, LONG), whole(3, rows, LONG))


def write(path: Path, names: list[str], rows: int, body: bytes, groups: list[bytes]) -> Path:
    """Write a table of whole numbers."""
    leaves = [record(whole(1, 2), whole(3, 0), text(4, name.encode())) for name in names]
    root = record(text(4, b"schema"), whole(5, len(names)))
    foot = record(whole(1, 1), many(2, STRUCT, [root, *leaves]), whole(3, rows, LONG), many(4, STRUCT, groups))
    path.write_bytes(b"PAR1" + body + foot + struct.pack("<I", len(foot)) + b"PAR1")
    return path


def page(rows: int, *more: Field) -> bytes:
    """Write a page of zeros; what its header says ``more`` comes last."""
    facts = record(whole(1, rows), whole(2, 0), whole(3, 3), whole(4, 3))
    return record(whole(1, 0), whole(2, 8 * rows), whole(3, 8 * rows), (5, STRUCT, facts), *more) + bytes(8 * rows)


def rows_of(path: Path) -> int:
    return sum(map(len, read_batches(path, 10, X)))


def test_a_file_that_is_written_here_is_read(tmp_path: Path) -> None:
    body = page(10)
    groups = [group(["x"], 10, len(body)), group(["x"], 10, len(body), 4 + len(body))]
    assert rows_of(write(tmp_path / "a.parquet", ["x"], 20, body + body, groups)) == 20


@pytest.mark.parametrize("name", [2**16 + 2, 64, 2])
def test_a_field_that_arrow_takes_for_another_is_refused(tmp_path: Path, name: int) -> None:
    """Arrow keeps sixteen bits of its number, and the last of two of one number."""
    body = page(10, whole(name, 80))
    path = write(tmp_path / "a.parquet", ["x"], 10, body, [group(["x"], 10, len(body))])
    with refused(DataError, "rows of such a table take", column=""):
        rows_of(path)


def test_rows_that_share_their_pages_are_refused(tmp_path: Path) -> None:
    body = page(10)
    path = write(tmp_path / "a.parquet", ["x"], 20, body, [group(["x"], 10, len(body))] * 2)
    with refused(DataError, "rows of such a table take", column=""):
        rows_of(path)


def test_columns_are_held_to_the_contract_before_a_page_is_read(tmp_path: Path) -> None:
    """No name that the contract lacks is shown."""
    for names, column, says in ((["x", "secret"], "", "1 column"), (["x", "x"], "x", "more than once")):
        path = write(tmp_path / "a.parquet", names, 10, b"no page", [group(names, 10, 7)])
        with refused(DataError, says, column=column) as refusal:
            rows_of(path)
        assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        pytest.param([str(number) for number in range(MOST_COLUMNS + 1)], 0, id="columns"),
        pytest.param(["x", "x"], 0, id="one name twice"),
        pytest.param(["x"] * (MOST_COLUMNS * 100), 0, id="a long footer"),
        pytest.param(["x"], 5000, id="row groups"),
    ],
)
def test_a_footer_of_more_than_a_table_has_is_refused(tmp_path: Path, names: list[str], groups: int) -> None:
    empty = record(many(1, STRUCT, [record(whole(2, 4, LONG))]), whole(2, 0, LONG), whole(3, 0, LONG))
    path = write(tmp_path / "a.parquet", names, 0, b"", [empty] * groups)
    with pa.OSFile(str(path)) as source, pytest.raises(ValueError, match=r"^$"):
        check_file(source)


def test_a_categorical_column_of_more_values_than_rows_is_read(tmp_path: Path) -> None:
    """As pandas writes one, with all of its categories."""
    values = [f"c{number:03d}" for number in range(300)]
    schema = Schema.model_validate({"name": "c", "columns": {"g": {"type": "categorical", "values": values}}})
    column = pd.Categorical.from_codes(np.arange(20), values)
    pd.DataFrame({"g": column}).to_parquet(tmp_path / "a.parquet", row_group_size=7)
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups == 3
    assert [one for batch in read_batches(tmp_path / "a.parquet", 9, schema) for one in batch["g"].to_pylist()] == (
        values[:20]
    )


READ = """
import resource, sys
from pathlib import Path
from dpmodels.authoring.lint import parse
from dpmodels.errors import NacreError
from dpmodels.releases.release import read_release
from dpmodels.gate.made_files import read_batches
contract, _ = parse("{name: t, columns: {a: {type: integer, min: 0, max: 9}, c: {type: categorical, values: [x]}}}")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for read in (lambda path: list(read_batches(path, 2**16, contract)), read_release):
    try:
        read(Path(sys.argv[1]))
    except NacreError:
        print("refused")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
LETTERS, ONCE = pa.array(["z" * 2**23]), pa.array(np.zeros(60, np.int32))


def inside(path: Path, kind: pa.DataType | None = None) -> None:
    """Have a long text stand in each row by its place in a dictionary, inside of a struct or at the top."""
    column = pa.DictionaryArray.from_arrays(ONCE, LETTERS)
    if kind is None or pa.types.is_struct(kind):
        column = pa.StructArray.from_arrays([column], ["s"])
    table, how = pa.table({"a": np.ones(60, np.int64), "c": column}), {"compression": "zstd", "write_statistics": False}
    with pq.ParquetWriter(path, table.schema, store_schema=False, dictionary_pagesize_limit=2**30, **how) as writer:
        writer.write_table(table)
        if kind is not None:  # which Arrow takes from its own schema alone
            pq.write_table(pa.schema([("a", pa.int64()), ("c", kind)]).empty_table(), path.with_suffix(".kind"))
            writer.add_key_value_metadata(pq.read_metadata(path.with_suffix(".kind")).metadata)


def listed(path: Path, columns: bytes, groups: int = 1) -> None:
    """Have a row group say something of its columns."""
    empty = record((1, LIST, columns), whole(2, 0, LONG), whole(3, 0, LONG))
    write(path, ["a"], 0, b"", [empty] * groups)


SMALL: dict[str, Callable[[Path], None]] = {
    "struct": inside,
    "struct of large text": lambda path: inside(path, pa.struct({"s": pa.large_string()})),
    "json": lambda path: inside(path, pa.json_(pa.string())),
    "opaque": lambda path: inside(path, pa.opaque(pa.string(), "x", "y")),
    "columns that are not there": lambda path: listed(path, bytes([0xF0 | STRUCT]) + varint(999_999)),
    "columns of nothing": lambda path: listed(path, bytes([0xF0 | STRUCT]) + varint(900_000) + bytes(900_000), 2),
}


@pytest.mark.processes
@pytest.mark.parametrize("kind", SMALL)
def test_what_a_file_says_of_itself_takes_little_memory(tmp_path: Path, kind: str) -> None:
    SMALL[kind](path := tmp_path / "a.parquet")
    words = [sys.executable, "-c", READ, path]
    done = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)
    *refused, kib = done.stdout.splitlines() or ["nothing"]
    assert refused == ["refused"] * 2 and int(kib) < 256 * 2**10, (refused, kib, done.stderr)


def test_the_types_of_parquet_decide_and_not_those_of_arrow(tmp_path: Path) -> None:
    """Arrow's own schema can be gigabytes in a few kilobytes, since its parts may be shared."""
    schema = Schema.model_validate({"name": "c", "columns": {"g": {"type": "categorical", "values": ["1", "2"]}}})
    for kind in (pa.json_(pa.string()), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        pq.write_table(pa.table({"g": pa.array(["1", "2"], kind)}), tmp_path / "a.parquet")
        assert pq.read_schema(tmp_path / "a.parquet").field("g").type != pa.string()
        (batch,) = read_batches(tmp_path / "a.parquet", 9, schema)
        assert batch.equals(pa.record_batch({"g": ["1", "2"]})) and batch["g"].type == pa.string()
