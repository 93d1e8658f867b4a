"""What of a schema is no fault is said where most would expect something else of it."""

from datetime import date
from types import SimpleNamespace
from typing import Any

from dpmodels.authoring.lint import parse
from dpmodels.contract.columns import Categorical, Datetime, Derived, Identifier, Integer, Number
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.remarks import before_a_charge, remarks_of
from dpmodels.privacy import PrivacyUnit
from tests.kit.every_kind import make

DATES: dict[str, Any] = {
    name: Datetime(type="datetime", min=date(2020, 1, 1), max=date(2021, 12, 31)) for name in ("start", "end")
}
RECORD, USER = PrivacyUnit(), PrivacyUnit(kind="user", user="patient", max_rows=2)


def test_two_dates_in_order_are_said_to_lose_what_lies_between_them() -> None:
    rule = Constraint("start", "end", strict=False)
    (remark,) = remarks_of(DATES, RECORD, [rule])
    assert "`start <= end`" in remark and "start: {type: derived" in remark
    assert not list(remarks_of({"start": DATES["start"]}, RECORD, [rule]))


def test_an_identifier_that_is_left_out_may_name_somebody_with_several_records() -> None:
    columns = {"patient": Identifier(type="identifier"), "ward": Categorical(type="categorical", values=("a", "b"))}
    (remark,) = remarks_of(columns, RECORD)
    assert "`unit: {user: patient, max_rows: N}`" in remark
    assert not any("left out" in one for one in remarks_of(columns, USER))
    (remark,) = remarks_of({"claim": Identifier(type="identifier"), **columns}, RECORD)
    assert "identifier claim or patient is left out" in remark
    assert "`unit: {user: COLUMN, max_rows: N}`, with the identifier of persons for COLUMN, hides" in remark
    amount = {"payment": Identifier(type="identifier", person=False)}
    assert not list(remarks_of(amount, RECORD)) and not list(remarks_of(amount, RECORD, in_parts=True))
    assert "identifier patient is left out" in next(remarks_of(amount | columns, RECORD))
    schema, _ = parse("name: x\ncolumns: {payment: {type: identifier}, sick: {type: boolean}}")
    assert schema is not None and "person: false" in str([*before_a_charge(schema)])
    again, _ = parse("name: x\ncolumns: {payment: {type: identifier, person: false}, sick: {type: boolean}}")
    assert again is not None and "person: false" in again.to_yaml() and "person" not in schema.to_yaml()
    assert "person" not in str([*again.remarks, *before_a_charge(again)]) and "person" not in str(schema.model_dump())
    _, faults = parse("name: x\ncolumns: {payment: {type: identifier, person: false, keep: regenerate}}")
    assert faults[0].where == "columns.payment.person" and "goes with `keep: drop`" in faults[0].message
    kept = {**columns, "patient": Identifier(type="identifier", keep="regenerate")}
    assert not list(remarks_of(kept, RECORD))


def test_the_zeros_of_an_amount_are_advised_a_value_of_their_own_until_the_schema_says_so() -> None:
    wide = {"type": "number", "min": 0, "max": 500_000, "round": 2}
    columns = {
        "paid": Number(**wide),
        "cost": Number(**wide, scale="log"),
        "fee": Number(**wide, zero_inflated=False),
        "claims": Number(**wide, zero_inflated=True),
        "share": Number(type="number", min=0, max=1, round=2),
        "visits": Integer(type="integer", min=0, max=999),
        "steps": Integer(type="integer", min=0, max=1000),
        "year": Number(type="number", min=1900, max=2100, round=1),
        "children": Number(type="number", min=0, max=20, round=0),
        "grade": Number(type="number", min=0, max=3, round=1),
        "clock": Integer(type="integer", min=0, max=86_399, dtype="time32[s]"),
        "each": Integer(type="integer", min=0, max=1000, cells=1001),
        "age": Number(type="number", min=0, max=120, round=0),
    }
    (asked, _) = before_a_charge(SimpleNamespace(columns=columns))
    assert asked.startswith("paid, cost, share and steps can be 0: ") and "`zero_inflated: true`" in asked
    for name in ("paid", "cost", "share", "steps", "clock"):
        del columns[name]
    assert not before_a_charge(SimpleNamespace(columns=columns))


def test_nobody_is_asked_to_list_times_of_day() -> None:
    clock = Integer(type="integer", min=1, max=86_399, dtype="time32[s]", resolution="minute")
    assert not before_a_charge(SimpleNamespace(columns={"clock": clock}))


def test_a_wide_interval_of_whole_numbers_is_said_to_be_no_list_of_few() -> None:
    whole = {"type": "integer", "min": 0, "max": 1000, "zero_inflated": False}
    columns = {
        "deductible": Integer(**whole),
        "limit": Number(type="number", min=50, max=5000, round=0),
        "fee": Integer(type="integer", min=0, max=300),
        "percent": Integer(type="integer", min=0, max=100),
        "pressure": Integer(type="integer", min=0, max=310),
        "bonus": Number(type="number", min=0, max=25_000, round=0, zero_inflated=False),
        "fine": Integer(**{**whole, "zero_inflated": True}),
        "age": Integer(type="integer", min=0, max=120),
        "minutes": Integer(**{**whole, "cells": 100}),
        "steps": Integer(**whole, scale="log"),
        "paid": Number(type="number", min=0, max=5000, round=2, zero_inflated=True),
        "rest": Integer(**whole, computed="1000 - deductible"),
        "level": Categorical(type="categorical", values=(0, 150, 300, 500)),
    }
    (asked,) = before_a_charge(SimpleNamespace(columns=columns))
    assert asked.startswith("deductible, limit and fee come back as any whole number") and "values: [0, 150" in asked
    del columns["deductible"], columns["limit"], columns["fee"]
    assert not before_a_charge(SimpleNamespace(columns=columns))


def test_numbers_that_say_nothing_of_their_decimals_are_named_in_one_line() -> None:
    number = {"type": "number", "min": 30, "max": 45}
    columns = {
        "temp": Number(**number),
        "dose": Number(**number),
        "weight": Number(**number, round=1),
        "height": Number(**number, dtype="float64"),
        "ratio": Number(**number, computed="temp / 2"),
        "age": Integer(type="integer", min=0, max=120),
    }
    (asked,) = before_a_charge(SimpleNamespace(columns=columns))
    assert asked.startswith("temp and dose come back with all digits of a float") and "`round: 1` keeps one" in asked
    del columns["dose"]
    assert before_a_charge(SimpleNamespace(columns=columns))[0].startswith("temp comes back with all digits")
    del columns["temp"]
    assert not before_a_charge(SimpleNamespace(columns=columns))


def test_derived_numbers_of_whose_means_nothing_is_said_are_named() -> None:
    whole = {"type": "integer", "min": 1, "max": 120}
    formulas = {"net": "2 * (a - b) / 3", "cost": "a * b", "rest": "a - a * b / 100", "day": "add_days(on, a)"}
    unknown = {"part": "a / (b - 5)", "odd": "(a * b) % 7", "three": "a * b * c"}
    columns = {
        "a": Integer(**whole),
        "b": Integer(**whole),
        "c": Integer(**whole),
        "on": Datetime(type="datetime", min=date(2020, 1, 1), max=date(2021, 1, 1)),
    }
    derived = {name: Derived(type="derived", formula=text) for name, text in (formulas | unknown).items()}
    (asked,) = before_a_charge(SimpleNamespace(columns=columns | derived))
    assert asked.startswith("of part, odd and three a report states no mean")
    (asked,) = before_a_charge(SimpleNamespace(columns=columns | derived, target="c"))
    assert asked.startswith("of part and odd a report states no mean") and "joint" not in asked


def test_a_joint_table_tells_the_mean_of_what_follows_from_its_columns() -> None:
    text = (
        "name: x\nworkload: [WORKLOAD]\ncolumns:\n  a: {type: number, min: 1, max: 9, round: 1}\n"
        "  b: {type: number, min: 1, max: 9, round: 1}\n  c: {type: number, min: 1, max: 9, round: 1}\n"
        "  g: {type: categorical, values: [u, v]}\n  amount: {type: derived, formula: a * b * c}\n"
    )

    def said(workload: str) -> str:
        (remark,) = [one for one in before_a_charge(make(text.replace("WORKLOAD", workload))) if "of amount" in one]
        return remark

    plain = said("{columns: [a, g]}")
    assert "a report states no mean" in plain and "or all that amount follows from in one `joint` table" in plain
    assert len(plain.split()) <= 35
    exact = said("{columns: [a, b, c], joint: true}")
    assert "states that of all rows, and `nacre means RUN amount --by a` that by each of these columns, and a" in exact
    grouped = said("{columns: [g, a, b, c], joint: true}")
    assert "tells the mean by g and not that of all rows: `nacre means RUN amount --by g` states it" in grouped
    assert "does not" in exact and "does not" not in grouped


def test_dates_that_no_rule_holds_in_order_are_named() -> None:
    rule = Constraint("start", "end", strict=False)
    (asked,) = before_a_charge(SimpleNamespace(columns=DATES, rules=()))
    assert asked.startswith("no rule says in which order start and end come") and "`start <= end`" in asked
    assert not before_a_charge(SimpleNamespace(columns=DATES, rules=(rule,)))
    further = {**DATES, "birth": DATES["start"]}
    (asked,) = before_a_charge(SimpleNamespace(columns=further, rules=(rule,)))
    assert "birth, start and end" in asked
    stay = {"Verweildauer": Integer(type="integer", min=1, max=90)}
    (asked,) = before_a_charge(SimpleNamespace(columns={**DATES, **stay}, rules=()))
    assert 'write `end: {type: derived, formula: "add_days(start, Verweildauer)"}`' in asked
    (asked,) = before_a_charge(SimpleNamespace(columns={**DATES, "age": stay["Verweildauer"]}, rules=()))
    assert "add_days" not in asked
    assert not before_a_charge(SimpleNamespace(columns={"start": DATES["start"]}))


AMOUNT: dict[str, Any] = {"type": "number", "min": 0, "max": 9000, "round": 2, "zero_inflated": True}


def _of_refunds(part: Any, whole: Any, strict: bool = False) -> list[str]:
    rule = Constraint("refunded", "amount", strict=strict)
    return before_a_charge(SimpleNamespace(columns={"amount": whole, "refunded": part}, rules=(rule,)))


def test_a_part_of_an_amount_is_said_to_lose_its_share_under_a_rule() -> None:
    (remark,) = _of_refunds(Number(**AMOUNT), Number(**AMOUNT))
    assert "`refunded <= amount` keeps the order" in remark
    assert 'round: 4, zero_inflated: true, computed: "refunded / max(amount, 0.01)", keep: drop}' in remark
    assert 'refunded: {type: derived, formula: "refunded_share * amount", round: 2}. The rule, and how' in remark
    assert "in return, what refunded has to do with other columns is kept by the share alone" in remark
    remarks = _of_refunds(Number(**{**AMOUNT, "round": 0}), Number(**AMOUNT))  # whole ones could lie beyond the amount
    assert any('"refunded_share * amount", round: 2}' in one for one in remarks)
    (remark,) = _of_refunds(Number(**AMOUNT), Number(**{**AMOUNT, "min": 1, "zero_inflated": False}))
    assert '"refunded / amount"' in remark and "null" not in remark


def test_the_share_of_an_amount_that_may_be_nothing_is_null_where_no_decimals_are_known() -> None:
    (remark,) = (one for one in _of_refunds(Number(**AMOUNT), Number(**{**AMOUNT, "round": None})) if "refunded" in one)
    assert 'nullable: true, computed: "refunded / amount"' in remark and "null where amount is 0" in remark
    whole = Integer(type="integer", min=0, max=900, zero_inflated=True)
    (remark,) = _of_refunds(whole, whole)
    assert "max(amount, 1)" in remark and "dtype: int64" in remark


def test_a_rule_between_numbers_that_are_no_parts_or_are_told_apart_has_no_remark_on_shares() -> None:
    few = Integer(type="integer", min=0, max=12, zero_inflated=True)
    assert not _of_refunds(few, few)
    assert not _of_refunds(Number(**{**AMOUNT, "min": -5}), Number(**AMOUNT))


def test_a_multiple_of_a_counted_amount_has_a_mean_and_nothing_is_said_of_it() -> None:
    text = (
        "name: x\ncolumns:\n  a: {type: number, min: 1, max: 9, round: 1}\n"
        "  b: {type: number, min: 1, max: 9, round: 1}\n  c: {type: number, min: 1, max: 9, round: 1}\n"
        "  net: {type: derived, formula: a * b * c, round: 2}\n  tax: {type: derived, formula: 0.19 * net, round: 2}\n"
    )
    counted = "  net_counted: {type: number, min: 1, max: 729, round: 2, computed: net, keep: drop}\n"
    assert any(one.startswith("of net and tax a report states no mean") for one in before_a_charge(make(text)))
    assert not any("a report states no mean" in one for one in before_a_charge(make(text + counted)))


def test_what_follows_from_a_clipped_column_is_said_to_have_no_mean() -> None:
    text = (
        "name: x\ncolumns:\n  price: {type: number, min: 1, max: 9, round: 2, outside: clip}\n"
        "  extra: {type: number, min: 1, max: 9, round: 2}\n  vat: {type: derived, formula: 0.2 * price, round: 2}\n"
        "  total: {type: derived, formula: price + extra, round: 2}\n  half: {type: derived, formula: extra / 2}\n"
    )
    (said,) = [one for one in before_a_charge(make(text)) if "outside: clip" in one and "states no mean" in one]
    assert said.startswith("of vat and total a report states no mean, since `outside: clip` has price counted by")
    assert not any("states no mean" in one for one in before_a_charge(make(text.replace(", outside: clip", ""))))


def test_a_sum_of_which_one_term_may_be_null_is_said_to_have_no_mean_by_group_before_a_charge() -> None:
    text = (
        "name: x\nWORKLOADcolumns:\n  ward: {type: categorical, values: [u, v]}\n  sick: {type: boolean}\n"
        "  drugs: {type: number, min: 0, max: 9, round: 2, nullable: true}\n  pay: {type: number, min: 0, max: 9}\n"
        "  cost: {type: derived, formula: drugs + pay, round: 2}\n"
    )

    def said(schema: str) -> list[str]:
        return [one for one in before_a_charge(make(schema)) if "no mean by group" in one]

    (plain,) = said(text.replace("WORKLOAD", ""))
    assert plain.startswith("cost has no mean by group, since drugs may be null: have it counted beside, as `cost_coun")
    assert plain.endswith("(docs/columns-that-depend.md#a-column-for-figures-alone)")
    assert said(text.replace("WORKLOAD", "target: sick\n"))[0].startswith("cost has no mean by group but by sick, ")
    joint = text.replace("WORKLOAD", "workload: [{columns: [ward, drugs, pay], joint: true}]\n")
    assert said(joint)[0].startswith("cost has no mean by group but by ward, since")
    counted = "  cost_counted: {type: number, min: 0, max: 18, computed: cost, keep: drop, nullable: true}\n"
    assert not said(text.replace("WORKLOAD", "") + counted)
    assert not said(text.replace("WORKLOAD", "").replace(", nullable: true", ""))
