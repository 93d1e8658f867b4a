"""The lint names what is wrong with rules beside what is wrong with columns, by the columns that can be read."""

import pytest

from dpmodels.authoring.lint import parse

FAULTY = """\
name: t
unit: record
columns:
  start: {type: integer, min: 0, max: TODO}
  end: {type: integer, min: 9, max: 3}
  fee: {type: number, min: 0, max: 10}
  sick: {type: boolean}
"""


def places(text: str) -> set[str]:
    contract, faults = parse(text)
    assert contract is None
    return {fault.where for fault in faults}


@pytest.mark.parametrize(
    ("rules", "place"),
    [
        ("constraints: [fee <= cost]", "constraints.0"),
        ("constraints: [start <= cost]", "constraints.0"),
        ("constraints: [start ? end]", "constraints.0"),
        ("constraints: [fee < sick]", "constraints.0"),
        ("constraints: [start <= end, when sick then cost > 0]", "constraints.1"),
        ("partition: ward", "partition"),
        ("partition: fee", "partition"),
        ("workload: [{by: ward}]", "workload.0"),
    ],
)
def test_faults_of_columns_hide_none_of_the_rules(rules: str, place: str) -> None:
    assert places(f"{FAULTY}{rules}\n") == {"columns.start.max", "columns.end.min", place}


def test_a_rule_of_a_column_that_cannot_be_read_yet_and_a_value_names_the_bound() -> None:
    _, faults = parse(f"{FAULTY}constraints: [start >= 1]\n")
    (message,) = [fault.message for fault in faults if fault.where == "constraints.0"]
    assert message.endswith("compares `start` with a value: write `min: 1` of that column instead")


@pytest.mark.parametrize(
    "rules",
    [
        "constraints: [start <= end, start < fee]",
        "constraints: [when sick then start > 3]",
        "partition: start",
        "workload: [{by: end}]",
    ],
)
def test_a_rule_about_a_column_that_cannot_be_read_yet_is_no_fault(rules: str) -> None:
    assert places(f"{FAULTY}{rules}\n") == {"columns.start.max", "columns.end.min"}


def test_a_fault_of_the_file_hides_no_contradiction() -> None:
    text = "name: t\nunit: record\nextra: 1\ncolumns:\n  a: {type: integer, min: 5, max: 9}\n"
    text += "  b: {type: integer, min: 0, max: 3}\n  c: {type: derived, formula: nothing + 1}\nconstraints: [a <= b]\n"
    assert places(text) == {"extra", "constraints", "columns.c.formula"}


MISSPELT = """name: a
target: sick
constraints: [when ward = north then fee > 0, number <= fee]
workload: [{by: ward}, {columns: [number, fee, ward]}]
columns:
  sick: {type: boolean}
  fee: {type: number, min: 0, max: 9}
  ward: {type: categorical, values: [north, south]}
  number: {type: integer, min: 0, max: 9}
  both: {type: derived, formula: fee + number}
  counted: {type: number, min: 0, max: 18, computed: both, keep: drop}
"""


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        ("ward: {type", "ward: {typ", {"columns.ward": "did you mean `type` by `typ`?"}),
        ("values: [", "catgories: [", {"columns.ward.catgories": "did you mean `values`?"}),
        ("values: [", "levels: [", {"columns.ward.levels": "did you mean `values`?"}),
        (
            "values: [north",
            "catgories: [no",
            {"columns.ward.catgories": "did you mean `values`?", "columns.ward.catgories.0": "YAML reads no as false"},
        ),
        (
            "integer, min: 0, max: 9",
            "integer, minn: 0, maximal: 9",
            {"columns.number.minn": "did you mean `min`?", "columns.number.maximal": "did you mean `max`?"},
        ),
        ("formula", "fromula", {"columns.both.fromula": "did you mean `formula`?"}),
        ("computed:", "computd:", {"columns.counted.computd": "did you mean `computed`?"}),
        ("max: 9}", "max: 9, decimals: 2}", {"columns.fee.decimals": "did you mean `round`?"}),
        ("integer, min: 0, max: 9", "integer, values: [1, 2]", {"columns.number.values": "a list is `{type: categor"}),
        ("max: 9}", "max: 9, currency: £}", {"columns.fee.currency": 'as `text: {decimal: ".", currency: "£"}`'}),
        (
            "integer, min: 0, max: 9",
            "datetime, min: 2024-01-01, max: 2024-12-31, format: x",
            {"columns.number.format": 'stands beside `columns`, as `text: {date_format: "%d/%m/%Y"}`'},
        ),
        ("integer, min: 0, max: 9", "integer, min: 0", {"columns.number.max": "is missing"}),
    ],
)
def test_a_misspelt_key_is_one_fault_that_says_which_is_meant(old: str, new: str, faults: dict[str, str]) -> None:
    assert old in MISSPELT and not parse(MISSPELT)[1]
    told = {fault.where: fault.message for fault in parse(MISSPELT.replace(old, new, 1))[1]}
    assert told.keys() == faults.keys() and all(faults[where] in told[where] for where in faults), told


def test_a_word_that_a_key_takes_is_suggested() -> None:
    columns = (
        "hours: {type: integer, min: 0, max: 60, dtype: int46, outside: clp}",
        "pay: {type: number, min: 0, max: 9, dtype: flaot64}",
        'day: {type: datetime, min: 2020-01-01, max: 2021-01-01, resolution: dya, dtype: "timestmp[us]"}',
    )
    _, faults = parse("name: t\ncolumns:\n  " + "\n  ".join(columns) + "\n")
    meant = {fault.where: fault.message.partition("; did you mean ")[2] for fault in faults}
    assert meant == {
        "columns.hours.dtype": "`int64`?",
        "columns.hours.outside": "`clip`?",
        "columns.pay.dtype": "`float64`?",
        "columns.day.resolution": "`day`?",
        "columns.day.dtype": "`timestamp[s]`?",
    }


def test_the_columns_that_there_are_are_listed_once() -> None:
    _, faults = parse(
        "name: t\nunit: record\ncolumns:\n  hours: {type: integer, min: 0, max: 60}\n"
        "  pay: {type: integer, min: 0, max: 9}\n"
        "constraints: [when zzq = 3 then pay > 5, when huors = 3 then pay > 5]\nworkload: [{by: zzq}]\n"
        "partition: zzq\ntarget: zzq\n"
    )
    messages = [fault.message for fault in faults]
    assert len(messages) == 5 and sum("hours, pay" in one for one in messages) == 1
    assert "there is no column huors; did you mean `hours`?" in messages[1]
