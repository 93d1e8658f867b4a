"""Columns that follow from others: read, refused, held at the gate, and exact in every synthetic row."""

import json
import re
import sqlite3
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.derive import derive, derived_type, follows
from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.fingerprint import Fingerprint
from dpmodels.contract.derivation.nested import in_names
from dpmodels.contract.derivation.reach import reach
from dpmodels.contract.formula import Misread, names_in, reckon
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.reading.load import load_parts
from tasks.kinds.tables import check_columns, check_raw
from tasks.run.table_inputs import faults_of, is_raw
from tests.kit.errors import refused
from tests.kit.support import run_cli

FLIGHTS = """
name: flights
columns:
  sched: {type: integer, min: 0, max: 2359}
  delay: {type: number, min: -60, max: 600, nullable: true}
  tax: {type: number, min: 0, max: 100}
  day: {type: datetime, min: 2020-01-01, max: 2020-12-31}
  left: {type: datetime, min: 2020-01-01, max: 2020-12-31, resolution: minute}
  airport: {type: categorical, values: [JFK, LGA, SFO], nullable: true}
  hour: {type: derived, formula: sched // 100}
  late: {type: derived, formula: "max(delay, 0) + 2 * tax"}
  weekday: {type: derived, formula: weekday(day)}
  minute: {type: derived, formula: minute(left)}
  waited: {type: derived, formula: "days_between(day, left)"}
  share: {type: derived, formula: tax / sched, dtype: float32}
  city: {type: derived, of: airport, values: {JFK: New York, LGA: New York, SFO: San Francisco}}
  coast: {type: derived, of: airport, values: {JFK: 1, LGA: 1, SFO: 2}}
"""


def make_schema(text: str = FLIGHTS) -> Schema:
    schema, faults = parse(text)
    assert isinstance(schema, Schema), faults
    return schema


def make_table(rows: int = 400, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    sched = rng.integers(0, 24, rows) * 100 + rng.integers(0, 60, rows)
    delay, tax = rng.uniform(-60, 600, rows), rng.integers(0, 10_000, rows) / 100
    day = np.datetime64("2020-01-01") + rng.integers(0, 366, rows)
    left = np.datetime64("2020-01-01T00:00") + rng.integers(0, 366 * 1440, rows)
    airport = rng.choice(["JFK", "LGA", "SFO"], rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (tax / sched).astype(np.float32)
    null = rng.random(rows) < 0.1
    return pa.table(
        {
            "sched": sched,
            "delay": pa.array(delay, mask=null),
            "tax": tax,
            "day": pa.array(day.astype("datetime64[D]")),
            "left": pa.array(left.astype("datetime64[us]")),
            "airport": pa.array(airport, mask=null),
            "hour": sched // 100,
            "late": pa.array(np.maximum(delay, 0) + 2 * tax, mask=null),
            "weekday": [one.astype(datetime).weekday() for one in day],
            "minute": [one.astype(datetime).minute for one in left],
            "waited": ((left - day.astype("datetime64[m]")) // np.timedelta64(1, "D")).astype(np.int64),
            "share": pa.array(share, mask=~np.isfinite(share)),
            "city": pa.array(np.where(airport == "SFO", "San Francisco", "New York"), mask=null),
            "coast": pa.array(np.where(airport == "SFO", 2, 1), mask=null),
        }
    )


def test_true_columns_pass_the_gate_and_a_single_wrong_value_does_not() -> None:
    schema, table = make_schema(), make_table()
    gate = Gate(schema, raw=True)
    assert gate.check(table.combine_chunks().to_batches()[0]) and not gate.broken
    for place, name in enumerate(schema.columns):
        if name in schema.derived:
            values = table[name].to_pylist()
            row = next(index for index, value in enumerate(values) if value is not None)
            values[row] = "Boston" if isinstance(values[row], str) else values[row] + 1
            table = table.set_column(place, name, pa.array(values))
    assert not gate.check(table.combine_chunks().to_batches()[0])
    assert [rule.column for rule in gate.broken] == list(schema.derived)
    assert all(outcome.failed == 1 for outcome in gate.outcomes if outcome.rule in gate.broken)


def test_the_fast_gate_finds_it_too_wherever_the_row_is() -> None:
    schema, table = make_schema(), make_table()
    for row in (0, 200, 399):
        hours = table["hour"].to_pylist()
        hours[row] += 1
        [batch] = table.set_column(6, "hour", pa.array(hours)).combine_chunks().to_batches()
        gate = Gate(schema, raw=True)
        gate.check_encoded(batch)
        gate.settle()
        assert [rule.column for rule in gate.broken] == ["hour"]


def test_a_null_keeps_the_rule_on_either_side() -> None:
    schema, table = make_schema(), make_table()
    [batch] = table.set_column(6, "hour", pa.nulls(400, pa.int64())).combine_chunks().to_batches()
    gate = Gate(schema, raw=True)
    assert gate.check(batch) and not gate.broken


def test_every_decoded_row_is_exact_and_passes_the_synthetic_gate() -> None:
    schema, table = make_schema(), make_table()
    codec = Codec(schema)
    assert list(codec.columns) == ["sched", "delay", "tax", "day", "left", "airport"]
    rng = np.random.default_rng(1)
    records = codec.encode(table)
    again = codec.decode(codec.from_cells(codec.to_cells(records), rng))
    assert again.schema.names == table.schema.names
    kinds = {name: str(again.schema.field(name).type) for name in schema.derived}
    assert kinds == {
        "hour": "int64", "late": "double", "weekday": "int64", "minute": "int64", "waited": "int64", "share": "float",
        "city": "string", "coast": "int64",
    }  # fmt: skip
    assert again["hour"].to_pylist() == [one // 100 for one in again["sched"].to_pylist()]
    pairs = zip(again["airport"].to_pylist(), again["city"].to_pylist(), strict=True)
    assert set(pairs) == {("JFK", "New York"), ("LGA", "New York"), ("SFO", "San Francisco"), (None, None)}
    gate = Gate(schema, raw=False, rows=400)
    assert gate.check(again.combine_chunks().to_batches()[0]) and not gate.broken


def test_what_it_reckons_is_what_python_does() -> None:
    columns = make_schema().columns
    numbers = {"sched": np.array([7.0, -7.0, 0.0, np.nan]), "tax": np.array([2.0, 2.0, 0.0, 1.0])}
    for text, wanted in {
        "sched // 2": [3, -4, 0, np.nan],
        "sched % 4": [3, 1, 0, np.nan],
        "-sched + 3 * (tax - 1)": [-4, 10, -3, np.nan],
        "sched / tax": [3.5, -3.5, np.nan, np.nan],
        "min(sched, 1) + abs(sched)": [8, 0, 0, np.nan],
        "sched ** 2": [49, 49, 0, np.nan],
        "sched ** 0": [1, 1, 1, np.nan],  # of a null there is no power
        "1 ** sched": [1, 1, 1, np.nan],
        "sched ** -1": [1 / 7, -1 / 7, np.nan, np.nan],
        "sched ** 0.5": [np.sqrt(7), np.nan, 0, np.nan],  # of a negative number there is no root
        "1 / 9 ** 9 ** sched": [np.nan, 1 / 9**9**-7, 1 / 9, np.nan],  # beyond float64 is no number
        "9 ** 9 ** 9 ** 9 + 0 * sched": [np.nan] * 4,
        "-2 ** 2 + tax": [-2, -2, -4, -3],
    }.items():
        np.testing.assert_array_equal(reckon(text, numbers, columns), wanted)


def test_an_annuity_is_a_formula_and_one_that_is_too_long_is_told_both_lengths() -> None:
    annuity = "tax * (delay / 1200) / (1 - (1 + delay / 1200) ** -sched)"
    columns = make_schema(FLIGHTS.replace("sched // 100", annuity)).columns
    numbers = {"tax": np.array([10_000.0, 100.0]), "delay": np.array([6.0, 0.0]), "sched": np.array([12.0, 12.0])}
    np.testing.assert_allclose(reckon(annuity, numbers, columns), [860.664297, np.nan])
    for text, kind in (
        (annuity, "double"),
        ("sched ** 2", "int64"),
        ("sched ** sched", "double"),
        ("sched ** 0.5", "double"),
    ):
        columns = make_schema(FLIGHTS.replace("sched // 100", text)).columns
        assert str(derived_type(columns["hour"], columns)) == kind
    for key in ("type: derived, formula", "type: integer, min: 0, max: 9, computed"):
        _, faults = parse(FLIGHTS.replace("{type: derived, formula: sched // 100}", f"{{{key}: {'sched' * 400}}}"))
        assert "has 2,000 characters, and a formula may have 1,000 at most" in str(faults[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os')", "calls `__import__`"),
        ("sched.real", "may hold only"),
        ("0.19 x sched", r"write `\*`, as in"),
        ("0.19 × sched", r"write `\*`, as in"),
        ("sched ^ 9", "a power is written"),
        ("sched ** __import__('os')", "calls `__import__`"),
        ("sched" + " + sched" * 110, "more than 100 of them"),
        ("-" * 900 + "sched", "more than 100 of them"),
        ("[x for x in sched]", "may hold only"),
        ("lambda: 1", "may hold only"),
        ("sched if 1 else 2", "may hold only"),
        ("sched //", "is no formula"),
        ("abs(sched, tax)", "takes 1"),
        ("True + sched", "may hold only"),
        ("(" * 190, "is no formula"),
        ("-" * 199 + "(", "is no formula"),
        ("sched + " + "9" * 190, "too large"),
        ("sched + 1e999", "too large"),
        ("sched + 1j", "may hold only"),
        ("sched\x00", "is no formula"),
    ],
)
def test_nothing_but_arithmetic_is_read(text: str, message: str) -> None:
    with pytest.raises(Misread, match=message.replace("(", r"\(")):
        names_in(text)


@pytest.mark.parametrize(
    ("column", "where", "message"),
    [
        ("{type: derived}", "columns.hour.formula", "or else `of` and `values`"),
        (
            "{type: derived, formula: day + 1}",
            "columns.hour.formula",
            'write `{type: derived, formula: "add_days(day, 1)"}`',
        ),
        ("{type: derived, formula: tax + day}", "columns.hour.formula", '"add_days(day, tax)"'),
        ("{type: derived, formula: day - sched}", "columns.hour.formula", '"add_days(day, -sched)"'),
        ("{type: derived, formula: day - (tax + sched)}", "columns.hour.formula", '"add_days(day, -(tax + sched))"'),
        ("{type: derived, formula: left - 9}", "columns.hour.formula", '"add_seconds(left, -9)"'),
        ("{type: derived, formula: left - day}", "columns.hour.formula", "or `seconds_between(day, left)`"),
        ("{type: derived, formula: 9 - left}", "columns.hour.formula", "take year(left)"),
        ("{type: derived, formula: year(sched)}", "columns.hour.formula", "something other than a datetime"),
        ("{type: derived, formula: nowhere + 1}", "columns.hour.formula", "no column"),
        ("{type: derived, formula: 1 + 1}", "columns.hour.formula", "names no column"),
        ("{type: derived, of: airport, values: {JFK: a, LGA: b}}", "columns.hour.values", "`SFO` of `airport`"),
        ("{type: derived, of: sched, values: {JFK: a}}", "columns.hour.of", "categorical or boolean"),
        ("{type: derived, of: airport, values: {JFK: a, LGA: 1, SFO: b}}", "columns.hour.values", "all text"),
        (
            "{type: derived, of: airport, values: {JFK: a, LGA: a, SFO: b}, dtype: int64}",
            "columns.hour.dtype",
            "formula",
        ),
    ],
)
def test_a_wrong_declaration_is_named_with_its_line(column: str, where: str, message: str) -> None:
    text = FLIGHTS.replace("{type: derived, formula: sched // 100}", column)
    schema, faults = parse(text)
    assert schema is None
    [fault] = [one for one in faults if one.where == where]
    assert message in fault.message and text.splitlines()[fault.line - 1].strip().startswith("hour")


def test_it_is_no_target() -> None:
    schema, faults = parse(FLIGHTS.replace("name: flights", "name: flights\ntarget: hour"))
    assert schema is None and "not derived" in faults[0].message


def test_a_schema_with_derived_columns_is_written_and_read_alike() -> None:
    schema = make_schema()
    assert parse(schema.to_yaml())[0] == schema
    assert Schema.model_validate_json(schema.model_dump_json()).hash == schema.hash


def test_a_raw_column_of_another_type_is_refused_without_its_values() -> None:
    schema, table = make_schema(), make_table()
    [batch] = table.set_column(6, "hour", pa.array(["nine"] * 400)).combine_chunks().to_batches()
    with refused(DataError, "as the schema derives it; it holds text", column="hour") as told:
        Gate(schema, raw=True).check(batch)
    assert "nine" not in str(told.value)


SHOP = """
name: shop
columns:
  price: {type: number, min: 0, max: 1000, round: 2}
  fee: {type: number, min: 0, max: 1000, round: 2, nullable: true}
  total: {type: derived, formula: price + fee, round: 2, dtype: "decimal(12, 2)"}
  net: {type: derived, formula: price / 1.19, round: 2}
  raw: {type: derived, formula: price + fee}
"""


def test_derived_money_is_kept_to_the_cent() -> None:
    schema, rng = make_schema(SHOP), np.random.default_rng(1)
    cents = rng.integers(0, 100_001, (2, 2000))
    whole = {"price": cents[0] / 100, "fee": pa.array(cents[1] / 100, mask=rng.random(2000) < 0.1)}
    table = pa.table(whole)
    total, net, raw = (derive(schema.derived[name], schema.columns, table) for name in ("total", "net", "raw"))
    assert total.type == pa.decimal128(12, 2) and net.type == raw.type == pa.float64()
    expected = [
        None if fee is None else (a + round(fee * 100))
        for a, fee in zip(cents[0], table["fee"].to_pylist(), strict=True)
    ]
    assert [None if one is None else int(one * 100) for one in total.to_pylist()] == expected
    assert all(str(one) == f"{one:.2f}".rstrip("0") or str(one) == f"{one:.1f}" for one in net.to_pylist())
    assert any(len(str(one)) > 8 for one in raw.to_pylist() if one is not None)  # else `round` is for nothing
    both = table.append_column("total", total).append_column("net", net).append_column("raw", raw)
    assert all(follows(name, schema.columns, both).all() for name in schema.derived)
    off = both.set_column(3, "net", pa.array(net.to_numpy() + np.where(np.arange(2000) == 7, 0.011, 0.004)))
    held = follows("net", schema.columns, off)
    assert not held[7] and not held.all()
    half = pa.table({"price": [1.005], "fee": [0.0], "total": [1.01], "net": [0.84], "raw": [1.005]})
    assert follows("total", schema.columns, half).all()  # a half may be rounded up or down
    empty = derive(schema.derived["total"], schema.columns, pa.table({"price": [1e12], "fee": [1.0]}))
    assert empty.to_pylist() == [None]


def test_derived_money_without_decimals_is_remarked() -> None:
    (remark,) = make_schema(SHOP).remarks
    assert remark.startswith("column raw: ") and "write `round: 2`" in remark
    assert not any("round" in each for each in make_schema().remarks)  # of columns without decimals nothing is known


def test_what_is_derived_keeps_its_rule_in_every_type() -> None:
    """A float32 was held to a hundred thousandth of itself by float64's rule, and so refused after its charge."""
    schema = make_schema(
        "name: x\ncolumns:\n  net: {type: number, min: 0, max: 100, round: 2}\n"
        "  gross: {type: derived, formula: net * 1.19, round: 2, dtype: float32}\n"
        "  tenth: {type: derived, formula: net * 1, round: 1, dtype: 'decimal(3, 2)'}\n"
    )
    net = pa.table({"net": np.linspace(0, 100, 9999).round(2)})
    for name, column in schema.derived.items():
        net = net.append_column(name, derive(column, schema.columns, net))
        assert follows(name, schema.columns, net).all()
    assert net["tenth"].to_pylist()[-1] is None and net["gross"].null_count == 0  # 100.0 has more than three digits


@pytest.mark.parametrize(
    ("keys", "where", "message"),
    [
        ("round: 2, dtype: int64", "round", "not with int64"),
        ('dtype: "decimal(12, 2)"', "round", "must be given with decimal"),
        ('round: 3, dtype: "decimal(12, 2)"', "round", "be at most 2"),
        ('round: 2, dtype: "decimal(39, 2)"', "dtype", "38 digits"),
        ("round: 2, dtype: text", "dtype", "decimal(DIGITS, DECIMALS)"),
        ("round: -1", "round", "must be at least 0"),
    ],
)
def test_decimals_that_no_derived_column_can_keep_are_refused(keys: str, where: str, message: str) -> None:
    schema, faults = parse(SHOP.replace("formula: price / 1.19, round: 2", f"formula: price / 1.19, {keys}"))
    assert schema is None
    [fault] = [one for one in faults if one.where == f"columns.net.{where}"]
    assert message in fault.message


STAYS = """
name: stays
columns:
  admitted: {type: datetime, min: 2018-01-01, max: 2022-12-31}
  stay: {type: integer, min: 0, max: 60, nullable: true, computed: "days_between(admitted, discharged)"}
  discharged: {type: derived, formula: "add_days(admitted, stay)"}
"""


def make_stays(rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(3)
    admitted = np.datetime64("2018-01-01") + rng.integers(0, 1826, rows)
    discharged, null = admitted + np.minimum(rng.geometric(0.2, rows), 60), rng.random(rows) < 0.1
    return pa.table({"admitted": pa.array(admitted), "discharged": pa.array(discharged, mask=null)})


def write(table: pa.Table, path: Path) -> Path:
    """Write a table in the format of a path."""
    frame = table.to_pandas()
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    elif path.suffix == ".jsonl":
        frame.astype(str).replace("None", None).to_json(path, orient="records", lines=True)
    else:
        frame.to_excel(path, index=False)
    return path


@pytest.mark.parametrize("format", ["csv", "parquet", "jsonl", "xlsx", "arrow"])
def test_a_computed_column_comes_back_from_every_format_with_the_date_it_was_computed_from(tmp_path, format) -> None:
    schema, table = make_schema(STAYS), make_stays()
    (part,) = load_parts(write(table, tmp_path / f"stays.{format}"), schema, 64)
    codec = Codec(schema)
    records = [codec.encode(batch) for batch in part.reveal()]
    decoded = codec.decode(Records.concat(records))
    assert decoded.column_names == ["admitted", "stay", "discharged"]
    assert decoded.select(["admitted", "discharged"]).equals(table.cast(decoded.select([0, 2]).schema))
    days = pc.days_between(table["admitted"], table["discharged"])
    assert decoded["stay"].to_pylist() == days.to_pylist()
    gate = Gate(schema, raw=False)
    assert gate.check(decoded)
    later = pc.add(decoded["discharged"].cast(pa.int32()), pa.scalar(1, pa.int32())).cast(pa.date32())
    assert not follows("discharged", schema.columns, decoded.set_column(2, "discharged", later))[
        days.is_valid().to_numpy()
    ].any()


def test_a_computed_column_that_the_table_has_is_computed_anew(tmp_path) -> None:
    table = make_stays().append_column("stay", pa.array(np.full(300, 59)))
    (part,) = load_parts(write(table, tmp_path / "stays.parquet"), make_schema(STAYS), 400)
    (batch,) = part.reveal()
    assert batch["stay"].cast(pa.int64()).equals(pc.days_between(table["admitted"], table["discharged"]).chunk(0))


def test_times_are_added_in_their_resolution_and_beyond_the_years_there_are_none() -> None:
    text = STAYS.replace("2022-12-31}", "2022-12-31, resolution: minute}").replace("add_days", "add_seconds")
    schema = make_schema(text.replace("days_between", "seconds_between").replace("max: 60", "max: 1000000000000"))
    rows = {"admitted": [datetime(2020, 1, 1, 12, 30)] * 4, "stay": [0, 59, 60, 10**12]}
    later = derive(schema.derived["discharged"], schema.columns, pa.RecordBatch.from_pydict(rows))
    assert later.type == pa.timestamp("us")
    assert later.to_pylist() == [*[datetime(2020, 1, 1, 12, 30)] * 2, datetime(2020, 1, 1, 12, 31), None]


@pytest.mark.parametrize(
    ("computed", "says"),
    [
        ("days_between(admitted, left)", "names `left`, which is no column of the file"),
        ("days_between(admited, 1)", "names `admited`, which is no column of the file; did you mean `admitted`?"),
        ("days_between(admitted, stay)", "follows from `stay`, and so from itself"),
        ("days_between(admitted, 3)", "something other than a datetime column"),
        ("add_days(admitted, 3)", "gives a datetime, and this column is of numbers"),
        ("1 + add_days(admitted, 3)", "it must be the whole formula"),
        ("year(discharged) / 2", "gives numbers that are not whole: write `floor(year(discharged) / 2)`"),
        ("discharged - admitted", "reckons with `discharged`, a datetime, as with a number; write `days_between(adm"),
        ("max(discharged - admitted, 0)", "write `days_between(admitted, discharged)`"),
        ("discharged / 2", "take year(discharged) or the like"),
        ("days_between(admitted", "is no formula"),
        ("year(admitted) > 2020 and year(discharged) > 2020", "joins conditions by a word: write `(a > 0) * (b > 0)`"),
        ("2019 < year(admitted) < 2021", "compares more than two numbers at once: write `(a < b) * (b < c)`"),
        ("admitted > 3", "take year(admitted) or the like"),
        ("year(admitted) is 3", "may hold only numbers, names of columns, + - * / // % **, > >= < <= == !=, paren"),
    ],
)
def test_a_column_is_computed_from_columns_of_the_file(computed, says) -> None:
    schema, faults = parse(STAYS.replace("days_between(admitted, discharged)", computed))
    assert schema is None and len(faults) == 1 and says in str(faults[0])


REFUNDS = """
name: refunds
columns:
  amount: {type: number, min: 0, max: 100, nullable: true}
  back: {type: number, min: 0, max: 100, nullable: true}
  was: {type: integer, min: 0, max: 1, nullable: true, computed: "COMPUTED"}
"""


@pytest.mark.parametrize(
    ("computed", "values"),
    [
        ("back > 0", [0, 1, 1, None]),
        ("back >= amount", [0, 1, None, None]),
        ("(back > 0) * (amount > back)", [0, 0, None, None]),
        ("back == amount", [0, 1, None, None]),
        ("1 - (back != 2)", [0, 1, 0, None]),
        ("back < 1", [1, 0, 0, None]),
        ("back <= 2", [1, 1, 0, None]),
    ],
)
def test_a_condition_is_computed_as_1_where_it_holds_and_null_where_a_side_is(
    tmp_path: Path, computed: str, values: list[int | None]
) -> None:
    schema = make_schema(REFUNDS.replace("COMPUTED", computed))
    rows = pa.table({"amount": [1.0, 2.0, None, 5.0], "back": [0.0, 2.0, 7.0, None]})
    pq.write_table(rows, tmp_path / "refunds.parquet")
    (part,) = load_parts(tmp_path / "refunds.parquet", schema, 10)
    (batch,) = part.reveal()
    assert batch.column("was").to_pylist() == values and reach(computed, schema.raw) == (0, 1)
    kept = Codec(schema).decode(Codec(schema).encode(batch)).column("was")
    assert kept.to_pylist() == values and kept.type == pa.int64()


def test_a_raw_table_with_a_column_that_is_computed_is_refused_and_another_type_told_what_to_write(
    tmp_path: Path,
) -> None:
    schema = make_schema(REFUNDS.replace("COMPUTED", "back > 0"))
    for name, suffix in (("there", "was"), ("without", "")):
        lines = [f"amount,back,{suffix}".rstrip(","), "1,0,1".removesuffix("" if suffix else ",1")]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    for check in (check_columns, lambda schema, data, _: check_raw(data, schema, 10)):
        with refused(DataError, r"^column was: is computed, as `back > 0`, and is in the data too, where its values"):
            check(schema, str(tmp_path / "there.csv"), "")
        check(schema, str(tmp_path / "without.csv"), "")
    with sqlite3.connect(tmp_path / "clinic.db") as clinic:
        clinic.execute("create table refunds (amount real, back real, was integer)")
    (tmp_path / "refunds.yaml").write_text(schema.to_yaml())
    words = ("--schema", tmp_path / "refunds.yaml", "--epsilon", 1, "--delta", 1e-5, "--home", tmp_path / "home")
    url, out = f"sqlite:///{tmp_path / 'clinic.db'}", tmp_path / "out"
    code, _, err = run_cli("synthesize", url, "--query", "refunds", *words, "--out", out, "--no-prefect")
    assert code == 1 and "column was: is computed, as `back > 0`, and is in the data too" in err
    text = REFUNDS.replace("type: integer, min: 0, max: 1, nullable: true", "type: boolean")
    _, faults = parse(text.replace("COMPUTED", "back > 0"))
    assert 'write `was: {type: integer, min: 0, max: 1, computed: "back > 0"}`' in str(faults[0]) and len(faults) == 1


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("type: integer, min: 0, max: 9, computed: twice + 1", "age * 2 + 1"),
        ("type: integer, min: 0, max: 9, computed: part * 10", "round(age / 7 * 10) / 10 * 10"),
        ("type: integer, min: 0, max: 9, computed: last + 1", "last + 1"),
        ("type: integer, min: 0, max: 9, computed: fee + 1", "{'a': 1, 'b': 2}[ward] + 1"),
        ("type: integer, min: 0, max: 9, computed: word + 1", "`word`, which is looked up by `values`, and `computed`"),
        ("type: integer, min: 0, max: 9, computed: new + 1", "follows from `new`, and so from itself"),
        ("type: derived, formula: last + 1", "twice + 1 + 1"),
        ("type: derived, formula: fee * age", "{'a': 1, 'b': 2}[ward] * age"),
        ("type: derived, formula: word + 1", "names `word`, which is derived itself, and stands for no numbers"),
        ('type: derived, formula: "fee[ward] * age"', "a number for each value that `ward` lists"),
        ("type: derived, formula: \"{'a': 1}[ward] * age\"", "does not say what `b` of `ward` stands for"),
        ("type: derived, formula: \"{'a': 1}[age]\"", "looks `age` up, which is no categorical or boolean column"),
    ],
)
def test_what_a_formula_names_is_written_out_or_said(keys: str, says: str) -> None:
    schema, faults = parse(f"""
name: visits
columns:
  age: {{type: integer, min: 0, max: 120}}
  ward: {{type: categorical, values: [a, b]}}
  twice: {{type: integer, min: 0, max: 240, computed: age * 2}}
  part: {{type: number, min: 0, max: 20, round: 1, computed: age / 7}}
  last: {{type: derived, formula: twice + 1}}
  fee: {{type: derived, of: ward, values: {{a: 1, b: 2}}}}
  word: {{type: derived, of: ward, values: {{a: x, b: y}}}}
  new: {{{keys}}}
""")
    if schema is None:
        assert [says in one.message for one in faults] == [True], faults
    else:
        new = schema.columns["new"]
        assert says == (new.formula if new.type == "derived" else new.computed)


@pytest.mark.parametrize(
    ("name", "formula", "says"),
    [
        ("length of stay", "length of stay + 1", "no quotation marks for others, so rename such a column in the data"),
        ("length of stay", "`length of stay` + 1", "no quotation marks for others, so rename such a column"),
        ("length of stay", "'length of stay' + 1", "no quotation marks for others, so rename such a column"),
        ("class", "class + 1", "which is no word of Python such as `class`"),
        ("length of stay", "stay + 1", "`length of stay` cannot be named in a formula: rename it"),
        ("net-price", "net-price", "`net-price` cannot be named in a formula: rename it"),
        (
            "\ufb01ne",
            "\ufb01ne + 1",
            "`\ufb01ne` cannot be named in a formula: rename it in the data and in the schema",
        ),
        ("\u212bre", "\u212bre + 1", "as Unicode composes them (NFKC)"),
    ],
)
def test_a_column_that_no_formula_can_name_is_to_be_renamed(name: str, formula: str, says: str) -> None:
    column = f"{{type: derived, formula: {json.dumps(formula)}}}"
    given = f"name: a\ncolumns:\n  {json.dumps(name)}: {{type: integer, min: 0, max: 9}}\n  later: {column}\n"
    schema, faults = parse(given)
    assert schema is None and len(faults) == 1 and says in str(faults[0])
    assert faults[0].where == "columns.later.formula"


CHAIN = """
name: stays
columns:
  left: {type: datetime, min: 2024-01-01, max: 2024-12-31}
  nights: {type: integer, min: 1, max: 21, computed: "days_between(came, left)"}
  came: {type: derived, formula: "add_days(left, -nights)"}
  lead: {type: integer, min: 0, max: 90, computed: "days_between(booked, came)"}
  price: {type: number, min: 0, max: 9}
  rate: {type: derived, formula: price * nights}
  whole: {type: derived, formula: rate + 1, round: 1}
  small: {type: derived, formula: price * 2, dtype: float32}
  store: {type: categorical, values: [a, b]}
  region: {type: derived, of: store, values: {a: north, b: south}}
  zone: {type: derived, of: region, values: {north: 1, south: 2}}
  booked: {type: derived, formula: FORMULA}
"""


@pytest.mark.parametrize(
    ("formula", "written"),
    [
        ("add_days(came, -lead)", "add_days(left, -nights - lead)"),
        ("add_days(came, lead)", "add_days(left, -nights + lead)"),
        ("add_days(came, price)", "add_days(add_days(left, -nights), price)"),
        ("add_seconds(came, -lead)", "add_seconds(add_days(left, -nights), -lead)"),
        ("add_days(left, rate)", "add_days(left, price * nights)"),
        ("year(came)", "year(add_days(left, -nights))"),
        ("days_between(came, left) * 2", "days_between(add_days(left, -nights), left) * 2"),
        ("rate * 2 - rate", "price * nights * 2 - price * nights"),
        ("2 - (rate + 1)", "2 - (price * nights + 1)"),
        ("whole + rate", "round((price * nights + 1) * 10) / 10 + price * nights"),
        ("zone * nights", "{'a': 1, 'b': 2}[store] * nights"),
        ("{'north': 3, 'south': 4}[region] + nights", "{'a': 3, 'b': 4}[store] + nights"),
    ],
)
def test_what_is_derived_from_a_derived_column_is_written_out(formula: str, written: str) -> None:
    chain = CHAIN if formula.startswith("add_") else CHAIN.replace("booked, came)", "came, left)")
    schema = make_schema(chain.replace("FORMULA", f'"{formula}"'))
    assert schema.derived["booked"].formula == written
    assert make_schema(schema.to_yaml()) == schema


@pytest.mark.parametrize(
    ("formula", "where", "message"),
    [
        ("booked + 1", "booked", "follows from `booked`, and so from itself"),
        ("rate + came", "booked", "`rate + came` reckons with `came`, a datetime"),
        (
            "region + 1",
            "booked",
            "names `region`, which is derived itself, and stands for no numbers: name it in a table",
        ),
        ("small + 1", "booked", "names `small`, which is derived itself, and is rounded by its `dtype`"),
        ("rate + absent", "booked", "`rate + absent` names `absent`, which is no column"),
        (" + ".join(["whole"] * 60), "booked", "makes a formula of more than 1,000 characters"),
    ],
)
def test_what_cannot_be_written_out_is_said_in_the_words_of_the_file(formula: str, where: str, message: str) -> None:
    schema, faults = parse(CHAIN.replace("FORMULA", f'"{formula}"'))
    assert schema is None and [fault.where for fault in faults] == [f"columns.{where}.formula"]
    assert message in faults[0].message


def test_what_was_written_out_is_read_by_the_names_of_its_parts() -> None:
    schema = make_schema(CHAIN.replace("FORMULA", '"add_days(came, -lead)"'))
    said = {name: in_names(name, schema.columns).formula for name in schema.derived}
    assert said["whole"] == "rate + 1" and said["came"] == "add_days(left, -nights)" and said["region"] is None
    text = "name: a\ncolumns:\n  price: {type: number, min: 0, max: 9}\n  store: {type: categorical, values: [a, b]}\n"
    text += "  fee: {type: derived, of: store, values: {a: 1, b: 2}}\n"
    text += "  net: {type: derived, formula: price / 1.2, round: 2}\n"
    schema = make_schema(text + "  gross: {type: derived, formula: fee * (price - net) + net}\n")
    assert in_names("gross", schema.columns).formula == "fee * (price - net) + net"
    assert "price / 1.2" in str(schema.derived["gross"].formula)


def test_derived_columns_that_follow_from_one_another_are_refused() -> None:
    text = "name: a\ncolumns:\n  price: {type: number, min: 0, max: 9}\n  a: {type: derived, formula: b + 1}\n"
    schema, (fault,) = parse(text + "  b: {type: derived, formula: c * price}\n  c: {type: derived, formula: a - 1}\n")
    assert schema is None and fault.where == "columns.a.formula"
    assert "follows from `b`, which follows from `c`, which follows from `a`, and so from itself" in fault.message


def test_numbers_of_a_lookup_may_be_whole_and_not() -> None:
    text = CHAIN.replace("FORMULA", '"add_days(came, -lead)"').replace("{north: 1, south: 2}", "{north: 0, south: 1.5}")
    assert make_schema(text).derived["zone"].values == {"a": 0.0, "b": 1.5}


def test_a_lookup_of_what_is_looked_up_is_looked_up_by_the_first() -> None:
    schema = make_schema(CHAIN.replace("FORMULA", '"add_days(came, -lead)"'))
    assert (schema.derived["zone"].of, schema.derived["zone"].values) == ("store", {"a": 1, "b": 2})


def test_what_a_chain_is_written_as_gives_the_same_day() -> None:
    schema = make_schema(CHAIN.replace("FORMULA", '"add_days(came, -lead)"'))
    rows = {"left": [date(2024, 5, 20)], "nights": [4], "lead": [30]}
    made = derive(schema.derived["booked"], schema.columns, pa.RecordBatch.from_pydict(rows))
    assert made.to_pylist() == [date(2024, 5, 16) - timedelta(days=30)]


@pytest.mark.parametrize("unit", ["day", "second"])
def test_parts_of_a_later_moment_are_those_of_the_moment(unit: str) -> None:
    column = f"{{type: datetime, min: 2024-01-01, max: 2024-12-31, resolution: {unit}}}"
    schema = make_schema(
        f"name: a\ncolumns:\n  left: {column}\n  stay: {{type: integer, min: 0, max: 400}}\n"
        '  came: {type: derived, formula: "add_days(left, -stay)"}\n'
        "  month: {type: derived, formula: month(came)}\n"
        '  days: {type: derived, formula: "days_between(came, left)"}\n'
    )
    left = [datetime(2024, 3, 1), datetime(2024, 1, 2), datetime(2024, 12, 31)]
    rows = pa.RecordBatch.from_pydict(
        {"left": left if unit == "second" else [one.date() for one in left], "stay": [1, 2, 366]}
    )
    came = [one - timedelta(days=stay) for one, stay in zip(left, [1, 2, 366], strict=True)]
    assert derive(schema.derived["month"], schema.columns, rows).to_pylist() == [one.month for one in came]
    assert derive(schema.derived["days"], schema.columns, rows).to_pylist() == [1, 2, 366]
    assert reach(schema.derived["days"].formula or "", schema.columns)[1] >= 366


@pytest.mark.parametrize(
    ("decimals", "written"), [(2, "round(price * 1.19 * 100) / 100 * 3"), (0, "round(price * 1.19) * 3")]
)
def test_what_is_rounded_is_rounded_where_it_is_written_out(decimals: int, written: str) -> None:
    text = "name: a\ncolumns:\n  price: {type: number, min: 0, max: 99, round: 2}\n"
    text += f"  gross: {{type: derived, formula: price * 1.19, round: {decimals}}}\n"
    schema = make_schema(text + "  all: {type: derived, formula: gross * 3}\n")
    assert schema.derived["all"].formula == written
    rows = pa.RecordBatch.from_pydict({"price": np.arange(0, 9900) / 100})
    gross = derive(schema.derived["gross"], schema.columns, rows).to_numpy()
    assert (derive(schema.derived["all"], schema.columns, rows).to_numpy() == gross * 3).all()


def test_of_one_misspelt_name_one_fault_is_told_whatever_follows_from_its_column() -> None:
    columns = {
        "total": "{type: derived, formula: unlock + ride_fee}",
        "minutes": "{type: integer, min: 0, max: 200}",
        "unlock": "{type: integer, min: 0, max: 2}",
        "start": "{type: categorical, values: [a, b]}",
        "ride_fee": "{type: derived, formula: minuts * 2}",
        "twice": "{type: derived, formula: total * 2}",
        "looked": "{type: derived, of: strat, values: {a: 1, b: 2}}",
        "drawn": "{type: integer, min: 0, max: 9, computed: floor(looked), keep: drop}",
        "other": "{type: derived, formula: minutes + absent}",
    }
    schema, faults = parse("name: a\ncolumns:\n" + "".join(f"  {name}: {one}\n" for name, one in columns.items()))
    where = ["columns.ride_fee.formula", "columns.looked.of", "columns.other.formula"]
    assert schema is None and [fault.where for fault in faults] == where


def test_another_name_that_is_no_column_is_not_taken_for_one_that_cannot_be_named() -> None:
    column = "later: {type: derived, formula: sty + 1}"
    _, (fault,) = parse(f'name: a\ncolumns:\n  "my stay": {{type: integer, min: 0, max: 9}}\n  {column}\n')
    assert fault.message.endswith("names `sty`, which is no column")


@pytest.mark.parametrize("format", ["csv", "parquet", "xlsx"])
def test_a_table_without_what_is_computed_from_is_refused_by_name(tmp_path, format) -> None:
    with refused(DataError, "discharged"):
        load_parts(write(make_stays().select(["admitted"]), tmp_path / f"stays.{format}"), make_schema(STAYS), 64)


def test_a_column_is_not_computed_from_what_is_no_date(tmp_path) -> None:
    table = make_stays().set_column(1, "discharged", pa.array(np.arange(300)))
    with refused(DataError, "must hold dates", column="discharged"):
        load_parts(write(table, tmp_path / "stays.parquet"), make_schema(STAYS), 64)


@pytest.mark.parametrize("value", ['{"x": 1}', "[1]"])
def test_no_first_row_decides_whether_what_is_computed_from_is_read(tmp_path, value) -> None:
    lines = [
        f'{{"admitted": "2020-01-01", "discharged": {value}}}',
        '{"admitted": "2020-01-01", "discharged": "2020-01-03"}',
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    with refused(DataError, column="discharged"):
        load_parts(tmp_path / "s.jsonl", make_schema(STAYS), 64)


RATIO = """
name: loans
columns:
  loan: {type: number, min: 1, max: 1000, round: 2}
  ratio: {type: number, min: 0, max: 1.2, computed: collateral / loan}
  collateral: {type: derived, formula: ratio * loan, round: 2}
  left: {type: integer, min: 0, max: 100}
  gap: {type: integer, min: 0, max: 100, computed: right - left}
  right: {type: derived, formula: left + gap}
"""


def test_a_derived_number_may_be_computed_from_too(tmp_path) -> None:
    schema = make_schema(RATIO)
    rows = {"loan": [100.0, 200.0], "collateral": [50.0, 240.0], "left": [3, 4], "right": [10, 4]}
    (part,) = load_parts(write(pa.table(rows), tmp_path / "l.csv"), schema, 64)
    codec = Codec(schema)
    made = codec.decode(Records.concat([codec.encode(batch) for batch in part.reveal()])).to_pydict()
    assert made["gap"] == [7, 0] and made["right"] == [10, 4] and np.allclose(made["collateral"], [50, 240])


def test_a_derived_date_has_the_type_of_its_date() -> None:
    _, faults = parse(STAYS.replace('stay)"', 'stay)", round: 3'))
    assert len(faults) == 1 and "leave out `dtype` and `round`" in str(faults[0])


def test_what_is_computed_makes_no_other_data_of_the_same_rows(tmp_path) -> None:
    table, secret = make_stays(), b"s" * 32
    plain = STAYS.replace("  stay", "  constant: {type: integer, min: 0, max: 9, computed: year(admitted) * 0}\n  stay")
    found = []
    for text in (STAYS, plain):
        schema = make_schema(text)
        (part,) = load_parts(write(table, tmp_path / "s.parquet"), schema, 400)
        fingerprint = Fingerprint(schema, secret)
        for batch in part.reveal():
            fingerprint.add(Codec(schema).encode(batch))
        found.append(fingerprint.digest)
    assert found[0] == found[1]


WIDER = STAYS.replace("min: 0, max: 60", "min: -2000, max: 2000")


def test_rows_that_differ_in_what_is_computed_from_an_unmodeled_column_are_other_rows(tmp_path) -> None:
    schema, table, digests = make_schema(WIDER), make_stays(), set()
    later = table.set_column(1, "discharged", table["discharged"].take(pa.array(np.arange(300)[::-1])))
    for number, rows in enumerate((table, later)):
        (part,) = load_parts(write(rows, tmp_path / f"{number}.parquet"), schema, 400)
        fingerprint = Fingerprint(schema, b"s" * 32)
        for batch in part.reveal():
            fingerprint.add(Codec(schema).encode(batch))
        digests.add(fingerprint.digest)
    assert len(digests) == 2


def test_a_row_moves_no_others_computed_value(tmp_path) -> None:
    """Stability 1: a row that is inserted first, in the middle or last changes no other row as it is read."""
    schema, table = make_schema(STAYS), make_stays(64)
    more = pa.table({"admitted": [date(2018, 1, 1)], "discharged": [date(2022, 12, 31)]}, schema=table.schema)
    for place in (0, 32, 64):
        both = pa.concat_tables([table[:place], more, table[place:]])
        (part,) = load_parts(write(both, tmp_path / f"{place}.parquet"), schema, 16)
        stays = [value for batch in part.reveal() for value in batch["stay"].to_pylist()]
        assert stays.pop(place) == 1825
        assert stays == pc.days_between(table["admitted"], table["discharged"]).to_pylist()


@pytest.mark.parametrize("first", ["2020-01-01", "2019-02-01", "2020-01-01 12:00:00"])
def test_the_lint_says_how_to_keep_what_lies_between_two_dates(first: str) -> None:
    text = "name: x\nconstraints: [a <= b]\ncolumns:\n"
    days = "  {}: {{type: datetime, min: 2020-01-01, max: 2020-12-31}}\n"
    schema = make_schema(text + days.format("a").replace("2020-01-01", first) + days.format("b"))
    said = next(one for one in schema.remarks if "computed" in one)
    lines = re.findall(r"(\w+): (\{.+?\})(?:,|$)", said)
    assert [name for name, _ in lines] == ["days_to_b", "a"]
    made = "name: x\ncolumns:\n" + days.format("b") + "".join(f"  {name}: {rest}\n" for name, rest in lines)
    made_schema = make_schema(made.replace("MOST_DAYS", "99"))
    assert sorted(made_schema.raw) == ["a", "b"]
    assert str(made_schema.derived["a"].min) == first[:10]  # else rows would come out before the first day of a


def test_a_rule_on_a_derived_column_is_said_to_be_needless() -> None:
    _, faults = parse(STAYS.replace("columns:", "constraints: [admitted <= discharged]\ncolumns:"))
    assert len(faults) == 1 and "derived: what its formula gives decides, so leave the rule out" in str(faults[0])


def test_a_table_that_was_made_is_judged_by_what_it_holds(tmp_path) -> None:
    schema = make_schema(STAYS.replace("stay: {", "stay: {outside: clip, "))
    table = make_stays()
    raw = write(table, tmp_path / "raw.parquet")
    days = pc.days_between(table["admitted"], table["discharged"])
    made = write(table.append_column("stay", days), tmp_path / "made.parquet")
    wrong = write(table.append_column("stay", pa.array(np.full(300, 999))), tmp_path / "wrong.parquet")
    assert is_raw(str(raw), schema) and not is_raw(str(made), schema)
    assert list(faults_of(str(made), schema)) == []
    faults = list(faults_of(str(wrong), schema))
    assert any("stay" in one for one in faults) and any("discharged" in one for one in faults)
    less = write(table.select(["admitted"]), tmp_path / "less.parquet")
    assert ["discharged" in one for one in faults_of(str(less), schema)] == [True]


def test_a_computed_column_from_which_nothing_is_derived_is_said_to_fall_apart() -> None:
    schema = make_schema(STAYS)
    assert not any("synthetic rows" in one for one in schema.remarks)
    derived = 'type: derived, formula: "add_days(admitted, stay)"'
    alone = make_schema(STAYS.replace(derived, "type: datetime, min: 2018-01-01, max: 2023-12-31"))
    assert any(
        "stay: computed" in one and "does not follow from them in synthetic rows" in one for one in alone.remarks
    )


@pytest.mark.parametrize(("max_", "says"), [("discover", "columns.stay.max"), ("TODO", "columns.stay.max")])
def test_bounds_of_a_computed_column_are_not_discovered(max_, says) -> None:
    text = STAYS.replace("min: 2018-01-01", "min: discover").replace("max: 60", f"max: {max_}")
    schema, faults = parse(text)
    assert schema is None and any(fault.where == says for fault in faults), [str(one) for one in faults]


CLAIMS = """
name: claims
columns:
  claimed: {type: number, min: 0, max: 5000, round: 2}
  deductible: {type: categorical, values: [0, 150, 300, 500, 1000], nullable: true}
  share: {type: categorical, values: [0.25, 0.5, 1.0]}
  paid: {type: derived, formula: "max(0, claimed - deductible)", round: 2}
  level: {type: derived, formula: "deductible // 100"}
  part: {type: derived, formula: "share * 4"}
"""


def make_claims(rows: int = 500) -> pa.Table:
    rng = np.random.default_rng(2)
    claimed, deductible = rng.gamma(2, 300, rows).clip(0, 5000).round(2), rng.choice([0, 150, 300, 500, 1000], rows)
    null, share = rng.random(rows) < 0.1, rng.choice([0.25, 0.5, 1.0], rows)
    paid = np.round(np.maximum(0, claimed - deductible), 2)
    columns = {"claimed": pa.array(claimed), "deductible": pa.array(deductible, mask=null), "share": pa.array(share)}
    columns |= {"paid": pa.array(paid, mask=null), "level": pa.array(deductible // 100, mask=null)}
    return pa.table(columns | {"part": pa.array(share * 4)})


def test_a_formula_takes_numbers_that_are_listed() -> None:
    schema = make_schema(CLAIMS)
    table, codec = make_claims(), Codec(schema)
    gate = Gate(schema, raw=True)
    gate.check(table)
    gate.settle()
    assert not gate.broken
    decoded = codec.decode(codec.encode(table))
    assert decoded.select(table.column_names).equals(table)
    assert reach("claimed - deductible", schema.columns) == (-1000, 5000)
    assert reach("share * 4", schema.columns) == (1, 4)
    wrong = table.set_column(3, "paid", pa.array(np.full(len(table), 7.0)))
    assert not follows("paid", schema.columns, wrong).all()
    assert derive(schema.derived["level"], schema.columns, table).type == pa.int64()


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ("[0, 150, 300, 500, 1000]", "[none, low]", "paid.formula", "needs numbers, listed or between bounds"),
        ("round: 2}\n  level", "round: 2, max: 4000}\n  level", "paid.max", "`deductible` is listed: leave it out"),
    ],
)
def test_a_formula_takes_no_listed_text_and_has_no_bound_beside_what_is_listed(
    old: str, new: str, where: str, message: str
) -> None:
    schema, faults = parse(CLAIMS.replace(old, new))
    assert schema is None and any(one.where == f"columns.{where}" and message in one.message for one in faults)
