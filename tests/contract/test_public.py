"""What public tables beside a tree may say, and how their keys are measured."""

from typing import Any

import numpy as np
import pytest
import yaml

from dpmodels.authoring.lint import parse
from dpmodels.contract.public import PublicTable
from dpmodels.contract.tree import Tree
from dpmodels.limits import LARGEST_YAML

SCHEMA = """
name: bank
public:
  town:
    key: id
    groups: 3
    columns:
      north: {type: boolean}
      id: {type: identifier}
      size: {type: integer, min: 0, max: 99, nullable: true}
    rows: {north: [true, false, true, false], id: [4, 3, 2, 1], size: [9, 5, null, 6]}
tables:
  account:
    key: number
    refers: [{to: town, by: town, nullable: true}]
    columns: {number: {type: identifier, keep: regenerate}, town: {type: identifier}, rich: {type: boolean}}
"""


def changed(place: str, value: Any) -> str:
    """Return the schema as text, with one key replaced; None takes it out."""
    content = yaml.safe_load(SCHEMA)
    *path, last = place.split("__")
    at = content
    for part in path:
        at = at[int(part)] if part.isdigit() else at[part]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return yaml.safe_dump(content, sort_keys=False)


def test_a_reference_is_a_category_of_the_keys_or_of_groups_of_rows_that_are_alike():
    tree, faults = parse(SCHEMA)
    assert faults == [] and tree.without_rows == []
    branch, town = tree.tables["account"], tree.public["town"]
    assert branch.modelled["town"].values == ("4", "3", "2", "1") and branch.modelled["town"].nullable
    assert town.sorted_rows == [1, 3, 0, 2] and town.group_of.tolist() == [1, 0, 2, 0]  # in the south first, null last
    assert tree.flat_of("account").modelled["account.town"].values == ("3 to 1", "4", "2")
    again, _ = parse(tree.to_yaml())
    assert again == tree and again.hash == tree.hash
    assert parse(changed("public__town__groups", 4))[0].flat_of("account").modelled["account.town"].size == 5


def test_groups_are_runs_of_about_one_size():
    town = PublicTable.model_validate(
        {"key": "id", "groups": 7, "columns": {"id": {"type": "identifier"}}, "rows": {"id": [*range(100)]}}
    )
    sizes = np.bincount(town.group_of)
    assert len(sizes) == 7 and sizes.min() >= 14 and sizes.max() <= 15


def test_a_schema_without_rows_is_one_that_no_plan_is_made_of():
    tree, faults = parse(changed("public__town__rows", None))
    assert faults == [] and tree.without_rows == ["town"]


@pytest.mark.parametrize(
    ("place", "value", "where", "says"),
    [
        ("public__town__kay", 3, "public.town.kay", "did you mean `key`"),
        ("public__town__columns__size__mix", 3, "public.town.columns.size.mix", "no key here"),
        ("tables__account__refers__0__too", "town", "tables.account.refers.0.too", "no key here"),
        ("public__town__key", "name", "public.town.key", "must be a column"),
        ("public__town__rows__id", [1, 1, 2, 3], "public.town.key", "must name each row of town once"),
        ("public__town__rows__id", [1, None, 2, 3], "public.town.key", "never be null"),
        ("public__town__rows__id", [1, 1.0, 2, 3], "public.town.key", "must name each row of town once"),
        ("public__town__rows__id", [1, 2**63, 2, 3], "public.town.rows", "must hold whole numbers below 2**63"),
        ("public__town__rows__id", [1], "public.town.rows", "as many values"),
        ("public__town__rows__size", [1, {"a": 1}, 2, 3], "public.town.rows.size.1", "must be text, a number"),
        ("public__town__rows__size", None, "public.town.rows", "as many values"),
        ("public__account", yaml.safe_load(SCHEMA)["public"]["town"], "public.account", "another name"),
        ("tables__account__refers__0__to", "city", "tables.account.refers.0.to", "must be a table of `public`"),
        ("tables__account__refers__0__by", ["town", "rich"], "tables.account.refers.0.by", "as many columns"),
        ("tables__account__refers__0__by", "rich", "tables.account.refers.0.by", "of type identifier"),
        ("tables__account__refers__0__by", "number", "tables.account.refers.0.by", "part of another key"),
        (
            "tables__account__refers",
            [{"to": "town", "by": "town", "unknown": "null"}],
            "tables.account.refers.0.unknown",
            "goes with `nullable: true`",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_place(place, value, where, says):
    contract, faults = parse(changed(place, value))
    assert contract is None and any(says in fault.message for fault in faults if fault.where == where), faults


def test_a_reference_by_two_columns_is_not_called_as_another_column_is():
    content = yaml.safe_load(SCHEMA)
    content["public"]["town"] |= {"key": ["id", "north"]}
    content["public"]["town"]["columns"]["north"] = {"type": "identifier"}
    account = content["tables"]["account"]
    account["refers"] = [{"to": "town", "by": ["town", "side"]}]
    account["columns"]["side"] = {"type": "identifier"}
    assert parse(yaml.safe_dump(content))[1] == []
    account["columns"]["town+side"] = {"type": "boolean"}
    _, faults = parse(yaml.safe_dump(content))
    assert [fault.where for fault in faults] == ["tables.account.refers.0.by"] and "name of a column" in faults[
        0
    ].message


def test_public_rows_that_make_a_schema_too_large_to_be_read_are_refused_and_others_are_read():
    content = yaml.safe_load(SCHEMA)
    names = [f"{number:06d} {'é' * 40}" for number in range(12_000)]
    town = {"key": "id", "columns": {"id": {"type": "identifier"}}}
    for rows, says in ((11_000, ""), (12_000, "1024 KiB")):
        content["public"]["town"] = {**town, "rows": {"id": names[:rows]}}
        if says:
            with pytest.raises(ValueError, match=says):
                Tree.model_validate(content)
        else:
            assert len(Tree.model_validate(content).to_yaml().encode()) < LARGEST_YAML
