"""A small shop and its schema: customers, and the orders of each, as two tables."""

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.flat import FlatCodec
from dpmodels.contract.schema import Schema
from dpmodels.reading.join import Side, join_sides

SCHEMA_TEXT = """
name: shop
unit: {user: customer, max_rows: 6}
users: {columns: [age, region], order: placed}
columns:
  customer: {type: identifier, keep: regenerate}
  age: {type: integer, min: 18, max: 89}
  region: {type: categorical, values: [north, south, west]}
  number: {type: identifier, keep: "pattern:A[0-9]{7}"}
  placed: {type: datetime, min: 2024-01-01, max: 2024-12-31, resolution: day}
  product: {type: categorical, values: [books, games, tools, toys]}
  price: {type: number, min: 0, max: 200, round: 2}
  rating: {type: integer, min: 1, max: 5, nullable: true}
"""


DAY = datetime(2024, 1, 1), datetime(2024, 12, 31)


def make_schema(**changes: object) -> Schema:
    """Return the shop's schema, with top-level keys replaced."""
    return Schema.model_validate({**yaml.safe_load(SCHEMA_TEXT), **changes})


def make_tables(customers: int, seed: int = 0) -> tuple[pa.Table, pa.Table]:
    """Return customers and orders; product and price go with the customer's region and age, and orders with the age."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(48, 16, customers), 18, 89).astype(np.int64)
    region = rng.choice(3, customers, p=[0.5, 0.3, 0.2])
    number = np.minimum(rng.poisson(0.5 + (age > 45) * 1.5 + (region == 0)), 6)
    who = rng.permutation(np.repeat(np.arange(customers), number))
    likes = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]])
    product = (np.cumsum(likes, axis=1)[region[who]] < rng.random(len(who))[:, None]).sum(axis=1)
    price = np.round(np.clip(20 + 30 * product + age[who] * 0.5 + rng.normal(0, 8, len(who)), 0, 200), 2)
    day = np.datetime64("2024-01-01") + rng.integers(0, 366, len(who))
    parents = {"customer": np.arange(customers), "age": age, "region": np.array(["north", "south", "west"])[region]}
    orders = {
        "customer": pa.array(who),
        "number": pa.array([f"B{n}" for n in range(len(who))], pa.string()),
        "placed": pa.array(day),
        "product": pa.array(np.array(["books", "games", "tools", "toys"])[product]),
        "price": pa.array(price),
        "rating": pa.array(rng.integers(1, 6, len(who)), mask=rng.random(len(who)) < 0.3),
    }
    return pa.table(parents), pa.table(orders)


def records_of(schema: Schema, orders: pa.Table, parents: pa.Table | None = None) -> Records:
    """Return the flat table of customers and orders, encoded; rows of a customer beyond the most are not left out."""
    sides = [_side(schema.joined if parents is None else schema.children, orders)]
    return join_sides(schema, sides[0], None if parents is None else _side(schema.parents, parents))


def _side(schema: Schema, table: pa.Table) -> Side:
    codes = Codec(schema).encode(table).codes or ()
    return Side(dict(zip(schema.modelled, codes, strict=True)), table.column("customer").to_numpy())


def make_records(customers: int, seed: int = 0) -> Records:
    """Return customers and their orders as the flat table, encoded."""
    parents, orders = make_tables(customers, seed)
    return records_of(make_schema(), orders, parents)


def make_crowd(alike: int, others: int) -> tuple[pa.Table, pa.Table]:
    """Return customers who are alike, with one order each, and after them others, with their orders."""
    parents, orders = make_tables(others, seed=3)
    one = orders.slice(0, 1)
    who = parents["customer"].to_pylist().index(one["customer"][0].as_py())
    same = [parents.take([who] * alike), one.take([0] * alike)]
    same = [table.set_column(0, "customer", pa.array(range(alike))) for table in same]
    rest = [table.set_column(0, "customer", pc.add(table["customer"], alike)) for table in (parents, orders)]
    users, rows = (pa.concat_tables(pair) for pair in zip(same, rest, strict=True))
    return users, numbered(rows)


def with_customer(tables: tuple[pa.Table, pa.Table], who: int, rows: int, row: int) -> tuple[pa.Table, pa.Table]:
    """Return customers and orders with an extreme customer more, who has so many orders from a place on."""
    parents, orders = tables
    customer: dict[str, list[Any]] = {key: [values[who]] for key, values in EXTREMES.items()} | {"customer": [-1]}
    one, order = (
        pa.table({key: customer[key] for key in table.column_names}, schema=table.schema) for table in (parents, orders)
    )
    more = [orders.slice(0, row), *[order] * rows, orders.slice(row)]
    return pa.concat_tables([parents, one]), numbered(pa.concat_tables(more))


def numbered(orders: pa.Table) -> pa.Table:
    """Return orders with a number each, in their order."""
    return orders.set_column(1, "number", pa.array([f"A{row:07}" for row in range(len(orders))], pa.string()))


def make_table(customers: int, seed: int = 0) -> pa.Table:
    """Return customers and their orders as the flat table."""
    return FlatCodec(make_schema()).decode(make_records(customers, seed))


EXTREMES: dict[str, list[Any]] = {
    "customer": [1, 2, 3, 4],
    "age": [89, 18, 18, 89],
    "region": ["west", "north", "south", "north"],
    "children": [1, 0, 1, 1],
    "number": ["A0000001", None, "A0000003", "A0000004"],
    "placed": [DAY[1], None, DAY[0], DAY[0]],
    "product": ["toys", None, "books", "games"],
    "price": [200.0, None, 0.0, 200.0],
    "rating": [None, None, 1, 5],
    "position": [1, 0, 1, 1],
}
"""Customers at the ends of what the schema allows, of one order and of none."""
