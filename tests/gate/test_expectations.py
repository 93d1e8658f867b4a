"""The Great Expectations gate: what passes, what fails, and that nothing of the data is left in the results."""

import json
import logging
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.gate.suite import suite_for
from tests.kit.errors import refused
from tests.kit.every_kind import one


def failures(gate: Gate) -> tuple[tuple[str, str], ...]:
    return tuple((rule.column, rule.text) for rule in gate.broken)


def test_a_table_that_fits_passes_raw_and_synthetic(schema: Schema, table: pa.Table) -> None:
    gate = Gate(schema, raw=True)
    for batch in table.to_batches(max_chunksize=1):
        gate.check(batch)
    gate.check(table.slice(0, 0))
    assert failures(gate) == () and all(result["success"] for result in gate.results())
    codec, rng = Codec(schema), np.random.default_rng(0)
    cells = np.stack([rng.integers(0, size, 200) for size in codec.cell_sizes], axis=1).astype(np.int32)
    synthetic = Gate(schema, raw=False)
    synthetic.check(codec.decode(codec.from_cells(cells, rng)))
    assert failures(synthetic) == ()


def test_one_bad_chunk_is_remembered(schema: Schema, table: pa.Table) -> None:
    gate = Gate(schema, raw=True)
    gate.check(table.set_column(table.schema.get_field_index("age"), "age", pa.array([17, 91, 20, 20])))
    gate.check(table)
    assert failures(gate) == (("age", "must lie between 17 and 90"),)


def test_a_computed_column_that_is_null_is_said_to_be_computed_and_from_what() -> None:
    text = "name: a\ncolumns:\n  {}\n  stay: {{type: integer, min: 0, max: 9, computed: '{}'}}\n  {}"
    dates = [f"{name}: {{type: datetime, min: 2020-01-01, max: 2020-12-31}}" for name in ("start", "end")]
    stays, _ = parse(text.format(dates[0], "days_between(start, end)", dates[1]))
    (rule,) = [one for one in suite_for(stays, raw=True) if one.text == "must not be null" and one.column == "stay"]
    fix = rule.fix(of_users=False)
    assert "stay is not in the file but computed from start and end" in fix and "`nullable: true` for stay" in fix


INTEGER = "type: integer, min: 0, max: 9"


@pytest.mark.parametrize(
    ("column", "given", "rules"),
    [
        (f"{{{INTEGER}}}", [3, 10], ["must lie between 0 and 9"]),
        (f"{{{INTEGER}}}", [3, None], ["must not be null"]),
        (f"{{{INTEGER}}}", [3.0, float("nan")], ["must not be null"]),
        (f"{{{INTEGER}}}", [3.0, 3.5], ["must hold whole numbers"]),
        (f"{{{INTEGER}, outside: clip}}", [3.0, 3.5], ["must hold whole numbers"]),
        (f"{{{INTEGER}, outside: clip}}", [3.0, float("inf")], []),
        (f"{{{INTEGER}, outside: clip}}", [3, 10], []),
        (f"{{{INTEGER}, outside: clip}}", [3, None], ["must not be null"]),
        (f"{{{INTEGER}, outside: reject-row}}", [None, 10], []),
        (f"{{{INTEGER}, nullable: true}}", [None, 2**60], ["must lie between 0 and 9"]),
        ("{type: number, min: 0, max: 0.5}", [0.25, 0.75], ["must lie between 0 and 0.5"]),
        ("{type: number, min: 0, max: 0.5}", [float("inf")], ["must lie between 0 and 0.5"]),
        ("{type: number, min: 0, max: 0.5}", [float("nan")], ["must not be null"]),
        ("{type: categorical, values: [a]}", ["a", "b"], ["must be one of the listed values"]),
        ("{type: categorical, values: [a]}", ["a", None], ["must not be null"]),
        ("{type: categorical, values: [a], outside: other, other: a}", ["a", "b"], []),
        ("{type: categorical, values: [1, 2], nullable: true}", [1, None, 3], ["must be one of the listed values"]),
        ("{type: categorical, values: [true]}", [True, False], ["must be one of the listed values"]),
        ("{type: boolean}", [True, None], ["must not be null"]),
        ("{type: boolean, nullable: true}", [True, None, False], []),
        (
            "{type: datetime, min: 2020-01-01, max: 2020-12-31}",
            [datetime(2020, 12, 31, 13), datetime(2021, 1, 1)],
            ["must lie between 2020-01-01 and 2020-12-31"],
        ),
        ("{type: datetime, min: 2020-01-01, max: 2020-12-31}", [datetime(2020, 12, 31, 13)], []),
        ("{type: datetime, min: 2020-01-01, max: 2020-12-31}", [None, datetime(2020, 1, 1)], ["must not be null"]),
        ("{type: datetime, min: 0001-01-01, max: 9999-12-31, resolution: second}", [datetime(9999, 12, 31, 23)], []),
    ],
)
def test_each_rule_fails_alone(column: str, given: list[object], rules: list[str]) -> None:
    gate = Gate(one(column), raw=True)
    gate.check(pa.table({"x": given}))
    assert failures(gate) == tuple(("x", rule) for rule in rules)


def test_what_encode_accepts_the_gate_accepts_and_the_reverse() -> None:
    column = "{type: integer, min: -5, max: 5, nullable: true}"
    for given in ([None, 5], [-6], [5.0, None], [1.5], [2**62]):
        data, gate, refused = pa.table({"x": given}), Gate(one(column), raw=True), False
        gate.check(data)
        try:
            Codec(one(column)).encode(data)
        except DataError:
            refused = True
        assert refused == bool(gate.broken)


def test_synthetic_output_is_held_to_every_rule() -> None:
    schema = one(f"{{{INTEGER}, outside: clip}}")
    gate = Gate(schema, raw=False)
    gate.check(pa.table({"x": [3, 10]}))
    assert failures(gate) == (("x", "must lie between 0 and 9"),)
    assert len(suite_for(schema, raw=True)) < len(suite_for(schema, raw=False))


def test_columns_must_be_those_of_the_schema(schema: Schema, table: pa.Table) -> None:
    for wrong in (table.drop_columns(["age"]), table.append_column("more", table["age"])):
        gate = Gate(schema, raw=True)
        gate.check(wrong)
        assert failures(gate) == (("", "the columns must be exactly those of the schema"),)
    with refused(DataError, "more than once", column="age"):
        Gate(schema, raw=True).check(table.append_column("age", table["age"]))
    with refused(DataError, "must hold numbers", column="age"):
        Gate(schema, raw=True).check(table.set_column(6, "age", pa.array(["x"] * 4)))


def test_no_value_and_no_count_is_left(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    secret, number = "unique-private-string-8412", 987654321
    caplog.set_level(logging.DEBUG)
    said = ""
    for column, values in (
        (f"{{{INTEGER}}}", [1] * 76 + [number] * 77),
        ("{type: categorical, values: [a]}", [secret]),
    ):
        gate = Gate(one(column), raw=True)
        gate.check(pa.table({"x": values}))
        assert gate.broken
        results = gate.results()
        assert all(set(result) == {"expectation", "column", "rule", "success"} for result in results)
        said += json.dumps(results) + str(failures(gate))
        assert "77" not in said and "153" not in said
    heard = said + caplog.text + "".join(capfd.readouterr())
    assert secret not in heard and str(number) not in heard
