"""A small firm and its tree of tables: customers with an address at most, their orders, and the items of these."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from dpmodels.codec.encode import Codec
from dpmodels.codec.stacked import objects_of
from dpmodels.codec.tree import TreeCodec, TreeRecords, reference_codes
from dpmodels.contract.tree import Tree
from dpmodels.reading.rows_on_disk import Raw
from dpmodels.reading.tree import joined

SCHEMA_TEXT = """
name: firm
tables:
  customer:
    key: customer
    columns:
      customer: {type: identifier, keep: regenerate}
      age: {type: integer, min: 18, max: 89}
  address:
    parent: customer
    columns:
      customer: {type: identifier}
      town: {type: categorical, values: [north, south], nullable: true}
  purchase:
    parent: customer
    most: 3
    key: number
    order: day
    follows: [kind]
    columns:
      number: {type: identifier, keep: "pattern:P[0-9]{7}"}
      customer: {type: identifier}
      day: {type: datetime, min: 2024-01-01, max: 2024-12-31, resolution: day}
      kind: {type: categorical, values: [books, games, tools]}
  item:
    parent: purchase
    parent_key: purchase
    most: 4
    columns:
      purchase: {type: identifier}
      price: {type: number, min: 0, max: 100, round: 2, nullable: true}
"""


def make_schema(**changes: object) -> Tree:
    """Return the firm's schema, with top-level keys replaced."""
    return Tree.model_validate({**yaml.safe_load(SCHEMA_TEXT), **changes})


def make_tables(customers: int, seed: int = 0) -> dict[str, pa.Table]:
    """Return the tables, their rows in no order; a customer's purchases stay of a kind, and prices go with the age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, customers)
    there = rng.random(customers) < 0.5
    number = np.minimum(rng.poisson(age / 40), 3)
    who = np.repeat(np.arange(customers), number)
    place = np.arange(len(who)) - (np.cumsum(number) - number)[who]
    kind = rng.integers(0, 3, len(who))
    for at in (1, 2):
        rows = np.flatnonzero((place == at) & (rng.random(len(who)) < 0.8))
        kind[rows] = kind[rows - 1]
    day = np.minimum(rng.integers(0, 100, len(who)) + 90 * place, 365)
    items = np.repeat(np.arange(len(who)), np.array([1, 2, 4])[kind])
    price = np.round(np.clip(age[who][items] + rng.normal(0, 5, len(items)), 0, 100), 2)
    tables = {
        "customer": pa.table({"customer": np.arange(customers), "age": age}),
        "address": pa.table(
            {"customer": np.flatnonzero(there), "town": np.where(age[there] > 50, "north", "south").astype(object)}
        ),
        "purchase": pa.table(
            {
                "number": [f"N{row}" for row in range(len(who))],
                "customer": who,
                "day": np.datetime64("2024-01-01") + day,
                "kind": np.array(["books", "games", "tools"], dtype=object)[kind],
            }
        ),
        "item": pa.table(
            {
                "purchase": pa.array([f"N{row}" for row in items], pa.string()),
                "price": pa.array(price, mask=rng.random(len(items)) < 0.1),
            }
        ),
    }
    return {name: table.take(pa.array(rng.permutation(len(table)))) for name, table in tables.items()}


def records_of(tree: Tree, tables: Mapping[str, pa.Table]) -> TreeRecords:
    """Return tables that keep their schemas, encoded and joined."""
    raw = {}
    for name, table in tables.items():
        codes = Codec(tree.schema_of(name)).encode(table).codes or ()
        keys = {key: table.column(key) for key in tree.key_columns(name)}
        references = {key: objects_of(values) for key, values in keys.items()}
        raw[name] = Raw([*codes, *reference_codes(tree, name, references)], keys)
    return joined(tree, raw)


def make_table(customers: int, seed: int = 0) -> pa.Table:
    """Return the firm's rows as a stacked table."""
    return TreeCodec(make_schema()).decode(make_records(customers, seed))


def _extremes() -> dict[str, list[Any]]:
    """Return customers at the ends of what the schema allows: with all the rows there may be, or few."""
    tree, most = make_schema(), make_schema().tables
    rows = (most["purchase"].most, most["item"].most)
    frames: dict[str, list[tuple[Any, ...]]] = {name: [] for name in tree.tables}
    for customer, (age, town, purchases, items) in enumerate(
        [(89, "north", *rows), (18, None, *rows), (89, "south", 1, 0), (18, "", 0, 0), (18, "south", rows[0], 1)]
    ):
        frames["customer"].append((customer, age))
        if town != "":
            frames["address"].append((customer, town))
        for purchase in range(purchases):
            day = date(2024, 12, 31) if customer % 2 == 0 else date(2024, 1, 1)
            number = f"P{customer}{purchase}"
            frames["purchase"].append((number, customer, day, ("books", "tools")[customer % 2]))
            frames["item"] += [(number, (100.0, 0.0, None)[item % 3] if customer else 100.0) for item in range(items)]
    tables = {
        name: pa.table(
            [
                pa.array(column, _kept_type(tree, name, key))
                for key, column in zip(branch.columns, zip(*frames[name], strict=True), strict=True)
            ],
            names=list(branch.columns),
        )
        for name, branch in tree.tables.items()
    }
    stacked: dict[str, list[Any]] = TreeCodec(tree).decode(records_of(tree, tables)).to_pydict()
    return stacked


def _kept_type(tree: Tree, table: str, column: str) -> pa.DataType | None:
    """Return the type of a column that is handed over; of a key what its values are."""
    return None if column in tree.joins(table) else TreeCodec(tree).output_of(table).field(column).type


def make_records(customers: int, seed: int = 0) -> TreeRecords:
    """Return the firm's rows, encoded."""
    return records_of(make_schema(), make_tables(customers, seed))


EXTREMES: dict[str, list[Any]] = _extremes()
