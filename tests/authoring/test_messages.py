"""What a newcomer gets wrong is named by its cause, and with what to do about it."""

import gzip
import json
import os
import subprocess
import threading
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpmodels.authoring.draft import draft
from dpmodels.authoring.lint import lint, load_to_check, parse
from dpmodels.authoring.suggest import suggestion
from dpmodels.codec.encode import Codec
from dpmodels.codec.rules import Conditions
from dpmodels.contract.documents import Documents, Encoder
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.written_conditions import read_condition
from dpmodels.errors import DataError, NacreError, SchemaError, Unsuitable
from dpmodels.gate.suite import suite_for
from dpmodels.privacy import Sensitive
from dpmodels.reading.data_files import find_files
from dpmodels.reading.frames import load_given
from dpmodels.reading.ingest import faults_in
from dpmodels.reading.load import load_parts
from dpmodels.text.candidates import Recipe, make_candidates
from dpmodels.text.reading import load_documents
from dpmodels.text.sentences import split_sentences
from tests.kit.errors import refused

SCHEMA = Schema.model_validate_json(
    '{"name": "visits", "columns": {"ward": {"type": "categorical", "values": ["north", "south"]},'
    '"dose": {"type": "number", "min": 0, "max": 60}, "seen": {"type": "datetime", "min": "2024-01-01",'
    '"max": "2024-12-31", "resolution": "day", "nullable": true}}}'
)
GOOD = "ward,dose,seen\nnorth,1.5,2024-05-01\n"


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        for part in load_parts(str(path), SCHEMA, 100):
            deque(part.reveal(), maxlen=0)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (GOOD.encode("utf-16"), "is in UTF-16; save it as UTF-8"),
        (GOOD.replace(",", ";").replace("1.5", "1,5").encode(), "column dose: must hold numbers in every row"),
        (GOOD.replace("1.5", "1,5").encode(), "as where a decimal comma parts a number in two"),
        (
            GOOD.replace(",", ";").replace("1.5", "1,5").encode(),
            "schema says: 1.204,50 is read with `text: {decimal",
        ),
        (GOOD.replace("1.5", "1,5").encode(), "newline=''), delimiter=','); names = len(next(rows));"),
        (
            GOOD.replace("1.5", '"1.234,5"').encode(),
            'says: £1,204.50 is read with `text: {decimal: ".", thousands: ",", currency',
        ),
        (GOOD.replace("1.5", '"1.234,5"').encode(), "of words among numbers see docs/errors.md#numbers-that-are-none"),
        (GOOD.replace("1.5", "£1.5").encode(), 'thousands: ",", currency: "£"}`'),
        (GOOD.replace("2024-05-01", "1.5.2024").encode(), 'as `text: {date_format: "%d.%m.%Y"}`'),
        (GOOD.replace("2024-05-01", "01.05.2024").encode(), "dates in every row, as the schema says, written as 2026-"),
        (GOOD.replace("2024-05-01", "5/1/2024").encode(), "(not 25.12.2026 or 12/25/2026)"),
        (GOOD.replace("ward", "Ward").encode(), "write it as the schema does"),
        (GOOD.replace("ward", ",ward").replace("north", "0,north").encode(), "(write the file with index=False)"),
    ],
)
def test_a_text_file_is_refused_by_its_cause(tmp_path: Path, content: bytes, cause: str) -> None:
    said = refusal(tmp_path / "t.csv", content)
    assert cause in said and "double" not in said and "timestamp" not in said and "north" not in said


@pytest.mark.parametrize("delimiter", [";", ","])
def test_columns_of_one_fault_are_named_in_one_sentence(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "t.csv"
    columns = {name: {"type": "number", "min": 0, "max": 9000} for name in ("dose", "fee", "tax", "age")}
    days = {"seen": {"type": "datetime", "min": "2024-01-01", "max": "2024-12-31"}}
    path.write_text(
        delimiter.join([*columns, "seen"]) + '\n"1,5";"1.234,5";"2,5";3;2024-01-01\n'.replace(";", delimiter)
    )
    schema = Schema.model_validate_json(json.dumps({"name": "t", "columns": columns | days}))
    faults = list(faults_in(path, schema, 100))
    assert len(faults) == 1 and faults[0].count("`text: {decimal") == 2 and len(faults[0].split()) < 60
    assert faults[0].startswith("column dose: must hold numbers in every row, as the schema says, and so must fee, tax")
    assert (faults[0].index("1.204,50") < faults[0].index("£1,204.50")) == (delimiter == ";")
    path.write_text(path.read_text().replace("2024-01-01", "1.1.2024"))
    dates = list(faults_in(path, schema, 100))
    assert len(dates) == 2 and dates[0] == faults[0] and dates[1].startswith("column seen: must hold dates")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_lines_of_another_number_of_fields_are_printed_by_the_command_that_a_refusal_says(
    tmp_path: Path, delimiter: str, name: str
) -> None:
    quoted = '"nor\nth";1' if name == "t.csv" else 'nor"th;1'
    rows = ["ward;dose;seen", f"{quoted};2024-05-01", "", "north;1;5;2024-05-01", "south;1;2024-05-01", "north;1"]
    said = refusal(tmp_path / name, "\n".join(rows).replace(";", delimiter).encode())
    command = said.partition("where the file lies: ")[2]
    printed = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True).stdout
    lines = [5, 7] if name == "t.csv" else [4, 6]
    assert printed == f"{lines}\n" and not any(f" {line} " in said for line in lines)


@pytest.mark.parametrize("name", ["a'b.csv", "a$b.csv", "a.csv.gz"])
def test_no_command_is_said_for_a_name_that_a_shell_reads_otherwise(tmp_path: Path, name: str) -> None:
    content = GOOD.replace("1.5", "1,5").encode()
    said = refusal(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content)
    assert "more or fewer fields" in said and "python3" not in said


def test_a_draft_of_an_index_that_pandas_wrote_names_it(tmp_path: Path) -> None:
    pd.DataFrame({"ward": ["north"], "dose": [1.5]}).to_csv(tmp_path / "t.csv")
    with refused(DataError, r"an index that pandas wrote .*index=False"):
        draft(tmp_path / "t.csv")


def test_text_for_dates_and_numbers_says_how_pandas_reads_it() -> None:
    frame = pd.DataFrame({"ward": ["north"], "dose": [1.5], "seen": ["2024-05-01"]})
    for column, values, call in (("seen", ["2024-05-01"], "to_datetime"), ("dose", ["1.5"], "to_numeric")):
        given: Any = {"seen": pd.to_datetime(frame.seen), column: values}
        rows = load_given(Sensitive(frame.assign(**given)))
        with refused(DataError, f"it holds text; turn it into .* as pandas.{call} does") as caught:
            Codec(SCHEMA).check_types(rows.reveal().schema)
        assert "string" not in str(caught.value)


def test_text_for_numbers_says_how_decimal_commas_are_read(tmp_path: Path) -> None:
    rows = load_given(Sensitive(pd.DataFrame({"ward": ["north"], "dose": ["1,5"], "seen": [pd.Timestamp(2024, 5, 1)]})))
    with refused(DataError, r'or read its file with `read_csv\(..., decimal=",", thousands="\."\)`'):
        Codec(SCHEMA).check_types(rows.reveal().schema)
    (tmp_path / "t.csv").write_text("dose;ward\n4.503,83;north\n")
    assert pd.read_csv(tmp_path / "t.csv", sep=";", decimal=",", thousands=".").dose.dtype == float


def test_nulls_that_may_not_be_are_mended_by_what_the_column_has() -> None:
    text = (
        "name: t\nunit: record\ncolumns:\n  a: {type: boolean}\n  b: {type: boolean, nullable: true, max_null_share: 0}"
    )
    schema, _ = parse(text)
    fixes = {one.column: one.fix(of_users=False) for one in suite_for(schema, raw=True) if "Null" in one.expectation}
    assert fixes["a"] == "to fix it: write `nullable: true` in the schema"
    assert fixes["b"] == "to fix it: raise its `max_null_share` in the schema"


def test_values_in_other_letters_are_a_cause_that_is_named() -> None:
    (rule,) = [one for one in suite_for(SCHEMA, raw=True) if one.column == "ward" and "InSet" in one.expectation]
    assert "upper and lower case and spaces count" in rule.fix(of_users=False)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "dose>3 and ward=north",
            "only `dose>3` is understood, and not `ward=north` behind it: give each by itself, as 'dose>3' and 'ward=n",
        ),
        ("dose>3 ward=north", "`dose>3` is understood, and not `ward=north` behind it"),
        ("dose>3ward=north seen<2024-05-01", "not `ward=north` and `seen<2024-05-01` behind it"),
        ("dose>3&", "nothing stands beside `&`; write `dose>3`"),
        ("dose>3 and ", "nothing stands beside `and`; write `dose>3`"),
        ("dose>3 andward=north", "give each by itself, as 'dose>3' and 'ward=north'"),
        ("ward=north,dose>3", "`ward=north` is understood, and not `dose>3` behind it"),
        (
            "dose>3 wards=north",
            "only `dose>3` is understood, since each is given by itself; behind it, `wards=north`: there is no",
        ),
        ("dose>3 or ward=north", "conditions cannot be joined by `or`; draw rows for each by itself"),
        ("dose>3 4", "3 4 is no number"),
        ("ward=north wing", "north wing is no value of column ward"),
        ("ward north", "a sign is missing between `ward` and `north`; write such as `ward=north`"),
        ("ward nowhere", "write such as `ward=north`"),
        (
            "nothing",
            "is no condition: write a column (ward, dose, seen), one of = != < <= > >=, and a value, such as `",
        ),
        ("dose>3, ward=north", "as 'dose>3' and 'ward=north'"),
        ("dose>3&ward=north", "as 'dose>3' and 'ward=north'"),
        ("dose>3 or dose<1", "cannot be joined by `or`; draw rows for each by itself, as 'dose>3' and 'dose<1'"),
        ("dose>3,5", "write 3.5"),
        ("dose>=1.000,50", "write 1000.50"),
        ("dose>=1,000", "write 1000, or 1.000"),
        ("seen>=01.06.2024", "write 2024-06-01"),
        ("seen>=01/06/2024", "write 2024-06-01 or 2024-01-06"),
        ("seen>=06/31/2024", "06/31/2024 is no moment that column seen tells"),
        ("dose >>> 3", "`>>>` is no sign; write one of <= >= != = < >, such as `dose>0.0`"),
        ("ward in (north, south)", "`in` is not known; draw rows for each by itself, as `ward=north` and `ward=south`"),
        (
            "ward not in ('north', 'south')",
            "give a condition for each value, `ward!=north` and `ward!=south`: all",
        ),
        ("dos=>3", "`dos=>3`: there is no column dos; did you mean `dose`?"),
        ("3 => dose", "`=>` is no sign; write one of"),
        ("=> 3", "`=>` is no sign; write one of"),
        ("seen is null", "`seen is null`: write `seen=null`"),
        ("SEEN IS NOT NULL", "write `seen!=null`"),
        ("seen <> None", "write `seen!=null`"),
        ("dose is null", "column dose is never null, so leave this condition out"),
        ("dose between 1 and 3", "`between` is not known; give two conditions, `dose>=1` and `dose<=3`: all must hold"),
        ("dose not between 1 and 3", "draw rows for each by itself, as `dose<1` and `dose>3`"),
        ("3 <= dose", "the column comes first: write `dose>=3`"),
        ("'north' = ward", "the column comes first: write `ward=north`"),
        ("1 < dose <= 3", "give two conditions, `dose>1` and `dose<=3`: all must hold"),
        ("3 > Dose > 1", "give two conditions, `dose<3` and `dose>1`: all must hold"),
        ("dose > 1 and dose < 3", "as 'dose > 1' and 'dose < 3'"),
        ("dose >", "the value is missing behind the sign; write such as `dose>0.0`"),
        ("dose =", "the value is missing behind the sign; write such as `dose>=0.0`"),
        ("dose <", "write such as `dose<60.0`"),
        ("ward !=", "write such as `ward!=north`"),
        ("> 3", "the column is missing before the sign; write such as `"),
        ("ward = 'north'", "write the value without quotes: `ward = north`"),
        ("Ward=north", "the column is called ward"),
        ("ward=North", "North is no value of column ward; it has north, south"),
    ],
)
def test_a_condition_is_refused_by_its_cause(text: str, cause: str) -> None:
    with pytest.raises(Unsuitable) as caught:
        Conditions(SCHEMA, [text])
    assert cause in str(caught.value)


@pytest.mark.parametrize(("value", "state"), [("True", 1), ("TRUE", 1), ("False", 0), ("false", 0)])
def test_a_boolean_is_met_as_python_and_spreadsheets_write_it(value: str, state: int) -> None:
    columns = Schema.model_validate_json(
        '{"name": "t", "columns": {"back": {"type": "boolean"}, "says": {"type": "categorical", "values": ["true"]}}}'
    ).columns
    assert read_condition(f"back={value}", columns).value == state
    with pytest.raises(Unsuitable, match="1 is no value of column back"):
        read_condition("back=1", columns)
    with pytest.raises(Unsuitable, match="True is no value of column says"):
        read_condition("says=True", columns)


def letters(folder: Path, rows: list[str], name: str = "letters.csv") -> str:
    """Return why public documents make no candidates."""
    file = folder / name
    pd.DataFrame({"id": range(len(rows)), "text": rows}).to_csv(file, index=False)
    contract = Documents(name="letters", text="text", encoder=Encoder(name="hashed", dim=8))
    with pytest.raises(NacreError) as caught:
        make_candidates(Cut(file, contract), contract.encoder, Recipe())
    return str(caught.value)


class Batch:
    """Documents that are cut and not embedded: why there are too few is told by the counts alone."""

    def __init__(self, counts: list[int]) -> None:
        self.counts = np.array(counts)

    def means(self) -> Any:
        return np.zeros((len(self.counts), 8), dtype=np.float32)


class Cut:
    def __init__(self, file: Path, contract: Documents) -> None:
        self.documents, self.contract = load_documents(file, contract).reveal(), contract

    def __iter__(self) -> Any:
        for batch in self.documents:
            yield Batch([len(split_sentences(text, "en", 200)) for text in batch["content"].to_pylist()])


def test_too_few_long_public_documents_are_told_from_sentences_in_one_row(tmp_path: Path) -> None:
    sentence = "The patient slept well and ate a little."
    one = letters(tmp_path, [" ".join([sentence] * 40)])
    assert "there is 1 document, the longest of 40 sentences" in one and "a row for each document" in one
    short = letters(tmp_path, [sentence] * 40)
    assert "there are 40 documents, the longest of 1 sentence" in short and "a row is a document" in short


def test_a_file_of_plain_text_is_told_to_become_a_table(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("The patient slept well. " * 40)
    (tmp_path / "study.dta").write_text("x")
    with refused(DataError, r'; in Python `pandas.read_stata\("FILE.dta"\).to_parquet\("FILE.parquet"\)` converts it$'):
        find_files(str(tmp_path / "study.dta"))
    with refused(DataError, "a text file has no columns: write a CSV file with a row for each document"):
        load_documents(
            tmp_path / "letters.txt", Documents(name="letters", text="text", encoder=Encoder(name="hashed", dim=8))
        )


def test_a_file_of_one_column_of_texts_is_told_of_its_ids(tmp_path: Path) -> None:
    pd.DataFrame({"text": ["It rained."]}).to_csv(tmp_path / "letters.csv", index=False)
    with refused(DataError, r"is in the contract, .* something else, say so", column="id"):
        load_documents(
            tmp_path / "letters.csv", Documents(name="letters", text="text", encoder=Encoder(name="hashed", dim=8))
        )


@pytest.mark.parametrize("name", ["visit_day", "birthday", "busy day", "first_month_day"])
def test_a_day_of_something_may_be_a_date_and_gets_no_suggestion(name: str) -> None:
    assert suggestion(name, {"type": "TODO"}) is None


def test_a_day_of_a_month_gets_one() -> None:
    for name in ("day", "day_of_month", "visit_day_of_month", "mday"):
        found = suggestion(name, {"type": "TODO"})
        assert found is not None and (found.keys["min"], found.keys["max"]) == (1, 31)


def test_lint_notices_a_table_that_no_run_takes(tmp_path: Path) -> None:
    columns = "\n".join(f"  c{number}: {{type: boolean}}" for number in range(1001))
    (tmp_path / "wide.yaml").write_text(f"name: wide\nunit: record\ncolumns:\n{columns}\n")
    (fault,) = lint(tmp_path / "wide.yaml")
    assert fault.where == "columns" and "1,001 columns, and a run takes 1,000 at most" in fault.message


def test_types_are_named_in_words() -> None:
    says = r"its values in the schema are; it holds whole numbers; .* `values` without quotes$"
    with refused(DataError, says, column="ward"):
        Codec(SCHEMA).check_types(pa.schema({"ward": pa.int64(), "dose": pa.float64(), "seen": pa.date32()}))


@pytest.mark.parametrize(
    ("column", "cause"),
    [
        ("{type: number, min: 0, max: 20.000}", "columns.a.max: is not clear: 20.000 may mean 20 or 20000"),
        ("{type: number, min: -5.000, max: 2, round: 2}", "-5.000 may mean -5 or -5000"),
        (
            '{type: integer, min: 8, max: "20:00", dtype: "time32[s]"}',
            "min: is not clear: 8 is counted in the unit of `d",
        ),
        (
            '{type: integer, min: 0, max: 20, dtype: "time64[us]"}',
            'it is 20 us after midnight; write "20:00:00", in',
        ),
        ('{type: integer, min: "00:00:08", max: "20:00", dtype: "time32[s]"}', ""),
        ('{type: integer, min: 8, max: 20, dtype: "duration[s]"}', ""),
        ('{type: integer, min: "08:00", max: "24:00", dtype: "time32[s]"}', "max: must be a whole number"),
        ("{type: integer, min: 0, max: 20.000}", "must be a whole number; 20.000 may mean 20 or 20000"),
        ("{type: number, min: 0, max: 20.000E+0}", "is not clear: 20.000E+0 may mean 20 or 20000"),
        ("{type: number, min: 0, max: 20.000e-00}", "is not clear: 20.000e-00 may mean 20 or 20000"),
        ("{type: integer, min: 0, max: '4,000'}", "must be a whole number; write 4000"),
        ("{type: number, min: 0, max: 1,000,000}", "write 1000000 for 1,000,000"),
        ("{type: number, min: 0, max: 1,500}", "a comma ends a value"),
        ("{type: number, min: 0, max: '1,000,000'}", "must be a number; write 1000000"),
        ("{type: number, min: 0, max: 1.000.000}", "must be a number; write 1000000"),
        ("{type: number, min: 0, max: '1.234,50'}", "must be a number; write 1234.50"),
        ("{type: number, min: 0, max: '12,345'}", "must be a number; write 12345, or 12.345"),
        ("{typ: number, min: 0, max: 20}", "image, derived; did you mean `type` by `typ`"),
        ("{type: number, min: 0, max: 900, round: -2}", 'computed: "floor(a / 100)", keep: drop'),
        ("{type: derived, formula: '0,19 * net'}", "decimals have a point, as in 0.19"),
        ("{type: derived, formula: 0,19 * net}", "and 0.19 for 0,19"),
        ("{type: derived, formula: 'round(net * 0.19, 2)'}", "write `round: 2` beside the formula"),
        ("{type: number, min: 20,0, max: 90}", "so of `min: 20,0` write `min: 20.0`"),
        ("{type: boolean, values: [ja, nein]}", '{type: categorical, values: ["ja", "nein"]}`, of which the same'),
        ("{type: text}", "free text is `{type: identifier}`, and left out"),
        ("{nullable: true}", "free text is `{type: identifier}`, and left out"),
        ("{type: float}", "image, derived; write `type: number`"),
        ("{type: number, min: 0, max: 20.0}", ""),
        ("{type: number, min: 0, max: 20.000E+3}", ""),
        ("{type: number, min: 0.125, max: 1.500}", ""),
        ("{type: number, min: 1.000, max: 20.000, round: 3}", ""),
        ("{type: number, min: 0.000, max: 20000}", ""),
    ],
)
def test_a_number_as_other_countries_write_it_is_told_from_what_yaml_reads(
    tmp_path: Path, column: str, cause: str
) -> None:
    columns = f"  net: {{type: number, min: 0, max: 9, round: 2}}\n  a: {column}\n  b: {{type: boolean}}\n"
    (tmp_path / "t.yaml").write_text(f"name: t\ncolumns:\n{columns}")
    faults = [str(fault) for fault in lint(tmp_path / "t.yaml")]
    if cause:  # what holds rows to a schema refuses it in the same words
        with pytest.raises(SchemaError) as refused_schema:
            load_to_check(tmp_path / "t.yaml")
        assert [str(fault) for fault in refused_schema.value.faults] == faults
    assert len(faults) == bool(cause) and all(fault.startswith("line 4: ") and cause in fault for fault in faults)
    assert not any("4.000" in fault for fault in faults)  # which is no whole number


@pytest.mark.parametrize("bound", ["20.000", "20"])
def test_a_contract_is_read_once_so_that_one_from_a_pipe_is_held_to_the_same(tmp_path: Path, bound: str) -> None:
    pipe = tmp_path / "schema.yaml"
    os.mkfifo(pipe)
    text = f"name: t\ncolumns:\n  a: {{type: number, min: 0, max: {bound}}}\n"
    writer = threading.Thread(target=pipe.write_text, args=(text,), daemon=True)
    writer.start()
    assert [fault.message.partition(":")[0] for fault in lint(pipe)] == ["is not clear"] * (bound == "20.000")
    writer.join(10)
