"""A workload names columns of the schema, and weighs their pairs; a schema without one is what it was."""

import numpy as np
import pytest
import yaml

from dpmodels.contract.schema import Schema
from dpmodels.contract.workload import cell_weights, in_order, joint_tables, named_pairs, pair_weights, weighed
from tests.kit.support import make_schema

NAMES = ["age", "ward", "dose", "smoker"]


def asking(*tables: dict[str, object]) -> Schema:
    return make_schema(workload=list(tables))


def test_pairs_have_the_largest_weight_that_is_asked_for():
    schema = asking({"by": "ward", "weight": 2}, {"columns": ["age", "ward", "smoker"], "weight": 5})
    expected = np.array([[1, 5, 1, 5], [5, 1, 2, 5], [1, 2, 1, 1], [5, 5, 1, 1]])
    assert np.array_equal(pair_weights(schema.workload, NAMES), expected)
    assert np.array_equal(pair_weights((), NAMES), np.ones((4, 4)))


@pytest.mark.parametrize(
    ("table", "weights"),
    [
        ({"columns": ["age", "ward"], "weight": 5}, [5, 5, 1, 1]),
        ({"columns": ["age", "dose"], "weight": 5}, [1, 1, 1, 1]),
        ({"columns": ["age", "dose", "smoker"]}, [3, 1, 3, 3]),
        ({"by": "ward", "weight": 5}, [1, 1, 1, 1]),
    ],
)
def test_columns_that_are_named_together_with_a_category_are_cut_by_the_weight_of_their_tables(table, weights):
    assert cell_weights(asking(table).workload, NAMES, {"age", "dose"}) == weights


def test_without_a_workload_a_schema_has_the_hash_and_the_text_that_it_had():
    assert asking().hash == make_schema().hash and "workload" not in make_schema().to_yaml()
    schema = asking({"by": "ward"})
    assert schema.hash != make_schema().hash
    assert "workload:\n- {by: ward}" in schema.to_yaml()
    assert make_schema(workload=[{"by": "ward", "weight": 4}]).workload[0].weight == 4


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({}, "must have either `by` or `columns`"),
        ({"by": "ward", "columns": ["age", "dose"]}, "must have either `by` or `columns`"),
        ({"columns": ["age"]}, "must name two columns or more, each once"),
        ({"columns": ["age", "age"]}, "must name two columns or more, each once"),
        ({"by": "wrad"}, "`wrad` is no column of this schema.*ward"),
        ({"by": "wholly_other"}, "`wholly_other` is no column of this schema; measured are .*ward"),
        ({"by": "patient"}, "`patient` is an identifier, of which nothing is measured: leave it out"),
        ({"by": "tens"}, "`tens` is derived.*`tens_counted: {type: number, .*computed: tens, keep: drop}`"),
        ({"by": "ward", "weight": 1}, "greater than or equal to 2"),
        ({"by": "ward", "weight": 11}, "less than or equal to 10"),
        ({"by": "ward", "share": 0.5}, "not permitted"),
        ({"columns": ["age", "ward"], "joint": True}, "must name 3 to 5 `columns` for a table that is `joint`"),
        ({"by": "ward", "joint": True}, "must name 3 to 5 `columns` for a table that is `joint`"),
        ({"columns": ["age", "ward", "sick"], "joint": True}, "names the target `sick`, by whose classes age and ward"),
    ],
)
def test_a_workload_that_cannot_be_measured_is_a_fault(tables, why):
    columns = {"patient": {"type": "identifier"}, "tens": {"type": "derived", "formula": "age // 10"}}
    columns |= make_schema().model_dump()["columns"]
    with pytest.raises(ValueError, match=why):
        make_schema(columns=columns, workload=[tables])


def test_so_many_joint_tables_are_fitted_and_no_more():
    table = {"columns": ["smoker", "age", "dose"], "joint": True}
    assert len(joint_tables(asking(*[table] * 16).workload, NAMES)) == 16
    with pytest.raises(ValueError, match="must ask for 16 tables that are `joint` at most"):
        asking(*[table] * 17)


def test_joint_tables_are_named_by_their_places_and_written_only_where_they_are_asked_for():
    schema = asking({"columns": ["smoker", "age", "dose"], "joint": True, "weight": 5}, {"by": "ward"})
    assert joint_tables(schema.workload, NAMES) == [((0, 2, 3), 5)]
    assert pair_weights(schema.workload, NAMES)[0].tolist() == [1, 3, 5, 5]
    text = schema.to_yaml()
    assert text.count("joint: true") == 1 and Schema.model_validate(yaml.safe_load(text)) == schema
    assert joint_tables((), NAMES) == []


def test_a_target_that_has_classes_is_asked_for_and_weighs_nothing():
    named = asking(
        {"columns": ["sick", "age"]},
        {"by": "sick"},
        {"columns": ["ward", "sick", "age"], "weight": 5},
        {"columns": ["age", "ward", "sick", "smoker"], "joint": True},
    )
    without = asking({"columns": ["ward", "age"], "weight": 5}, {"columns": ["age", "ward", "smoker"], "joint": True})
    assert weighed(named) == weighed(without) == without.workload
    every = [*NAMES, "sick"]
    assert named_pairs(weighed(named), every) == named_pairs(without.workload, every)
    assert joint_tables(weighed(named), NAMES) == joint_tables(without.workload, NAMES)
    assert weighed(asking({"columns": ["sick", "age"]})) == weighed(make_schema()) == ()
    of_target = [("sick", "age"), ("dose", "sick"), ("sick", "ward"), ("ward", "age")]
    assert in_order(named.workload[:3], ["age", "dose"], "sick") == of_target


def test_a_target_without_classes_is_a_column_like_others():
    schema = make_schema(target="age", workload=[{"by": "age"}])
    assert pair_weights(weighed(schema), [*NAMES, "sick"])[0].tolist() == [1, 3, 3, 3, 3]


def test_users_with_rows_of_their_own_have_none():
    numbers = {name: {"type": "integer", "min": 0, "max": 9} for name in ("age", "dose")}
    columns = {"patient": {"type": "identifier", "keep": "regenerate"}, **numbers}
    schema = {"name": "x", "unit": {"user": "patient", "max_rows": 3}, "users": {}, "columns": columns}
    assert Schema.model_validate(schema)
    with pytest.raises(ValueError, match="must be left out: it is not supported beside `users`"):
        Schema.model_validate({**schema, "workload": [{"columns": ["age", "dose"]}]})
