"""Which pairs a workload asks for, as a report lists them."""

import pytest

from dpmodels.authoring.lint import parse
from dpmodels.contract.schema import Schema
from dpmodels.report.groups.stated import MOST_BY, asked_names, pairs_of

SCHEMA = """
name: visits
workload: [WORKLOAD]
columns:
  ward: {type: categorical, values: [a, b]}
  age: {type: integer, min: 0, max: 99}
  stay: {type: integer, min: 1, max: 60}
  rate: {type: number, min: 0, max: 99}
  code: {type: categorical, values: [1, 2]}
  bill: {type: derived, formula: rate * stay * age}
  bill_counted: {type: number, min: 0, max: 999, computed: bill, keep: drop}
"""


def schema_of(workload: str, more: int = 0) -> Schema:
    further = "".join(f"  n{number}: {{type: integer, min: 0, max: 9}}\n" for number in range(more))
    schema, faults = parse(SCHEMA.replace("WORKLOAD", workload) + further)
    assert isinstance(schema, Schema), faults
    return schema


@pytest.mark.parametrize(
    ("workload", "asked"),
    [
        ("{by: ward}", [["age", "ward"], ["stay", "ward"], ["rate", "ward"], ["bill", "ward"]]),
        ("{by: age}", [["stay", "age"], ["rate", "age"], ["bill", "age"]]),
        (
            "{columns: [ward, stay]}, {by: ward}",
            [["ward", "stay"], ["age", "ward"], ["rate", "ward"], ["bill", "ward"]],
        ),
        ("{columns: [ward, bill_counted, age]}", [["ward", "bill"], ["ward", "age"], ["bill", "age"]]),
    ],
)
def test_a_workload_asks_for_pairs_and_for_every_number_by_a_column(workload: str, asked: list[list[str]]) -> None:
    schema = schema_of(workload)
    assert asked_names(schema, schema.columns) == asked


def test_a_target_stands_first_where_its_rate_is_asked_for_and_last_where_means_by_it_are() -> None:
    text = SCHEMA.replace("name: visits", "name: visits\ntarget: code")
    schema, faults = parse(
        text.replace("WORKLOAD", "{columns: [ward, code]}, {columns: [code, stay, ward]}, {by: code}")
    )
    assert isinstance(schema, Schema), faults
    asked = [["code", "ward"], ["code", "stay"], ["stay", "ward"], ["age", "code"], ["rate", "code"], ["bill", "code"]]
    assert asked_names(schema, schema.columns) == asked
    columns = [{"name": name} for name in schema.modelled]
    facts = {"columns": columns, "pairs": {"distances": [[1, 4], [2, 4]], "target": 4}, "asked": [["code", "stay"]]}
    assert [*pairs_of(schema.columns, facts)] == [("stay", "code"), ("age", "code")]


def test_of_many_numbers_by_a_column_the_first_are_asked_for() -> None:
    schema = schema_of("{by: ward}", 20)
    assert len(asked_names(schema, schema.columns)) == MOST_BY


def test_what_is_asked_for_is_stated_before_what_differs_most() -> None:
    schema = schema_of("{by: ward}")
    columns = [{"name": name} for name in schema.modelled]
    distances = [[4, 1], [0, 1], [0, 2]]
    asked = asked_names(schema, schema.columns)
    pairs = pairs_of(schema.columns, {"columns": columns, "pairs": {"distances": distances}, "asked": asked})
    assert [*pairs] == [("age", "ward"), ("stay", "ward"), ("age", "code")]
    assert [*pairs.values()] == [True, True, False]
