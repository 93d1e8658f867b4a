"""How fast and in how much memory a large table is ingested and summed, beside what the machine can do at all.

sanitise   N rows x 15 columns, ingest -> sanitize through the pipeline's own stages, for two methods
workers    the same sum and the same ingest on one and on two threads, by turns
cluster    the same sum on one and on two Dask workers, each a process of one thread, by turns
fourier    the characteristic function, beside float32 matmul and sincos
"""

import argparse
import json
import math
import os
import pickle
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from benchmarks.common import ROOT, Table, measure, parse, report
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import Layout
from dpmodels.embeddings.characteristic import CharacteristicFunction, FrequencySpec
from dpmodels.embeddings.joint import ConditionalEmbedding
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.summation import transform_sum
from dpmodels.gate.expectations import Gate
from dpmodels.privacy import Sensitive
from dpmodels.reading.ingest import transform_encode
from dpmodels.reading.load import load_parts
from flows.config import SynthesizeConfig
from flows.synthesize import start
from tasks.engine.cluster import open_cluster
from tasks.engine.encoded import PART_BATCHES, EncodedPart, EncodedTable
from tasks.engine.engines import Threads
from tasks.run.store import Run
from tasks.stages.ingest import ingest
from tasks.stages.sanitize import sanitize

FILE_ROWS = 2_500_000
CATEGORIES = (2, 5, 9, 16, 24, 40)
BATCH = 65_536
COLUMNS: dict[str, dict[str, object]] = {
    **{f"c{n}": {"type": "categorical", "values": [f"v{n}-{i}" for i in range(n)]} for n in CATEGORIES},
    "age": {"type": "integer", "min": 18, "max": 90},
    "hours": {"type": "integer", "min": 0, "max": 99, "nullable": True},
    "gain": {"type": "integer", "min": 0, "max": 99999, "zero_inflated": True, "scale": "log"},
    "weight": {"type": "integer", "min": 10000, "max": 1500000},
    "price": {"type": "number", "min": 0.0, "max": 999.99, "round": 2, "nullable": True},
    "score": {"type": "number", "min": 0.0, "max": 1.0},
    "ratio": {"type": "number", "min": 0.0, "max": 1.0, "nullable": True},
    "flag": {"type": "boolean"},
    "y": {"type": "categorical", "values": [0, 1]},
}
SCHEMA = Schema.model_validate({"name": "large", "target": "y", "columns": COLUMNS})


def make_rows(rows: int, seed: int) -> pa.Table:
    """Make mixed columns that depend on a common factor: skewed categories, integers, numbers, nulls, a label."""
    rng = np.random.default_rng(seed)
    factor = rng.random(rows, dtype=np.float32)

    def mixed() -> np.ndarray:
        return (0.6 * rng.random(rows, dtype=np.float32) + 0.4 * factor) ** 2

    def null(share: float) -> np.ndarray:
        return rng.random(rows, dtype=np.float32) < share

    columns: dict[str, pa.Array] = {}
    for n in CATEGORIES:
        index = np.minimum(mixed() * n, n - 1).astype(np.int8)
        columns[f"c{n}"] = pa.DictionaryArray.from_arrays(pa.array(index), [f"v{n}-{i}" for i in range(n)])
    columns["age"] = pa.array((18 + 72 * mixed()).astype(np.int64))
    columns["hours"] = pa.array((99 * mixed()).astype(np.int64), mask=null(0.03))
    columns["gain"] = pa.array(np.where(null(0.8), 0, 99_999 * mixed() ** 2).astype(np.int64))
    columns["weight"] = pa.array((10_000 + 1_490_000 * mixed()).astype(np.int64))
    columns["price"] = pa.array(np.round(999.99 * mixed().astype(np.float64), 2), mask=null(0.1))
    columns["score"] = pa.array(rng.random(rows))
    columns["ratio"] = pa.array(mixed().astype(np.float64), mask=null(0.05))
    columns["flag"] = pa.array(null(0.3))
    columns["y"] = pa.array((rng.random(rows, dtype=np.float32) < 0.1 + 0.5 * factor).astype(np.int64))
    return pa.table(columns)


def write_file(job: tuple[Path, int, int]) -> None:
    """Write one Parquet file; categories are text in dictionary pages, as most writers leave them."""
    path, rows, seed = job
    table = make_rows(rows, seed)
    text = pa.schema([(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema])
    with pq.ParquetWriter(path, text, use_dictionary=[f"c{n}" for n in CATEGORIES]) as writer:
        for start_row in range(0, rows, 500_000):
            writer.write_table(table.slice(start_row, 500_000).cast(text))


def generate(folder: Path, rows: int, processes: int) -> None:
    """Write the table as files of ``FILE_ROWS`` rows."""
    folder.mkdir(parents=True)
    sizes = [min(FILE_ROWS, rows - first) for first in range(0, rows, FILE_ROWS)]
    jobs = [(folder / f"{index:04d}.parquet", size, index) for index, size in enumerate(sizes)]
    with ProcessPoolExecutor(processes) as pool:
        list(pool.map(write_file, jobs))


def stages(place: Path, method: str, data: Path, threads: int) -> None:
    """Run ingest and sanitize as the pipeline does and print their seconds; a process of its own."""
    schema = place / "schema.yaml"
    schema.write_text(SCHEMA.to_yaml())
    settings = {
        "data": data,
        "schema": schema,
        "out": place / "out",
        "privacy": {"target_epsilon": 1.0, "delta": 1e-9},
        "model": {"method": method},
        "runtime": {"home": place / "home", "prefect": False, "threads": threads},
    }
    run = start(SynthesizeConfig.build(settings))
    clock = [time.perf_counter()]
    handle = ingest(run)
    clock.append(time.perf_counter())
    sanitize(run, handle)
    clock.append(time.perf_counter())
    folder = run.sensitive / "encoded"
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(
        json.dumps({"ingest": clock[1] - clock[0], "sanitize": clock[2] - clock[1], "encoded": size, "run": run.name})
    )


def best(function: Callable[[], object], repeats: int = 3) -> float:
    """Return the least seconds of a few runs."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def sanitise_table(data: Path, rows: int, place: Path, threads: int) -> tuple[Table, Path]:
    """Time the two stages for two methods, each in a process of its own."""
    title = f"ingest -> sanitize, {rows:,} rows x {len(COLUMNS)} columns, {threads} threads"
    names = ["method", "ingest s", "sanitize s", "total s", "rows/s", "peak MiB", "raw GB", "encoded GB"]
    table, raw = Table(title, names, 1), sum(file.stat().st_size for file in data.iterdir())
    encoded = Path()
    for method in ("moments", "nacre"):
        folder = place / method
        folder.mkdir()
        words = ["--stage", method, "--data", str(data), "--place", str(folder), "--threads", str(threads)]
        ran = measure([sys.executable, "-m", "benchmarks.scale", *words], every=0.2, cwd=ROOT)
        if ran.code:
            raise SystemExit(ran.output)
        found = json.loads(ran.output.splitlines()[-1])
        total = found["ingest"] + found["sanitize"]
        shown = [found["ingest"], found["sanitize"], total, round(rows / total), round(ran.peak_mib)]
        table.add(method, *shown, raw / 1e9, found["encoded"] / 1e9)
        encoded = Run.find(folder / "home", found["run"]).sensitive / "encoded"
    return table, encoded


def drain(stream: object) -> None:
    """Read a stream to its end."""
    for _ in stream:  # type: ignore[attr-defined]
        pass


def limits_table(data: Path, encoded: Path, rows: int, threads: int) -> Table:
    """Time what cannot be avoided, each alone: memory, decoding the raw table, decoding the encoded one."""
    table = Table(f"physical limits of this machine, {threads} threads", ["what", "seconds for the rows", "rate"], 2)
    block = np.ones(2**27, dtype=np.uint8)
    copy = best(lambda: block.copy())
    table.add("copying memory, 1 thread", "", f"{2 * block.nbytes / copy / 1e9:.1f} GB/s")
    pool = Threads(threads)
    parts = [part.reveal() for part in load_parts(data, SCHEMA, BATCH)]
    seconds = best(lambda: drain(pool.map(drain, parts)), 1)
    table.add("decoding the raw Parquet and nothing else", seconds, f"{rows / seconds:,.0f} rows/s")
    arrow = list(EncodedTable(encoded, SCHEMA).parts())
    seconds = best(lambda: drain(pool.map(drain, arrow)), 1)
    table.add("decoding the encoded table and nothing else", seconds, f"{rows / seconds:,.0f} rows/s")
    return table


@dataclass(frozen=True)
class Cost:
    """Seconds that a row costs one thread, and bytes that it takes."""

    ingest: float
    add: float
    raw: float
    encoded: float


def linked(files: list[Path], folder: Path) -> Path:
    """Make a folder of some files, without copying them."""
    folder.mkdir()
    for file in files:
        os.link(file, folder / file.name)
    return folder


class Watched:
    """Threads that note their seconds: since a part began, and of these, how many were spent waiting for a free core.

    The kernel keeps the latter (``/proc/thread-self/schedstat``). Without them a run takes what it would if the machine
    did nothing else; waiting for a lock or a disk is not taken off.
    """

    def __init__(self, count: int) -> None:
        self.threads, self.spent = Threads(count), defaultdict[int, float](float)

    def map(self, function: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
        def watched(part: Any) -> Any:
            began, waited = time.perf_counter(), waiting_seconds()
            result = function(part)
            self.spent[get_ident()] += time.perf_counter() - began - (waiting_seconds() - waited)
            return result

        return self.threads.map(watched, parts)


def waiting_seconds() -> float:
    """Return how long this thread has been ready to run without a core to run on; 0 where nobody counts."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def workers_table(data: Path, encoded: Path, repeats: int) -> tuple[Table, Cost]:
    """Time ingest and sums on one and two threads by turns, so that other work falls on both alike."""
    names = [
        "what",
        "rows",
        "1 thread s",
        "2 threads s",
        "ratio",
        "1, cores free",
        "2, cores free",
        "ratio, cores free",
    ]
    table = Table("one thread and two, by turns", names, 2)
    embedding = Moments(Partition.fine(SCHEMA, 32), 1, 1, 1)
    costs: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(dir=encoded.parent) as scratch:
        few = linked(sorted(data.iterdir())[:4], Path(scratch) / "raw")
        part = linked(sorted(encoded.iterdir())[:16], Path(scratch) / "encoded")

        def encode(engine: Watched) -> None:
            with tempfile.TemporaryDirectory(dir=scratch) as out:
                transform_encode(load_parts(few, SCHEMA, BATCH), Gate(SCHEMA, raw=True), Path(out), engine.map)

        def add(engine: Watched) -> None:
            transform_sum(embedding, Sensitive(EncodedTable(part, SCHEMA, engine)))

        some = sum(pq.ParquetFile(file).metadata.num_rows for file in few.iterdir())
        rows = sum(map(len, EncodedTable(part, SCHEMA)))
        for name, count, job, folder in (("ingest", some, encode, few), ("sum of moments", rows, add, part)):
            watched(job, 1)
            one, two = zip(*((watched(job, 1), watched(job, 2)) for _ in range(repeats)), strict=True)
            (wall, free), (wall2, free2) = (list(map(list, zip(*runs, strict=True))) for runs in (one, two))
            ratios = [[a / b for a, b in zip(*pair, strict=True)] for pair in ((wall, wall2), (free, free2))]
            table.add(name, count, wall, wall2, ratios[0], free, free2, ratios[1])
            size = sum(file.stat().st_size for file in folder.iterdir())
            costs.append((float(np.median(free)) / count, size / count))
    (ingest_cost, raw), (add_cost, stored) = costs
    return table, Cost(ingest_cost, add_cost, raw, stored)


def watched(job: Callable[[Watched], None], threads: int) -> tuple[float, float]:
    """Return the seconds of one run, and those it would have taken with cores of its own."""
    engine = Watched(threads)
    return best(lambda: job(engine), 1), max(engine.spent.values())


def cluster_table(encoded: Path, repeats: int) -> Table:
    """Time the sum of a whole table on one Dask worker and on two, by turns, once they have started and compiled."""
    from distributed import LocalCluster

    make: Any = LocalCluster
    embedding = Moments(Partition.fine(SCHEMA, 32), 1, 1, 1)
    with ExitStack() as stack:
        clusters = [make(n_workers=count, threads_per_worker=1, dashboard_address=None) for count in (1, 2)]
        addresses = [stack.enter_context(cluster).scheduler_address for cluster in clusters]
        engines = [stack.enter_context(open_cluster(address)) for address in addresses]
        tables = [EncodedTable(encoded, SCHEMA, engine) for engine in engines]

        def seconds() -> list[float]:
            return [best(partial(transform_sum, embedding, Sensitive(table)), 1) for table in tables]

        seconds()
        one, two = (list(column) for column in zip(*(seconds() for _ in range(repeats)), strict=True))
    rows = sum(map(len, EncodedTable(encoded, SCHEMA)))
    table = Table("one Dask worker and two, by turns", ["what", "rows", "1 worker s", "2 workers s", "ratio"], 2)
    table.add("sum of moments", rows, one, two, [a / b for a, b in zip(one, two, strict=True)])
    return table


PLAN_ROWS, PLAN_WORKERS, WIRE = 10**10, 100, 1.25e9
"""The paper plan; the wire is taken to carry ten gigabits a second."""


def plan_table(cost: Cost) -> Table:
    """Say what ten billion rows would take on a hundred workers of one thread, from what a row costs one here."""
    embedding = Moments(Partition.fine(SCHEMA, 32), 1, 1, 1)
    columns = len(embedding.partition.sizes)
    parts = math.ceil(PLAN_ROWS / (PART_BATCHES * BATCH))
    reply = 8 * embedding.dim
    vector = np.ones(embedding.dim, dtype=np.int64)
    add = best(lambda: np.add(vector, vector, out=vector), 20)
    asked = len(pickle.dumps(EncodedPart(Path("/srv/nacre/sensitive/run/encoded/part-00000.arrow"), 0, 16, SCHEMA)))
    table = Table(f"paper plan: {PLAN_ROWS:,} rows, {PLAN_WORKERS} workers of one thread", ["what", "how much"], 1)
    share = PLAN_ROWS / PLAN_WORKERS
    for name, value in {
        "raw table read once, TB": PLAN_ROWS * cost.raw / 1e12,
        "encoded table written once and read once a look, TB": PLAN_ROWS * cost.encoded / 1e12,
        "integer additions a look, in 10^12": PLAN_ROWS * (columns + columns * (columns - 1) // 2) / 1e12,
        "ingest, minutes a worker": share * cost.ingest / 60,
        "a look, minutes a worker": share * cost.add / 60,
        "parts (messages: one request and one reply each)": parts,
        "requests, MB": parts * asked / 1e6,
        "partial sums that come back, GB": parts * reply / 1e9,
        "seconds of a ten-gigabit wire for them": parts * reply / WIRE,
        "seconds of the client for adding them": parts * add,
        "work lost with a worker at most, seconds": PART_BATCHES * BATCH * cost.add,
        "ledger writes (reserve, draw, seal, commit)": 4,
    }.items():
        table.add(name, value)
    return table


def fourier_table(quick: bool, repeats: int = 5) -> Table:
    """Time the exact characteristic function against a float32 matrix product and its sine and cosine."""
    rows, count = (32_768, 500) if quick else (65_536, 1000)
    layout = Layout.of(SCHEMA)
    embedding = ConditionalEmbedding(CharacteristicFunction(FrequencySpec(count=count), layout), layout, 0.05, 1)
    records = Codec(SCHEMA).encode(make_rows(rows, 0))
    embedding.lattice_sum(records.take(slice(0, len(records))))
    x, w = torch.rand(rows, layout.dim), torch.randn(layout.dim, count)
    torch.set_num_threads(1)

    def limit() -> None:
        for block in torch.split(x, 4096):
            angle = block @ w
            torch.cos(angle).sum(0)
            torch.sin(angle).sum(0)

    def exact() -> None:
        embedding.lattice_sum(records.take(slice(0, len(records))))

    pairs = [(best(limit, 1), best(exact, 1)) for _ in range(repeats)]
    names = ["one thread", "ns a row and frequency", "of the limit"]
    table, each = (
        Table(f"Fourier: {rows:,} rows, {layout.dim} coordinates, {count} frequencies", names, 2),
        rows * count,
    )
    table.add("float32 matmul, cos, sin (limit)", [1e9 * a / each for a, _ in pairs], 1.0)
    table.add("exact lattice sum", [1e9 * b / each for _, b in pairs], [a / b for a, b in pairs])
    return table


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", default=["sanitise", "workers", "fourier"])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help="folder for what is generated (default: a temporary one)")
    parser.add_argument("--stage", help=argparse.SUPPRESS)


def main() -> None:
    args = parse(__doc__, options)
    if args.stage:
        stages(args.place, args.stage, args.data, args.threads)
        return
    rows = 200_000 if args.quick else args.rows
    tables: list[Table] = []
    with tempfile.TemporaryDirectory(dir=args.place) as name:
        place = Path(name)
        data = args.data or place / "raw"
        if {"sanitise", "workers", "cluster"} & set(args.parts):
            if args.data is None:
                generate(data, rows, args.threads)
            table, encoded = sanitise_table(data, rows, place, args.threads)
            tables.append(table)
            if "sanitise" in args.parts:
                tables.append(limits_table(data, encoded, rows, args.threads))
            if "workers" in args.parts:
                found, cost = workers_table(data, encoded, 1 if args.quick else 5)
                tables += [found, plan_table(cost)]
            if "cluster" in args.parts:
                tables.append(cluster_table(encoded, 1 if args.quick else 5))
        if "fourier" in args.parts:
            tables.append(fourier_table(args.quick))
    report("scale", tables, [0], args)


if __name__ == "__main__":
    main()
