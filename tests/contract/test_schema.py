"""Reading and writing schemas, every fault with its line, and drafts that hold no value."""

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from dpmodels.authoring.draft import TYPES, UNTYPED, draft
from dpmodels.authoring.header import DoubtfulNames
from dpmodels.authoring.lint import lint, load_schema, parse
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError, SchemaError
from tests.kit.every_kind import EVERY_KIND, make, one

TOP = "name: a\nunit: record\ncolumns:\n  ok: {type: boolean}\n"


def test_yaml_round_trip_keeps_content_and_hash(schema: Schema, schemas: list[Path]) -> None:
    for original in (schema, *map(load_schema, schemas)):
        again = make(original.to_yaml())
        assert again == original and again.hash == original.hash
    assert list(schema.modelled) == [name for name in schema.columns if name not in ("patient", "row")]


def test_hash_sees_content_and_column_order_but_not_comments() -> None:
    base = make(TOP + "  x: {type: integer, min: 1, max: 2}\n")
    assert base.hash == make("# words\n" + TOP + "  x: {min: 1, type: integer, max: 2}\n").hash
    assert base.hash != make(TOP + "  x: {type: integer, min: 1, max: 3}\n").hash
    swapped = make("name: a\ncolumns:\n  x: {type: integer, min: 1, max: 2}\n  ok: {type: boolean}\n")
    assert base.hash != swapped.hash and len(base.hash) == 64


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2020-01-01", date(2020, 1, 1)),
        ("2020-01-01 10:30", datetime(2020, 1, 1, 10, 30)),
        ("2020-01-01T10:30:05", datetime(2020, 1, 1, 10, 30, 5)),
    ],
)
def test_dates_as_text_are_those_that_yaml_makes(text: str, moment: date) -> None:
    def of(low: object) -> Schema:
        seen = {"type": "datetime", "min": low, "max": "2022-01-01", "resolution": "second"}
        return Schema.model_validate({"name": "a", "columns": {"seen": seen}})

    assert of(text) == of(moment) and of(text).hash == of(moment).hash
    assert type(of(text).modelled["seen"].model_dump()["min"]) is type(moment)  # a date means the whole of its day


@pytest.mark.parametrize("text", ["01.02.2020", "2020-02-30", "2020-1-1", "20200101", "2020-01-01T10:30Z", "TODO"])
def test_other_text_is_no_date(text: str) -> None:
    _, faults = parse(TOP + f"  x: {{type: datetime, min: '{text}', max: 2030-01-01}}\n")
    meant = "; write 2020-02-01" if text == "01.02.2020" else ""
    assert [(fault.where, fault.message) for fault in faults] == [
        ("columns.x.min", f"must be a date such as 2020-01-31{meant}")
    ]


def test_cells_default_to_the_lattice_or_32() -> None:
    def cells(column: str) -> int:
        return Codec(one(column)).cell_sizes[0]

    assert cells("{type: integer, min: 1, max: 5}") == 5
    assert cells("{type: integer, min: 0, max: 5, zero_inflated: true, nullable: true}") == 5 + 2
    assert cells("{type: integer, min: 1, max: 500}") == cells("{type: number, min: 0, max: 1}") == 32
    assert cells("{type: integer, min: 0, max: 1000000, cells: 4096}") == 4096


def test_a_schema_is_frozen(schema: Schema) -> None:
    with pytest.raises(ValidationError):
        schema.name = "other"


@pytest.mark.parametrize(
    ("text", "line", "where", "words"),
    [
        ("", 0, "file", "is empty"),
        ("# only a comment\n", 0, "file", "is empty"),
        ("- a\n- b\n", 0, "file", "is not a mapping"),
        ("name: [a\n", 1, "file", "is not valid YAML: the bracket that opens here is not closed"),
        ("name: 'a\ntarget: b\n", 1, "file", "is not valid YAML: the quote that opens here is not closed"),
        ("name: 'a' b\n", 1, "file", "is not valid YAML: more text stands behind a value that ends"),
        ("a: 1\nb: 2\n c: 3\n", 3, "file", "is not valid YAML: it is indented otherwise than the lines around it"),
        (TOP + "   x: {type: boolean}\n", 5, "file", "it is indented otherwise than the lines around it"),
        (TOP + " x: {type: boolean}\n", 5, "file", "it is indented otherwise than the lines around it"),
        ("name: a\ncolumns\n  x: {type: boolean}\n", 2, "file", "a name here has no colon after it"),
        ("\x00", 0, "file", "is not valid YAML"),
        ("a: !!python/object:os.system 3", 1, "file", "is not valid YAML"),
        (TOP + "nmae: b\n", 5, "nmae", "did you mean `name`"),
        (TOP + "target: income\n", 5, "target", "`income` is no column of this schema"),
        ("name: a\ntarget: leaver\ncolumns:\n  left: {type: boolean}\n", 2, "target", "; its columns are left"),
        ("name: a\ntarget: churn\ncolumns:\n  churned: {type: boolean}\n", 2, "target", "did you mean `churned`?"),
        (TOP.replace("record", "{user: who}"), 2, "unit", "must be a column of type identifier"),
        (TOP.replace("record", "{user: ids}") + "  id: {type: identifier}\n", 2, "unit", "did you mean `id`?"),
        (TOP.replace("record", "{user: ok}"), 2, "unit", "must be a column of type identifier"),
        (TOP.replace("record", "{user: ok, max_row: 2}"), 2, "unit.max_row", "did you mean `max_rows`"),
        (TOP.replace("record", "recrod"), 2, "unit", "must be record"),
        (TOP.replace("name: a", "name: A b"), 1, "name", "only the characters"),
        ("name: a\ncolumns:\n  x: {type: identifier}\n", 2, "columns", "neither an identifier nor derived"),
        ("name: a\ncolumns: {}\n", 2, "columns", "neither an identifier nor derived"),
        (TOP + "  x:value: {type: boolean}\n", 3, "columns", "no usable column name"),
        (TOP + "  x: {type: integer, min: 9, max: 3}\n", 5, "columns.x.min", "reversed"),
        (TOP + "  x: {type: number, min: 3, max: 3}\n", 5, "columns.x.min", "min < max"),
        (TOP + "  x: {type: datetime, min: 2021-01-01, max: 2020-01-01}\n", 5, "columns.x.min", "reversed"),
        (TOP + "  x: {type: datetime, min: 2021-02-30, max: 2022-01-01}\n", 5, "columns.x.min", "no date"),
        (TOP + "  x: {type: datetime, min: 2021, max: 2022-01-01}\n", 5, "columns.x.min", "must be a date"),
        (TOP + "  x:\n    type: integer\n    min: TODO\n    max: 3\n", 7, "columns.x.min", "TODO"),
        (TOP + "  x: {type: TODO}\n", 5, "columns.x.type", "TODO"),
        (
            TOP + "  x:\n    type: integer\n    min: 1\n    max: 3\n    cels: 2\n",
            9,
            "columns.x.cels",
            "did you mean `cells`",
        ),
        (TOP + "  x: {type: intger}\n", 5, "columns.x", "did you mean `integer`"),
        (TOP + "  x: {min: 1}\n", 5, "columns.x", "has no type"),
        (TOP + "  x: {type: integer, min: 1}\n", 5, "columns.x.max", "is missing"),
        (TOP + "  x: {type: integer, min: 1.5, max: 2}\n", 5, "columns.x.min", "whole number"),
        (TOP + "  x: {type: integer, min: yes, max: 2}\n", 5, "columns.x.min", "YAML reads yes as true"),
        (TOP + "  x: {type: integer, min: 0, max: 9007199254740992}\n", 5, "columns.x.max", "must be at most"),
        (TOP + "  x: {type: integer, min: 0, max: 2251799813685248}\n", 5, "columns.x.max", "too far from min"),
        (TOP + "  x: {type: integer, min: 0, max: 300, dtype: uint8}\n", 5, "columns.x.dtype", "cannot hold"),
        (TOP + "  x: {type: integer, min: 0, max: 3, cells: 5}\n", 5, "columns.x.cells", "is more than"),
        (TOP + "  x: {type: integer, min: 1, max: 3, zero_inflated: true}\n", 5, "columns.x.zero_inflated", "zero"),
        (TOP + "  x: {type: integer, min: 1, max: 3, outside: other}\n", 5, "columns.x.outside", "must be"),
        (TOP + "  x: {type: number, min: 0, max: 5_000}\n", 5, "columns.x.max", "5_000 as a number: write 5000"),
        (TOP + "  x: {type: number, min: 0, max: '-5_0.5'}\n", 5, "columns.x.max", "must be a number; write -50.5"),
        (TOP + "  x: {type: number, min: 0, max: .inf}\n", 5, "columns.x.max", "YAML does not read"),
        (TOP + "  x: {type: number, min: 0.15, max: 1, round: 1}\n", 5, "columns.x.min", "more decimals"),
        (TOP + "  x: {type: categorical, values: [a, a]}\n", 5, "columns.x.values", "twice"),
        (TOP + "  x: {type: categorical, values: []}\n", 5, "columns.x.values", "at least one"),
        (TOP + "  x: {type: categorical, values: [a, 1]}\n", 5, "columns.x.values", "all text"),
        (TOP + "  x: {type: categorical, values: [a], outside: other}\n", 5, "columns.x.other", "goes with"),
        (TOP + "  x: {type: categorical, values: [a], outside: other, other: b}\n", 5, "columns.x.other", "listed"),
        (TOP + "  x:\n    type: categorical\n    values:\n      - de\n      - no\n", 9, "columns.x.values.1", "quotes"),
        (TOP + "  x: {type: categorical, values: [a, ~]}\n", 5, "columns.x.values.1", "quotes"),
        (TOP + "  x: {type: categorical, values: [1, 012]}\n", 5, "columns.x.values.1", "quote it"),
        (TOP + "  x: {type: categorical, values: [1, 300], dtype: uint8}\n", 5, "columns.x.dtype", "cannot hold"),
        (TOP + "  no: {type: boolean}\n", 5, "columns.no", "put it in quotes"),
        (TOP + "  ok: {type: boolean}\n", 5, "columns.ok", "written twice, first on line 4"),
        (TOP + "  x: {type: boolean, type: integer}\n", 5, "columns.x.type", "written twice"),
        (TOP + "  x: &a {type: boolean}\n  y: *a\n", 6, "columns.y", "alias"),
        (TOP + "  x: 3\n", 5, "columns.x", "mapping"),
    ],
)
def test_each_fault_is_told_once_with_its_line(text: str, line: int, where: str, words: str) -> None:
    schema, faults = parse(text)
    assert schema is None
    assert [(fault.line, fault.where) for fault in faults] == [(line, where)]
    assert words in faults[0].message


def test_load_raises_with_every_fault(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: A\ntarget: z\ncolumns:\n  x: {type: integer, min: 3, max: 1, colour: 2}\n  y: {type: number}\n"
    )
    with pytest.raises(SchemaError) as caught:
        load_schema(path)
    assert [(fault.line, fault.where) for fault in caught.value.faults] == [
        (1, "name"),
        (2, "target"),
        (4, "columns.x.colour"),
        (4, "columns.x.min"),
        (5, "columns.y.min"),
        (5, "columns.y.max"),
    ]
    assert "line 2: target" in str(caught.value) and lint(path) == list(caught.value.faults)


@pytest.mark.parametrize(
    ("column", "places"),
    [
        (
            "{type: integer, min: 5, max: 1, max_null_share: 3}",
            {"max_null_share": "less than 1", "min": "is above max 1"},
        ),
        (
            "{type: number, min: 5, max: 1, outside: some, round: 2}",
            {"outside": "must be 'refuse'", "min": "is not below"},
        ),
        ("{type: categorical, values: [a, a], outside: other, cells: 3}", {"values": "twice", "cells": "no key here"}),
        ('{type: derived, formula: "1 +", round: 2, dtype: int64}', {"round": "int64", "formula": "`1 +`"}),
    ],
)
def test_every_fault_of_a_column_is_named_beside_those_of_its_keys(column: str, places: dict[str, str]) -> None:
    told = {fault.where: fault.message for fault in parse(f"{TOP}  y: {{type: boolean}}\n  x: {column}\n")[1]}
    assert all(words in told[f"columns.x.{key}"] for key, words in places.items()), told


def test_a_lookup_takes_numbers_and_true_and_false_without_quotes_and_no_other_word() -> None:
    text = TOP + "  b: {type: boolean}\n  a: {type: categorical, values: [0, 1.5]}\n"
    plain = "  y: {type: derived, of: a, values: {0: none, 1.5: some}}\n"
    plain += "  z: {type: derived, of: b, values: {true: 1, false: 0}}\n"
    quoted = plain.replace("0: none, 1.5:", '"0": none, "1.5":').replace("true: 1, false:", '"true": 1, "false":')
    read, same = parse(text + plain)[0], parse(text + quoted)[0]
    assert read is not None and same is not None and read.hash == same.hash
    for odd in ("{yes: 1, no: 0}", "{0x1: 1, 0: 0}", '{0: 1, "0": 2, 1.5: 3}', "{True: 1, false: 0}"):
        assert parse(f"{text}  z: {{type: derived, of: a, values: {odd}}}\n")[0] is None, odd


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "does not exist" in lint(tmp_path / "none.yaml")[0].message
    assert lint(tmp_path)[0].message == "is a folder; name a file in it"
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x80")
    assert "cannot be read" in lint(tmp_path / "b.yaml")[0].message


def test_booleans_spelled_yes_are_understood_where_only_they_fit() -> None:
    assert one("{type: boolean, nullable: yes}").modelled["x"].nullable


def test_committed_schemas_are_clean(schemas: list[Path]) -> None:
    assert [lint(path) for path in schemas] == [[], []]


SECRET = "unique-private-string-8412"


@pytest.fixture
def secret_table() -> pa.Table:
    return pa.table(
        {
            "age": pa.array([731, 9127], pa.int16()),
            "bmi": pa.array([913.75, 2.5], pa.float32()),
            "ward": pa.array([SECRET, "b"]),
            "dead": pa.array([True, False]),
            "born": pa.array([date(1931, 7, 9), date(1955, 1, 1)]),
            "no": pa.array([1, 2]),
            "a: b #": pa.array([[1], [2]]),
        }
    )


def test_draft_of_parquet_holds_no_value_and_is_refused_until_filled_in(tmp_path: Path, secret_table: pa.Table) -> None:
    pq.write_table(secret_table, tmp_path / "My Ward.parquet")
    with pytest.raises(DoubtfulNames):  # of one column: `a: b #`
        draft(tmp_path / "My Ward.parquet")
    text = draft(tmp_path / "My Ward.parquet", affirmed=True)
    (tmp_path / "shift=1").mkdir()
    (tmp_path / "My Ward.parquet").rename(tmp_path / "shift=1" / "0.parquet")
    (tmp_path / "shift=1").rename(folder := tmp_path / "My Ward.parquet")
    (whole := tmp_path / "Other Wards").mkdir()
    folder.rename(whole / "shift=1")
    named = text.replace("name: my-ward", f"{UNTYPED}name: other-wards")
    of_folder = named.replace(f"\n{TYPES}", f"\n  shift: {{type: TODO}}\n{TYPES}")
    assert draft(whole, affirmed=True) == draft(f"{whole}/*/0.parquet", affirmed=True) == of_folder
    assert not [value for value in (SECRET, "731", "9127", "913", "1931", "1955") if value in text]
    assert "name: my-ward\n" in text and "dtype: int16" in text and "dtype: float32" in text
    schema, faults = parse(text)
    assert schema is None
    assert {fault.where.split(".")[1] for fault in faults} == set(secret_table.column_names) - {"dead"}
    assert all("is still TODO" in fault.message for fault in faults)


def test_draft_of_csv_reads_the_header_only(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(f'age,"ward, name"\n731,{SECRET}\n')
    with pytest.raises(DoubtfulNames):  # a name with a comma
        draft(path)
    text = draft(path, affirmed=True)
    assert (
        "  age: {type: integer, min: 0, max: 120, confirm: TODO}\n  ward, name: {type: TODO}\n" in text
        and SECRET not in text
        and "731" not in text
    )


def test_draft_refuses_what_has_no_names(tmp_path: Path, secret_table: pa.Table) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bare.csv").write_text(f"731,{SECRET}\n")
    pq.write_table(secret_table, tmp_path / "t.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-20])
    (tmp_path / "hollow").mkdir()
    for name in ("empty.csv", "bare.csv", "cut.parquet", "absent.parquet", "hollow"):
        with pytest.raises(DataError) as caught:
            draft(tmp_path / name)
        assert SECRET not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.parametrize("content", ["age,bill\n3,5\n", "age: a\n3\n", b"PAR1\xff\x00"])
def test_a_table_in_a_schemas_place_is_called_no_schema(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "clean.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SchemaError, match="is a table and no schema; `nacre schema init DATA` drafts one"):
        load_schema(path)


def test_a_filled_in_draft_is_a_schema(schema: Schema, table: pa.Table, tmp_path: Path) -> None:
    pq.write_table(table.select(["smoker"]), tmp_path / "s.parquet")
    assert make(draft(tmp_path / "s.parquet")).modelled.keys() == {"smoker"}
    assert make(EVERY_KIND) == schema


def test_a_schema_that_refuses_has_no_value_for_what_it_does_not_list():
    country = {"type": "categorical", "values": ["prt", "other"], "outside": "other", "other": "other"}
    columns = {"country": country, "age": {"type": "integer", "min": 0, "max": 9, "outside": "clip"}}
    strict = Schema.model_validate({"name": "hotel", "columns": columns}).refusing()
    assert strict.columns["country"].outside == strict.columns["age"].outside == "refuse"
    assert strict.columns["country"].other is None and strict.columns["country"].values == ("prt", "other")
