"""Columns that are read by name, of files of any format: the same values, or a sentence that holds none of them."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from dpmodels.errors import DataError
from dpmodels.methods.federations.records import RecordsSpec, read_labeled, read_public
from tests.kit.damaged import fed, lines, stored, written
from tests.kit.errors import refused

CLASSES = ["a", "b"]
TABLE = pa.table({"x": [1.5, None, 3.0], "other": ["u", "v", "w"], "label": ["a", "b", "a"], "y": [1, 2, 3]})
WAYS: dict[str, Callable[[pa.Table], bytes]] = {
    "parquet": stored,
    "arrow": fed,
    "csv": written,
    "tsv": lambda table: written(table).replace(b",", b"\t"),
    "csv.gz": lambda table: gzip.compress(written(table)),
    "jsonl": lines,
}


def write(folder: Path, ending: str, table: pa.Table) -> Path:
    (folder / f"records.{ending}").write_bytes(WAYS[ending](table))
    return folder / f"records.{ending}"


@pytest.mark.parametrize("ending", WAYS)
def test_records_are_the_same_in_every_format(tmp_path: Path, ending: str) -> None:
    examples = read_labeled(write(tmp_path, ending, TABLE), RecordsSpec(inputs=("y", "x")), CLASSES)
    assert examples.labels.tolist() == [0, 1, 0]
    assert str(examples.inputs.tolist()) == "[[1.0, 1.5], [2.0, nan], [3.0, 3.0]]"


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
def test_lists_are_read_where_a_format_has_them(tmp_path: Path, ending: str) -> None:
    table = pa.table({"pixels": [[0, 1, 2, 3], [4, 5, 6, 7]], "label": ["a", "b"]})
    inputs = read_public(write(tmp_path, ending, table), RecordsSpec(inputs=("pixels",), shape=(1, 2, 2)))
    assert inputs.tolist() == [[[[0, 1], [2, 3]]], [[[4, 5], [6, 7]]]]


@pytest.mark.parametrize("ending", WAYS)
def test_a_column_that_is_missing_is_named_and_nothing_else(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path, ending, TABLE.drop_columns("y"))
    with refused(DataError, "in every file, and once", column="y") as refusal:
        read_public(path, RecordsSpec(inputs=("x", "y")))
    assert "1.5" not in str(refusal.value)


@pytest.mark.parametrize("ending", WAYS)
def test_text_where_numbers_belong_is_refused_without_the_text(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path, ending, TABLE.set_column(0, "x", pa.array(["Zebulon"] * 3)))
    with refused(DataError, "must hold numbers", column="x") as refusal:
        read_public(path, RecordsSpec(inputs=("x", "y")))
    assert "Zebulon" not in str(refusal.value)


def test_one_line_of_another_kind_has_the_file_refused_and_changes_no_other_record(tmp_path: Path) -> None:
    path = write(tmp_path, "jsonl", TABLE)
    whole = path.read_bytes()
    for line in (b'{"x": "Zebulon", "y": 1, "label": "a"}', b'{"x": [1], "y": 1, "label": "a"}', b'{"x": 1} {"x": 2}'):
        path.write_bytes(whole + b"\n" + line)
        with pytest.raises(DataError) as refusal:
            read_public(path, RecordsSpec(inputs=("x", "y")))
        assert "Zebulon" not in str(refusal.value)


@pytest.mark.parametrize(
    "line",
    [
        '"x": 1',
        '"x": true',
        '"x": null',
        '"x": "2"',
        '"x": [2]',
        '"x": 2, "other": {"deep": [1]}',
        '"x": 1e999',
        '"y": 2',
    ],
)
def test_a_first_line_of_any_kind_has_the_file_refused_or_changes_no_other_record(tmp_path: Path, line: str) -> None:
    """The first line says what a key is read as; all records after it are what they were, or none is read."""
    path, spec = write(tmp_path, "jsonl", TABLE), RecordsSpec(inputs=("x", "y"))
    others = str(read_public(path, spec).tolist())[1:]
    path.write_bytes(f'{{{line}, "y": 5, "label": "a"}}\n'.encode() + path.read_bytes())
    try:
        assert str(read_public(path, spec)[1:].tolist())[1:] == others
    except DataError as refusal:
        assert "999" not in str(refusal) and "deep" not in str(refusal)
