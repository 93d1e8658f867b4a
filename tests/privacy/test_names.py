"""What a file has in the place of names and types may be values: no message says it, and no draft prints it."""

import gzip
import logging
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from dpmodels.audit.made import pictures
from dpmodels.codec.encode import Codec
from dpmodels.contract.base import described
from dpmodels.errors import DataError
from dpmodels.reading.load import load_parts
from tests.kit.errors import refused
from tests.kit.everything import everything
from tests.kit.open_tables import workbook
from tests.kit.support import make_schema, make_table, run_cli, synthesize_words, write_clinic

PRIVATE = ["Quillfeather", "8675309", "zebra", "1874-05-06", "wardd"]
ROW = "Quillfeather,8675309,zebra,1874-05-06,wardd,{last}\n"


def nothing_private(*texts: str) -> None:
    assert not [value for value in PRIVATE for text in texts if value in text]


@pytest.mark.parametrize("last", ["no", "age", "wardd", "sick"])  # one that is a name of the schema, one that is twice
@pytest.mark.parametrize("folder", ["one", "second"])
def test_a_csv_file_without_a_header_shows_no_value(tmp_path: Path, caplog, last: str, folder: str):
    write_clinic(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    if folder == "second":  # after a file that has one
        (data / "a.csv").write_text("patient,age,ward,dose,smoker,sick\n1,2,north,1.5,true,no\n")
    (data / "b.csv").write_text(ROW.format(last=last) * 3)
    caplog.set_level(logging.DEBUG)
    code, out, err = run_cli(*synthesize_words(tmp_path, data=data))
    assert code == 1 and "Traceback" not in err
    assert "that the schema lacks" in err or "damaged" in err or "no column of this schema is in the data" in err
    if "of this schema" in err or "that the schema lacks" in err:
        assert "the first line (of a sheet the first row) must hold the names of the schema" in err
    nothing_private(out, err, caplog.text, everything(tmp_path))


def test_nor_does_a_parquet_file_with_a_value_for_a_name(tmp_path: Path, caplog):
    write_clinic(tmp_path)
    caplog.set_level(logging.DEBUG)
    for name in ("wardd", "zebra"):
        pq.write_table(make_table(9).rename_columns({"ward": name}), tmp_path / "clinic.parquet")
        code, out, err = run_cli(*synthesize_words(tmp_path))
        assert code == 1 and "column ward: is in the schema but not in the data" in err
        assert "lists the names, which may be values and are not printed here; no value was looked at" in err
        assert "header" not in err and "first line" not in err
        nothing_private(out, err, caplog.text, everything(tmp_path))


def test_names_that_are_twice_are_said_if_the_schema_has_them():
    codec, names = Codec(make_schema()), list(make_schema().columns)
    with refused(DataError, "more than once", column="age"):
        codec.check_names([*names, "age"])
    with pytest.raises(DataError) as told:
        codec.check_names([*names, "zebra", "zebra"])
    nothing_private(str(told.value))


TYPES = [
    pa.struct([("zebra", pa.string())]),
    pa.list_(pa.struct([("zebra", pa.int64())])),
    pa.map_(pa.string(), pa.struct([("zebra", pa.int64())])),
    pa.dictionary(pa.int32(), pa.struct([("zebra", pa.int64())])),
    pa.timestamp("us", tz="zebra"),
    pa.dense_union([pa.field("zebra", pa.int64())]),
    pa.run_end_encoded(pa.int32(), pa.struct([("zebra", pa.int64())])),
    pa.opaque(pa.binary(), "zebra", "zebra"),
]


@pytest.mark.parametrize("found", TYPES, ids=lambda found: str(found.id))
def test_a_type_is_described_without_what_the_file_calls_its_parts(found: pa.DataType):
    nothing_private(described(found))
    table = pa.schema([("age", found), *[(name, pa.int64()) for name in make_schema().columns if name != "age"]])
    with refused(DataError, "must hold numbers", column="age") as told:
        Codec(make_schema()).check_types(table)
    nothing_private(str(told.value))


def test_arrays_and_folders_of_images_show_no_name(tmp_path: Path):
    schema = pictures.make_schema()
    name, column = schema.image
    images = np.zeros((3, column.height, column.width), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", **{name: images, "zebra": np.zeros((3, 2))})
    np.savez(tmp_path / "b.npz", **{name: images, "zebra": np.zeros(3)})
    (tmp_path / "c" / "zebra").mkdir(parents=True)
    (tmp_path / "c" / "zebra" / "Quillfeather.png").write_bytes(b"")
    for place in ("a.npz", "b.npz", "c"):
        with pytest.raises(DataError) as told:
            load_parts(tmp_path / place, schema, 2)
        nothing_private(str(told.value))


FIRST_LINES = {
    "values": "Quillfeather,8675309,zebra,1874-05-06,wardd,no\n",
    "a number": "zebra,7\n",
    "a date": "zebra,1874-05-06\n",
    "a year": "zebra,May 6 1874\n",
    "a fraction": "zebra,-.5\n",
    "an address": "zebra,Quillfeather@zebra.org\n",
    "a path": "zebra,/home/Quillfeather\n",
    "a truth": "zebra,true\n",
    "nothing known": "zebra,NaN\n",
    "a long text": f"zebra,{'Quillfeather ' * 6}\n",
    "a list": '"Quillfeather, zebra",a\n',
    "one column": "zebra\nQuillfeather\n",
    "semicolons": "zebra;Quillfeather;8675309\n",
    "passwords": "zebra:x:0:0:Quillfeather:/root:/bin/sh\n",
    "JSON": '{"zebra": "Quillfeather", "wardd": 8675309}\n',
    "a PDF": "%PDF-1.4 zebra\n",
    "spaces": " zebra , wardd\n",
    "a tab": "zebra\t8675309\n",
}
BARRED = {
    "an empty name": "zebra,,wardd\n",
    "a name twice": "zebra,wardd,zebra\n",
    "nothing": "\n",
    "an open quote": 'wardd,"zebra\nQuillfeather"\n',
    "a control character": "zebra,\x07wardd\n",
    "zeros": "zebra\0,wardd\n",
    "UTF-16": "zebra,wardd\n".encode("utf-16"),
    "Latin-1": "zebr\u00e4,wardd\n".encode("latin-1"),
    "gzip": gzip.compress(b"zebra,wardd\n"),
    "a zip or Excel": b"PK\x03\x04\x14\x00zebra,wardd\n",
    "an old Excel": bytes.fromhex("d0cf11e0a1b11ae1") + b"zebra,wardd\n",
    "Parquet": b"PAR1\x15\x04zebra,wardd\n",
    "a line without end": b"zebra," * 200_000,
}


def test_names_of_values_in_json_lines_and_sheets_are_not_said_either(tmp_path: Path):
    write_clinic(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"zebra": 1, "wardd": 2}\n')
    workbook(tmp_path / "b.xlsx", [["zebra", "wardd"], [1, 2]])
    for name, is_text in (("a.jsonl", False), ("b.xlsx", True)):
        code, out, err = run_cli(*synthesize_words(tmp_path, data=tmp_path / name))
        assert code == 1 and ("of a sheet the first row" in err) == is_text, err
        nothing_private(out, err)


def drafted(path: Path, content: str | bytes, *options: str) -> tuple[int, str, str]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = run_cli("schema", "init", path, *options)
    assert err.count("error: ") == (code == 1) and "Traceback" not in err
    return code, out, err


@pytest.mark.parametrize("case", FIRST_LINES)
def test_names_that_may_be_values_are_not_printed_before_somebody_affirms_them(tmp_path: Path, case: str):
    code, out, err = drafted(tmp_path / "d.csv", FIRST_LINES[case])
    assert code == 1 and "may be values" in err and "--header" in err
    nothing_private(out, err)
    code, out, err = drafted(tmp_path / "d.csv", FIRST_LINES[case], "--header")
    assert code == 0 and "is taken as names" not in err
    assert sum(value in out for value in PRIVATE) > 0 and ("\nQuill" not in out)


@pytest.mark.parametrize("case", BARRED)
def test_what_is_no_line_of_names_is_refused_whoever_affirms_it(tmp_path: Path, case: str):
    for options in ((), ("--header",)):
        code, out, err = drafted(tmp_path / "d.csv", BARRED[case], *options)
        assert code == 1 and any(
            words in err for words in ("must begin with a line of column names", "is no CSV file", "is in UTF-16")
        )
        nothing_private(out, err)


@pytest.mark.parametrize("name", ["passwd", "a.txt", "a.parquet.gz", "a.xls", "a.sqlite", "csv"])
def test_other_files_are_refused_by_their_name(tmp_path: Path, name: str):
    code, out, err = drafted(tmp_path / name, "zebra,wardd\nQuillfeather,1\n", "--header")
    assert code == 1 and "must be a file of one of these kinds" in err
    nothing_private(out, err)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv.gz", "a.json", "a.jsonl.gz", "a.arrow", "a.xlsx"])
def test_what_is_not_what_its_name_says_is_refused(tmp_path: Path, name: str):
    code, out, err = drafted(tmp_path / name, "zebra,wardd\nQuillfeather,1\n", "--header")
    sentences = ("is no CSV file", "one JSON object in each line", "is no Arrow file", "no Excel workbook")
    assert code == 1 and any(sentence in err for sentence in sentences)
    nothing_private(out, err)


def test_a_database_and_a_text_under_another_name_are_refused(tmp_path: Path):
    with sqlite3.connect(tmp_path / "d.csv") as database:
        database.execute("create table zebra (wardd text)")
    database.close()
    (tmp_path / "d.parquet").write_text("zebra,wardd\n")
    for name, words in (("d.csv", "is no CSV file"), ("d.parquet", "is no Parquet file")):
        code, out, err = run_cli("schema", "init", tmp_path / name, "--header")
        assert code == 1 and words in err
        nothing_private(out, err)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_nothing_below_the_first_line_is_looked_at(tmp_path: Path, end: str):
    below = ["Quillfeather,8675309,1874-05-06", "\0\x07", '"']
    code, out, err = drafted(tmp_path / "d.csv", end.join(["\ufeffage,ward (north) 2,\u00e9tat_civil", *below]))
    assert code == 0 and "is taken as names" in err
    assert "  age: {type: integer, min: 0, max: 120, confirm: TODO}\n" in out
    assert "  ward (north) 2: {type: TODO}\n  \u00e9tat_civil: {type: TODO}\n" in out
    nothing_private(out, err)


def test_names_of_a_parquet_file_that_was_made_of_values_are_not_printed(tmp_path: Path):
    pq.write_table(pa.table({"zebra": [1], "8675309": [2]}), tmp_path / "d.parquet")
    code, out, err = run_cli("schema", "init", tmp_path / "d.parquet")
    assert code == 1 and "may be values" in err
    nothing_private(out, err)
    assert "'8675309': {type: integer" in run_cli("schema", "init", tmp_path / "d.parquet", "--header")[1]


@pytest.mark.parametrize("answer", [True, False])
def test_on_a_terminal_a_person_is_asked_without_being_shown_them(tmp_path: Path, monkeypatch, answer: bool):
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda text, **_: asked.append(text) or answer)
    code, out, err = drafted(tmp_path / "d.csv", "zebra,8675309\n")
    assert len(asked) == 1 and "may be values" in asked[0]
    nothing_private(asked[0], err)
    assert code == (0 if answer else 1) and ("zebra" in out) == answer


def test_a_draft_does_not_say_that_no_value_was_read(tmp_path: Path):
    out = drafted(tmp_path / "d.csv", "age,ward\n")[1]
    assert "no value was read" not in out and "first line, which is taken as names" in out
