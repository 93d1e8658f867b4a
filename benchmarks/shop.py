"""Two tables that join, at epsilon 1: a made shop of customers and orders, whose sizes and dependences are public.

The targets: foreign keys 100 % valid; children per parent and parents' margins as near as the same method brings one
row a user at the same budget; and what of an order depends on its customer does so in the synthetic tables.
"""

import tempfile
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.common import Table, parse, report
from dpmodels.audit.desks import measured
from dpmodels.audit.made import shop
from dpmodels.codec.embedded import codec_of
from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.flat import split, units_in
from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--customers", type=int, default=5000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)


def made_by(schema: Schema, records: Records, epsilon: float, rows: int, seed: int) -> pa.Table:
    """Release once, fit and draw."""
    system = create("nacre", {}, {})
    line = system.plan(schema, PrivacyBudget(epsilon=epsilon, delta=1e-5, unit=schema.unit))
    with tempfile.TemporaryDirectory() as folder:
        release, _ = measured(system, Path(folder) / "run", line, records)
    drawn = system.fit(release, Craft(seed=seed)).sample(rows, seed=seed)
    codec, tables, first = codec_of(schema), [], 0
    for batch in drawn:
        tables.append(codec.decode(batch, first))
        first += units_in(schema, batch)
    return pa.concat_tables(tables)


def distance(x: pd.Series, y: pd.Series) -> float:
    """Return the total variation between two columns."""
    both = (own.value_counts(normalize=True, dropna=False) for own in (x, y))
    first, second = both
    return float(first.sub(second, fill_value=0).abs().sum() / 2)


def children_of(parents: pd.DataFrame, orders: pd.DataFrame) -> pd.Series:
    """Count each customer's orders."""
    return parents["customer"].map(orders["customer"].value_counts()).fillna(0)


def judged(real: dict[str, pd.DataFrame], made: dict[str, pd.DataFrame], alone: pd.DataFrame) -> dict[str, float]:
    """Hold two synthetic tables, and one of the customers alone, against the real ones."""
    both = [own["children"].merge(own["parents"], on="customer") for own in (real, made)]
    likes = [pd.crosstab(own["region"], own["product"], normalize="index") for own in both]
    spread = [own.groupby(own["age"] > 45)["price"].mean().diff().iloc[-1] for own in both]
    more = [
        children_of(own["parents"], own["children"]).groupby(own["parents"]["age"] > 45).mean() for own in (real, made)
    ]
    sides = real["parents"], made["parents"]
    return {
        "valid foreign keys": float(made["children"]["customer"].isin(made["parents"]["customer"]).mean()),
        "TVD of children per parent": distance(*(children_of(o["parents"], o["children"]) for o in (real, made))),
        "TVD of region": distance(*(own["region"] for own in sides)),
        "... of customers alone": distance(real["parents"]["region"], alone["region"]),
        "TVD of age, by 5 years": distance(*(own["age"] // 5 for own in sides)),
        "... of customers alone, by 5 years": distance(real["parents"]["age"] // 5, alone["age"] // 5),
        "TVD of product": distance(both[0]["product"], both[1]["product"]),
        "TVD of product given region, mean": float(np.abs(likes[0] - likes[1]).sum(axis=1).mean() / 2),
        "... if they were independent": float(
            (likes[0] - both[0]["product"].value_counts(normalize=True)).abs().sum(axis=1).mean() / 2
        ),
        "orders over 45 less others, real": float(more[0].diff().iloc[-1]),
        "orders over 45 less others, made": float(more[1].diff().iloc[-1]),
        "price over 45 less others, real": float(spread[0]),
        "price over 45 less others, made": float(spread[1]),
    }


def main() -> None:
    asked = parse(str(__doc__), options)
    if asked.quick:
        asked.customers, asked.runs = 300, 1
    schema, found = shop.make_schema(), []
    parents, orders = shop.make_tables(asked.customers)
    records = shop.make_records(asked.customers)
    real = {name: table.to_pandas() for name, table in split(schema, codec_of(schema).decode(records)).items()}
    one = Schema(name="customers", columns=schema.parents.columns)
    for seed in range(asked.runs):
        flat = made_by(schema, records, asked.epsilon, asked.customers, seed)
        made = {name: table.to_pandas() for name, table in split(schema, flat).items()}
        alone = made_by(one, Codec(one).encode(parents), asked.epsilon, asked.customers, seed).to_pandas()
        found.append(judged(real, made, alone))
    title = f"{asked.customers} customers, {len(orders)} orders, epsilon {asked.epsilon:g}, delta 1e-5"
    table = Table(title, ["figure", "mean and deviation of the runs"])
    for name in found[0]:
        table.add(name, [one[name] for one in found])
    report("shop", [table], range(asked.runs), asked)


if __name__ == "__main__":
    main()
