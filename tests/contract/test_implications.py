"""Rules ``when ... then ...``: how they are read, what lint says of them, and what the gates say of rows."""

import time
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.rules import keeping
from dpmodels.contract.conditions import cell_shares
from dpmodels.contract.conditions import parse as read
from dpmodels.contract.implications import HELD
from dpmodels.contract.schema import Schema
from dpmodels.gate.expectations import Gate

CLINIC = """
name: clinic
constraints:
  - {rule}
columns:
  sick: {{type: boolean, nullable: true}}
  fee: {{type: number, min: 0, max: 1000, round: 2, zero_inflated: true, dtype: float32, outside: clip}}
  age: {{type: integer, min: 0, max: 120, outside: reject-row}}
  kind: {{type: categorical, values: [child, bed and board, b and age, adult], nullable: true,
         outside: other, other: adult}}
  beds: {{type: categorical, values: [1, 2, 4]}}
  start: {{type: datetime, min: 2020-01-01, max: 2020-12-31, nullable: true}}
  name: {{type: identifier}}
"""


def make(rule: str) -> Schema:
    schema, faults = parse(CLINIC.format(rule=rule))
    assert schema is not None, faults
    return schema


def rows(**changes: list[object]) -> pa.Table:
    columns: dict[str, list[object]] = {
        "sick": [True, False],
        "fee": [0.1, 0.0],
        "age": [30, 40],
        "kind": ["adult", "child"],
        "beds": [1, 2],
        "start": [date(2020, 1, 1), date(2020, 5, 1)],
        "name": ["a", "b"],
    }
    return pa.table(columns | changes)


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        ("when sick then fee > 0", ("sick", "fee")),
        ("when not sick then fee = 0", ("sick", "fee")),
        ("when kind == child then age < 18", ("kind", "age")),
        ("when kind = bed and board and age > 3 then fee >= 10 and not sick", ("kind", "age", "fee", "sick")),
        ("when kind = b and age and age > 3 then sick", ("kind", "age", "sick")),
        ("when kind = null then start = null", ("kind", "start")),
        ("when beds > 1 then start >= 2020-06-01", ("beds", "start")),
    ],
)
def test_a_rule_is_read_and_written_back(rule: str, columns: tuple[str, ...]) -> None:
    schema = make(rule)
    assert [one.columns for one in schema.implications] == [columns] and schema.rules == ()
    assert parse(schema.to_yaml())[0] == schema
    assert parse(CLINIC.format(rule="age <= fee"))[0].hash != schema.hash


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("when sik then fee > 0", "`sik` is no condition"),
        ("when name = a then fee > 0", "column name is not modeled"),
        ("when sick then fee > 2000", "must lie between 0 and 1000"),
        ("when sick then fee > 1000", "no value of column fee keeps it where it applies"),
        ("when age > 60 then age < 20", "no value of column age keeps it where it applies"),
        ("when age > 60 and age < 20 then sick", "no value of column age meets what stands after `when`"),
        ("when sick then kind = chld", "chld is no value of column kind"),
        ("when sick then kind < child", "its values have no order"),
        ("when sick then fee > age", "age is no number"),
        ("when sick then age = null", "column age is never null; where it may be, write `nullable: true` for it"),
        ("when beds = null then sick", "column beds is never null; where it may be, write `nullable: true` for it"),
        ("when sick", "or be a rule such as `when sick then fee > 0`"),
    ],
)
def test_lint_explains_a_rule_that_cannot_be_meant(rule: str, says: str) -> None:
    schema, faults = parse(CLINIC.format(rule=rule))
    assert schema is None and len(faults) == 1
    assert says in faults[0].message and faults[0].line == 4


def test_a_rule_about_the_partition_column_is_refused_for_each_part_has_one_value() -> None:
    text = CLINIC.format(rule="when start > 2020-06-01 then sick")
    for rule in (text, text.replace("when start > 2020-06-01 then sick", '" when start > 2020-06-01 then sick "')):
        schema, faults = parse("partition: start\n" + rule.replace(", nullable: true}\n  name", "}\n  name"))
        assert schema is None and "names the partition column `start`" in faults[0].message


KEPT = [
    ("when sick then fee > 0", {}, True),
    ("when sick then fee > 0", {"fee": [0.0, 0.0]}, False),
    ("when sick then fee > 0", {"fee": [-3.0, 0.0]}, False),  # as the encoding takes it: clipped to 0
    ("when sick then fee > 0", {"sick": [None, False], "fee": [0.0, 0.0]}, True),
    ("when not sick then fee >= 0.1", {"fee": [0.0, 0.1]}, True),  # 0.1 in float32, as it is handed over
    ("when kind = child then age < 18", {}, False),
    ("when kind = child then age < 18", {"kind": ["adult", None]}, True),
    ("when kind = child then age < 18", {"age": [30, 999]}, True),  # its row is rejected anyway
    ("when kind = child then age < 18", {"age": [30, None]}, True),
    ("when kind = adult then age < 18", {"kind": ["stranger", "child"]}, False),  # mapped to adult
    ("when sick then kind != null", {"kind": [None, "child"]}, False),
    ("when sick then start = null", {}, False),
    ("when kind = null then start = null", {"kind": [None, "child"], "start": [None, None]}, True),
    ("when sick then start > 2020-03-01", {}, False),
    ("when sick then start > 2020-03-01", {"start": [None, None]}, True),
    ("when beds > 1 then sick", {}, False),
    ("when beds > 1 then sick", {"beds": [4, 1]}, True),
    ("when beds != 1 and not sick then kind = child and age >= 40", {}, True),
    ("when beds != 1 and not sick then kind = child and age > 40", {}, False),
]


@pytest.mark.parametrize(("rule", "changes", "kept"), KEPT)
def test_the_raw_gate_holds_rows_to_the_rule_as_they_are_encoded(rule, changes, kept) -> None:
    gate = Gate(make(rule), raw=True)
    gate.check(rows(**changes))
    assert [str(one) for one in gate.broken] == ([] if kept else [f"`{rule}` must hold in every row"])
    assert [outcome.failed for outcome in gate.outcomes if not outcome.passed] == ([] if kept else [1])


def test_the_fast_check_of_encoded_batches_finds_what_the_suite_finds() -> None:
    schema = make("when kind = child then age < 18")
    for changes, kept in (({"age": [30, 17]}, True), ({}, False)):
        gate = Gate(schema, raw=True)
        assert gate.check_encoded(rows(**changes).to_batches()[0]) is kept
        gate.settle()
        assert (not gate.broken) is kept


def test_a_synthetic_table_and_one_without_the_column_are_judged_too() -> None:
    schema = make("when sick then fee > 0")
    gate = Gate(schema, raw=False, rows=2)
    assert gate.check(rows().drop_columns("name")) and not gate.broken
    lacking = Gate(schema, raw=False)
    lacking.check(rows().drop_columns(["name", "fee"]))
    assert "the columns must be exactly those of the schema, without name" in [one.text for one in lacking.broken]


def test_a_column_with_the_name_of_a_rule_does_not_stand_in_for_it() -> None:
    schema = make("when sick then fee > 0")
    planted = rows(fee=[0.0, 0.0]).append_column(HELD + "when sick then fee > 0", pa.array([True, True]))
    gate = Gate(schema, raw=True)
    assert not gate.check(planted) and gate.broken
    fast = Gate(schema, raw=True)
    assert not fast.check_encoded(planted.to_batches()[0])


def test_a_rule_that_is_written_twice_is_held_like_one() -> None:
    schema, _ = parse(CLINIC.format(rule="when sick then fee > 0\n  - when sick then fee > 0"))
    assert schema is not None
    gate = Gate(schema, raw=True)
    gate.check(rows())
    assert not gate.broken
    gate.check(rows(fee=[0.0, 0.0]))
    assert {one.text for one in gate.broken} == {"`when sick then fee > 0` must hold in every row"}


def test_a_long_rule_is_read_in_no_time() -> None:
    for text in ("when " + " " * 10**5 + "sick then fee > 0", "when sick" + " then fee > 0 and fee > 0" * 10**4):
        begun = time.process_time()
        parse(CLINIC.format(rule=f'"{text}"'))
        assert time.process_time() - begun < 20


def test_random_rows_are_judged_as_plain_python_judges_them() -> None:
    rule, rng = "when kind = child and not sick then age < 18 and fee <= 0.5", np.random.default_rng(0)
    given = {
        "sick": [[True, False, None][i] for i in rng.integers(0, 3, 300)],
        "fee": np.round(rng.random(300), 2).tolist(),
        "age": rng.integers(0, 30, 300).tolist(),
        "kind": [["child", "adult", None][i] for i in rng.integers(0, 3, 300)],
        "beds": [1] * 300,
        "start": [None] * 300,
    }
    schema = make(rule)
    found = keeping(schema.implications[0], schema.columns, pa.table(given))
    wanted = [
        not (kind == "child" and sick is False and (age >= 18 or np.float32(fee) > np.float32(0.5)))
        for kind, sick, age, fee in zip(given["kind"], given["sick"], given["age"], given["fee"], strict=True)
    ]
    assert found.tolist() == wanted and 5 < 300 - sum(wanted) < 100


def test_each_name_of_a_rule_that_is_no_column_is_said_and_the_columns_once() -> None:
    for rule, faults in (
        ("when sik = true then ages > 3", ["did you mean `sick`", "no column ages; did you mean `age`"]),
        ("ages <= bed", ["did you mean `age`", "and `bed`, which is none either; did you mean `beds`"]),
        ("age <= bed", ["names `bed`, which is no column; did you mean `beds`"]),
    ):
        schema, (fault,) = parse(CLINIC.format(rule=rule))
        assert schema is None and all(one in fault.message for one in faults), fault
        assert fault.message.count("sick, fee, age") <= 1


def test_zeros_that_are_kept_exactly_are_named_by_a_rule_without_decimals() -> None:
    text = CLINIC.replace("round: 2, ", "").replace("max: 120", "max: 120, zero_inflated: true")
    schema, faults = parse(text.format(rule="when not sick then fee = 0"))
    assert schema is not None, faults
    (rule,) = schema.implications
    table = pa.table({"sick": [False, True, False, None], "fee": [0.0, 5.5, 0.25, 3.0]})
    assert keeping(rule, schema.columns, table).tolist() == [True, True, False, True]
    for sign, shares in (("=", [0.0, 1.0]), ("!=", [1.0, 0.0])):
        condition = read(f"fee {sign} 0", schema.columns)
        cells = cell_shares([condition], schema.columns["fee"])
        assert {*cells[:-1]} == {shares[0]} and cells[-1] == shares[1]  # the zeros are the last state
    for value, advice in (("0", "or `zero_inflated: true`"), ("2.5", "write < or >")):
        plain = text.replace("zero_inflated: true, dtype", "dtype").format(rule=f"when not sick then fee = {value}")
        schema, (fault,) = parse(plain)
        assert schema is None and advice in fault.message
