"""Adult, official train and test split, TSTR by scores (P3GM's protocol), with wall clock and peak memory."""

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from benchmarks.common import ROOT, Table, data_dir, measure, parse, report
from benchmarks.judge import TableJudge
from benchmarks.peers import PEERS, Outcome, run_peer
from dpmodels.schema.encode import Codec
from dpmodels.schema.schema import Schema

EPSILON, DELTA = 1.0, 1e-5
SCHEMA = ROOT / "benchmarks" / "schemas" / "adult.yaml"
SEEDS, QUICK_SEEDS = (0, 1, 2), (0,)


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--methods", nargs="+", default=["pearl"], help="methods to run side by side")
    parser.add_argument("--peers", nargs="*", default=[], choices=list(PEERS), help="other tools to run beside them")
    parser.add_argument("--peer-seeds", type=int, default=1, help="seeds of each peer; they take minutes a run")
    parser.add_argument("--epsilon", type=float, default=EPSILON)


def synthesize(method: str, epsilon: float, seed: int, folder: Path) -> Outcome:
    """Run the command line in a process of its own."""
    words = {
        "--schema": SCHEMA,
        "--target-epsilon": epsilon,
        "--delta": DELTA,
        "--method": method,
        "--seed": seed,
        "--out": folder / "out",
        "--home": folder / "home",
    }
    data = data_dir() / "adult_train.parquet"
    command = [sys.executable, "-m", "flows.cli", "synthesize", data, "--no-prefect"]
    ran = measure([str(word) for word in [*command, *(w for pair in words.items() for w in pair)]], cwd=ROOT)
    if ran.code:
        raise SystemExit(f"nacre synthesize failed:\n{ran.output}")
    return Outcome(pd.read_parquet(folder / "out" / "synthetic"), ran.seconds, ran.peak_mib)


def add_row(table: Table, judge: TableJudge, name: str, runs: Sequence[Callable[[Path], Outcome]]) -> None:
    """Run every seed of one method, judge the tables, and add their row."""
    verdicts, seconds, peaks = [], [], []
    for run in runs:
        with tempfile.TemporaryDirectory() as folder:
            outcome = run(Path(folder))
        if outcome.table is None:
            table.add(name, "failed", outcome.failure, "–", "–", outcome.seconds, outcome.peak_mib)
            return
        verdicts.append(judge.judge(outcome.table))
        seconds.append(outcome.seconds)
        peaks.append(outcome.peak_mib)
    scores = [[getattr(v, score) for v in verdicts] for score in ("auroc", "auprc", "tvd_1_way", "tvd_2_way")]
    table.add(name, *scores, seconds, peaks)


def main() -> None:
    args = parse(__doc__, options)
    train, test = (pd.read_parquet(data_dir() / f"adult_{part}.parquet") for part in ("train", "test"))
    judge = TableJudge(train, test, "income", ">50K")
    seeds = QUICK_SEEDS if args.quick else SEEDS
    title = f"Adult, epsilon={args.epsilon}, delta={DELTA}, whole run with Prefect off"
    table = Table(title, ["method", "AUROC", "AUPRC", "TVD 1-way", "TVD 2-way", "seconds", "peak MiB"], digits=4)
    real = judge.real()
    table.add("real data", real.auroc, real.auprc, 0.0, 0.0, "–", "–")
    for method in args.methods:
        add_row(table, judge, method, [partial(synthesize, method, args.epsilon, seed) for seed in seeds])
    raw, codec = pq.read_table(data_dir() / "adult_train.parquet"), Codec(Schema.load(SCHEMA))
    for peer in (PEERS[name] for name in args.peers):
        run = partial(run_peer, peer, raw, codec, args.epsilon, DELTA)
        add_row(table, judge, peer.name, [partial(run, seed) for seed in range(args.peer_seeds)])
    report("adult", [table], seeds, args)


if __name__ == "__main__":
    main()
