"""A draft with documentation: what is known is filled in, what is not stays a TODO, and no value is looked at."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyarrow import csv

from dpmodels.authoring.column import drafted
from dpmodels.authoring.draft import OF_DATES, PublicFacts, draft
from dpmodels.authoring.facts import Bound, Facts, between
from dpmodels.authoring.faults.misspelt import KINDS
from dpmodels.authoring.header import DoubtfulNames
from dpmodels.authoring.lint import parse
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError, NacreError, Unsuitable
from dpmodels.reading.load import load_parts
from tests.kit.errors import refused
from tests.kit.every_kind import make, one
from tests.kit.open_tables import workbook
from tests.kit.support import run_cli

YEARS = {"min": date(1970, 1, 1), "max": date(2099, 12, 31)}
SECRET = "unique-private-string-8412"
TABLE = pa.table(
    {
        "age": pa.array([731, None], pa.int16()),
        "Fee": pa.array([913.75, 2.5]),
        "ward": pa.array([SECRET, "b"]),
        "born": pa.array([date(1931, 7, 9), date(1955, 1, 1)]),
        "seen": pa.array([datetime(1931, 7, 9)] * 2, pa.timestamp("us")),
        "code 4821 x": pa.array([1, 2], pa.int8()),
    }
)
DICTIONARY = f"""\
name,type,min,max,values,description,nullable
age,int,0,120,,Age in years: TODO # now\u2028x,yes
fee,"decimal(8,2)",0,999.99,,,
ward,text,,,no|012|north,,
born,date,1900-01-01,2020-12-31,,,
code 4821 x,int,0,9,,,
unheard,int,0,1,,{"long " * 200},
"""


OPEN = {"min": "TODO", "max": "TODO"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    pq.write_table(TABLE, tmp_path / "data" / "t.parquet")
    TABLE.to_pandas().to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "d.csv").write_text(DICTIONARY)
    return tmp_path


@pytest.mark.parametrize("data", ["data", "data/t.parquet", "data.csv"])
def test_what_is_documented_is_filled_in_and_the_rest_stays_open(folder: Path, data: str) -> None:
    with pytest.raises(DoubtfulNames):  # a name with four digits in a row, which the documentation tells for a name
        draft(folder / data)
    text = draft(folder / data, public_facts=PublicFacts(folder / "d.csv"))
    assert not [value for value in (SECRET, "731", "913", "1931", "1955") if value in text]
    schema, faults = parse(text)
    assert schema is None and {fault.where.split(".")[1] for fault in faults} == {"seen"}
    whole = draft(folder / data, public_facts=PublicFacts(folder / "d.csv", accept=True))
    if data == "data.csv":  # nobody says what `seen` holds
        whole = whole.replace("{type: TODO}", "{type: datetime, min: 1970-01-01, max: 2099-12-31}")
    columns = make(whole).columns
    assert columns["age"].model_dump(exclude_defaults=True).items() >= {"min": 0, "max": 120, "nullable": True}.items()
    assert columns["Fee"].model_dump(exclude_defaults=True).items() >= {"max": 999.99, "round": 2}.items()
    assert columns["ward"].values == ("no", "012", "north") and columns["born"].max == date(2020, 12, 31)
    (source,) = make(whole).sources
    assert source.startswith("documented in a data dictionary: d.csv, sha256 ")
    assert make(make(whole).to_yaml()) == make(whole) and make(whole).hash != make(_without(whole, "sources")).hash


def _without(text: str, key: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith(key))


def test_a_public_sample_fills_in_what_the_document_does_not_and_the_schema_says_so(folder: Path) -> None:
    public = {"age": [1, 99], "seen": [datetime(2020, 1, 1), datetime(2021, 1, 1)], "ward": ["b", "a"]}
    pq.write_table(pa.table(public), folder / "public.parquet")
    text = draft(folder / "data", public_facts=PublicFacts(folder / "d.csv", folder / "public.parquet"))
    schema = make(text.replace(", confirm: TODO", ""))
    assert schema.columns["age"].max == 120 and schema.columns["seen"].max == datetime(2021, 1, 1)
    assert [source.split(":")[0] for source in schema.sources] == [
        "documented in a data dictionary",
        "derived from a public sample",
    ]


def test_the_data_is_no_documentation_of_itself(folder: Path) -> None:
    (folder / "link.parquet").symlink_to(folder / "data" / "t.parquet")
    for data, given in (
        ("data/t.parquet", "data/t.parquet"),
        ("data/t.parquet", "link.parquet"),
        ("data", "data/t.parquet"),
        ("data", "link.parquet"),
    ):
        with pytest.raises(Unsuitable, match="is the data itself"):
            draft(folder / data, public_facts=PublicFacts(sample=folder / given))
    with pytest.raises(Unsuitable, match="does not exist"):
        draft(folder / "data", public_facts=PublicFacts(folder / "none.csv"))


def test_a_description_cannot_become_a_key(folder: Path) -> None:
    (folder / "d.csv").write_text('name,description\nage,"a\nb\r\x85c: 1\u2029 d\x00"\n')
    text = draft(folder / "data", True, PublicFacts(folder / "d.csv"))
    assert "  # a b c: 1 d\n" in text


@pytest.mark.parametrize("data", ["t.csv", "t.jsonl", "t.xlsx", "t.parquet"])
def test_a_draft_says_why_types_are_open_and_a_sample_closes_them(tmp_path: Path, data: str) -> None:
    write_rows(tmp_path / data, [{"age": 3, "ward": "z", "born": "1931-07-09"}])
    open_draft = draft(tmp_path / data)
    assert ("# Types are open or suggested: such a source" in open_draft) == (
        data != "t.parquet"
    ) and "731" not in open_draft
    public = [{"age": 17 + i, "ward": "a\nb" if i % 2 else "c", "born": f"2020-01-{i + 1:02}"} for i in range(20)]
    for sample in ("s.csv", "s.jsonl", "s.xlsx", "s.parquet"):
        write_rows(tmp_path / sample, public)
        text = draft(tmp_path / data, public_facts=PublicFacts(sample=tmp_path / sample))
        columns = make(text).columns
        assert (columns["age"].min, columns["age"].max) == (17, 36) and set(columns["ward"].values) == {"a\nb", "c"}
        assert columns["born"].max == date(2020, 1, 20) and columns["born"].resolution == "day", sample
        assert "Types are open" not in text and f"derived from a public sample: {sample}, sha256 " in text


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows, in which days are text but in Parquet, in the format that an ending says."""
    frame = pd.DataFrame(rows)
    if path.suffix == ".parquet":
        frame.assign(born=pd.to_datetime(frame["born"]).dt.date).to_parquet(path, index=False)
    elif path.suffix == ".xlsx":
        workbook(path, [list(frame), *frame.values.tolist()])
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, lineterminator="\n")


def test_a_sheet_of_a_sample_may_be_named_and_keeps_nulls(tmp_path: Path) -> None:
    workbook(tmp_path / "s.xlsx", other=[["x"]], public=[["age", "ward"], [1, "a"], [None, "b"], [3, "a"], [4, "b"]])
    (tmp_path / "t.csv").write_text("age,ward\n1,a\n")
    text = draft(tmp_path / "t.csv", public_facts=PublicFacts(sample=tmp_path / "s.xlsx#public"))
    assert make(text).columns["age"].nullable and not make(text).columns["ward"].nullable
    with pytest.raises(NacreError, match="holds several sheets"):
        draft(tmp_path / "t.csv", public_facts=PublicFacts(sample=tmp_path / "s.xlsx"))
    workbook(tmp_path / "f.xlsx", [["age", "ward"], ["=A1", "a"]])
    with pytest.raises(Unsuitable, match="holds a formula"):
        draft(tmp_path / "t.csv", public_facts=PublicFacts(sample=tmp_path / "f.xlsx"))
    (tmp_path / "d.jsonl").write_text("[1, 2]")
    with pytest.raises(Unsuitable, match="nor one of JSON lines or Excel, with rows, which a public sample must be"):
        draft(tmp_path / "t.csv", public_facts=PublicFacts(sample=tmp_path / "d.jsonl"))


@pytest.mark.parametrize("data", ["t.jsonl", "t.parquet"])
def test_a_column_of_parts_is_named_by_the_draft_as_a_run_names_it(tmp_path: Path, data: str) -> None:
    rows = [{"age": 3, "stay": {SECRET: 1}, "seen": [SECRET]}]
    if data == "t.parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / data)
    else:
        (tmp_path / data).write_text(json.dumps(rows[0]) + "\n")
    text = draft(tmp_path / data)
    said = "; give every part a column of its own, or leave it out with `type: identifier`"
    assert text.count(said) == 2 and SECRET not in text
    assert f"  # holds values made of parts, which no column does{said}\n  stay: {{type: TODO}}\n" in text
    whole = one("{type: integer, min: 0, max: 9}").model_dump()["columns"]["x"]
    schema = Schema.model_validate({"name": "a", "columns": dict.fromkeys(("age", "stay", "seen"), whole)})
    with refused(DataError, said, column="stay"):
        load_parts(tmp_path / data, schema, 9)


NUMBER, DAY = pa.float64(), pa.date32()


@pytest.mark.parametrize(
    ("found", "facts", "keys"),
    [
        (pa.int32(), Facts(low=Bound(0.5), high=Bound(9.5)), {"type": "integer", "min": 1, "max": 9, "dtype": "int32"}),
        (pa.int64(), Facts(low=Bound(0, True), high=Bound(9, True)), {"type": "integer", "min": 1, "max": 8}),
        (
            NUMBER,
            Facts(low=Bound(0, True), high=Bound(9, True)),
            {"type": "number", "min": 0.0, "max": 9.0, "zero_inflated": True},
        ),
        (
            NUMBER,
            Facts(low=Bound(0, True), high=Bound(0.3), decimals=1),
            {"type": "number", "min": 0.1, "max": 0.3, "round": 1},
        ),
        (NUMBER, Facts(kind="integer", low=Bound(0), high=Bound(5)), {"type": "integer", "min": 0, "max": 5}),
        (pa.float32(), Facts(low=Bound(0)), {"type": "number", "min": 0.0, "max": "TODO", "dtype": "float32"}),
        (pa.int8(), Facts(values=("1", "2")), {"type": "categorical", "values": [1, 2], "dtype": "int8"}),
        (pa.int64(), Facts(kind="boolean"), {"type": "categorical", "values": [0, 1]}),
        (pa.int64(), Facts(values=(False, True)), {"type": "categorical", "values": [0, 1]}),
        (NUMBER, Facts(values=(0, 1)), {"type": "categorical", "values": [0, 1]}),
        (pa.string(), Facts(values=(1, 2)), {"type": "categorical", "values": ["1", "2"]}),
        (pa.string(), Facts(kind="integer", low=Bound(0)), {"type": "categorical", "values": "TODO"}),
        (pa.string(), Facts(kind="identifier"), {"type": "identifier"}),
        (NUMBER, Facts(kind="identifier"), {"type": "number", "min": "TODO", "max": "TODO"}),
        (pa.bool_(), Facts(values=(0, 1), nullable=True), {"type": "boolean", "nullable": True}),
        (None, Facts(kind="boolean"), {"type": "boolean"}),
        (None, Facts(values=(True, False)), {"type": "boolean"}),
        (None, Facts(kind="text", values=("a", "b")), {"type": "categorical", "values": ["a", "b"]}),
        (None, Facts(kind="date"), {"type": "datetime", **YEARS, "resolution": "day", "confirm": "TODO"}),
        (
            DAY,
            Facts(low=Bound(date(2020, 1, 1), True), high=Bound(datetime(2021, 1, 1, 5))),
            {"type": "datetime", "min": date(2020, 1, 2), "max": date(2021, 1, 1), "resolution": "day"},
        ),
        (DAY, Facts(low=Bound(3)), {"type": "datetime", **YEARS, "resolution": "day", "confirm": "TODO"}),
        (pa.int64(), Facts(low=Bound(9), high=Bound(1)), {"type": "integer", "min": "TODO", "max": "TODO"}),
        (pa.int8(), Facts(low=Bound(0), high=Bound(300)), {"type": "integer", "min": 0, "max": 300}),
        (pa.int64(), Facts(low=Bound(0), high=Bound(2**60)), {"type": "integer", "min": 0, "max": "TODO"}),
        (pa.string(), Facts(values=("a", True)), {"type": "categorical", "values": "TODO"}),
        (pa.decimal128(8, 2), Facts(kind="number"), {**OPEN, "type": "number", "round": 2, "dtype": "decimal(8, 2)"}),
        (pa.time32("s"), Facts(), {**OPEN, "type": "integer", "dtype": "time32[s]"}),
        (pa.duration("us"), Facts(high=Bound(9)), {**OPEN, "type": "integer", "max": 9, "dtype": "duration[us]"}),
    ],
)
def test_the_type_in_the_file_and_the_document_make_one_column(
    found: pa.DataType | None, facts: Facts, keys: dict[str, Any]
) -> None:
    made = drafted("x", found, facts)
    assert made.keys == keys
    if "TODO" not in keys.values():
        assert Schema.model_validate({"name": "a", "columns": {"y": {"type": "boolean"}, "x": keys}})


@pytest.mark.parametrize("found", [None, pa.int64(), NUMBER, pa.float32(), DAY, pa.timestamp("us"), pa.string()])
def test_no_odd_fact_ends_a_draft(found: pa.DataType | None) -> None:
    odd = [Facts(low=Bound(date.max, True), high=Bound(date.min, True)), Facts(decimals=10**6, low=Bound(1e299))]
    odd += [between("inf", 10**400), between("9" * 5000, "-1e999"), Facts(values=(float("nan"), "nan", "inf", 1e308))]
    odd += [Facts(kind="moment", low=Bound(datetime(1, 1, 1, tzinfo=UTC))), Facts(kind="number", values=("x",))]
    for facts in odd:
        for accept in (False, True):
            made = drafted("x", found, facts, accept)
            assert made.keys["type"] in ("TODO", *KINDS) and isinstance(made.remarks, tuple)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_text_that_is_documented_as_boolean_is_boolean_since_a_run_reads_it_so(kind: pa.DataType) -> None:
    for values in (None, (False, True), ("Yes", "no"), ("y", "n")):
        made = drafted("works", kind, Facts(kind="boolean", values=values, nullable=True))
        assert made.keys == {"type": "boolean", "nullable": True} and not made.remarks
    assert drafted("works", kind, Facts(kind="boolean", values=("1", "2"))).keys["values"] == ["1", "2"]


def test_a_type_that_says_yes_or_no_goes_before_the_type_of_a_text_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"works": ["yes", "no"], "age": [4, 5]}), tmp_path / "t.parquet")
    (tmp_path / "d.csv").write_text("name,type\nworks,boolean\n")
    for facts in (PublicFacts(types="works=boolean"), PublicFacts(document=tmp_path / "d.csv")):
        text = draft(tmp_path / "t.parquet", public_facts=facts)
        assert "works: {type: boolean}" in text and "not what the file holds" not in text


def test_what_cannot_be_used_is_told() -> None:
    assert "not read: a CHECK" in drafted("x", pa.int64(), Facts(unread=("a CHECK",))).remarks
    assert "documented as number, which is not what the file holds" in drafted("x", DAY, Facts(kind="number")).remarks
    assert Decimal(str(drafted("x", NUMBER, Facts(high=Bound(0.29), decimals=2)).keys["max"])) == Decimal("0.29")


TABLES = {
    "integers": pa.array([0, 1]),
    "numbers": pa.array([0.0, 1.0]),
    "texts": pa.array(["0", "1"]),
    "booleans": pa.array([False, True]),
}


@pytest.mark.parametrize("written", ["csv", "parquet"])
def test_values_that_a_codebook_lists_are_of_the_type_that_the_table_has(tmp_path: Path, written: str) -> None:
    table = pa.table({name: column for name, column in TABLES.items() if written == "parquet" or name == "integers"})
    data, book = tmp_path / f"t.{written}", tmp_path / "book.csv"
    (csv.write_csv if written == "csv" else pq.write_table)(table, data)
    book.write_text("name,type,values\n" + "".join(f"{name},categorical,0|1\n" for name in table.column_names))
    text = draft(data, public_facts=PublicFacts(document=book), affirmed=True)
    schema, faults = parse(text)
    assert not faults and "not what the file holds" not in text
    wanted = {"integers": int, "numbers": int, "texts": str}
    for name, column in schema.columns.items():
        assert {type(value) for value in column.values} == {wanted.get(name, bool)}, name
    (made,) = [part.reveal() for part in load_parts(data, schema, 64)]
    assert sum(len(batch) for batch in made) == 2


def test_a_documented_amount_keeps_its_zeros_without_a_question(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("bill,age\n0,3\n")
    (tmp_path / "doc").mkdir()
    words = "name,type,min,max{}\nbill,number,0,100000{}\nage,int,0,120{}\n"
    (tmp_path / "doc" / "d.csv").write_text(words.format("", "", ""))
    text = draft(tmp_path / "t.csv", public_facts=PublicFacts(tmp_path / "doc" / "d.csv"))
    column = make(text).columns["bill"]
    assert column.zero_inflated and not column.log and "target: COLUMN" in text
    assert "zero_inflated: false if none is 0" in text
    (tmp_path / "doc" / "d.csv").write_text(words.format(",zeros,scale", ",yes,log", ",,"))
    column = make(draft(tmp_path / "t.csv", public_facts=PublicFacts(tmp_path / "doc" / "d.csv"))).columns["bill"]
    assert column.zero_inflated and column.log


def test_a_draft_of_two_dates_says_how_to_keep_what_lies_between_them(tmp_path: Path) -> None:
    days = pa.array([], pa.date32())
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    pq.write_table(pa.table({"start": days, "age": pa.array([], pa.int64())}), one)
    pq.write_table(pa.table({"start": days, "end": days}), two)
    assert OF_DATES not in draft(one) and OF_DATES in draft(two)


def test_a_contract_whose_formula_is_of_columns_that_the_file_has_not_leaves_them_open(tmp_path: Path) -> None:
    contract = tmp_path / "stays.odcs.yaml"
    columns = [
        {"name": "start", "logicalType": "date"},
        {"name": "days", "logicalType": "integer"},
        {"name": "end", "logicalType": "date", "transformSourceObjects": ["start", "days"]},
    ]
    columns[2]["transformLogic"] = "add_days(start, days)"  # type: ignore[assignment]
    table = {"name": "stays", "properties": columns}
    contract.write_text(json.dumps({"kind": "DataContract", "apiVersion": "v3.1.0", "schema": [table]}))
    pq.write_table(
        pa.table({"start": pa.array([], pa.date32()), "end": pa.array([], pa.date32())}), tmp_path / "s.parquet"
    )
    text = draft(tmp_path / "s.parquet", public_facts=PublicFacts(contract))
    assert (
        "derived" not in text.split("columns:")[1].split("# The types")[0]
        and "add_days(start, days), of columns" in text
    )


@pytest.mark.parametrize(
    ("dtype", "cells", "said"),
    [
        (pa.int64(), "range\nx,99-1\n", "99 to 1"),
        (pa.int64(), "min,max\nx,9,1\n", "9 to 1"),
        (NUMBER, "range\nx,10 to 2.5\n", "10 to 2.5"),
        (DAY, "min,max\nx,2020-12-31,2020-01-01\n", "2020-12-31 to 2020-01-01"),
    ],
)
def test_a_reversed_range_leaves_no_bound_and_is_said(
    tmp_path: Path, dtype: pa.DataType, cells: str, said: str
) -> None:
    (tmp_path / "d.csv").write_text(f"name,{cells}")
    pq.write_table(pa.table({"x": pa.array([], dtype)}), tmp_path / "t.parquet")
    text = draft(tmp_path / "t.parquet", public_facts=PublicFacts(document=tmp_path / "d.csv"))
    sentence = f"column x: the documented range {said} is reversed, and neither bound is taken"
    assert sum(line.startswith(f"# WARNING: {sentence}") for line in text.splitlines()) == 1
    keys = yaml.safe_load(text)["columns"]["x"]
    assert {str(keys["min"]), str(keys["max"])} == {"TODO"} or keys["confirm"] == "TODO"  # as years are suggested
    assert not {str(keys["min"]), str(keys["max"])} & set(said.split(" to "))
    code, _, err = run_cli("schema", "init", tmp_path / "t.parquet", "--from", tmp_path / "d.csv", "--header")
    assert code == 0 and f"WARNING: {sentence}" in err


def test_a_range_of_one_value_is_not_reversed() -> None:
    column = drafted("x", pa.int64(), Facts(low=Bound(1), high=Bound(1)))
    assert column.keys == {"type": "integer", "min": 1, "max": 1} and not column.remarks
