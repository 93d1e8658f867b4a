"""Adult: nacre beside other tools on the same real rows, judged by ``nacre compare``.

Each tool's table is made once and kept under build/compare with what it took; delete its folder to make it again. Peers
see the schema's cells, or fewer with --peer-cells, which makes them faster and blurs what lies within a cell; nacre
cuts its own.
"""

import json
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.adult import DELTA, EPSILON, SCHEMAS, synthesize
from benchmarks.common import ROOT, Table, data_dir, parse, report
from benchmarks.peers import PEERS, Outcome, run_peer
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema

KEPT = ROOT / "build" / "compare"


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--peers", nargs="*", default=["aim (dpmm)"], choices=list(PEERS))
    parser.add_argument("--peer-cells", type=int, default=4096, help="most cells of a column that peers see")
    parser.add_argument("--epsilon", type=float, default=EPSILON)


def coarse(schema: Schema, cells: int) -> Schema:
    """Cut every interval column into at most so many cells."""
    columns = {
        name: column.model_copy(update={"cells": min(cells, column.cells)}) if hasattr(column, "cells") else column
        for name, column in schema.columns.items()
    }
    return Schema(name=schema.name, unit=schema.unit, target=schema.target, columns=columns)


def make(name: str, epsilon: float, cells: int, folder: Path) -> Outcome:
    """Make one tool's table."""
    if name == "nacre":
        return synthesize("adult_train.parquet", "adult.yaml", name, epsilon, 0, folder)
    codec = Codec(coarse(load_schema(SCHEMAS / "adult.yaml"), cells))
    return run_peer(PEERS[name], pq.read_table(data_dir() / "adult_train.parquet"), codec, epsilon, DELTA, 0, folder)


def kept(name: str, epsilon: float, cells: int) -> Path:
    """Return the folder of a tool's table, which is made at its first use."""
    short = name.split()[0] if name == "nacre" or cells == 4096 else f"{name.split()[0]}-{cells}"
    home = KEPT / f"adult-{epsilon:g}" / short
    if not (home / "took.json").exists():
        with tempfile.TemporaryDirectory() as folder:
            outcome = make(name, epsilon, cells, Path(folder))
        if outcome.table is None:
            raise SystemExit(f"{name} made no table after {outcome.seconds:.0f} s: {outcome.failure}")
        home.mkdir(parents=True, exist_ok=True)
        outcome.table.to_parquet(home / "synthetic.parquet", index=False)
        (home / "took.json").write_text(json.dumps({"seconds": outcome.seconds, "peak_mib": outcome.peak_mib}))
    return home


def main() -> None:
    args = parse(__doc__, options)
    names = ["nacre", *(() if args.quick else args.peers)]
    homes = [kept(name, args.epsilon, args.peer_cells) for name in names]
    took = Table(f"Adult, epsilon={args.epsilon}, delta={DELTA}", ["table", "seconds", "peak MiB"], digits=1)
    for home in homes:
        facts = json.loads((home / "took.json").read_text())
        took.add(home.name, facts["seconds"], facts["peak_mib"])
    compare(homes, args)
    report("compare", [took], [0], args)


def compare(homes: list[Path], args: Namespace) -> None:
    """Run the command as a person would."""
    real, test = (data_dir() / f"adult_{part}.parquet" for part in ("train", "test"))
    words = [*(home / "synthetic.parquet" for home in homes), "--real", real, "--test", test]
    words += ["--schema", SCHEMAS / "adult.yaml", "--out", KEPT / "page"]
    subprocess.run([sys.executable, "-m", "nacre", "compare", *map(str, words)], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
