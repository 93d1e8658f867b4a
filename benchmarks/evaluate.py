"""What the exact comparisons cost: Adult's internal report, and ``nacre compare`` on tables of ten million rows.

The large tables are Adult's rows drawn with replacement, ages and weights moved a little: their content means nothing,
their size does. They are kept under build/evaluate; delete it to make them again.
"""

import resource
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.adult import EPSILON, SCHEMAS, synthesize
from benchmarks.common import ROOT, Table, data_dir, measure, parse, report

KEPT = ROOT / "build" / "evaluate"
PART = 500_000


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the large tables")
    parser.add_argument("--jobs", type=int, default=2, help="threads that metrics run on")
    parser.add_argument("--cases", nargs="+", default=["adult", "large"], choices=["adult", "large"])


def large(rows: int, seed: int) -> Path:
    """Return a table of so many rows, which is made at its first use."""
    target = KEPT / f"{rows}-{seed}.parquet"
    if target.exists():
        return target
    KEPT.mkdir(parents=True, exist_ok=True)
    rng, source = np.random.default_rng(seed), pq.read_table(data_dir() / "adult_train.parquet")
    part = target.with_suffix(".part")
    with pq.ParquetWriter(part, source.schema, compression="zstd") as writer:
        for start in range(0, rows, PART):
            drawn = source.take(pa.array(rng.integers(0, len(source), min(PART, rows - start))))
            for name, least, most, step in (("age", 17, 90, 2), ("fnlwgt", 10_000, 1_500_000, 5_000)):
                moved = drawn[name].to_numpy() + rng.integers(-step, step + 1, len(drawn))
                index = drawn.schema.get_field_index(name)
                cast = pa.array(np.clip(moved, least, most), type=drawn.schema.field(name).type)
                drawn = drawn.set_column(index, drawn.schema.field(name), cast)
            writer.write_table(drawn)
    part.rename(target)
    return target


def add(table: Table, name: str, words: Sequence[object]) -> None:
    """Measure one command in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = measure([sys.executable, "-m", "flows.cli", *map(str, words)], cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.code:
        raise SystemExit(f"{name} failed:\n{ran.output}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    table.add(name, ran.seconds, cpu, ran.peak_mib)


def main() -> None:
    args = parse(__doc__, options)
    rows = 200_000 if args.quick else args.rows
    title = f"Exact comparisons, {args.jobs} thread(s)"
    table = Table(title, ["command", "seconds", "CPU seconds", "peak MiB"], digits=1)
    test, schema = data_dir() / "adult_test.parquet", SCHEMAS / "adult.yaml"
    if "adult" in args.cases:
        with tempfile.TemporaryDirectory() as folder:
            synthesize("adult_train.parquet", "adult.yaml", "nacre", EPSILON, 0, Path(folder))
            home = Path(folder) / "home"
            run = next((home / "released").iterdir()).name
            words = ["report", run, "--internal", "--test", test, "--home", home, "--jobs", args.jobs]
            add(table, "nacre report --internal, Adult (32,561 rows, 16,281 held out)", words)
    if "large" in args.cases:
        real, made = (large(rows, seed) for seed in (0, 1))
        with tempfile.TemporaryDirectory() as folder:
            words = ["compare", made, "--real", real, "--test", large(rows // 50, 2), "--schema", schema]
            words += ["--out", Path(folder) / "out", "--jobs", args.jobs]
            add(table, f"nacre compare, {rows:,} rows beside {rows:,} real ones, {rows // 50:,} held out", words)
    report("evaluate", [table], [0], args)


if __name__ == "__main__":
    main()
