"""How soon, and in how much memory, the same rows are read from Parquet, from a Delta and from an Iceberg table.

A million rows are written as often as the size asks for, each time as one file with zstd. Each form is read by the
product's own reader with one thread, in a fresh process, in turn, and again in the other order. The least time counts,
on the clock and of the processor. What a library takes to be imported is part of it.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import psutil
import pyarrow.parquet as pq

from benchmarks.common import ROOT, Table, measure, parse, report
from dpmodels.audit.made.clinic import make_schema, make_table
from dpmodels.codec.encode import Codec
from dpmodels.reading.load import load_parts

FILE_ROWS, BATCH_ROWS = 1_000_000, 65_536
HEAD = ["rows as", "rows", "seconds", "of Parquet", "of the processor", "of Parquet's", "peak MiB", "before reading"]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=3, help="how often each is read")
    parser.add_argument("--encode", action="store_true", help="encode the batches too, as a run's ingest does")
    parser.add_argument("--place", type=Path, help="folder for what is generated (default: a temporary one)")
    parser.add_argument("--read", metavar="URI", help=argparse.SUPPRESS)


def read(uri: str, encode: bool) -> None:
    """Read all rows; print what it took as JSON."""
    before = psutil.Process().memory_info().rss
    began, used, rows, schema = time.perf_counter(), time.process_time(), 0, make_schema()
    codec = Codec(schema)
    for part in load_parts(uri, schema, BATCH_ROWS):
        for batch in part.reveal():
            rows += len(codec.encode(batch)) if encode else batch.num_rows
    took, used = time.perf_counter() - began, time.process_time() - used
    print(json.dumps({"rows": rows, "seconds": took, "used": used, "before": before / 2**20}), flush=True)


def fill(folder: Path, rows: int) -> dict[str, str]:
    """Write the rows in each form, a file after another; return where each is."""
    from deltalake import WriterProperties, write_deltalake
    from pyiceberg.catalog.sql import SqlCatalog

    (folder / "parquet").mkdir(parents=True)
    catalog = SqlCatalog("default", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=str(folder))
    catalog.create_namespace("clinic")
    block = make_table(min(FILE_ROWS, rows))
    table = catalog.create_table("clinic.visits", block.schema)
    properties = WriterProperties(compression="ZSTD")
    for number in range(rows // len(block)):
        pq.write_table(block, folder / "parquet" / f"part-{number:04d}.parquet", compression="zstd")
        write_deltalake(folder / "delta", block, mode="append", writer_properties=properties)
        table.append(block)
    iceberg = str(table.metadata_location).removeprefix("file://")
    return {"Parquet": str(folder / "parquet"), "Delta": str(folder / "delta"), "Iceberg": iceberg}


def main() -> None:
    args = parse(__doc__, options)
    if args.read:
        return read(args.read, args.encode)
    rows, times = (200_000, 1) if args.quick else (args.rows, args.times)
    table = Table("The same rows as Parquet, Delta and Iceberg", HEAD, digits=2)
    runs = defaultdict(list)
    scratch = Path(tempfile.mkdtemp(dir=args.place))
    try:
        tables = fill(scratch / "tables", rows)
        for turn in range(times):
            for name in list(tables)[:: 1 if turn % 2 == 0 else -1]:
                words = ["--read", tables[name], *(["--encode"] if args.encode else [])]
                ran = measure([sys.executable, "-m", "benchmarks.open_tables", *words], every=0.01, cwd=ROOT)
                if ran.code:
                    raise SystemExit(f"{name} was not read:\n{ran.output}")
                facts = json.loads(ran.output.splitlines()[-1])
                runs[name].append({**facts, "peak": ran.peak_mib})
                print(name, facts, ran.peak_mib, file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(scratch)
    least = {name: [min(one[key] for one in some) for key in ("seconds", "used")] for name, some in runs.items()}
    for name, some in runs.items():
        times_and_ratios = [
            x for pair in zip(least[name], least["Parquet"], strict=True) for x in (pair[0], pair[0] / pair[1])
        ]
        worst = max(some, key=lambda one: one["peak"])
        table.add(name, worst["rows"], *times_and_ratios, worst["peak"], worst["before"])
    report("open_tables", [table], [], args)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
