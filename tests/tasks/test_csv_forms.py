"""A table that is written in a form comes back the same by a schema that says the form."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nacre
from dpmodels.codec.encode import Codec
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.contract.text_forms.written import with_form
from dpmodels.errors import InvalidArgument
from dpmodels.reading.load import load_parts
from tasks.stages.csv_forms import in_days, write_form
from tests.hand_off.make_golden import GOLDEN
from tests.kit.errors import refused
from tests.kit.every_kind import make
from tests.kit.support import run_cli

SCHEMA = """
name: visits
columns:
  nr: {type: identifier, unique: true}
  age: {type: integer, min: -5000000, max: 5000000, nullable: true}
  fee: {type: number, min: -5000000, max: 5000000, nullable: true}
  exact: {type: number, min: -5000000, max: 5000000, round: 2, dtype: "decimal(12, 2)"}
  step: {type: categorical, values: [0.5, 1.25, 1500]}
  ward: {type: categorical, values: [plain, "a;b", 'say "x"', "a,b", "1.5"], nullable: true}
  sick: {type: boolean}
  day: {type: datetime, min: 1950-01-01, max: 2050-12-31, resolution: day, nullable: true}
  moment: {type: datetime, min: 1950-01-01, max: 2050-12-31, resolution: minute}
  zoned: {type: datetime, min: 1950-01-01, max: 2050-12-31, resolution: minute, dtype: "timestamp[us, tz=Europe/Berlin]"}
  clock: {type: integer, min: 0, max: 86399, dtype: "time32[s]"}
  opened: {type: integer, min: 0, max: 86399000000, dtype: "time64[us]", resolution: minute}
  span: {type: integer, min: 0, max: 100000, dtype: "duration[s]"}
  tens: {type: derived, formula: fee * 2}
"""  # noqa: E501
MOMENTS = [datetime(1955, 6, 1, 23, 59), datetime(2021, 12, 31, 8, 30), datetime(2021, 1, 2), datetime(2000, 2, 29, 12)]
DAYS = [date(1955, 6, 1), date(2021, 12, 31), None, date(2021, 1, 2)]
FEES = [-1234.5, 0.000001, None, 4999999.125]
VALUES: dict[str, list[Any]] = {
    "nr": [1000, 1234567, 3, 4],
    "age": [-1234567, 999, None, 1000],
    "fee": FEES,
    "exact": [Decimal("-1234.50"), Decimal("0.05"), Decimal("1000.00"), Decimal("999999.99")],
    "step": [1500.0, 0.5, 1.25, 0.5],
    "ward": ["a;b", 'say "x"', None, "1.5"],
    "sick": [True, False, True, False],
    "day": DAYS,
    "moment": MOMENTS,
    "zoned": [moment.replace(tzinfo=UTC) for moment in MOMENTS],
    "clock": [time(8, 30, 1), time(0), time(23, 59, 59), time(1)],
    "opened": [time(8, 3), time(0), time(23, 59), time(20)],
    "span": [timedelta(seconds=at) for at in (0, 1234, 100000, 7)],
    "tens": [None if fee is None else 2 * fee for fee in FEES],
}
GERMAN = {"decimal": ",", "date_format": "%d.%m.%Y"}
FORMS = [
    GERMAN,
    GERMAN | {"thousands": ".", "datetime_format": "%d.%m.%Y %H:%M:%S.%f %z"},
    {"thousands": ",", "date_format": "%m/%d/%Y", "datetime_format": "%d/%m/%Y %H:%M %z"},
    {"decimal": ",", "thousands": "\u00a0"},
    {},
]


def table_of() -> pa.Table:
    """Return the values as a hand-off types them."""
    types = {field.name: field.type for field in Codec(make(SCHEMA)).output_schema}
    arrays = {}
    for name, values in VALUES.items():
        kind: Any = types.get(name, pa.int64())
        plain = pa.array(values, kind.value_type if pa.types.is_dictionary(kind) else kind)
        arrays[name] = plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain
    return pa.table(arrays)


@pytest.mark.parametrize("form", FORMS)
def test_a_table_comes_back_the_same_by_the_form_that_it_was_written_in(tmp_path: Path, form: dict[str, str]) -> None:
    written, table = TextForm.model_validate(form), table_of()
    absent = {"moment" if "%z" in form["datetime_format"] else "zoned"} if "datetime_format" in form else set()
    schema = with_form(
        make("\n".join(line for line in SCHEMA.split("\n") if line.split(":")[0].strip() not in absent)), written
    )
    table = table.drop_columns([*absent])
    write_form(table.to_batches(max_chunksize=3), schema.columns, written, path := tmp_path / "back.csv")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf" + (b"nr;age;" if written.point == "," else b"nr,age,"))
    (part,) = load_parts(str(path), schema, 100)
    back = pa.Table.from_batches(part.reveal())
    codec = Codec(schema)
    before, after = codec.encode(table), codec.encode(back)
    assert np.array_equal(before.states, after.states) and np.array_equal(before.values, after.values)
    assert back["ward"].to_pylist() == VALUES["ward"] and [int(one) for one in back["nr"].to_pylist()] == VALUES["nr"]
    tens = back["tens"].cast(pa.float64()).to_pylist()
    assert tens == VALUES["tens"]


def test_fields_are_written_as_a_spreadsheet_of_the_country_has_them(tmp_path: Path) -> None:
    form = TextForm.model_validate(GERMAN | {"thousands": ".", "datetime_format": "%d.%m.%Y %H:%M"})
    clocks = next(in_days([table_of().select(["clock", "opened"])], make(SCHEMA), ".csv"))
    assert clocks["opened"].to_pylist() == ["08:03", "00:00", "23:59", "20:00"] and clocks["clock"][0].as_py().second
    table = table_of().select(["nr", "age", "fee", "exact", "ward", "sick", "day", "moment"])
    write_form(table.to_batches(), make(SCHEMA).columns, form, path := tmp_path / "back.csv")
    assert path.read_text(encoding="utf-8-sig").splitlines() == [
        "nr;age;fee;exact;ward;sick;day;moment",
        '1000;-1.234.567;-1.234,5;-1.234,50;"a;b";true;01.06.1955;01.06.1955 23:59',
        '1234567;999;0,000001;0,05;"say ""x""";false;31.12.2021;31.12.2021 08:30',
        "3;;;1.000,00;;true;;02.01.2021 00:00",
        "4;1.000;4.999.999,125;999.999,99;1.5;false;02.01.2021;29.02.2000 12:00",
    ]
    one = pa.record_batch({"ward": pa.array([None, "", "a"])})
    write_form([one], {}, form, path)
    assert path.read_text(encoding="utf-8-sig") == 'ward\n""\n""\na\n'


@pytest.mark.parametrize(("written", "rule"), [("%d.%m.%Y %H:%M", "have %S"), ("%d.%m.%Y %H:%M:%S", "have %S.%f")])
def test_a_format_that_leaves_out_what_a_column_holds_is_refused(tmp_path: Path, written: str, rule: str) -> None:
    form = TextForm.model_validate({"datetime_format": written})
    batch = pa.record_batch({"at": pa.array([datetime(2021, 1, 2, 3, 4, 5, 6)])})
    with refused(InvalidArgument, f"{rule}, since at holds finer times", name="text"):
        write_form([batch], {}, form, tmp_path / "back.csv")
    zoned = pa.record_batch({"at": pa.array([datetime(2021, 1, 2, tzinfo=UTC)])})
    with refused(InvalidArgument, "have %z", name="text"):
        write_form([zoned], {}, form, tmp_path / "back.csv")


def test_a_hand_off_is_exported_in_a_form(tmp_path: Path) -> None:
    hand_off, text = GOLDEN / "FORMAT-5" / "card", '{decimal: ",", date_format: "%d.%m.%Y"}'
    code, _, err = run_cli("export", hand_off, tmp_path / "back.csv", "--text", text)
    assert code == 0, err
    first, *rows = (tmp_path / "back.csv").read_text(encoding="utf-8-sig").splitlines()
    assert ";" in first and rows and all(row.count(";") == first.count(";") for row in rows)
    for to, said in ((tmp_path / "back.parquet", text), (tmp_path / "other.csv", "{decimal: x}")):
        code, _, err = run_cli("export", hand_off, to, "--text", said)
        assert code == 1 and "text" in err and not to.exists()
    with refused(InvalidArgument, "must have no `currency`: a sign is left out where rows are read", name="text"):
        nacre.Result(hand_off).export(tmp_path / "c.csv", text={"decimal": ".", "thousands": ",", "currency": "£"})


def test_a_number_is_written_with_as_many_decimals_as_its_column_rounds_to(tmp_path: Path) -> None:
    schema = make(
        "name: a\ncolumns:\n  paid: {type: number, min: -9, max: 2000000, round: 2, nullable: true}\n"
        "  tax: {type: derived, formula: paid * 0.19, round: 3}\n  open: {type: number, min: 0, max: 9}\n"
    )
    rows = {"paid": [17.2, -0.29, None, 1234567.0], "tax": [3.268, -0.055, None, 0.1], "open": [17.2, 1.0, 0.5, 2.0]}
    write_form([pa.RecordBatch.from_pydict(rows)], schema.columns, TextForm(decimal=","), tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text(encoding="utf-8-sig").splitlines()
    assert lines[1:] == ["17,20;3,268;17,2", "-0,29;-0,055;1", ";;0,5", "1234567,00;0,100;2"]
