"""The gate for trees of tables notices every way in which tables do not join."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.audit.made import firm
from dpmodels.codec.flat import split
from dpmodels.codec.stacked import BACK, DAMAGED, TABLE, whole_units
from dpmodels.codec.tree import TreeCodec
from dpmodels.errors import DataError
from dpmodels.gate.tree_gate import TreeGate
from tests.kit.errors import refused

TREE = firm.make_schema()
ROWS = firm.make_table(30)


def verdicts(*batches: Any, rows: int | None = None) -> list[str]:
    """Return which rules are broken, with their columns."""
    gate = TreeGate(TREE, rows)
    for batch in batches:
        gate.check(batch)
    gate.settle()
    return [f"{rule.expectation} {rule.column}".strip() for rule in gate.broken]


def with_values(column: str, change: Any) -> pa.Table:
    """Return the rows with a change to the values of one column that are there."""
    values = ROWS.column(column).to_pylist()
    places = [place for place, value in enumerate(values) if value is not None]
    for place, value in zip(places, change([values[place] for place in places]), strict=True):
        values[place] = value
    field = ROWS.schema.field(column)
    return ROWS.set_column(ROWS.schema.get_field_index(column), field, pa.array(values, field.type))


def test_what_is_decoded_keeps_every_rule():
    assert verdicts(ROWS, rows=30) == []


@pytest.mark.parametrize(
    ("table", "broken"),
    [
        (with_values("purchase.customer", lambda x: [x[1], x[0], *x[2:]][::-1]), "parent purchase.customer"),
        (with_values("item.purchase", lambda x: x[::-1]), "parent item.purchase"),
        (with_values("purchase.day", lambda x: x[::-1]), "order purchase.day"),
        (with_values("customer.customer", lambda x: [x[0]] * len(x)), "key customer.customer"),
        (with_values("customer.age", lambda x: [90, *x[1:]]), "ExpectColumnValuesToBeBetween customer.age"),
    ],
)
def test_each_fault_is_noticed(table, broken):
    assert broken in verdicts(table)


def test_too_many_rows_of_a_parent_and_too_few_units_are_noticed():
    narrow = {**TREE.model_dump(), "tables": {**TREE.model_dump()["tables"]}}
    narrow["tables"]["item"]["most"] = 3
    gate = TreeGate(type(TREE).model_validate(narrow), 31)
    gate.check(ROWS)
    gate.settle()
    assert {rule.expectation for rule in gate.broken} == {"rows", "ExpectTableRowCountToBeBetween"}


def test_a_key_that_comes_back_in_another_file_is_noticed():
    one, other = TreeGate(TREE, 60), TreeGate(TREE, 60)
    one.check(ROWS)
    other.check(ROWS)
    one.add(other)
    one.settle()
    assert {(rule.expectation, rule.column) for rule in one.broken} == {
        ("key", "customer.customer"),
        ("key", "purchase.number"),
    }


@pytest.mark.parametrize("back", [[0], [-1], [10**9], [1, 1, 1]])
def test_rows_that_do_not_stand_below_a_parent_are_refused(back):
    values = np.array(ROWS.column(BACK).to_numpy())
    values[np.flatnonzero(ROWS.column(TABLE).to_numpy() == 3)[: len(back)]] = back
    damaged = ROWS.set_column(1, BACK, pa.array(values))
    with refused(DataError, rule=DAMAGED):
        TreeGate(TREE, None).check(damaged)


@pytest.mark.parametrize("column", [TABLE, BACK])
def test_a_table_that_is_not_stacked_is_refused(column):
    with refused(DataError, rule=DAMAGED):
        TreeGate(TREE, None).check(ROWS.drop_columns(column))
    if column == TABLE:
        with refused(DataError, rule=DAMAGED):
            list(whole_units(TREE, ROWS.drop_columns(column).combine_chunks().to_batches()))


def test_rows_that_break_a_rule_with_rows_above_them_are_noticed_in_any_file():
    content = TREE.model_dump()
    content["tables"]["item"]["constraints"] = ["customer.age >= price"]
    content["tables"]["address"]["constraints"] = ["when town = north then customer.age > 50"]
    tree = type(TREE).model_validate(content)
    gates = [TreeGate(tree, 60), TreeGate(tree, 60)]
    address = with_values("address.town", lambda x: ["south"] * len(x))
    assert gates[1].check(with_values("item.price", lambda x: [1.0] * len(x)).slice(0, 0)) and not gates[0].check(ROWS)
    gates[1].add(gates[0])
    gates[1].settle()
    broken = [rule.text for rule in gates[1].broken if rule.expectation == "rule"]
    assert broken == ["`item.price <= customer.age` must hold in every row of table item"]
    gates[0].check(address)
    assert len(gates[0].rules.outcomes) == 2


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_batches_are_cut_between_units_and_give_the_same_tables(size):
    batches = list(whole_units(TREE, (batch for batch in ROWS.combine_chunks().to_batches(max_chunksize=size))))
    assert all(batch.column(TABLE)[0].as_py() == 0 for batch in batches)
    whole = pa.Table.from_batches(batches)
    assert whole.equals(ROWS.combine_chunks())
    codec = TreeCodec(TREE)
    records = [codec.encode(batch) for batch in batches]
    assert sum(map(len, records)) == 30
    assert split(TREE, whole)["item"].num_rows == sum(each.rows("item") for each in records)
