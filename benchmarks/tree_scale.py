"""How fast and in how much memory a tree of tables is joined and summed: customers, ten orders each, five items each.

    python -m benchmarks.tree_scale --leaves 1000000 10000000

Ingest and sanitize are the pipeline's own stages, each size in a process of its own.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import ROOT, Table, measure, parse, report
from flows.config import SynthesizeConfig
from flows.synthesize import start
from tasks.stages.ingest import ingest
from tasks.stages.sanitize import sanitize

ORDERS, ITEMS = 10, 5
SCHEMA = """
name: trade
tables:
  customer:
    key: customer
    columns:
      customer: {type: identifier, keep: regenerate}
      age: {type: integer, min: 18, max: 89}
      region: {type: categorical, values: [north, east, south, west]}
  orders:
    parent: customer
    key: number
    most: 20
    order: day
    columns:
      number: {type: identifier, keep: regenerate}
      customer: {type: identifier}
      day: {type: datetime, min: 2020-01-01, max: 2025-12-31, resolution: day}
      paid: {type: boolean}
  item:
    parent: orders
    parent_key: number
    most: 10
    columns:
      number: {type: identifier}
      price: {type: number, min: 0, max: 1000, round: 2}
      kind: {type: categorical, values: [a, b, c, d, e, f]}
"""


def generate(folder: Path, leaves: int, seed: int = 0) -> None:
    """Write the tables as Parquet, the rows below the root in no order, a million at a time."""
    folder.mkdir(parents=True)
    customers, orders, rng = leaves // ORDERS // ITEMS, leaves // ITEMS, np.random.default_rng(seed)
    pq.write_table(
        pa.table(
            {
                "customer": rng.permutation(customers),
                "age": rng.integers(18, 90, customers),
                "region": rng.choice(["north", "east", "south", "west"], customers),
            }
        ),
        folder / "customer.parquet",
    )
    numbers = rng.permutation(orders)
    days = np.datetime64("2020-01-01") + rng.integers(0, 2000, orders)
    columns = {"number": numbers, "customer": rng.integers(0, customers, orders), "day": days}
    pq.write_table(pa.table({**columns, "paid": rng.random(orders) < 0.9}), folder / "orders.parquet")
    writer = None
    for first in range(0, leaves, 10**6):
        rows = min(10**6, leaves - first)
        prices = np.round(1000 * rng.random(rows) ** 2, 2)
        kinds = rng.choice(list("abcdef"), rows)
        part = pa.table({"number": rng.integers(0, orders, rows), "price": prices, "kind": kinds})
        writer = writer or pq.ParquetWriter(folder / "item.parquet", part.schema)
        writer.write_table(part)
    if writer is not None:
        writer.close()


def stages(place: Path) -> None:
    """Run ingest and sanitize as the pipeline does and print their seconds; a process of its own."""
    (place / "schema.yaml").write_text(SCHEMA)
    settings = {
        "data": place / "data",
        "schema": place / "schema.yaml",
        "out": place / "out",
        "privacy": {"target_epsilon": 1.0, "delta": 1e-9},
        "runtime": {"home": place / "home", "prefect": False},
    }
    run = start(SynthesizeConfig.build(settings))
    began = time.perf_counter()
    handle = ingest(run)
    joined = time.perf_counter()
    sanitize(run, handle)
    print(json.dumps({"ingest": joined - began, "sanitize": time.perf_counter() - joined}))


def options(parser: argparse.ArgumentParser) -> None:
    """Declare what this benchmark takes."""
    parser.add_argument("--leaves", type=int, nargs="+", default=[10**6, 10**7], help="rows of the last table")
    parser.add_argument("--stage", type=Path, help="for a process of its own: the folder of one size")


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each size."""
    args = parse(__doc__, options, argv)
    if args.stage:
        stages(args.stage)
        return
    names = ["leaves", "ingest s", "sanitize s", "leaves/s", "peak MiB"]
    table = Table("ingest -> sanitize of a tree of three tables", names, 1)
    for leaves in [10**5] if args.quick else args.leaves:
        with tempfile.TemporaryDirectory() as folder:
            generate(Path(folder) / "data", leaves)
            ran = measure([sys.executable, "-m", "benchmarks.tree_scale", "--stage", folder], cwd=ROOT)
        if ran.code:
            raise SystemExit(ran.output)
        found = json.loads(ran.output.splitlines()[-1])
        rate = round(leaves / (found["ingest"] + found["sanitize"]))
        table.add(f"{leaves:,}", found["ingest"], found["sanitize"], rate, round(ran.peak_mib))
    report("tree-scale", [table], [0], args)


if __name__ == "__main__":
    main()
