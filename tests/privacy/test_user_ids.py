"""A user is one user, however files type the column that names them."""

from decimal import Decimal
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.errors import DataError
from dpmodels.reading.load import load_parts
from tests.kit.errors import refused
from tests.kit.every_kind import make

SCHEMA = make("name: v\nunit: {user: who, max_rows: 2}\ncolumns:\n  who: {type: identifier}\n  n: {type: boolean}\n")
TEXT = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "dictionary of text": pa.dictionary(pa.int8(), pa.string()),
}
WHOLE = {
    "int8": pa.int8(),
    "int64": pa.int64(),
    "uint16": pa.uint16(),
    "uint64": pa.uint64(),
    "dictionary of int64": pa.dictionary(pa.int8(), pa.int64()),
}
NEITHER = {
    "binary": pa.array([b"7", b"7"]),
    "double": pa.array([7.0, 7.0]),
    "minus zero": pa.array([0.0, -0.0]),
    "nan": pa.array([float("nan")] * 2),
    "decimal": pa.array([Decimal(7)] * 2),
    "boolean": pa.array([True, True]),
    "timestamp": pa.array([7, 7], pa.timestamp("s")),
    "date": pa.array([7, 7], pa.date32()),
    "dictionary of bytes": pa.array([b"7", b"7"]).dictionary_encode(),
    "list": pa.array([[7], [7]]),
}


def whose(kind: str, rows: int = 2) -> pa.Array:
    """Write the user 7 as files of this kind do."""
    if kind in NEITHER:
        return NEITHER[kind]
    value, target = ("7", TEXT[kind]) if kind in TEXT else (7, WHOLE[kind])
    return pa.array([value] * rows, target)


def kept(folder: Path, *columns: pa.Array) -> int:
    """Write a file for each column of ids, and count the rows that are read."""
    for index, column in enumerate(columns):
        pq.write_table(pa.table({"who": column, "n": [True] * len(column)}), folder / f"{index}.parquet")
    (part,) = load_parts(folder, SCHEMA, 3)
    return sum(batch.num_rows for batch in part.reveal())


@pytest.mark.parametrize(("one", "two"), list(product([*TEXT, *WHOLE, *NEITHER], repeat=2)))
def test_one_user_in_two_files_is_one_user_or_the_files_are_refused(tmp_path: Path, one: str, two: str):
    alike = any(one in kinds and two in kinds for kinds in (TEXT, WHOLE))
    if alike:
        assert kept(tmp_path, whose(one), whose(two)) == 2
        return
    with refused(DataError, r"must hold text or|holds text in one file", column="who") as told:
        kept(tmp_path, whose(one), whose(two))
    assert "7" not in str(told.value)


def test_the_reported_case_six_rows_of_one_user(tmp_path: Path):
    with refused(DataError, "in one file and whole numbers in another", column="who"):
        kept(tmp_path, whose("int64"), whose("string"), whose("string"))
    with refused(DataError, "must hold text or whole numbers", column="who"):
        kept(tmp_path, whose("int64"), whose("binary"), whose("double"))


def test_large_unsigned_and_negative_numbers_are_different_users(tmp_path: Path):
    assert kept(tmp_path, pa.array([2**64 - 1] * 3, pa.uint64()), pa.array([-1] * 3, pa.int64())) == 4


@pytest.mark.parametrize("other", ["007", "7.0", "７", "A"])
def test_text_is_compared_as_text(tmp_path: Path, other: str):
    assert kept(tmp_path, pa.array(["7"] * 3), pa.array([other] * 3)) == 4


@pytest.mark.parametrize(
    "other",
    [
        " 7",
        "7 ",
        "7\n",
        "\u00a07",
        "7\u3000",
        "Ame\u0301lie",
        "\u212b",
        "7\u200b",
        "\ufeff7",
        "7\u00ad",
        "\u202e7",
        "7\x00",
        "7\x08",
        *(f"7{chr(code)}7" for code in (0x34F, 0x17B4, 0x180B, 0x2800, 0xFFA0, 0xE0100, 0x2065, 0xFFF0, 0x1D159)),
        *(f"7{chr(code)}7" for code in (0xE0FFF, 0xA0, 0x2003, 0xFFFC, 0x2028)),
    ],
)
def test_an_id_with_another_spelling_is_refused(tmp_path: Path, other: str):
    with refused(DataError, "Unicode's composed form", column="who") as told:
        kept(tmp_path, pa.array(["7"] * 3), pa.array(["b", other]))
    assert other not in str(told.value)
    assert kept(tmp_path, pa.array(["Am\u00e9lie", "\u00c5 b"] * 3), pa.array(["Am\u00e9lie"])) == 4


def test_an_id_that_is_no_text_is_refused(tmp_path: Path):
    raw = pa.array([b"a", b"Zebulon\xff"], pa.binary())
    with refused(DataError, "UTF-8", column="who"):
        kept(tmp_path, pa.Array.from_buffers(pa.string(), 2, raw.buffers()))


@pytest.mark.parametrize("ids", [["7", None], [None, None]])
def test_a_row_without_a_user_is_refused(tmp_path: Path, ids: list[str | None]):
    for kind in (pa.string(), pa.dictionary(pa.int8(), pa.string())):
        with refused(DataError, "must not be null", column="who"):
            kept(tmp_path, pa.array(ids, kind))


def test_csv_files_hold_text_whatever_it_looks_like(tmp_path: Path):
    (tmp_path / "a.csv").write_text("who,n\n7,true\n7,true\n007,true\n7.0,true\n")
    (tmp_path / "b.csv").write_text('n,who\ntrue,"7"\ntrue,8\n')
    (part,) = load_parts(tmp_path, SCHEMA, 2)
    assert sum(batch.num_rows for batch in part.reveal()) == 5
    (tmp_path / "c.csv").write_text("who,n\n 7,true\n")
    (part,) = load_parts(tmp_path, SCHEMA, 2)
    with refused(DataError, "must name a user or a row in", column="who"):
        list(part.reveal())
