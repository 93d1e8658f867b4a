"""Adult, official train and test split, TSTR by scores (P3GM's protocol), with wall clock and peak memory."""

import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path

import pandas as pd

from benchmarks.common import ROOT, Table, data_dir, measure, parse, report
from benchmarks.judge import TableJudge, Verdict

EPSILON, DELTA = 1.0, 1e-5
SEEDS, QUICK_SEEDS = (0, 1, 2), (0,)


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--methods", nargs="+", default=["pearl"], help="methods to run side by side")
    parser.add_argument("--epsilon", type=float, default=EPSILON)


def synthesize(method: str, epsilon: float, seed: int, folder: Path) -> tuple[pd.DataFrame, float, float]:
    """Run the command line in a process of its own; return the table, seconds, and peak MiB."""
    words = {
        "--schema": ROOT / "benchmarks" / "schemas" / "adult.yaml",
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
    return pd.read_parquet(folder / "out" / "synthetic"), ran.seconds, ran.peak_mib


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
        verdicts: list[Verdict] = []
        seconds, peaks = [], []
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                made, took, peak = synthesize(method, args.epsilon, seed, Path(folder))
            verdicts.append(judge.judge(made))
            seconds.append(took)
            peaks.append(peak)
        scores = [[getattr(v, name) for v in verdicts] for name in ("auroc", "auprc", "tvd_1_way", "tvd_2_way")]
        table.add(method, *scores, seconds, peaks)
    report("adult", [table], seeds, args)


if __name__ == "__main__":
    main()
