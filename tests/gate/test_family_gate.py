"""The gate of users and their rows: what breaks a table, a key, a count or a parent's column is seen and named."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dpmodels.audit.made import shop
from dpmodels.codec.flat import FlatCodec, join, split
from dpmodels.errors import DataError
from dpmodels.gate.family_gate import FamilyGate
from tests.kit.errors import refused

SCHEMA = shop.make_schema()
FLAT = shop.make_table(60)
ROWS = FLAT.column("position").to_pylist()
SECOND, LAST = ROWS.index(2), max(n for n, p in enumerate(ROWS) if p == 1)


def broken(*batches: pa.Table, rows: int | None = 60) -> set[str]:
    gate = FamilyGate(SCHEMA, rows)
    for batch in batches:
        gate.check(batch)
    gate.end()
    gate.settle()
    return {f"{rule.column} {rule.text}".strip() for rule in gate.broken}


def changed(name: str, row: int, value: object) -> pa.Table:
    values = FLAT.column(name).to_pylist()
    values[row] = value
    return FLAT.set_column(FLAT.column_names.index(name), name, pa.array(values, FLAT.schema.field(name).type))


def test_a_flat_table_passes_whole_or_in_batches_that_cut_users():
    assert broken(FLAT) == set()
    assert broken(*(FLAT.slice(at, 7) for at in range(0, len(FLAT), 7))) == set()


CHANGES: dict[str, tuple[pa.Table, str]] = {
    "a key of another user": (changed("customer", SECOND, 10**6), "number each user's rows"),
    "two users of one key": (changed("customer", 0, FLAT.column("customer")[LAST].as_py()), "two users have one key"),
    "a parent that differs": (changed("region", SECOND, "west"), "the same in all rows"),
    "a parent out of bounds": (changed("age", LAST, 17), "age"),
    "a count that is not kept": (changed("children", LAST, 6), "number each user's rows"),
    "a position too many": (changed("position", SECOND, 5), "number each user's rows"),
    "a child out of bounds": (changed("price", SECOND, 201.0), "price"),
    "a child without a value": (changed("product", SECOND, None), "product must not be null"),
    "a row that was dropped": (pa.concat_tables([FLAT.slice(0, SECOND), FLAT.slice(SECOND + 1)]), "number each"),
    "a file that ends too early": (FLAT.slice(0, SECOND), "number each"),
}
if FLAT.column("region")[SECOND].as_py() == "west":
    CHANGES["a parent that differs"] = (changed("region", SECOND, "north"), "the same in all rows")


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_wrong_is_named(name):
    table, rule = CHANGES[name]
    found = broken(table)
    assert any(rule in one for one in found), found


def test_the_number_of_users_is_held_to():
    assert any("61 users" in one for one in broken(FLAT, rows=61))


def test_users_of_one_key_in_two_files_are_seen():
    first, second = FamilyGate(SCHEMA, 120), FamilyGate(SCHEMA, 120)
    for gate in (first, second):
        gate.check(FLAT)
        gate.end()
    first.add(second)
    first.settle()
    assert [rule.expectation for rule in first.broken if rule.expectation == "users"] == ["users"]


def test_a_table_without_its_keys_is_refused():
    with refused(DataError, "are joined", column=""):
        broken(FLAT.drop_columns(["position"]))


def test_categories_of_a_dictionary_are_compared_by_their_values():
    columns = {**SCHEMA.model_dump(exclude_defaults=True)["columns"]}
    for name in ("region", "product"):
        columns[name] = {**columns[name], "dtype": "dictionary"}
    schema = shop.make_schema(columns=columns)
    flat = FlatCodec(schema).decode(shop.make_records(60))
    assert pa.types.is_dictionary(flat.schema.field("region").type)
    for table in (flat, join(schema, split(schema, flat))):
        gate = FamilyGate(schema, 60)
        for at in range(0, len(table), 7):
            gate.check(table.slice(at, 7))
        gate.check(table.slice(0, 0))
        gate.end()
        gate.settle()
        assert gate.broken == ()


Tables = dict[str, pa.Table]


def without(parents: pa.Table, key: pa.Scalar) -> pa.Table:
    return parents.filter(pc.not_equal(parents["customer"], key))


HAND_OFFS: dict[str, Callable[[Tables], Tables]] = {
    "an orphan": lambda both: {**both, "parents": without(both["parents"], both["children"]["customer"][0])},
    "a parent twice": lambda both: {
        **both,
        "parents": pa.concat_tables([both["parents"], both["parents"].slice(5, 1)]),
    },
    "too many children": lambda both: {**both, "children": pa.concat_tables([both["children"]] * 8)},
}


@pytest.mark.parametrize("name", HAND_OFFS)
def test_two_tables_that_do_not_join_are_refused(name):
    both = split(SCHEMA, FLAT)
    assert broken(join(SCHEMA, both)) == set()
    assert broken(join(SCHEMA, HAND_OFFS[name](both)), rows=None) != set()
