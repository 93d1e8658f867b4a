"""A derived column may have bounds: what they may be, what a raw table is held to, and that no other schema changes."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.audit.made import shop
from dpmodels.authoring.draft import PublicFacts, draft
from dpmodels.authoring.lint import parse
from dpmodels.codec.convert import to_floats
from dpmodels.codec.derive import bounds_as, derive
from dpmodels.codec.encode import Codec
from dpmodels.contract.derivation.bounds import brought_within, movable, reckoned
from dpmodels.contract.derivation.reach import reach
from dpmodels.contract.formula import reckon
from dpmodels.contract.schema import Schema
from dpmodels.errors import InvalidArgument
from dpmodels.gate.expectations import Gate
from dpmodels.hand_off.verify import verify_hand_off
from tests.kit.support import run_cli

PLAIN = """
name: stays
columns:
  admitted: {type: datetime, min: 2018-01-01, max: 2022-12-31}
  stay: {type: integer, min: 0, max: 60, nullable: true, computed: "days_between(admitted, discharged)"}
  discharged: {type: derived, formula: "add_days(admitted, stay)"}
"""
STAYS = PLAIN.replace('stay)"}', 'stay)", max: 2022-12-31}')
SUM = """
name: shop
columns:
  price: {type: number, min: 0, max: 100, round: 2}
  fee: {type: integer, min: 0, max: 50, nullable: true}
  total: {type: derived, formula: price + fee, round: 2BOUNDS}
"""


def make(text: str) -> Schema:
    schema, faults = parse(text)
    assert isinstance(schema, Schema), faults
    return schema


def rows(days: list[date | None], admitted: date = date(2022, 12, 1)) -> pa.RecordBatch:
    stays = [None if day is None else (day - admitted).days for day in days]
    return pa.RecordBatch.from_pydict(
        {
            "admitted": pa.array([admitted] * len(days)),
            "stay": pa.array(stays, pa.int64()),
            "discharged": pa.array(days, pa.date32()),
        }
    )


def test_a_schema_without_bounds_keeps_the_hash_that_accounts_know() -> None:
    assert make(PLAIN).hash == "35724eb743b39bb2f55afdc7042b120f43c4ab300b5f060bef051695d7c61c16"
    assert make(STAYS).hash != make(PLAIN).hash
    assert parse(make(STAYS).to_yaml())[0] == make(STAYS)
    assert Schema.model_validate_json(make(STAYS).model_dump_json()).hash == make(STAYS).hash


@pytest.mark.parametrize(
    ("bounds", "where", "says"),
    [
        ("max: soon", "max", "must be a date such as 2024-12-31, or a number"),
        ("max: true", "max", "must be a date such as 2024-12-31, or a number"),
        ("max: 3", "max", "must be a date, which is what `add_days(admitted, stay)` gives"),
        ("max: 2017-12-31", "max", "no value within the bounds of admitted, stay"),
        ("min: 2023-03-02", "min", "no value within the bounds of admitted, stay"),
        ("min: 2022-12-31, max: 2022-01-01", "min", "the bounds are reversed"),
        ("max: 2022-12-31T12:00:00+02:00", "max", "without a time zone"),
        (
            "min: 2022-12-30 10:30:00",
            "min",
            "must be a whole day, as what `add_days(admitted, stay)` gives is, such as",
        ),
    ],
)
def test_bounds_that_no_row_can_keep_are_a_fault(bounds: str, where: str, says: str) -> None:
    text = PLAIN.replace('stay)"}', f'stay)", {bounds}}}')
    schema, faults = parse(text)
    assert schema is None and [fault.where for fault in faults] == [f"columns.discharged.{where}"]
    assert says in str(faults[0])


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        (", max: 2022-12-31", "must be a number, which is what `price + fee` gives"),
        (", min: 151", "no value within the bounds of price, fee"),
        (", min: 10, max: 9.5", "the bounds are reversed"),
    ],
)
def test_a_derived_number_is_bounded_by_numbers(bounds: str, says: str) -> None:
    schema, faults = parse(SUM.replace("BOUNDS", bounds))
    assert schema is None and len(faults) == 1 and says in str(faults[0])


def test_a_bound_at_the_end_of_what_a_formula_gives_is_none_too_many() -> None:
    for bounds in (", min: 150", ", max: 0", ", min: 33.33, max: 33.33"):
        assert make(SUM.replace("BOUNDS", bounds)).derived_bounds
    assert make(PLAIN.replace('stay)"}', 'stay)", min: 2023-03-01}')).derived_bounds


def test_a_bound_finer_than_the_resolution_is_a_fault_that_says_which_is_not() -> None:
    hours = PLAIN.replace("max: 2022-12-31}", "max: 2022-12-31, resolution: hour}")
    for key, whole in (("min", "2020-05-05 11:00:00"), ("max", "2020-05-05 10:00:00")):
        _, faults = parse(hours.replace('stay)"}', f'stay)", {key}: 2020-05-05 10:30:00}}'))
        assert len(faults) == 1 and str(faults[0]).endswith(f"must be a whole hour, as what `add_days(admitted, stay)` "
                                                            f"gives is, such as {whole}")  # fmt: skip
        assert make(hours.replace('stay)"}', f'stay)", {key}: {whole}}}')).derived_bounds


OPERANDS = """
name: x
columns:
  x: {type: integer, min: 0, max: 1000000}
  n: {type: integer, min: -50, max: 50}
  s: {type: number, min: 0, max: 2}
  t: {type: datetime, min: 2015-01-01, max: 2024-12-31, resolution: minute}
  d: {type: derived, formula: FORMULA}
"""


@pytest.mark.parametrize(
    "formula",
    ["abs(x - 777777), max: 3", "x % 1000, min: 998", '"abs(x - 333331) + abs(n - 7)", max: 0', "x // n, min: 1000000"],
)
def test_narrow_bounds_that_some_row_keeps_are_no_fault_and_are_seen_to_be_kept(formula: str) -> None:
    schema = make(OPERANDS.replace("FORMULA", formula))
    assert not any("was seen to keep" in remark for remark in schema.remarks)
    (rule,), rng = schema.derived_bounds, np.random.default_rng(1)
    start = {name: rng.integers(schema.columns[name].low, schema.columns[name].high, 20) * 1.0 for name in rule.columns}
    moved = brought_within(rule, start, schema.columns, [*rule.columns] * 2)
    assert rule.kept(moved, schema.columns).any()


@pytest.mark.parametrize(
    "formula",
    [
        "x % 1000, min: 1000",
        "x + n, max: -51",
        "-x * n, min: 50000001",
        "abs(n - 100), max: 49",
        "floor(s * 3), min: 7",
        '"min(x, 5)", min: 6',
        "year(t), max: 2014",
        "minute(t), min: 60",
        '"days_between(t, t)", max: -3654',
        '"add_seconds(t, x)", max: 2014-12-31',
        "n / (x + 1), min: 51",
        "(n - 50) ** 2, max: -1",
        "2 ** s, max: 0",
    ],
)
def test_bounds_beyond_what_a_formula_reaches_are_a_fault(formula: str) -> None:
    _, faults = parse(OPERANDS.replace("FORMULA", formula))
    assert len(faults) == 1 and "no value within the bounds of" in str(faults[0])


def test_bounds_that_no_search_saw_kept_are_a_caution_where_nothing_shows_that_none_keeps_them() -> None:
    schema = make(OPERANDS.replace("FORMULA", "x - x, min: 1"))
    assert [one for one in schema.remarks if one.startswith("column d: no row within the bounds of x was seen to keep")]


def test_what_a_formula_reaches_holds_every_value_that_it_gives() -> None:
    rng, schema = np.random.default_rng(0), make(OPERANDS.replace("FORMULA", "x"))
    numbers = {name: rng.uniform(one.low, one.high, 4000) for name, one in schema.modelled.items()}
    numbers |= {name: np.rint(numbers[name]) for name in "xnt"}
    for formula in ("x % n", "x % -7", "x // (n + 60)", "n / s", "max(-n, s) * x", "abs(s - 1) - round(n)",
                    "hour(t) * 60 + minute(t)", "year(t) * 12 + month(t)", "add_days(t, -s)",
                    "seconds_between(t, t) + weekday(t) - day(t)",
                    "(n - 60) ** 2", "(n - 60) ** 3", "(s - 2) ** 4 - s", "(s + 1) ** -n", "(s - 2) ** n",
                    "n ** (s - 1)", "(n - 60) ** -2", "x ** n"):  # fmt: skip
        low, high = reach(formula, schema.columns)
        values = reckon(formula, numbers, schema.columns)
        assert low <= np.nanmin(values) and np.nanmax(values) <= high


@pytest.mark.filterwarnings("error")
def test_a_bound_that_float32_does_not_hold_is_a_fault_without_a_warning() -> None:
    _, faults = parse(OPERANDS.replace("FORMULA", "s * n, dtype: float32, max: 1.0e+300"))
    assert len(faults) == 1 and "1e+300 is more than float32 holds" in str(faults[0])


def test_a_lookup_has_no_bounds() -> None:
    text = "name: x\ncolumns:\n  s: {type: boolean}\n"
    _, faults = parse(text + '  d: {type: derived, of: s, values: {"false": 1, "true": 2}, max: 3}\n')
    assert ["`formula`; a lookup gives its values alone" in str(fault) for fault in faults] == [True]


def test_users_and_trees_say_that_they_take_no_bounds() -> None:
    text = shop.SCHEMA_TEXT.rstrip() + "\n  half: {type: derived, formula: rating / 2, max: 3}\n"
    _, faults = parse(text)
    assert len(faults) == 1 and "neither min nor max: beside `users`" in str(faults[0])
    tree = """
name: t
tables:
  one:
    key: [id]
    columns:
      id: {type: identifier, keep: regenerate}
      n: {type: integer, min: 0, max: 9}
      half: {type: derived, formula: n / 2, max: 3}
"""
    _, faults = parse(tree)
    assert any("neither min nor max: in a tree of tables" in str(fault) for fault in faults), faults


@pytest.mark.parametrize("encoded", [False, True])
def test_the_gate_refuses_a_raw_row_outside_as_it_does_one_that_breaks_a_rule(encoded: bool) -> None:
    last, schema = date(2022, 12, 31), make(STAYS)
    for days, broken in (([last, None, date(2022, 12, 5)], 0), ([last, date(2023, 1, 1)], 1)):
        for raw in (False, True):
            gate = Gate(schema, raw=raw)
            (gate.check_encoded if encoded else gate.check)(rows(days))
            gate.settle()
            assert [rule.text for rule in gate.broken] == ["`discharged <= 2022-12-31` must hold in every row"] * broken
            assert [rule.column for rule in gate.broken] == [""] * broken


def test_a_raw_value_is_judged_as_it_is_and_not_as_its_operand_is_clipped() -> None:
    schema = make(STAYS.replace("stay: {", "stay: {outside: clip, "))
    gate = Gate(schema, raw=True)
    assert not gate.check_encoded(rows([date(2023, 6, 1)])) and len(gate.broken) == 1
    rejected = make(STAYS.replace("stay: {", "stay: {outside: reject-row, "))
    assert Gate(rejected, raw=True).check_encoded(rows([date(2023, 6, 1)]))  # a row that is dropped anyway


@pytest.mark.parametrize("encoded", [False, True])
def test_where_a_raw_row_has_no_derived_value_what_it_follows_from_is_judged(encoded: bool) -> None:
    schema, empty = make(STAYS), pa.nulls(2, pa.date32())
    for days, broken in (([date(2022, 12, 31), None], 0), ([date(2023, 1, 1), None], 1)):
        gate = Gate(schema, raw=True)
        (gate.check_encoded if encoded else gate.check)(rows(days).set_column(2, "discharged", empty))
        gate.settle()
        assert [rule.text for rule in gate.broken] == ["`discharged <= 2022-12-31` must hold in every row"] * broken


TRIPLE = """
name: triple
columns:
  s: {type: number, min: 0, max: 1, round: 1}
  d: {type: derived, formula: s * 3, max: 0.3}
"""


@pytest.mark.parametrize(("dtype", "value"), [("float64", 0.3), ("float32", float(np.float32(0.3)))])
def test_a_value_that_misses_a_bound_by_an_error_of_float64_is_at_the_bound(dtype: str, value: float) -> None:
    schema = make(TRIPLE.replace("max: 0.3", f"dtype: {dtype}, max: 0.3"))
    (rule,) = schema.derived_bounds
    assert 0.1 * 3 > 0.3 and rule.kept({"s": np.array([0.0, 0.1, 0.2])}, schema.columns).tolist() == [True, True, False]
    table = pa.table({"s": [0.0, 0.1]})
    assert derive(schema.derived["d"], schema.columns, table).to_pylist() == [0.0, value]
    for raw in (value, 0.1 * 3):
        kind = pa.float32() if dtype == "float32" else pa.float64()
        for judge in ("check", "check_encoded"):
            gate = Gate(schema, raw=True)
            getattr(gate, judge)(pa.RecordBatch.from_pydict({"s": [0.1], "d": pa.array([raw], kind)}))
            gate.settle()
            assert not gate.broken


def test_a_raw_value_is_rounded_before_it_is_judged() -> None:
    schema = make(SUM.replace("BOUNDS", ", max: 120"))
    for value, broken in ((120.004, False), (120.006, True)):
        gate = Gate(schema, raw=True)
        gate.check(pa.RecordBatch.from_pydict({"price": [100.0], "fee": [20], "total": [value]}))
        assert bool(gate.broken) == broken


def test_a_derived_number_is_judged_as_it_is_handed_over() -> None:
    schema = make(SUM.replace("BOUNDS", ", min: 1, max: 120.5"))
    table = {"price": [100.0, 100.0, 0.4, 100.0], "fee": [20, 21, 0, None], "total": [120.0, 121.0, 0.4, None]}
    batch = pa.RecordBatch.from_pydict(table)
    gate = Gate(schema, raw=True)
    assert not gate.check(batch) and [outcome.failed for outcome in gate.outcomes if not outcome.passed] == [2]
    assert gate.broken[0].text == "`1 <= total <= 120.5` must hold in every row"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", '"decimal(12, 3)"'])
def test_what_is_held_to_bounds_is_what_is_handed_over(dtype: str) -> None:
    decimals = "" if dtype == "int64" else ", round: 2"
    schema = make(SUM.replace(", round: 2BOUNDS", f"{decimals}, dtype: {dtype}, max: 100"))
    rng = np.random.default_rng(0)
    table = pa.table({"price": rng.integers(0, 10_001, 500) / 100, "fee": rng.integers(0, 51, 500)})
    operands = {name: table[name].to_numpy().astype(float) for name in table.column_names}
    expected = to_floats(derive(schema.derived["total"], schema.columns, table))
    np.testing.assert_array_equal(reckoned(schema.derived["total"], operands, schema.columns), expected)


@pytest.mark.parametrize(
    ("resolution", "bound", "high"),
    [("day", "2022-12-31", "2022-12-31"), ("minute", "2022-12-31", "2022-12-31T23:59"), ("hour", "2022-12-31 11:00:00",
     "2022-12-31T11")],
)  # fmt: skip
def test_a_date_as_a_bound_means_the_whole_of_that_day(resolution: str, bound: str, high: str) -> None:
    text = STAYS.replace("max: 2022-12-31}\n  stay", f"max: 2022-12-31, resolution: {resolution}}}\n  stay")
    (rule,) = make(text.replace('stay)", max: 2022-12-31', f'stay)", max: {bound}')).derived_bounds
    assert rule.high == np.datetime64(high).astype(int) and rule.low == -np.inf


def test_a_computed_column_is_lowered_to_what_the_last_day_leaves() -> None:
    schema = make(STAYS)
    (rule,) = schema.derived_bounds
    assert movable(rule, schema.columns) == ["stay", "admitted"]
    first = np.array(["2022-12-01", "2022-12-30", "2022-12-31"], "datetime64[D]").astype(float)
    operands = {"admitted": first, "stay": np.array([40.0, 1.0, 60.0])}
    moved = brought_within(rule, operands, schema.columns, movable(rule, schema.columns))
    assert moved["stay"].tolist() == [30, 1, 0] and moved["admitted"].tolist() == first.tolist()


def test_two_operands_are_moved_where_one_is_not_enough() -> None:
    schema = make(SUM.replace("BOUNDS", ", min: 140"))
    (rule,) = schema.derived_bounds
    moved = brought_within(rule, {"price": np.array([3.0, 99.0]), "fee": np.array([1.0, 1.0])}, schema.columns,
                           rule.columns)  # fmt: skip
    assert rule.kept(moved, schema.columns).all()
    assert moved["price"].tolist() == [100, 99.0] or moved["price"][1] > 99 - 1e-9
    assert moved["fee"][0] == 40


def test_what_is_moved_comes_within_the_bounds_themselves_and_not_only_near_to_them() -> None:
    schema = make(OPERANDS.replace("FORMULA", "s * 3, dtype: float32, max: 0.3"))
    moved = brought_within(schema.derived_bounds[0], {"s": np.linspace(1, 2, 20)}, schema.columns, ["s"])
    assert (moved["s"] * 3 <= np.float32(0.3) * (1 + 1e-7)).all()


def test_a_contract_carries_the_bounds_and_a_draft_takes_them(tmp_path: Path) -> None:
    schema = make(STAYS)
    types = Codec(schema).output_schema
    assert bounds_as(schema.derived["discharged"], types.field("discharged").type) == {"maximum": "2022-12-31"}
    zoned = make(STAYS.replace("max: 2022-12-31}\n  stay", "max: 2022-12-31, resolution: minute}\n  stay"))
    late = bounds_as(zoned.derived["discharged"], pa.timestamp("us", "UTC"))
    assert late == {"maximum": "2022-12-31T23:59:59Z"}
    (tmp_path / "d.csv").write_text(
        'name,formula,min,max,decimals\nstart,,,,\ndays,,0,60,\nend,"add_days(start, days)",,2022-12-31,\n'
        "half,days / 2,,30,1\n"
    )
    kinds = {"start": pa.date32(), "days": pa.int64(), "end": pa.date32(), "half": pa.float64()}
    pq.write_table(pa.schema(list(kinds.items())).empty_table(), tmp_path / "t.parquet")
    (tmp_path / "doc").mkdir()
    (tmp_path / "d.csv").rename(tmp_path / "doc" / "d.csv")
    text = draft(tmp_path / "t.parquet", public_facts=PublicFacts(tmp_path / "doc" / "d.csv"))
    assert "end: {type: derived, formula: 'add_days(start, days)', max: 2022-12-31}" in text
    assert "half: {type: derived, formula: days / 2, round: 1, max: 30" in text


def members(rows_: int = 1500, last: datetime = datetime(2024, 12, 31)) -> pa.Table:
    """Make members who joined within ten years, and were seen until the last day at most."""
    rng = np.random.default_rng(5)
    joined = np.datetime64("2015-01-01") + rng.integers(0, 3653, rows_)
    seen = np.minimum(joined + rng.exponential(600, rows_).astype(int), np.datetime64(last, "D"))
    return pa.table({"joined": pa.array(joined), "seen": pa.array(seen)})


MEMBERS = """
name: members
columns:
  joined: {type: datetime, min: 2015-01-01, max: 2024-12-31}
  active: {type: integer, min: 0, max: 3653, computed: "days_between(joined, seen)"}
  seen: {type: derived, formula: "add_days(joined, active)", max: 2024-12-31}
"""


def test_no_synthetic_member_is_seen_after_the_last_day_and_no_raw_one_is_charged_for(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(MEMBERS)
    words: list[Any] = ["synthesize", tmp_path / "m.parquet", "--schema", tmp_path / "m.yaml", "--epsilon", "1"]
    words += ["--delta", "1e-5", "--open", "--home", tmp_path / "home", "--out", tmp_path / "out", "--no-prefect"]
    table = members()
    late = table.set_column(1, "seen", pa.array([date(2025, 1, 1), *table["seen"].to_pylist()[1:]]))
    pq.write_table(late, tmp_path / "m.parquet")
    code, out, err = run_cli(*map(str, words))
    assert code == 1 and err.count("`seen <= 2024-12-31` must hold in every row") == 1 and "2025" not in out + err
    assert err.count("nothing was charged") == 1 and not (tmp_path / "out").exists()
    pq.write_table(table, tmp_path / "m.parquet")
    assert run_cli(*map(str, words))[0] == 0
    made = pq.read_table(tmp_path / "out" / "synthetic")
    assert max(made["seen"].to_pylist()) <= date(2024, 12, 31) and Gate(make(MEMBERS), raw=False).check(made)
    assert "maximum: '2024-12-31'" in (tmp_path / "out" / "contract.odcs.yaml").read_text()
    assert verify_hand_off(tmp_path / "out").faults == []


def test_a_part_that_a_bound_leaves_no_row_is_named_without_the_words_of_a_library() -> None:
    parts = MEMBERS.replace("name: members", "name: members\npartition: joined").replace(
        "max: 2024-12-31}\n  active", "max: 2025-01-02}\n  active")  # fmt: skip
    with pytest.raises(InvalidArgument) as refusal:
        make(parts).of_partition("2025-01-02")
    assert "Value error" not in str(refusal.value) and "be one that the schema admits" in str(refusal.value)
