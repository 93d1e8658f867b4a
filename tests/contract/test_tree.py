"""What a tree of tables may say, and that every fault is named at its place."""

from typing import Any

import pytest
import yaml

from dpmodels.audit.made import firm
from dpmodels.authoring.lint import parse
from dpmodels.contract.branch import MOST_ROWS
from dpmodels.contract.tree import Tree


def changed(**changes: Any) -> str:
    """Return the firm's schema as text, with keys of tables replaced; None takes a key out."""
    content = yaml.safe_load(firm.SCHEMA_TEXT)
    for place, value in changes.items():
        *path, last = place.split("__")
        at = content["tables"]
        for part in path:
            at = at[part]
        if value is None:
            del at[last]
        else:
            at[last] = value
    return yaml.safe_dump(content, sort_keys=False)


def test_a_schema_is_read_back_as_it_was_written_and_keeps_its_hash():
    tree, faults = parse(firm.SCHEMA_TEXT)
    assert faults == [] and isinstance(tree, Tree)
    again, _ = parse(tree.to_yaml())
    assert again == tree and again.hash == tree.hash == Tree.model_validate_json(tree.model_dump_json()).hash


def test_the_unit_is_a_row_of_the_root_with_all_its_rows_and_their_most_is_what_it_may_have():
    tree = firm.make_schema()
    assert (tree.unit.user, tree.unit.max_rows) == ("customer.customer", 1 + 1 + 3 + 12)
    assert tree.measured == ("customer", "purchase", "item") and tree.parts("customer") == ("address",)


def test_a_flat_table_has_what_is_known_of_a_row_and_then_what_is_drawn():
    tree = firm.make_schema()
    assert list(tree.flat_of("customer").columns) == ["customer.age", "address.rows", "purchase.rows", "address.town"]
    known = ["customer.age", "address.rows", "purchase.rows", "address.town"]
    steps = ["purchase.position", "purchase.kind.previous"]
    assert list(tree.given("purchase")) == [*known, *steps]
    assert list(tree.attributes("purchase")) == ["purchase.day", "purchase.kind", "item.rows"]
    assert "purchase.kind" in tree.given("item") and "purchase.position" not in tree.given("item")


@pytest.mark.parametrize(
    ("place", "says", "changes"),
    [
        ("tables", "one table without `parent`", {"item__parent": None}),
        ("tables.address.parent", "stands before", {"address__parent": "purchase"}),
        ("tables.customer.key", "must name the columns", {"customer__key": []}),
        ("tables.customer.key", "must be an identifier", {"customer__key": "age"}),
        ("tables.customer.key", "keep: regenerate", {"customer__columns__customer": {"type": "identifier"}}),
        ("tables.purchase.order", "number or a datetime", {"purchase__order": "kind"}),
        ("tables.purchase.follows", "neither an identifier", {"purchase__follows": ["number"]}),
        ("tables.item.most", f"{MOST_ROWS} is the most", {"item__most": 400}),
        ("tables.item.parent_key", "as many columns", {"item__parent_key": ["purchase", "price"]}),
        ("tables.item.parent_key", "of type identifier", {"item__parent_key": "price"}),
        ("tables.item.unique", "goes with `order`", {"item__unique": True}),
        ("tables.customer.parent", "is missing", {"customer__most": 2}),
        ("tables.address.columns", "at least one", {"address__columns": {"customer": {"type": "identifier"}}}),
        ("tables.customer.columns.rows", "another name", {"customer__columns__rows": {"type": "boolean"}}),
        ("tables.customer.columns.age.min", "is missing", {"customer__columns__age": {"type": "integer", "max": 3}}),
        ("tables.customer.ages", "no key here", {"customer__ages": 3}),
        ("tables.customer.columns.age.maxx", "no key here", {"customer__columns__age__maxx": 3}),
    ],
)
def test_what_is_wrong_is_said_at_its_place(place, says, changes):
    contract, faults = parse(changed(**changes))
    assert contract is None
    (fault,) = [fault for fault in faults if fault.where == place]
    assert says in fault.message and fault.line > 0


@pytest.mark.parametrize("name", ["rows", "age.position", "kind.previous", " "])
def test_names_that_only_flat_tables_have_are_refused(name):
    content = yaml.safe_load(firm.SCHEMA_TEXT)
    content["tables"]["purchase"]["columns"][name] = {"type": "boolean"}
    contract, faults = parse(yaml.safe_dump(content, sort_keys=False))
    assert contract is None and ["another name" in fault.message for fault in faults] == [True]


def test_rows_of_another_root_with_a_key_of_the_same_name_are_another_unit():
    """An account adds up what one unit costs: an order is another than the customer who made it."""
    columns = {"id": {"type": "identifier", "keep": "regenerate"}, "size": {"type": "boolean"}}
    tables = [{name: {"key": "id", "columns": columns}} for name in ("customer", "purchase")]
    units = [Tree.model_validate({"name": "shop", "tables": each}).unit for each in tables]
    assert units[0] != units[1] and units[0].code != units[1].code


def test_tables_and_columns_in_another_order_are_another_contract():
    content = yaml.safe_load(firm.SCHEMA_TEXT)
    tables = content["tables"]
    others = {"customer": tables["customer"], "purchase": tables["purchase"], "address": tables["address"]}
    again = Tree.model_validate({**content, "tables": {**others, "item": tables["item"]}})
    assert again.hash != firm.make_schema().hash


def test_rules_name_columns_of_their_table_and_of_those_above_and_change_no_hash_where_there_are_none():
    assert firm.make_schema().hash == "d63f91637ca1246712efba51e5db4cf82b26d2241d8f0852b941e2ab85608683"
    contract, faults = parse(changed(purchase__constraints=["when kind = books then customer.age >= 20"]))
    assert faults == [] and contract.hash != firm.make_schema().hash
    (rule,) = contract.rules_of("purchase")
    assert rule.flat == "when purchase.kind = books then customer.age >= 20" and rule.alone is None
    assert contract.schema_of("purchase").constraints == ()
    again, _ = parse(contract.to_yaml())
    assert again == contract


@pytest.mark.parametrize("name", ["n", "ot", "not", "o"])
def test_a_column_whose_name_is_part_of_not_is_told_from_it(name):
    column = {f"purchase__columns__{name}": {"type": "boolean"}}
    contract, faults = parse(changed(**column, purchase__constraints=[f"when not {name} then customer.age >= 20"]))
    assert faults == [] and contract.ruled("purchase").constraints == (
        f"when not purchase.{name} then customer.age >= 20",
    )


def test_a_rule_of_one_table_is_one_of_its_schema_however_it_names_its_columns():
    day = yaml.safe_load("{type: datetime, min: 2024-01-01, max: 2024-12-31, resolution: day}")
    columns = {"purchase__columns__paid": day}
    contract, faults = parse(changed(**columns, purchase__constraints=["purchase.day <= paid"]))
    assert faults == [] and contract.schema_of("purchase").constraints == ("day <= paid",)
    assert contract.handed_over("purchase").constraints == ("day <= paid",)
    assert contract.ruled("purchase").constraints == ("purchase.day <= purchase.paid",)


def test_a_rule_may_not_name_a_column_that_is_called_as_one_above_is():
    aged = {"purchase__columns__customer.age": {"type": "integer", "min": 0, "max": 99}}
    contract, faults = parse(changed(**aged, purchase__constraints=["when kind = books then customer.age >= 20"]))
    assert contract is None and [fault.where for fault in faults] == ["tables.purchase.constraints.0"]
    assert "may mean two columns by `customer.age`" in faults[0].message
    assert parse(changed(**aged))[1] == []


@pytest.mark.parametrize(
    ("table", "rule", "says"),
    [
        ("purchase", "day >= customer.since", "names `customer.since`, which is no column"),
        ("purchase", "day >= customer.age", "compares a datetime with a number"),
        ("purchase", "when customer.age > 20 then address.town = north", "names no column of this table"),
        ("purchase", "when kind = bread then customer.age > 20", "bread is no value"),
        ("purchase", "item.price >= customer.age", "names `item.price`, which is no column"),
        ("purchase", "position > purchase.rows", "names `purchase.rows`, which is no column"),
        ("address", "when town = north then purchase.rows > 1", "there is no column purchase.rows"),
        ("item", "price >= 3", "compares `price` with a value: write `min: 3` of that column instead"),
        ("item", "customer.age > price", ""),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_at_its_place(table, rule, says):
    contract, faults = parse(changed(**{f"{table}__constraints": [rule]}))
    if not says:
        assert faults == [] and contract.rules_of("item")[0].flat == "item.price < customer.age"
        return
    assert contract is None and [says in fault.message for fault in faults] == [True], faults
    assert faults[0].where == f"tables.{table}.constraints.0"


def test_a_pattern_makes_enough_keys_for_all_rows_that_units_may_have():
    tree, _ = parse(changed(purchase__columns__number={"type": "identifier", "keep": "pattern:P[0-9]{2}"}))
    assert tree.too_few(33) == []
    (place, why) = tree.too_few(34)[0]
    assert place == "tables.purchase.columns.number.keep" and "makes 100 identifiers, fewer than 102 rows" in why


def test_a_target_is_one_of_the_table_that_it_is_drawn_with():
    tree = Tree.model_validate({**yaml.safe_load(firm.SCHEMA_TEXT), "target": "purchase.kind"})
    assert {name: tree.flat_of(name).target for name in tree.measured} == {
        "customer": None,
        "purchase": "purchase.kind",
        "item": None,
    }
    part = Tree.model_validate({**yaml.safe_load(firm.SCHEMA_TEXT), "target": "address.town"})
    assert part.flat_of("customer").classes == 3 and part.flat_of("purchase").target is None
    assert parse(tree.to_yaml())[0] == tree and tree.hash != firm.make_schema().hash


@pytest.mark.parametrize("target", ["kind", "purchase.number", "purchase.rows", "town.kind", 3])
def test_a_target_that_is_no_column_of_a_table_is_refused(target):
    contract, faults = parse(yaml.safe_dump({**yaml.safe_load(firm.SCHEMA_TEXT), "target": target}, sort_keys=False))
    assert contract is None and [fault.where for fault in faults] == ["target"]
    if target == "kind":
        assert faults[0].message.endswith("that is no identifier; did you mean `purchase.kind`?")
    elif target == "town.kind":
        assert "; its columns are customer.age, address.town, " in faults[0].message
