"""A schema with one column of every kind, and a table that fits it."""

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.contract.schema import Schema

EVERY_KIND = """
name: every_kind
unit: {user: patient, max_rows: 4}
target: smoker
columns:
  patient: {type: identifier}
  row: {type: identifier, keep: regenerate}
  colour: {type: categorical, values: [red, green, "?"], nullable: true, dtype: dictionary}
  grade: {type: categorical, values: [1, 2, 3], dtype: int8}
  dose: {type: categorical, values: [0.0, 0.144292, 1.0]}
  smoker: {type: boolean, nullable: true}
  age: {type: integer, min: 17, max: 90, dtype: uint8}
  gain: {type: integer, min: 0, max: 99999, scale: log, zero_inflated: true, nullable: true, dtype: int32}
  change: {type: integer, min: -3, max: 3, zero_inflated: true}
  bmi: {type: number, min: 10, max: 80, round: 1, nullable: true, dtype: float32}
  ratio: {type: number, min: -1, max: 1}
  visited: {type: datetime, min: 2020-01-01, max: 2024-12-31, nullable: true}
  seen: {type: datetime, min: 2020-01-01, max: 2024-12-31, resolution: minute, dtype: "timestamp[ms]"}
  always: {type: integer, min: 7, max: 7}
"""


def make(text: str) -> Schema:
    """Parse a schema that must be right."""
    schema, faults = parse(text)
    assert schema is not None, faults
    return schema


def one(column: str) -> Schema:
    """Make a schema of a single column x."""
    return make(f"name: one\ncolumns:\n  x: {column}\n")


@pytest.fixture(scope="session")
def schema() -> Schema:
    return make(EVERY_KIND)


@pytest.fixture(scope="session")
def table() -> pa.Table:
    moment = datetime(2024, 12, 31, 23, 59)
    columns = {
        "patient": pa.array(["p1", "p1", "p2", "p3"]),
        "row": pa.array([11, 12, 13, 14], pa.int64()),
        "colour": pa.array(["red", None, "?", "green"]).dictionary_encode(),
        "grade": pa.array([3, 1, 2, 3], pa.int8()),
        "dose": pa.array([0.144292, 1.0, 0.0, 0.144292]),
        "smoker": pa.array([True, False, None, True]),
        "age": pa.array([17, 90, 41, 42], pa.uint8()),
        "gain": pa.array([0, 99999, None, 1], pa.int32()),
        "change": pa.array([-3, 0, 3, 1], pa.int64()),
        "bmi": pa.array([10.3, None, 80.0, 22.7], pa.float32()),
        "ratio": pa.array([-1.0, 0.0, 1.0, 1 / 3]),
        "visited": pa.array([date(2020, 1, 1), None, date(2024, 12, 31), date(2024, 2, 29)]),
        "seen": pa.array([datetime(2020, 1, 1), moment, moment, moment], pa.timestamp("ms")),
        "always": pa.array([7, 7, 7, 7], pa.int64()),
    }
    return pa.table(columns)


@pytest.fixture(scope="session")
def schemas() -> list[Path]:
    root = Path(__file__).parents[2]
    return [root / "benchmarks/schemas/adult.yaml", root / "flows/demo/earnings.yaml"]
