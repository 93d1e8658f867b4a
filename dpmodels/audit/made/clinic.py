"""A small clinic and its schema: a table with columns of every kind."""

import numpy as np
import pyarrow as pa
import yaml

from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema

SCHEMA_TEXT = """
name: clinic
unit: record
target: sick
columns:
  patient: {type: identifier, keep: regenerate}
  age: {type: integer, min: 0, max: 99}
  ward: {type: categorical, values: [north, south, west]}
  dose: {type: number, min: 0, max: 10, round: 2, nullable: true, zero_inflated: true}
  smoker: {type: boolean}
  sick: {type: categorical, values: ["no", "yes"]}
"""


def make_schema(**changes: object) -> Schema:
    """Return the clinic's schema, with top-level keys replaced; patients are not numbered anew if they are the unit."""
    content = {**yaml.safe_load(SCHEMA_TEXT), **changes}
    if content["unit"] != "record" and "columns" not in changes:
        content["columns"]["patient"] = {"type": "identifier"}
    return Schema.model_validate(content)


def make_table(rows: int, seed: int = 0) -> pa.Table:
    """Return clinic rows in which smoking, age and ward go with being sick."""
    rng = np.random.default_rng(seed)
    smoker = rng.random(rows) < 0.4
    age = rng.integers(0, 100, rows)
    sick = rng.random(rows) < 0.1 + 0.5 * smoker + 0.3 * (age > 60)
    dose = np.where(rng.random(rows) < 0.3, 0.0, np.round(rng.random(rows) * 10, 2))
    return pa.table(
        {
            "patient": pa.array(np.arange(rows)),
            "age": pa.array(age),
            "ward": pa.array(np.array(["north", "south", "west"])[rng.integers(0, 3, rows)]),
            "dose": pa.array(dose, mask=rng.random(rows) < 0.1),
            "smoker": pa.array(smoker),
            "sick": pa.array(np.where(sick, "yes", "no")),
        }
    )


def make_records(rows: int, seed: int = 0) -> Records:
    """Return clinic rows, encoded."""
    return Codec(make_schema()).encode(make_table(rows, seed))


EXTREMES = {
    "patient": [996, 997, 998, 999],
    "age": [99, 0, 0, 99],
    "ward": ["west", "north", "south", "north"],
    "dose": [10.0, 0.0, None, None],
    "smoker": [True, False, True, False],
    "sick": ["yes", "no", "yes", "no"],
}
"""Records at the ends of what the schema allows."""
