"""Constraints between two columns, null limits and row counts: what lint says, and what the raw gate says."""

import re
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.convert import encode_numbers
from dpmodels.codec.encode import Codec
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.continuous import decode_numbers
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.privacy import Sensitive
from dpmodels.reading.ingest import transform_encode
from tests.kit.errors import refused
from tests.kit.every_kind import make

STAYS = """
name: stays
constraints:
  - start <= end
  - {rule}
columns:
  start: {{type: datetime, min: 2020-01-01, max: 2020-12-31}}
  end: {{type: datetime, min: 2020-01-01, max: 2021-12-31, nullable: true}}
  seen: {{type: datetime, min: 2020-01-01, max: 2021-12-31, resolution: hour}}
  low: {{type: integer, min: 0, max: 9}}
  high: {{type: number, min: 0, max: 20, round: 1, dtype: float32}}
  ward: {{type: categorical, values: [a, b]}}
"""


@pytest.mark.parametrize("rule", ["low < high", "high>=low", "low <= high"])
def test_a_constraint_reads_the_same_either_way_round(rule: str) -> None:
    schema = make(STAYS.format(rule=rule))
    assert schema.rules[1] == Constraint("low", "high", strict="=" not in rule)
    assert parse(schema.to_yaml())[0] == schema


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("low <= ward", "needs integers, numbers or datetimes"),
        ("low <= hihg", "is no column"),
        ("low <= low", "compares a column with itself"),
        ("start <= low", "compares a datetime with a number"),
        ("start <= seen", "of the same resolution"),
        ("end < start", "go round in a circle"),
        ("low = high", "must compare two columns"),
        ("low + low <= high", "is no column, but a formula: let a column be `computed`"),
        (
            "low <= 0.5*high",
            'max: 0.5, round: 4, zero_inflated: true, computed: "low / max(high, 0.1)", keep: drop}, and low: ',
        ),
        ("low <= 0.5*high", '"low_share * high", round: 1}. The rule, and how often one is all'),
        ("high <= 0.5 * low", '"high_share * low", round: 1}. The rule, and how often one is all'),
        ("low <= 0.33333 * high", "max: 0.33333, zero_inflated: true"),
        ("high * 2 <= low", "min: 2, max: MOST"),
        ("low <= 0.5*hig", "names `0.5*hig`, which is no column"),
        ("low >= 1", "compares `low` with a value: write `min: 1` of that column instead"),
        ("3.5 >= low", "`max: 3.5` of that column instead"),
        ("low > 1", "write `min: 2` of that column instead"),
        ("start < 2024-05-01", "`max: 2024-05-01` of that column instead, which 2024-05-01 keeps too"),
        ("ward >= 1", "names `1`, which is no column"),
        ("low =< high", "has =<, which is no comparison; write <="),
        ("when low => 1 then high > 3", "has =>, which is no comparison; write >="),
        ("low >= one", "names `one`, which is no column"),
        ("when low > 1 et ward = a alors high > 3", "has `et`, `alors`; .*: `when low > 1 and ward = a then high > 3`"),
        ("wenn low > 1, dann high > 3", "has `wenn`, `dann`; a rule .*: `when low > 1 then high > 3`"),
        ("si low > 1 entonces high > 3", "`when low > 1 then high > 3`"),
        ("when low > 1 und ward = b then high > 3", "has `und`; a rule is written with `when`, `and`, `then`"),
        ("when ward = y then high > 3", "`ward = y`"),  # a value, and no word between conditions
    ],
)
def test_lint_explains_a_constraint_that_cannot_be_meant(rule: str, says: str) -> None:
    schema, faults = parse(STAYS.format(rule=rule))
    assert schema is None and len(faults) == 1
    assert (says in faults[0].message or re.search(says, faults[0].message)) and faults[0].where.startswith(
        "constraints"
    )
    assert "keeps too" not in faults[0].message or "start" in rule
    assert faults[0].line == (3 if "circle" in says else 5)


def test_lint_sees_that_bounds_leave_a_chain_no_room() -> None:
    columns = "\n".join(
        f"  {name}: {{type: integer, min: {at}, max: {at + 5}}}" for name, at in (("a", 6), ("b", 3), ("c", 0))
    )
    schema, faults = parse(f"name: x\nconstraints: [a <= b, b <= c]\ncolumns:\n{columns}\n")
    assert schema is None and "cannot hold within the bounds" in faults[0].message
    assert parse(f"name: x\nconstraints: [a <= b, c <= b]\ncolumns:\n{columns}\n")[0] is not None


def test_a_schema_without_the_new_keys_keeps_its_hash() -> None:
    old = make("name: one\ncolumns:\n  x: {type: boolean}\n")
    assert not {"constraints", "rows"} & set(old.model_dump(mode="json"))
    assert "max_null_share" not in old.model_dump(mode="json")["columns"]["x"]
    assert make("name: one\nrows: {min: 1}\ncolumns:\n  x: {type: boolean}\n").hash != old.hash


def stays(**changes: list[object]) -> pa.Table:
    columns: dict[str, list[object]] = {
        "start": [date(2020, 1, 1), date(2020, 5, 1)],
        "end": [date(2020, 1, 1), None],
        "seen": [datetime(2020, 1, 1, 7), datetime(2021, 12, 31, 23)],
        "low": [3, 4],
        "high": [3.5, 9.0],
        "ward": ["a", "b"],
    }
    return pa.table(columns | changes)


@pytest.mark.parametrize("raw", [True, False])
def test_the_gate_names_the_constraint_a_row_breaks_and_lets_null_pass(raw: bool) -> None:
    schema = make(STAYS.format(rule="low < high"))
    gate = Gate(schema, raw=raw)
    assert gate.check(stays()) and not gate.broken
    assert not gate.check(stays(start=[date(2020, 1, 2), date(2020, 5, 1)], low=[3, 9]))
    assert [str(rule) for rule in gate.broken] == [
        "`start <= end` must hold in every row",
        "`low < high` must hold in every row",
    ]
    assert [outcome.failed for outcome in gate.outcomes if not outcome.passed] == [1, 1]
    assert {outcome.checked for outcome in gate.outcomes} == {4}


def test_a_row_that_is_rejected_anyway_breaks_no_constraint() -> None:
    text = "name: x\nconstraints: [a <= b]\ncolumns:\n  a: {type: integer, min: 0, max: 9, outside: reject-row}\n"
    schema = make(text + "  b: {type: integer, min: 0, max: 9}\n")
    gate = Gate(schema, raw=True)
    assert gate.check(pa.table({"a": [999, 1, None], "b": [3, 4, 5]}))
    assert not gate.check(pa.table({"a": [9], "b": [3]}))


def test_shares_of_nulls_and_row_counts_are_judged_over_all_batches() -> None:
    text = "name: x\nrows: {min: 4, max: 6}\ncolumns:\n"
    schema = make(text + "  a: {type: integer, min: 0, max: 9, nullable: true, max_null_share: 0.5}\n")
    for given, broken in (
        ([[None, None], [1, 2]], []),
        ([[1, 2], [None, None, None]], ["ExpectColumnValuesToNotBeNull"]),
        ([[1, 2]], ["ExpectTableRowCountToBeBetween"]),
        ([[1] * 7], ["ExpectTableRowCountToBeBetween"]),
    ):
        gate = Gate(schema, raw=True)
        for values in given:
            assert gate.check(pa.table({"a": pa.array(values, pa.int64())}))
        assert [rule.expectation for rule in gate.broken] == broken
    synthetic = Gate(schema, raw=False, rows=3)
    synthetic.check(pa.table({"a": [1, 2, 3]}))
    assert not synthetic.broken
    assert [rule.text for rule in Gate(schema, raw=False, rows=3).broken] == ["the table must have 3 rows"]


def test_nothing_is_encoded_once_a_constraint_is_broken(tmp_path) -> None:
    schema = make(STAYS.format(rule="low < high"))
    bad = stays(low=[3, 9])
    with refused(DataError, r"`low < high` must hold in every row"):
        transform_encode([Sensitive(iter(bad.to_batches()))], Gate(schema, raw=True), tmp_path)
    assert pa.ipc.open_file(tmp_path / "part-00000.arrow").num_record_batches == 0


def test_encoded_numbers_are_those_that_are_handed_over(schema: Schema, table: pa.Table) -> None:
    records = Codec(schema).encode(table)
    decoded = Codec(schema).decode(records)
    for index, (name, column) in enumerate(schema.modelled.items()):
        if column.continuous and column.type != "datetime":
            x = decode_numbers(column, records.states[:, index], records.values[:, index])
            given = decoded[name].to_numpy(zero_copy_only=False).astype(np.float64)
            assert np.array_equal(x, given, equal_nan=True)
            known = ~np.isnan(x)
            states, values = encode_numbers(column, x[known])
            assert np.array_equal(states, records.states[known, index])
            assert values == pytest.approx(records.values[known, index], abs=1e-15)
