"""One record of a text file more or less: the others are read as they were, or the file is refused; no third thing."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.text_values import cast_text
from dpmodels.contract.discovery.discovery import Discovery, MarkedKeys
from dpmodels.contract.documents import Documents, Encoder
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.limits import LONGEST_DOCUMENT, LONGEST_LINE
from dpmodels.methods.federations.records import RecordsSpec, read_public
from dpmodels.reading.data_files import find_files
from dpmodels.reading.load import RawRows, load_parts
from dpmodels.reading.named_columns import open_columns
from dpmodels.reading.text_files import csv_form, guarded, read_csv
from dpmodels.reading.text_records import Malformed, Plain, Quoted, RuledText, TextRule
from dpmodels.text.reading import load_documents
from tests.kit.errors import refused
from tests.kit.inputs import FORMATS

SCHEMA = parse(
    """
name: t
unit: record
columns:
  note: {type: identifier}
  ward: {type: categorical, values: [a, b]}
  age: {type: integer, min: 0, max: 99}
  end: {type: identifier}
"""
)[0]
LETTERS = Documents(name="letters", text="text", encoder=Encoder(name="hashed", dim=8))
HOSTILE = ['"', '"I feel fine', 'fine"', '""', '"""', '"a"b', 'a"b', 'x "y', "\r", "a\rb", '"\r', "\0", "\\", '\\"',
           "'", "\ufeff", "{", "}", "[", '{"a":', "#", " ", "\t", "\v", "\x85", "\u2028", "NA"]  # fmt: skip
PLACES = (0, 3, 7)


def states(path: Path, schema: Schema = SCHEMA) -> list[tuple[object, ...]]:
    """Return the encoded rows of a file, in order."""
    codec = Codec(schema)
    rows = Records.concat([codec.encode(batch) for part in load_parts(path, schema, 3) for batch in part.reveal()])
    return [(*left, *right) for left, right in zip(rows.states.tolist(), rows.values.tolist(), strict=True)]


def documents(path: Path) -> list[tuple[object, ...]]:
    """Return the documents of a file, in order."""
    return [tuple(row.values()) for batch in load_documents(path, LETTERS, 3).reveal() for row in batch.to_pylist()]


def records(path: Path) -> list[tuple[object, ...]]:
    """Return a client's records, in order."""
    return [tuple(row) for row in read_public(path, RecordsSpec(inputs=("x", "y"))).tolist()]


READERS: dict[str, tuple[str, list[str], Callable[[Path], list[tuple[object, ...]]], int]] = {
    "table": ("note,ward,age,end", [f"n{i},{'ab'[i % 2]},{i},e" for i in range(7)], states, 4),
    "documents": ("id,text,more", [f"d{i},some words {i}.,m" for i in range(7)], documents, 3),
    "records": ("x,y,label,more", [f"{i},0.5,l,m" for i in range(7)], records, 4),
}


def outcome(read: Callable[[Path], list[tuple[object, ...]]], path: Path) -> list[tuple[object, ...]] | str:
    """Return the rows, or the sentence of the refusal."""
    try:
        return read(path)
    except DataError as refusal:
        return str(refusal)


def kept(with_it: list[tuple[object, ...]], others: list[tuple[object, ...]]) -> bool:
    """Tell whether rows are those of the others and at most one more."""
    if with_it == others:
        return True
    return any(with_it[:at] + with_it[at + 1 :] == others for at in range(len(with_it)))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
@pytest.mark.parametrize("name", READERS)
@pytest.mark.nightly_if(
    "table-.csv.gz", "records-.tsv", "documents-.csv", "table-.tsv"
)  # beside each reader and each form
def test_a_hostile_field_moves_no_other_record(tmp_path: Path, name: str, suffix: str) -> None:
    header, rows, read, columns = READERS[name]
    delimiter = "\t" if suffix == ".tsv" else ","
    path, read_whole = tmp_path / f"t{suffix}", 0

    def written(lines: list[str]) -> Path:
        text = "\n".join([header, *lines]).replace(",", delimiter).encode()
        path.write_bytes(gzip.compress(text) if suffix.endswith(".gz") else text)
        return path

    others = outcome(read, written(rows))
    assert len(others) == 7 and not isinstance(others, str)
    for column in range(columns):
        for field in HOSTILE:
            refusals = set()
            for place in PLACES:
                fields = (rows[2].replace("d2", "new")).split(",")
                fields[column] = field
                found = outcome(read, written([*rows[:place], ",".join(fields), *rows[place:]]))
                if isinstance(found, str):
                    refusals.add(found)
                else:
                    read_whole += 1
                    assert kept(found, others), (column, field, place)
            assert len(refusals) <= 1, "which says where it is"
    assert read_whole


@pytest.mark.parametrize("change", ['"', '"I feel fine', "{", "}", "\r", "\n", '{"note":', "{}", " ", "[]", ""])
def test_a_hostile_line_of_json_moves_no_other_record(tmp_path: Path, change: str) -> None:
    path = tmp_path / "t.jsonl"
    rows = [json.dumps({"note": "n", "ward": "a", "age": i, "end": "e"}) for i in range(7)]
    path.write_text("\n".join(rows))
    others = states(path)
    one = rows[2]
    lines = {
        change,
        change + one,
        one + change,
        one.replace('"n"', f'"n{change}"'),
        one.replace('"n"', change),
        one[:-1],
        one[1:],
        one + one,
    }
    for line in lines:
        for place in PLACES:
            path.write_text("\n".join([*rows[:place], line, *rows[place:]]), newline="")
            found = outcome(states, path)
            assert isinstance(found, str) or kept(found, others), (line, place)


def reference(content: str, delimiter: str) -> list[list[str]] | None:
    """Read CSV letter by letter, as RFC 4180 has it; none where it is not."""
    rows, row, at, size = [], [], 0, len(content)
    while at < size:
        value, quoted = "", content[at] == '"'
        if quoted:
            at += 1
            while True:
                if at >= size:
                    return None
                if content[at] != '"':
                    value, at = value + content[at], at + 1
                elif content[at + 1 : at + 2] == '"':
                    value, at = value + '"', at + 2
                else:
                    at += 1
                    break
        else:
            while at < size and content[at] not in f'{delimiter}\r\n"':
                value, at = value + content[at], at + 1
        row.append(value)
        if at < size and content[at] == delimiter:
            at += 1
            if at < size:
                continue
            row.append("")
        elif at < size:
            end = content[at : at + 2]
            if end[0] != "\n" and end != "\r\n":
                return None
            at += 1 + (end == "\r\n")
        rows, row = [*rows, row], []
    return rows


def ruled(rule: TextRule, content: bytes, size: int) -> bool:
    """Tell whether text keeps a rule, read in blocks of a size."""
    text = RuledText(pa.BufferReader(content), rule)
    try:
        while text.read(size):
            pass
    except Malformed:
        return False
    return True


letters = st.text(st.sampled_from('"",,\r\n x\ufeff'), max_size=24)


@settings(max_examples=400, derandomize=True, database=None, deadline=None)
@given(content=letters, size=st.sampled_from([1, 2, 3, 5, 7, 2**20]))
def test_a_text_keeps_its_rule_where_one_reads_it_letter_by_letter(content: str, size: int) -> None:
    """How it is cut into blocks decides nothing."""
    written = content.removeprefix("\ufeff")
    assert ruled(Quoted(2**20, ","), content.encode(), size) == (reference(written, ",") is not None)
    plain = "\r" not in written.replace("\r\n", "")
    assert ruled(Plain(2**20), content.encode(), size) == plain


@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(fields=st.lists(st.tuples(letters, letters), min_size=1, max_size=6), end=st.sampled_from(["\n", "\r\n"]))
def test_arrow_reads_what_keeps_the_rule_as_one_reads_it_letter_by_letter(tmp_path_factory, fields, end) -> None:
    def quote(value: str) -> str:
        doubled = value.replace('"', '""')
        return f'"{doubled}"' if set(value) & set('",\r\n\ufeff') or not value else value

    text = end.join(["a,b", *(",".join(map(quote, row)) for row in fields)])
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_text(text, newline="")
    wanted = reference(text, ",")
    assert wanted is not None and wanted[1:] == [list(row) for row in fields]
    (file,) = find_files(str(path))
    longest = max(map(len, text.encode().split(b"never"))) + 2
    for block in (longest, 2**20):
        read = guarded(read_csv(file, csv_form(file), ["a", "b"], block, null=False), file)
        assert [list(row.values()) for batch in read for row in batch.to_pylist()] == wanted[1:]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_where_a_block_ends_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A record that is as long as a block is read wherever it begins, and one that is longer is refused wherever."""
    monkeypatch.setattr("dpmodels.reading.formats.LONGEST_RECORD", 256)
    path, seen = tmp_path / name, []
    for before in range(0, 40):
        for length in (256, 257):
            short = {"note": "n", "ward": "a", "age": 1, "end": "e"}
            rows = [{**short, "note": "n" * (1 + index % 7)} for index in range(before)] + [short] + [short] * 9
            if name == "t.csv":
                lines = ["note,ward,age,end", *(",".join(map(str, row.values())) for row in rows)]
            else:
                lines = [json.dumps(row) for row in rows]
            longer = lines[-9].replace("n", "n" * (length - len(lines[-9])), 1) if name == "t.csv" else lines[-9]
            if name != "t.csv":
                longer = lines[-9].replace('"n"', f'"{"n" * (length - len(lines[-9]))}"', 1)
            lines[-9] = longer
            path.write_text("\n".join([*lines, ""]))
            found = outcome(states, path)
            seen.append((length, isinstance(found, str)))
            assert isinstance(found, str) or len(found) == len(rows)
    assert {*seen} == {(256, False), (257, True)}


@pytest.mark.parametrize("at", [0, 3, 6])
def test_a_long_line_of_json_is_read_wherever_it_is(tmp_path: Path, at: int) -> None:
    rows = [{"note": "n", "ward": "a", "age": 1, "end": "e"} for _ in range(7)]
    rows[at]["note"] = "n" * (LONGEST_LINE + 1000)
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert len(states(path)) == 7
    (file,) = find_files(str(path))
    texts = open_columns(file, {"note": pa.string()}, "missing").read(10, LONGEST_DOCUMENT)
    assert [len(text) for batch in texts for text in batch["note"].to_pylist()] == [len(row["note"]) for row in rows]


def test_a_tsv_file_has_letters_and_no_quotation_marks(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text('note\tward\tage\tend\n"I feel fine\ta\t1\te\nx"y\tb\t2\t"\n')
    assert len(states(path)) == 2
    path.write_text('"note"\tward\tage\tend\n"a\tb"\ta\t1\te\n')  # which says by its names that it quotes
    assert len(states(path)) == 1
    path.rename(tmp_path / "t.csv").write_text('note\tward\tage\tend\n"a\tb"\ta\t1\te\n')
    assert len(states(tmp_path / "t.csv")) == 1


def test_a_file_of_words_in_16_bits_is_named_so(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for encoding in ("utf-16", "utf-16-be", "utf-16-le"):
        path.write_bytes("note,ward,age,end\n".encode(encoding))
        with refused(DataError, "is in UTF-16; save it as UTF-8", column=""):
            states(path)


def test_a_day_that_is_written_otherwise_is_told_how_it_is_read() -> None:
    with refused(DataError, "written as 2026-12-31", column="day") as caught:
        cast_text(pa.array(["31.12.2026"]), pa.timestamp("us"), "day")
    assert "31.12" not in str(caught.value)


def test_numbers_and_words_that_are_written_otherwise_are_told_how_to_write_them() -> None:
    for texts, kind, told in (
        (["$52.30"], pa.float64(), '£1,204.50 is read with `text: {decimal: ".", thousands: ",", currency: "£"}`'),
        (["1.000,5"], pa.float64(), '1.204,50 with `text: {decimal: ",", thousands: "."}`'),
        (["3", "Quince"], pa.float64(), "of words among numbers see docs/errors.md#numbers-that-are-none"),
        (["yes", "maybe"], pa.bool_(), "of other words make it `{type: categorical, values: [...]}`"),
    ):
        with refused(DataError, re.escape(told), column="x") as caught:
            cast_text(pa.array(texts), kind, "x")
        assert "52.30" not in str(caught.value) and "Quince" not in str(caught.value)
        assert len(str(caught.value)) < 300  # letters: the two likeliest remedies, and where the others stand


def test_usual_words_for_true_and_false_are_read_in_any_case_of_letters() -> None:
    texts = ["yes", "No", " Y ", "n", "T", "f", "TRUE", "False", "1", "0", "", None]
    read = cast_text(pa.array(texts), pa.bool_(), "x").to_pylist()
    assert read == [True, False, True, False, True, False, True, False, True, False, None, None]
    abroad = ["Ja", "nein", "J", "wahr", "falsch", "OUI", "non", "o", "vrai", "faux", "sí", "si"]
    expected = [True, False, True, True, False, True, False, True, True, False, True, True]
    assert cast_text(pa.array(abroad), pa.bool_(), "x").to_pylist() == expected
    assert cast_text(pa.array([None, ""]), pa.bool_(), "x").null_count == 2


def test_usual_words_for_nothing_and_blanks_are_null_but_in_text() -> None:
    texts = pa.array([None, "", "  ", "NA", "N/A", "n/a", "nan", "NULL", "None"])
    for kind in (pa.float64(), pa.bool_(), pa.timestamp("us"), pa.time32("s")):
        assert cast_text(texts, kind, "x").null_count == len(texts), kind
    assert cast_text(texts, pa.string(), "x") == texts


@pytest.mark.parametrize("form", FORMATS)
def test_a_number_with_more_decimals_than_its_column_keeps_is_rounded_alike_in_every_format(
    tmp_path: Path, form: str
) -> None:
    """Three digits after the point are decimals everywhere, and thousands nowhere; bounds hold what is written."""
    schema = parse("name: t\ncolumns:\n  x: {type: number, min: 0, max: 60, round: 2, outside: reject-row}\n")[0]
    source = FORMATS[form](tmp_path / "t", pa.table({"x": [52.345, 52.355, 59.999, 60.001, 0.004, 52.3]}))
    assert [row[-1] * 60 for row in states(source, schema)] == pytest.approx([52.34, 52.36, 60, 0, 52.3], abs=1e-9)


def test_a_first_line_without_a_value_that_is_to_be_discovered_is_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"age": null}\n{"age": 41}\n')
    wanted = {"age": MarkedKeys(type="number", keys=("min", "max"))}
    reading = Discovery(name="t", columns=("age",), wanted=wanted).reading()
    with refused(DataError, "a column that is to be discovered must have a value", column=""):
        RawRows(tmp_path / "t.jsonl", reading, 64).check()
