"""A whole run of many rows, stage by stage, from a raw table to as many synthetic rows in a hand-off.

The table is made of Adult's rows drawn with replacement, ages and weights moved a little (``benchmarks.evaluate``).
Other tools can be run on its first rows, as cells of the same schema, until their time is up.
"""

import json
import resource
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.adult import DELTA, EPSILON, SCHEMAS
from benchmarks.common import ROOT, Table, measure, parse, report
from benchmarks.evaluate import large
from benchmarks.peers import PEERS, run_peer
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec

SCHEMA = SCHEMAS / "adult.yaml"


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--method", default="nacre")
    parser.add_argument("--cases", nargs="+", default=["run"], choices=["run", "peers"])
    parser.add_argument("--peers", nargs="+", default=["mst (dpmm)", "aim (dpmm)"], choices=list(PEERS))
    parser.add_argument("--peer-rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--peer-minutes", type=float, default=10)
    parser.add_argument("--stages", nargs=2, metavar=("DATA", "FOLDER"), help="run here, and print the stages as JSON")


def staged(data: Path, folder: Path, rows: int, method: str) -> list[dict[str, Any]]:
    """Run the pipeline in this process; return what each stage took."""
    from flows.config import SynthesizeConfig
    from flows.synthesize import pipeline, start

    budget = {"target_epsilon": EPSILON, "delta": DELTA}
    places = {"data": data, "schema": SCHEMA, "out": folder / "out", "rows": rows, "privacy": budget}
    settings = {**places, "model": {"method": method}, "runtime": {"home": folder / "home"}}
    return timed(pipeline, start(SynthesizeConfig.build(settings)))


def timed(pipeline: Callable[..., Any], run: Any) -> list[dict[str, Any]]:
    """Run the stages of a pipeline in this process; return what each of them took."""
    taken: list[dict[str, Any]] = []

    def call(stage: Any, *handles: Any) -> Any:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        began, cpu = time.perf_counter(), time.process_time()
        made = stage(*handles)
        seconds = time.perf_counter() - began
        memory = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        facts = {"seconds": seconds, "cpu": time.process_time() - cpu, "peak": int(memory.split()[1]) / 1024}
        taken.append({"stage": stage.policy.name, **facts})
        return made

    pipeline(run, call)
    return taken


def add_run(table: Table, rows: int, method: str) -> None:
    """Run the pipeline in a process of its own."""
    data = large(rows, 0)
    with tempfile.TemporaryDirectory(dir=data.parent) as folder:
        words = ["-m", "benchmarks.production", "--stages", data, folder, "--rows", rows, "--method", method]
        before = cpu_of_children()
        ran = measure([sys.executable, *map(str, words)], cwd=ROOT)
        if ran.code:
            raise SystemExit(f"the run failed:\n{ran.output}")
        for taken in json.loads(ran.output.splitlines()[-1]):
            table.add(taken["stage"], taken["seconds"], taken["cpu"], taken["peak"])
        table.add("all, with the start of the program", ran.seconds, cpu_of_children() - before, ran.peak_mib)


def cpu_of_children() -> float:
    """Return the CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def add_peer(table: Table, name: str, rows: int, seconds: int) -> bool:
    """Time another tool on the first rows; tell whether it is worth asking for more."""
    real, codec = pq.read_table(large(max(rows, 1_000_000), 0)).slice(0, rows), Codec(load_schema(SCHEMA))
    before = cpu_of_children()
    with tempfile.TemporaryDirectory() as folder:
        came = run_peer(PEERS[name], real, codec, EPSILON, DELTA, 0, Path(folder), seconds)
    table.add(name, rows, came.seconds, cpu_of_children() - before, came.peak_mib, came.failure or "done")
    return not came.failure


def main() -> None:
    args = parse(__doc__, options)
    rows = 100_000 if args.quick else args.rows
    if args.stages:
        data, folder = map(Path, args.stages)
        print(json.dumps(staged(data, folder, rows, args.method)))
        return
    tables = []
    if "run" in args.cases:
        tables.append(Table(f"{args.method}, {rows:,} rows", ["stage", "seconds", "CPU seconds", "peak MiB"], digits=1))
        add_run(tables[-1], rows, args.method)
    if "peers" in args.cases:
        title = f"Other tools, {args.peer_minutes:g} minutes each at most"
        tables.append(Table(title, ["tool", "rows", "seconds", "CPU seconds", "peak MiB", "came to"], digits=1))
        for name in args.peers:
            for count in args.peer_rows:
                if not add_peer(tables[-1], name, count, int(60 * args.peer_minutes)):
                    break
    report("production", tables, [0], args)


if __name__ == "__main__":
    main()
