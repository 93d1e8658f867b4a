"""What the policies of columns leave out or change of raw rows is counted, for whoever has the rows at hand."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import nacre
from dpmodels.codec.derive import derive
from dpmodels.gate.causes import first_causes
from tasks.kinds.tables import check_raw
from tasks.stages.validate import check_hand_off
from tests.kit.every_kind import make
from tests.kit.support import run_cli

SCHEMA = """
name: visits
text: {decimal: ",", date_format: "%d.%m.%Y"}
columns:
  seen: {type: datetime, min: 2021-01-01, max: 2021-12-31, resolution: day, outside: reject-row}
  ward: {type: categorical, values: [a, b, rest], outside: other, other: rest, nullable: true}
  sick: {type: boolean, outside: reject-row}
  fee: {type: number, min: 0, max: 10, outside: clip, nullable: true}
  grade: {type: categorical, values: [1, 3], outside: nearest}
  age: {type: integer, min: 0, max: 120}
  tens: {type: integer, min: 0, max: 5, computed: age // 10, outside: clip}
"""
ROWS = """seen;ward;sick;fee;grade;age
01.02.2021;a;true;1,5;1;7
01.02.2022;zz;;11,5;3;70
31.12.2020;;true;-1;9;7
;yy;false;;1;7
01.03.2021;b;false;10;1;90
"""
SAID = [
    "seen: 3 of 5 rows are left out (outside: reject-row)",
    "ward: 2 of 5 values are set to rest (outside: other)",
    "sick: 1 of 5 rows are left out (outside: reject-row)",
    "fee: 2 of 5 values are set to the nearest bound (outside: clip)",
    "grade: 1 of 5 values are set to the nearest one that is listed (outside: nearest)",
    "tens: 2 of 5 values are set to the nearest bound (outside: clip)",
]


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_a_line_says_what_each_policy_leaves_out_or_changes(tmp_path: Path, batch_rows: int) -> None:
    (data := tmp_path / "visits.csv").write_text(ROWS)
    gate = check_raw(str(data), make(SCHEMA), batch_rows)
    assert not gate.broken and [str(one) for one in gate.policies] == SAID
    assert not any("left out" in one["rule"] for one in gate.results())  # which reports and records are made of


def test_a_terminal_json_and_a_frame_say_it_and_it_breaks_no_rule(tmp_path: Path) -> None:
    (data := tmp_path / "visits.csv").write_text(ROWS)
    (schema := tmp_path / "visits.yaml").write_text(SCHEMA)
    words = ["validate", str(data), "--schema", str(schema), "--raw"]
    assert run_cli(*words)[1].splitlines()[-len(SAID) :] == SAID
    told = [one for one in json.loads(run_cli(*words, "--json")[1]) if one["expectation"] is None]
    assert [f"{one['column']}: {one['rule']}" for one in told] == SAID and all(one["success"] for one in told)
    frame = nacre.validate(data, schema, raw=True)
    assert [f"{row.column}: {row.rule}" for row in frame.tail(len(SAID)).itertuples()] == SAID
    assert frame["success"].all()


def test_rows_of_users_are_counted_and_what_changes_nothing_is_not_said(tmp_path: Path) -> None:
    schema = """
name: stays
unit: {user: who, max_rows: 3}
users: {columns: [age]}
columns:
  who: {type: identifier, keep: regenerate}
  age: {type: integer, min: 0, max: 90, outside: clip}
  paid: {type: number, min: 0, max: 10, outside: clip}
"""
    (tmp_path / "stays.yaml").write_text(schema)
    (tmp_path / "stays.csv").write_text("who,age,paid\na,95,1\na,95,2\nb,30,3\n")
    gate = check_hand_off(tmp_path / "stays.csv", tmp_path / "stays.yaml")
    assert [str(one) for one in gate.policies] == ["age: 2 of 3 values are set to the nearest bound (outside: clip)"]


AMOUNTS = """
name: sales
columns:
  amount: {type: number, min: 0, max: 1200, round: 2}
  rate: {type: categorical, values: [0, 30, 65]}
  part: {type: derived, formula: "PART", round: 2}
  rest: {type: derived, formula: "amount - PART", round: 2}
"""
PAID = "amount,rate,part,rest\n0.70,65,0.46,0.24\n1.10,65,0.72,0.38\n2.30,65,1.50,0.80\n4.00,30,1.20,2.80\n"


def test_rows_whose_last_decimal_differs_within_half_a_unit_are_counted(tmp_path: Path) -> None:
    (data := tmp_path / "sales.csv").write_text(PAID)
    said = {}
    for part in ("amount * rate / 100", "round(amount * rate) / 100"):
        gate = check_raw(str(data), make(AMOUNTS.replace("PART", part)), 2)
        assert not gate.broken  # within half a unit is right, whichever way a half was rounded
        said[part] = [str(one) for one in gate.policies]
    plain, rounded = said.values()
    assert (
        not rounded
        and plain
        and all("of 4 rows the formula is rounded to another last decimal" in one for one in plain)
    )


def test_rows_that_break_a_formula_by_rounding_alone_are_counted_with_a_formula_that_they_keep(tmp_path: Path) -> None:
    (data := tmp_path / "sales.csv").write_text("amount,rate,part,rest\n46.90,65,30.48,16.42\n46.90,65,30.49,16.41\n")
    cases = {
        "round(amount * rate) / 100": "`(amount * rate) / 100` with `round: 2` holds in every row, since it admits",
        "floor(amount * rate) / 100": "`(amount * rate) / 100` with `round: 2` holds in every row, since it admits",
        "amount * rate / 100 + 0.008": "no other way of rounding that was tried holds in every row",
        "amount * rate / 90": "",  # which is off by more
    }
    for part, said in cases.items():
        schema = AMOUNTS.replace('"PART"', f'"{part}"').replace("amount - PART", "amount - amount * rate / 100")
        gate = check_raw(str(data), make(schema), 1)
        lines = [str(one) for one in gate.policies if "break its formula" in str(one)]
        assert gate.broken and (len(lines) == 1 and said in lines[0] if said else not lines), part
    instead = AMOUNTS.replace('"PART"', '"(amount * rate) / 100"').replace("PART", "(amount * rate) / 100")
    assert not check_raw(str(data), make(instead), 1).broken


SUMS = """
name: pay
columns:
  base: {type: number, min: 0, max: 5000ROUND}
  extra: {type: number, min: 0, max: 900ROUND}
  gross: {type: derived, formula: base + extraGROSS}
"""


def test_a_sum_of_rounded_parts_may_be_off_by_a_cent_and_one_that_differs_is_told_by_how_much(tmp_path: Path) -> None:
    data = tmp_path / "pay.csv"
    both, gross = {"ROUND": ", round: 2", "GROSS": ", round: 2"}, {"ROUND": "", "GROSS": ", round: 2"}
    cases = [
        ("1000.00,0.00,1000.01", both, False, "in 1 of 2 rows the formula is rounded to another last decimal"),
        ("1000.00,0.00,1000.01", gross, True, "with `round: 2` for `base` and `extra` too it holds in every row"),
        ("1000.00,0.00,1000.02", both, True, "differs from `base + extra`, by 0.02 at most: correct these rows or"),
        (
            "1000.123,0.456,1000.58",
            dict.fromkeys(both, ""),
            True,
            "by 0.001 at most: write `round: 2`, with which it holds in",
        ),
        ("1000.00,7.00,1007.50", gross, True, 'computed: "gross - (base + extra)"'),
    ]
    for row, keys, is_broken, said in cases:
        data.write_text(f"base,extra,gross\n10.00,0.25,10.25\n{row}\n")
        schema = SUMS.replace("ROUND", keys["ROUND"]).replace("GROSS", keys["GROSS"])
        for batch_rows in (1, 9):
            gate = check_raw(str(data), make(schema), batch_rows)
            (line,) = [str(one) for one in gate.policies]
            assert bool(gate.broken) == is_broken and said in line, (row, line)
    beside = SUMS.replace("ROUND", "").replace("base + extraGROSS", "base + extra + gross_apart, round: 2")
    beside += (
        '  gross_apart: {type: number, min: 0, max: 1, round: 2, keep: drop, computed: "gross - (base + extra)"}\n'
    )
    assert not check_raw(str(data), make(beside), 9).broken


def test_a_frame_of_rules_has_the_advice_on_a_formula_beside_the_rule_that_it_breaks(tmp_path: Path) -> None:
    (data := tmp_path / "pay.csv").write_text("base,extra,gross\n10.00,0.25,10.25\n1000.123,0.456,1000.58\n")
    (schema := tmp_path / "pay.yaml").write_text(SUMS.replace("ROUND", "").replace("GROSS", ""))
    rules = nacre.validate(data, schema, raw=True)
    (broken,) = rules[~rules["success"]].itertuples()
    assert broken.column == "gross" and broken.advice.endswith(
        "by 0.001 at most: write `round: 2`, with which it holds in every row"
    )
    assert (rules[rules["success"]].advice == "").all() and not rules["rule"].str.contains("it holds in every").any()
    printed = run_cli("validate", data, "--schema", schema, "--raw")[1]
    assert printed.splitlines()[-1] == f"gross: {broken.advice}"


def test_a_file_that_rounds_halves_up_is_told_the_formulas_that_do(tmp_path: Path) -> None:
    cents = [(cents, rate, (cents * rate + 50) // 100) for cents in (50, 70, 110, 130, 230, 4690) for rate in (30, 65)]
    rows = [f"{c / 100},{rate},{part / 100},{round(c / 100 - part / 100, 2)}" for c, rate, part in cents]
    (data := tmp_path / "sales.csv").write_text("\n".join(["amount,rate,part,rest", *rows]))
    drafted = AMOUNTS.replace('"PART"', '"amount * rate / 100"').replace(
        "PART", "round(amount * rate / 100 * 100) / 100"
    )
    up = "floor(amount * rate + 0.500001) / 100"
    for batch_rows in (1, 100):
        lines = {one.name: str(one) for one in check_raw(str(data), make(drafted), batch_rows).policies}
        assert f"; `{up}` has the last decimal of the file in every row" in lines["part"]
        assert f"; `amount - {up}` with `round: 2` holds in every row" in lines["rest"]
    gate = check_raw(str(data), make(AMOUNTS.replace("PART", up)), 3)
    assert not gate.broken and not gate.policies


DISCOUNTS = """
name: shop
columns:
  price: {type: number, min: 0, max: 100, round: 2, zero_inflated: false}
  pieces: {type: number, min: 0, max: 9, round: 1, zero_inflated: false}
  total: {type: derived, formula: "price * pieces", round: 2}
  discount: {type: number, min: 0, max: 500, round: 2, zero_inflated: true}
  rate: {type: derived, formula: "FORMULA"KEYS}
"""
TOTAL = "round(price * pieces * 100) / 100"
UP = "floor(price * pieces * 100 + 0.500001) / 100"
RATES = {
    "even": lambda discount, total: np.rint(discount / total * 100) / 100,
    "up": lambda discount, total: np.floor(discount / total * 100 + 0.500001) / 100,
    "cut": lambda discount, total: np.floor(discount / total * 100 + 1e-9) / 100,
}


@pytest.mark.parametrize(
    ("formula", "keys", "way", "said"),
    [
        (
            f"discount / ({TOTAL})",
            ", round: 2",
            "up",
            f"`floor((discount / ({UP})) * 100 + 0.500001) / 100` has the last",
        ),
        (
            f"discount / ({TOTAL})",
            ", round: 2",
            "cut",
            f"`floor((discount / ({UP})) * 100) / 100` with `round: 2` holds",
        ),
        (
            f"round(discount / ({TOTAL}) * 100) / 100",
            "",
            "up",
            f"`floor(discount / ({UP}) * 100 + 0.500001) / 100` with",
        ),
        (f"round(discount / ({TOTAL}) * 100) / 100", "", "even", ""),
        (
            f"min(round(discount / ({TOTAL}) * 100) / 100, 0.5)",
            "",
            "up",
            f"`min(floor(discount / ({UP}) * 100 + 0.500001)",
        ),
        (f"min(discount / ({TOTAL}), 0.5)", ", round: 2", "up", "+ 0.500001) / 100` has the last"),
    ],
)
def test_the_rounding_of_a_share_of_a_derived_total_is_advised_on_as_that_of_any_formula(
    tmp_path: Path, formula: str, keys: str, way: str, said: str
) -> None:
    price, pieces, discount = (
        one.ravel() for one in np.meshgrid([4.05, 8.0, 10.0], [0.1, 0.5, 2.0], [0.01, 0.1, 0.25])
    )
    total = np.rint(price * pieces * 100) / 100 if way == "even" else np.floor(price * pieces * 100 + 0.500001) / 100
    rate = RATES[way](discount, total)
    columns = [price, pieces, total, discount, np.minimum(rate, 0.5) if "min" in formula else rate]
    rows = [",".join(f"{one:.2f}" for one in row) for row in zip(*columns, strict=True)]
    (data := tmp_path / "shop.csv").write_text("\n".join(["price,pieces,total,discount,rate", *rows]))
    schema = make(DISCOUNTS.replace("FORMULA", formula).replace("KEYS", keys))
    lines = [str(one) for one in check_raw(str(data), schema, 5).policies if one.name == "rate"]
    assert any(said in line for line in lines) if said else not lines, lines


def test_a_share_whose_decimals_are_too_few_for_large_amounts_is_named_with_as_many_as_hold(tmp_path: Path) -> None:
    (data := tmp_path / "refunds.csv").write_text("amount,refund\n90000.01,33333.33\n3,1.5\n70000.07,1234.56\n")
    schema = """
name: refunds
columns:
  amount: {type: number, min: 0.01, max: 100000, round: 2}
  share: {type: number, min: 0, max: 1, round: DECIMALS, keep: drop, computed: "refund / amount"}
  refund: {type: derived, formula: "share * amount", round: 2}
"""
    said = "is too coarse for it; with `round: 7` for `share` it holds in every row"
    for decimals, is_said in (("5", True), ("6", True), ("4", False)):  # two further decimals are tried
        lines = [str(one) for one in check_raw(str(data), make(schema.replace("DECIMALS", decimals)), 1).policies]
        assert any(said in line for line in lines) == is_said, (decimals, lines)
    assert not check_raw(str(data), make(schema.replace("DECIMALS", "7")), 1).broken


def test_a_formula_without_decimals_that_differs_by_a_cent_is_told_to_be_rounded_and_how(tmp_path: Path) -> None:
    text = "name: pay\ncolumns:\n  gross: {type: number, min: 0, max: 900, round: 2}\n"
    text += "  third: {type: derived, formula: gross / 3}\n"
    for thirds, said in (
        ((3.34, 6.67), "by 0.00333333 at most: write `round: 2`, with which it holds in every row"),
        ((3.34, 6.66), "by 0.00666667 at most: write `round: 2`; no other way of rounding"),
        (
            (3.33, 6.66),
            "by 0.00666667 at most: write `round: 2`; `floor((gross / 3) * 100) / 100` with `round: 2` holds",
        ),
        ((3.34, 9.0), "by 2.33333 at most: correct these rows or"),
    ):
        rows = "".join(f"{gross},{third}\n" for gross, third in zip(("10.01", "20.00"), thirds, strict=True))
        (tmp_path / "pay.csv").write_text(f"gross,third\n{rows}")
        (line,) = [str(one) for one in check_raw(str(tmp_path / "pay.csv"), make(text), 9).policies]
        assert said in line


def test_rows_with_decimals_in_a_column_of_whole_numbers_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n,m\n1.5,1.0\n2,2\n,3\n0.25,4\n")
    column = "{type: integer, min: 0, max: 9, nullable: true}"
    gate = check_raw(str(tmp_path / "t.csv"), make(f"name: t\ncolumns:\n  n: {column}\n  m: {column}\n"), 2)
    assert {(one.rule.column, one.failed) for one in gate.outcomes if not one.passed} == {("n", 2)}


def test_what_a_part_of_a_difference_is_rounded_from_is_advised_on(tmp_path: Path) -> None:
    amounts, paid = (one.ravel() for one in np.meshgrid(np.arange(10, 4000, 7) / 100, np.arange(1, 10, 2) / 100))
    part = np.rint(np.round(amounts - paid, 2) * 50) / 100
    rows = [f"{amount:.2f},{one:.2f},{half:.2f}" for amount, one, half in zip(amounts, paid, part, strict=True)]
    (data := tmp_path / "d.csv").write_text("\n".join(["amount,paid,part", *rows]))
    text = "name: d\ncolumns:\n  amount: {type: number, min: 0, max: 99, round: 2}\n"
    text += '  paid: {type: number, min: 0, max: 9, round: 2}\n  part: {type: derived, formula: "FORMULA", round: 2}\n'
    gate = check_raw(str(data), make(text.replace("FORMULA", "round((amount - paid) * 50) / 100")), 1)
    written = "round(round((amount - paid) * 100) / 100 * 50) / 100"
    assert gate.broken and any(f"`{written}` with `round: 2` holds in every row" in str(one) for one in gate.policies)
    assert not check_raw(str(data), make(text.replace("FORMULA", written)), 1).broken


def test_a_formula_that_names_a_broken_one_says_to_mend_that_first(tmp_path: Path) -> None:
    rows = ["gross,net,tax", "1.19,1.00,0.19", "2.38,2.01,0.38", "3.57,3.02,0.55", "4.76,3.98,0.77"]
    (data := tmp_path / "d.csv").write_text("\n".join(rows) + "\n")
    text = "name: d\ncolumns:\n  gross: {type: number, min: 0, max: 99, round: 2}\n"
    text += '  net: {type: derived, formula: "round(gross / 1.19 * 100) / 100", round: 2}\n'
    text += "  tax: {type: derived, formula: gross - net, round: 2}\n"
    said = {one.name: one.text for one in check_raw(str(data), make(text), 1).policies}
    assert said["tax"].endswith("which follows from net, of which more is said: mend that first, and look again")
    assert "the file differs from" in said["net"] and "mend" not in said["net"]


def test_what_rounds_to_nothing_from_below_is_zero_without_a_sign() -> None:
    schema = make(
        "name: d\ncolumns:\n  a: {type: number, min: 0, max: 9}\n  b: {type: derived, formula: a - 1, round: 1}"
    )
    made = derive(schema.derived["b"], schema.columns, pa.RecordBatch.from_pydict({"a": [0.99]}))
    assert str(made[0].as_py()) == "0.0"


def test_what_follows_from_a_broken_formula_stands_behind_it_in_the_names_of_the_schema(tmp_path: Path) -> None:
    rows = ["base,work,net,tax,gross", *(f"{n}.00,2.00,{n + 3}.00,{n + 3}.50,{2 * n + 6}.50" for n in range(1, 5))]
    (data := tmp_path / "d.csv").write_text("\n".join(rows) + "\n")
    text = "name: d\ncolumns:\n  base: {type: number, min: 0, max: 99, round: 2}\n"
    text += "  work: {type: number, min: 0, max: 99, round: 2}\n"
    text += "  net: {type: derived, formula: base + work, round: 2}\n"
    text += (
        "  tax: {type: derived, formula: net + 0.5, round: 2}\n  gross: {type: derived, formula: net + tax, round: 2}\n"
    )
    gate = check_raw(str(data), make(text), 1)
    ((rule, following),) = first_causes(gate.broken)
    assert rule.column == "net" and following == ", and what follows from it: tax and gross"
    said = {one.name: one.text for one in gate.policies}
    assert "which follows from net, of which" in said["gross"] and "which follows from net, of which" in said["tax"]
