"""Which units of a tree meet conditions on columns of its tables."""

from typing import Any

import pytest

from dpmodels.audit.made import firm
from dpmodels.codec.rules import conditions_of
from dpmodels.codec.tree import TreeCodec, TreeRecords
from dpmodels.errors import Unsuitable
from tests.kit.errors import refused

TREE, UNITS = firm.make_schema(), firm.make_records(200)


def rows(table: str) -> list[dict[str, Any]]:
    """Return the rows of a table with the number of the unit of each."""
    decoded = TreeCodec(TREE).decode(UNITS).to_pylist()
    number = list(TREE.tables).index(table)
    named = [{key.partition(".")[2]: value for key, value in row.items()} for row in decoded if row["table"] == number]
    return [{**row, "unit": unit} for row, unit in zip(named, UNITS.units(table).tolist(), strict=True)]


def meeting(*texts: str) -> set[int]:
    return set(conditions_of(TREE, texts).hold(UNITS).nonzero()[0].tolist())


def test_a_unit_meets_the_conditions_on_a_table_if_one_of_its_rows_meets_them_all():
    books = {row["unit"] for row in rows("purchase") if row["kind"] == "books"}
    late = {row["unit"] for row in rows("purchase") if str(row["day"]) >= "2024-06-01"}
    both = {row["unit"] for row in rows("purchase") if row["kind"] == "books" and str(row["day"]) >= "2024-06-01"}
    assert meeting("purchase.kind = books") == books
    assert meeting("purchase.kind = books", "purchase.day >= 2024-06-01") == both < books & late


def test_conditions_on_several_tables_hold_together_and_parts_are_their_parents_columns():
    dear = {row["unit"] for row in rows("item") if (row["price"] or 0) > 50}
    north = {row["unit"] for row in rows("address") if row["town"] == "north"}
    assert meeting("item.price > 50") == dear and meeting("address.town = north") == north
    assert meeting("item.price > 50", "address.town = north") == dear & north
    everybody = set(range(200))
    assert meeting("purchase.rows = 0") == everybody - {row["unit"] for row in rows("purchase")}
    assert meeting("address.rows = 0") == everybody - {row["unit"] for row in rows("address")}


def test_units_that_meet_nothing_are_none_and_no_units_are_none():
    assert meeting("customer.age > 88", "customer.age < 19") == set()
    none = UNITS.take(slice(0, 0))
    assert isinstance(none, TreeRecords) and len(conditions_of(TREE, ["item.price > 50"]).hold(none)) == 0


@pytest.mark.parametrize("text", ["age > 30", "customer.age > 200", "item.purchase = 3", "customer.age", "a.b = 1"])
def test_what_is_no_condition_on_a_tree_is_refused(text):
    with refused(Unsuitable, text.partition(" ")[0]):
        conditions_of(TREE, [text])
