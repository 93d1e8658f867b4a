"""Charged discovery: seconds, peak memory, how many true values it names, and bounds beside true quantiles.

A generated table has an open set of many values, of which the k-th has a share of 1/k; amounts that are lognormal; and
days of thirty years. The command runs in a process of its own. "Held by enough rows" are the values with more rows than
the threshold: half of those at it are named, and hardly any far below it can be.
"""

import json
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.common import Table, measure, parse, report
from dpmodels.authoring.lint import load_draft
from dpmodels.methods.tables.thresholded_counts import DiscoverySystem
from dpmodels.privacy import PrivacyBudget

DRAFT = """\
name: wide
columns:
  product: {type: categorical, values: discover}
  amount: {type: number, min: discover, max: discover, nullable: true, max_null_share: discover}
  day: {type: datetime, min: discover, max: discover}
"""
BATCH = 2**18
HEAD = ["rows", "values", "seconds", "peak MiB", "named", "of those held by enough rows", "threshold in rows"]
BOUNDS = ["rows", "amount found", "amount .0005 to .9995", "amount all", "nulls found", "nulls true", "days found"]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", nargs="+", type=int, default=[1_000_000, 10_000_000])
    parser.add_argument("--values", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--delta", type=float, default=1e-6)


def write(path: Path, rows: int, values: int) -> tuple[np.ndarray, np.ndarray]:
    """Write the table batch by batch; return the true counts of the values, and a sample of the amounts."""
    rng = np.random.default_rng(0)
    share = np.cumsum(1 / np.arange(1, values + 1))
    counts, sample, writer = np.zeros(values, np.int64), list[np.ndarray](), None
    for start in range(0, rows, BATCH):
        size = min(BATCH, rows - start)
        which = np.searchsorted(share, rng.uniform(0, share[-1], size))
        counts += np.bincount(which, minlength=values)
        amounts = np.exp(rng.normal(3, 1, size))
        sample.append(amounts)
        codes = pa.array([f"product {number:07}" for number in which])
        days = (np.datetime64("1990-01-01") + rng.integers(0, 30 * 365, size)).astype("datetime64[D]")
        table = pa.table({"product": codes, "amount": pa.array(amounts, mask=rng.random(size) < 0.1), "day": days})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()
    return counts, np.concatenate(sample[:20])


def main() -> None:
    args = parse(__doc__, options)
    found = Table("what it took and named", HEAD, digits=1)
    bounds = Table("bounds beside the truth", BOUNDS)
    for rows in [20_000] if args.quick else args.rows:
        for values in args.values[:1] if args.quick else args.values:
            with tempfile.TemporaryDirectory() as folder:
                _try(Path(folder), rows, values, args.epsilon, args.delta, found, bounds)
    report("discover", [found, bounds], [0], args)


def _try(folder: Path, rows: int, values: int, epsilon: float, delta: float, found: Table, bounds: Table) -> None:
    counts, amounts = write(folder / "wide.parquet", rows, values)
    (folder / "draft.yaml").write_text(DRAFT)
    nacre, home = [sys.executable, "-m", "nacre"], ["--home", str(folder / "home")]
    cap = ["--epsilon", "5", "--delta", "1e-5"]
    measure([*nacre, "ledger", "open", "wide", "--schema", str(folder / "draft.yaml"), *cap, *home])
    asked = ["--schema", str(folder / "draft.yaml"), "--epsilon", str(epsilon), "--delta", str(delta), "--json"]
    took = measure([*nacre, "schema", "discover", str(folder / "wide.parquet"), *asked, *home])
    if took.code:
        raise SystemExit(took.output)
    schema = yaml.safe_load(json.loads(took.output[took.output.index("{\n") :])["schema"])["columns"]
    contract = load_draft(folder / "draft.yaml")[1]
    rules = DiscoverySystem().plan(contract, PrivacyBudget(epsilon=epsilon, delta=delta)).measurement
    least = rules["threshold"] / rules["steps_per_row"]
    named = [value for value in schema["product"]["values"] if value.startswith("product ")]
    enough = {f"product {number:07}" for number in np.flatnonzero(counts > least)}
    share = f"{len(enough & {*named})} of {len(enough)}"
    found.add(rows, int((counts > 0).sum()), took.seconds, took.peak_mib, len(named), share, least)
    amount, day = schema["amount"], schema["day"]
    low, high = np.quantile(amounts, [0.0005, 0.9995])
    bounds.add(
        rows,
        f"{amount['min']} to {amount['max']}",
        f"{low:.2f} to {high:.1f}",
        f"{amounts.min():.2f} to {amounts.max():.1f}",
        str(amount["max_null_share"]),
        "0.1",
        f"{day['min']} to {day['max']}",
    )


if __name__ == "__main__":
    main()
