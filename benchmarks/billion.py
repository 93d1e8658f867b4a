"""A billion generated rows from raw Parquet to a million synthetic ones, stage by stage, beside what cannot be avoided.

Six columns: two categorical of 9 and 40 values, two integer, one number of two decimals, a binary target. The rows of a
file come from its number as the seed. With `--distinct N`, only N rows are drawn, and all further files are copies of
those, which are read like any other (a link is refused, since its rows would count twice); the table says so. A row
takes 6.5 bytes of Parquet and 5.3 once it is encoded, below `--place`, which is emptied at the end.
"""

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import ROOT, Table, measure, parse, report
from benchmarks.scale import BATCH, best, drain
from dpmodels.contract.schema import Schema
from dpmodels.reading.load import load_parts
from flows.config import SynthesizeConfig
from flows.synthesize import start
from tasks.engine.encoded import EncodedTable
from tasks.engine.engines import Threads
from tasks.run.store import Run
from tasks.stages.ingest import ingest
from tasks.stages.sample import sample
from tasks.stages.sanitize import sanitize
from tasks.stages.train import train

FILE_ROWS, GROUP_ROWS = 10_000_000, 1_000_000
SAMPLE_FILES = 4
"""Files on which the limits are measured; the seconds are those of all."""
COLUMNS: dict[str, dict[str, object]] = {
    "ward": {"type": "categorical", "values": [f"w{i}" for i in range(9)]},
    "code": {"type": "categorical", "values": [f"c{i}" for i in range(40)]},
    "age": {"type": "integer", "min": 18, "max": 90},
    "hours": {"type": "integer", "min": 0, "max": 99, "nullable": True},
    "price": {"type": "number", "min": 0.0, "max": 999.99, "round": 2},
    "y": {"type": "categorical", "values": [0, 1]},
}
SCHEMA = Schema.model_validate({"name": "billion", "target": "y", "columns": COLUMNS})
ROOM = {"raw": 6.5, "encoded": 5.3}
"""Bytes of a row on the disk."""


def make_rows(rows: int, rng: np.random.Generator) -> pa.Table:
    """Make columns that depend on a common factor."""
    factor = rng.random(rows, dtype=np.float32)

    def mixed() -> Any:
        return (0.6 * rng.random(rows, dtype=np.float32) + 0.4 * factor) ** 2

    def category(name: str) -> pa.DictionaryArray:
        values: Any = COLUMNS[name]["values"]
        return pa.DictionaryArray.from_arrays(pa.array((mixed() * len(values)).astype(np.int8)), values)

    null = rng.random(rows, dtype=np.float32) < 0.03
    columns = {
        "ward": category("ward"),
        "code": category("code"),
        "age": pa.array((18 + 72 * mixed()).astype(np.int64)),
    }
    columns["hours"] = pa.array((99 * mixed()).astype(np.int64), mask=null)
    columns["price"] = pa.array(np.round(999.99 * mixed().astype(np.float64), 2))
    columns["y"] = pa.array((rng.random(rows, dtype=np.float32) < 0.1 + 0.5 * factor).astype(np.int64))
    return pa.table(columns)


def write_file(job: tuple[Path, int, int]) -> None:
    """Write one Parquet file of text, integers and numbers, a row group at a time."""
    path, rows, seed = job
    rng, schema = np.random.default_rng(seed), None
    for first in range(0, rows, GROUP_ROWS):
        table = make_rows(min(GROUP_ROWS, rows - first), rng)
        if schema is None:
            text = [(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema]
            schema = pa.schema(text)
            writer = pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=["ward", "code", "age", "hours"])
        writer.write_table(table.cast(schema))
    writer.close()


def generate(folder: Path, rows: int, distinct: int) -> None:
    """Write the table; files beyond the distinct rows are copies, in turn, of those before."""
    folder.mkdir(parents=True)
    sizes = [min(FILE_ROWS, rows - first) for first in range(0, rows, FILE_ROWS)]
    drawn = max(1, min(len(sizes), distinct // FILE_ROWS))
    paths = [folder / f"part-{number:05d}.parquet" for number in range(len(sizes))]
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(write_file, [(paths[n], sizes[n], n) for n in range(drawn)]))
    for number in range(drawn, len(sizes)):
        if sizes[number] == FILE_ROWS:
            shutil.copyfile(paths[number % drawn], paths[number])
        else:
            write_file((paths[number], sizes[number], number))


def stages(place: Path, data: Path, method: str, rows: int, threads: int) -> None:
    """Take the table to its synthetic rows, and print what each stage took; a process of its own."""
    schema = place / "schema.yaml"
    schema.write_text(SCHEMA.to_yaml())
    settings = {
        "data": data,
        "schema": schema,
        "out": place / "out",
        "rows": rows,
        "privacy": {"target_epsilon": 1.0, "delta": 1e-10},
        "model": {"method": method},
        "runtime": {"home": place / "home", "prefect": False, "threads": threads, "device": "cpu"},
    }
    run, handle, took = start(SynthesizeConfig.build(settings)), None, list[tuple[str, float, float, float]]()
    for stage in (ingest, sanitize, train, sample):
        clock, cpu = time.perf_counter(), time.process_time()
        handle = stage(run, *([handle] if handle else []))  # type: ignore[operator]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        took.append((stage.__name__, time.perf_counter() - clock, time.process_time() - cpu, peak))
        print(f"{stage.__name__}: {took[-1][1]:.1f} s", file=sys.stderr, flush=True)
    print(json.dumps({"stages": took, "run": run.name}))


def size_of(files: list[Path]) -> int:
    """Add up the bytes of some files."""
    return sum(file.stat().st_size for file in files)


def read_cold(files: list[Path]) -> float:
    """Return the bytes a second at which the disk gives files that are in no cache."""
    began = time.perf_counter()
    for file in files:
        with file.open("rb", buffering=0) as source:
            os.posix_fadvise(source.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while source.read(2**24):
                pass
    return size_of(files) / (time.perf_counter() - began)


def limits_table(raw: list[Path], encoded: Path, rows: int, threads: int) -> Table:
    """Say how long the whole table would take at the speed of the disk, of memory, and of decoding alone."""
    table = Table("what cannot be avoided, for all rows", ["what", "seconds", "rate"], 1)
    block, pool, some = np.ones(2**27, dtype=np.uint8), Threads(threads), raw[:SAMPLE_FILES]
    stored = sorted(encoded.iterdir())
    copy = 2 * block.nbytes / best(lambda: block.copy())
    for name, files in (("raw", raw), ("encoded", stored)):
        cold = read_cold(files[:SAMPLE_FILES])
        table.add(f"{name} table, read from the disk once", size_of(files) / cold, f"{cold / 1e9:.2f} GB/s")
        table.add(f"{name} table, copied in memory once", 2 * size_of(files) / copy, f"{copy / 1e9:.1f} GB/s")
    share = sum(pq.ParquetFile(file).metadata.num_rows for file in some) / rows
    parts = [part.reveal() for file in some for part in load_parts(file, SCHEMA, BATCH)]
    seconds = best(lambda: drain(pool.map(drain, parts)), 1) / share
    table.add(f"raw Parquet, decoded and nothing else, {threads} threads", seconds, f"{rows / seconds:,.0f} rows/s")
    arrow = [part for part in EncodedTable(encoded, SCHEMA).parts() if part.file in stored[:SAMPLE_FILES]]
    count = sum(len(records) for part in arrow for records in part)
    seconds = best(lambda: drain(pool.map(drain, arrow)), 1) * rows / count
    table.add(f"encoded table, decoded once, {threads} threads", seconds, f"{rows / seconds:,.0f} rows/s")
    return table


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=1_000_000_000)
    parser.add_argument("--distinct", type=int, default=100_000_000, help="rows that are drawn; the others are copies")
    parser.add_argument("--sampled", type=int, default=1_000_000, help="synthetic rows")
    parser.add_argument("--method", default="nacre")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--place", type=Path, help="folder for what is generated (default: a temporary one)")
    parser.add_argument("--stages", nargs=2, type=Path, metavar=("PLACE", "DATA"), help=argparse.SUPPRESS)


def main() -> None:
    args = parse(__doc__, options)
    if args.stages:
        return stages(*args.stages, args.method, args.sampled, args.threads)
    rows = 2_000_000 if args.quick else args.rows
    with tempfile.TemporaryDirectory(dir=args.place) as scratch:
        place, data = Path(scratch), Path(scratch) / "raw"
        need, free = rows * sum(ROOM.values()), shutil.disk_usage(place).free
        print(f"{place}: {need / 1e9:.1f} GB are needed, {free / 1e9:.1f} are free", file=sys.stderr, flush=True)
        if need > 0.9 * free:
            raise SystemExit("too little room: name another folder with --place, or fewer --rows")
        began = time.perf_counter()
        generate(data, rows, args.distinct)
        raw = sorted(data.iterdir())
        print(f"generated in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        words = ["--stages", place, data, "--method", args.method, "--sampled", args.sampled, "--threads", args.threads]
        ran = measure([sys.executable, "-m", "benchmarks.billion", *map(str, words)], every=0.2, cwd=ROOT)
        if ran.code:
            raise SystemExit(ran.output)
        found = json.loads(ran.output.splitlines()[-1])
        encoded = Run.find(place / "home", found["run"]).sensitive / "encoded"
        drawn = min(rows, max(FILE_ROWS, args.distinct // FILE_ROWS * FILE_ROWS))
        title = (
            f"{rows:,} rows x {len(COLUMNS)} columns ({drawn:,} drawn, the rest copies of their files), {args.method}"
        )
        table = Table(title, ["stage", "seconds", "CPU seconds", "million rows/s", "peak MiB so far"], 1)
        for name, seconds, cpu, peak in found["stages"]:
            count = args.sampled if name == "sample" else rows
            table.add(name, seconds, cpu, "–" if name == "train" else f"{count / seconds / 1e6:.2f}", peak)
        table.add(
            "all, with the start of the program", ran.seconds, "", f"{rows / ran.seconds / 1e6:.2f}", ran.peak_mib
        )
        sizes = Table("bytes", ["table", "GB", "bytes a row"], 2)
        sizes.add("raw Parquet", size_of(raw) / 1e9, size_of(raw) / rows)
        sizes.add("encoded", size_of(list(encoded.iterdir())) / 1e9, size_of(list(encoded.iterdir())) / rows)
        report("billion", [table, sizes, limits_table(raw, encoded, rows, args.threads)], [0], args)


if __name__ == "__main__":
    main()
