"""Users and their rows: what the schema takes, and how two tables become one flat table and two again."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml
from pydantic import ValidationError

from dpmodels.audit.made import clinic, shop
from dpmodels.authoring.lint import parse
from dpmodels.codec.flat import FlatCodec, join, numbers_of, split, units_in, weights_of
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.privacy import Sensitive
from dpmodels.reading.join import transform_join
from dpmodels.reading.user_ids import bounded
from tests.kit.errors import refused

SCHEMA = shop.make_schema()


def columns(**changes: object) -> dict[str, object]:
    return {**yaml.safe_load(shop.SCHEMA_TEXT)["columns"], **changes}


FAULTS = {
    "goes with": {"unit": "record"},
    "rows at most": {"unit": {"user": "customer", "max_rows": 101}},
    "another column": {"users": {"columns": ["age", "nobody"]}},
    "`customer` must be another": {"users": {"columns": ["customer"]}},
    "number or a datetime": {"users": {"columns": ["age"], "order": "product"}},
    "without `zero_inflated`": {
        "users": {"columns": ["age"], "order": "price"},
        "columns": columns(price={"type": "number", "min": 0, "max": 200, "zero_inflated": True}),
    },
    "not of the user": {"users": {"columns": ["age"], "order": "age"}},
    "leave the rows at least one": {"users": {"columns": ["age", "region", "placed", "product", "price", "rating"]}},
    "neither an identifier nor derived, or": {"users": {"columns": ["number"]}},
    "fresh names join": {"columns": columns(customer={"type": "identifier"})},
    "another name": {"columns": columns(position={"type": "boolean"})},
    "no row is rejected": {"columns": columns(rating={"type": "integer", "min": 1, "max": 5, "outside": "reject-row"})},
    "no share of nulls": {
        "columns": columns(rating={"type": "integer", "min": 1, "max": 5, "nullable": True, "max_null_share": 0.5})
    },
    "is in the other": {"columns": columns(more={"type": "derived", "formula": "age + price"})},
    "not supported beside": {"constraints": ["rating <= price"]},
    "target must be left out": {"target": "product"},
}


@pytest.mark.parametrize("sentence", FAULTS)
def test_a_fault_is_named_in_a_sentence(sentence):
    with pytest.raises(ValidationError, match=sentence):
        shop.make_schema(**FAULTS[sentence])


def test_a_fault_has_its_line_and_an_unknown_key_its_neighbor():
    faults = parse(shop.SCHEMA_TEXT.replace("order: placed", "ordre: placed"))[1]
    assert [fault.where for fault in faults] == ["users.ordre"] and "did you mean `order`" in str(faults[0])


def test_a_schema_without_users_keeps_its_hash_and_is_its_own_flat_table():
    plain = clinic.make_schema()
    assert "users" not in json.dumps(plain.model_dump(mode="json")) and plain.flat is plain
    assert Schema.model_validate(yaml.safe_load(SCHEMA.to_yaml())) == SCHEMA


def test_the_flat_table_has_a_row_for_each_child_and_one_for_a_user_without(tmp_path):
    parents, orders = shop.make_tables(300)
    flat = shop.records_of(SCHEMA, orders, parents)
    number, position = (numbers_of(SCHEMA.flat, name, flat) for name in ("children", "position"))
    childless = 300 - pc.count_distinct(orders["customer"]).as_py()
    assert childless > 0 and (position == 0).sum() == childless == (number == 0).sum()
    assert len(flat) == len(orders) + childless and units_in(SCHEMA, flat) == 300
    assert weights_of(SCHEMA, flat).sum() == pytest.approx(300)
    assert weights_of(clinic.make_schema(), clinic.make_records(5)) is None


def test_split_tables_join_again_and_keep_what_was_read():
    parents, orders = shop.make_tables(300)
    flat = FlatCodec(SCHEMA).decode(shop.records_of(SCHEMA, orders, parents))
    both = split(SCHEMA, flat)
    assert both["parents"].num_rows == 300 and both["children"].num_rows == len(orders)
    assert pc.all(
        pc.is_in(both["children"]["customer"], value_set=both["parents"]["customer"].combine_chunks())
    ).as_py()
    assert len(pc.unique(both["children"]["number"])) == len(orders)  # identifiers of rows are told apart
    again = join(SCHEMA, both)
    assert again.sort_by([("customer", "ascending"), ("position", "ascending")]).equals(
        flat.sort_by([("customer", "ascending"), ("position", "ascending")])
    )
    real = orders.join(parents, "customer").group_by(["region", "product"]).aggregate([("price", "sum")])
    made = (
        both["children"].join(both["parents"], "customer").group_by(["region", "product"]).aggregate([("price", "sum")])
    )
    key = [("region", "ascending"), ("product", "ascending")]
    x, y = (table.sort_by(key)["price_sum"].to_numpy() for table in (real, made))
    assert x == pytest.approx(y)


def test_the_rows_of_a_user_are_in_the_order_of_the_order_column_nulls_last():
    columns_ = columns(placed={**columns()["placed"], "nullable": True})  # type: ignore[dict-item]
    schema = shop.make_schema(columns=columns_)
    parents, orders = shop.make_tables(200)
    placed = pa.array(orders["placed"].to_pylist(), orders["placed"].type, mask=np.arange(len(orders)) % 5 == 0)
    orders = orders.set_column(2, "placed", placed)
    children = split(schema, FlatCodec(schema).decode(shop.records_of(schema, orders, parents)))["children"].to_pandas()
    for _, own in children.groupby("customer"):
        known = own["placed"].dropna()
        assert known.is_monotonic_increasing and own["placed"].iloc[: len(known)].notna().all()


def test_without_a_parents_table_users_are_known_by_their_rows():
    parents, orders = shop.make_tables(200)
    wide = orders.join(parents, "customer")
    flat = shop.records_of(SCHEMA, wide)
    assert units_in(SCHEMA, flat) == pc.count_distinct(orders["customer"]).as_py()
    sequences = shop.make_schema(users={"order": "placed"})
    flat = shop.records_of(sequences, wide)
    assert len(flat) == len(orders) and (numbers_of(sequences.flat, "position", flat) >= 1).all()
    assert set(split(sequences, FlatCodec(sequences).decode(flat))) == {"children"}
    ages = wide["age"].to_pylist()
    row = next(n for n, who in enumerate(wide["customer"].to_pylist()) if wide["customer"].to_pylist().count(who) > 1)
    ages[row] = 18 if ages[row] > 18 else 19
    with refused(DataError, "the same in all rows of a user", column="age"):
        shop.records_of(SCHEMA, wide.set_column(wide.column_names.index("age"), "age", pa.array(ages)))


def test_keys_that_do_not_join_are_refused_without_a_value():
    parents, orders = shop.make_tables(50)
    twice = pa.concat_tables([parents, parents.slice(0, 1)])
    for own, rule in ((twice, "once in the parents' table"), (parents.slice(1), "lacks")):
        busy = orders.set_column(0, "customer", pa.array([0] * 3 + [1] * (len(orders) - 3)))
        with refused(DataError, rule, column="customer") as caught:
            shop.records_of(SCHEMA, busy, own)
        assert not any(char.isdigit() for char in str(caught.value))


def read_back(schema: Schema, folder: Path, orders: list[pa.Table], parents: pa.Table) -> pa.Table:
    gates = [Gate(part, raw=True) for part in (schema.children, schema.parents)]
    rows = [Sensitive(iter(table.to_batches())) for table in orders]
    transform_join(schema, rows, [Sensitive(iter(parents.to_batches()))], gates, folder, 50)
    with pa.ipc.open_file(folder / "part-00000.arrow") as reader:
        codec = FlatCodec(schema)
        batches = [codec.from_arrow(reader.get_batch(n)) for n in range(reader.num_record_batches)]
        return pa.concat_tables([codec.decode(records) for records in batches])


def test_ids_are_compared_exactly_whatever_type_a_file_has_and_users_without_any_rows_stay(tmp_path):
    """As 64-bit floats, these ids would be one user."""
    parents, orders = shop.make_tables(4)
    ids = [2**60 + n for n in range(4)]
    parents = parents.set_column(0, "customer", pa.array(ids, pa.uint64()))
    three = [
        orders.slice(0, 1).set_column(0, "customer", pa.array([each], kind))
        for each, kind in zip(ids[:3], (pa.int64(), pa.uint64(), pa.int64()), strict=True)
    ]
    flat = read_back(SCHEMA, tmp_path, three, parents)
    assert sorted(flat["children"].to_pylist()) == [0, 1, 1, 1]
    (tmp_path / "none").mkdir()
    alone = read_back(SCHEMA, tmp_path / "none", [orders.slice(0, 0)], parents)
    assert alone["position"].to_pylist() == [0] * 4 and alone["region"].to_pylist() == parents["region"].to_pylist()


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_user_of_more_rows_than_are_used_adds_that_many_and_moves_nobody_else(place):
    """A user of the most extreme rows, ten of them where six are used, wherever the rows are read."""
    parents, orders = shop.make_tables(80)
    more = pa.table({"customer": [900], "age": [89], "region": ["west"]}, schema=parents.schema)
    rows = pa.table(
        {
            "customer": [900] * 10,
            "number": ["x"] * 10,
            "placed": pa.array(np.array(["2024-12-31"] * 10, dtype="datetime64[D]")),
            "product": ["toys"] * 10,
            "price": [200.0] * 10,
            "rating": pa.array([None] * 10, pa.int64()),
        },
        schema=orders.schema,
    )
    at = {"first": 0, "middle": len(orders) // 2, "last": len(orders)}[place]
    read = pa.concat_tables([orders.slice(0, at), rows, orders.slice(at)])
    kept = pa.Table.from_batches(list(bounded(iter(read.combine_chunks().to_batches()), SCHEMA.unit)))
    before = shop.records_of(SCHEMA, orders, parents)
    after = shop.records_of(SCHEMA, kept, pa.concat_tables([parents, more]))
    assert len(after) - len(before) == SCHEMA.unit.max_rows and units_in(SCHEMA, after) == 81
    added = after.take(np.flatnonzero(numbers_of(SCHEMA.flat, "children", after) == 6))
    old, new = (sorted(map(tuple, np.hstack([r.states, r.values]).tolist())) for r in (before, after))
    assert set(old) <= set(new) and len(new) - len(old) == 6 and len(added) >= 6


@pytest.mark.parametrize(
    ("changes", "column", "says"),
    [
        ({"target": "product"}, {}, "two tables under `tables` .* have one"),
        ({"constraints": ["age < price"]}, {}, "two tables under `tables` .* keep rules"),
        ({}, {"type": "number", "min": 0, "max": 1000, "computed": "price + 1"}, "write it into the data before"),
        ({}, {"type": "derived", "formula": "price + 1", "max": 5}, "write it into the data before"),
        ({}, {"type": "derived", "formula": "price + age"}, "write it into the data before"),
    ],
)
def test_what_is_refused_beside_users_is_answered_with_what_to_do(changes: Any, column: Any, says: str) -> None:
    content = yaml.safe_load(shop.SCHEMA_TEXT) | changes
    content["columns"] |= {"more": column} if column else {}
    contract, faults = parse(yaml.safe_dump(content))
    assert contract is None and any(re.search(says, fault.message) for fault in faults), faults
