"""No row that breaks a rule is measured, whatever becomes of values outside bounds, of decimals and of nulls.

Of numbers without ``round`` that holds to 2**-31 of their range, to which they are measured.
"""

from itertools import product

import pyarrow as pa
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.rules import RowRules
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.privacy import Sensitive
from dpmodels.reading.ingest import encode_checked, transform_encode
from tests.kit.errors import refused

SCHEMA = """\
name: rows
columns:
  a: {{type: number, min: {least}, max: 10, round: 1, outside: {of_a}, nullable: {nullable}}}
  b: {{type: integer, min: 0, max: {most}, outside: {of_b}, nullable: {nullable}}}
  kind: {{type: categorical, values: [x, y], outside: {of_kind}, nullable: {nullable}}}
constraints: [{rule}]
"""
NUMBERS = (None, -2.0, 2.96, 3.0, 12.0)
POLICIES = ("refuse", "clip", "reject-row")
OF_KINDS = ("refuse", "reject-row", "nearest", "other, other: y")
RULES = ("a <= b", "a < b", "when kind = y then a > 4", "when a > 4 then b < 6", "when b = null then kind = x")


@pytest.mark.parametrize("rule", RULES)
def test_no_row_that_breaks_a_rule_is_measured(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite is slow, and judges the batches alone that a look at all of their rows finds to be broken."""
    monkeypatch.setattr(Gate, "check", lambda *_: False)
    rows = [*product(NUMBERS, NUMBERS, (None, "x", "y", "z"))]
    batches = [
        pa.record_batch(
            {
                "a": pa.array([a], pa.float64()),
                "b": pa.array([None if b is None else int(b)], pa.int64()),
                "kind": pa.array([kind], pa.string()),
            }
        )
        for a, b, kind in rows
    ]
    measured = 0
    for of_a, of_b, of_kind in [*zip(POLICIES, POLICIES, OF_KINDS, strict=False), ("clip", "refuse", OF_KINDS[3])]:
        for least, most, nullable in ((0, 10, "true"), (0, 10, "false"), (4, 10, "true"), (0, 6, "false")):
            words = {"of_a": of_a, "of_b": of_b, "of_kind": of_kind, "least": least, "most": most}
            schema, _ = parse(SCHEMA.format(rule=rule, nullable=nullable, **words))
            if schema is None:  # a rule that speaks of nulls where there are none
                continue
            rules, gate = RowRules(schema), Gate(schema, raw=True)
            for row, batch in zip(rows, batches, strict=True):
                for _, records in _fitting(batch, gate):
                    measured += len(records)
                    assert rules.hold(records).all(), (row, words, nullable)
    assert measured > 100


def _fitting(batch: pa.RecordBatch, gate: Gate) -> list:
    try:
        return [*encode_checked(iter([batch]), gate)]
    except DataError:
        return []


@pytest.mark.parametrize(
    ("rule", "of_a", "row", "said"),
    [
        ("a <= b", "refuse", (7.0, 3, "x"), "`a <= b` must hold in every row"),
        ("a < b", "clip", (-2.0, 0, "x"), "`a < b` must hold in every row, also once `outside: clip` has set values"),
        ("a <= b", "clip", (12.0, 10, "x"), "`a <= b` must hold in every row, also once"),
        ("when a > 4 then b < 6", "clip", (12.0, 9, "x"), "`when a > 4 then b < 6` must hold in every row"),
        ("when a > 4 then b < 6", "reject-row", (7.0, 9, None), "`when a > 4 then b < 6` must hold in every row"),
    ],
)
def test_a_table_with_one_such_row_is_refused_before_it_is_measured(tmp_path, rule, of_a, row, said) -> None:
    schema, _ = parse(
        SCHEMA.format(rule=rule, of_a=of_a, of_b="refuse", of_kind="refuse", least=0, most=10, nullable="true")
    )
    assert schema is not None
    whole = [(1.0, 9, "x"), (2.0, 5, "y"), row] if rule.startswith("a") else [(1.0, 9, "x"), row]
    columns = zip(*whole, strict=True)
    types = (pa.float64(), pa.int64(), pa.string())
    batch = pa.record_batch(
        {name: pa.array(values, kind) for name, values, kind in zip(["a", "b", "kind"], columns, types, strict=True)}
    )
    with refused(DataError, said, column="") as caught:
        transform_encode([Sensitive(iter([batch]))], Gate(schema, raw=True), tmp_path)
    assert not any(str(value) in str(caught.value) for value in (-2.0, 12.0, 7.0))
