"""Adult: P3GM's protocol (official split, scores) with wall clock and memory, and PEARL's (hard labels, its subset)."""

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from benchmarks.common import ROOT, Table, data_dir, measure, parse, plot_sweep, report
from benchmarks.judge import TableJudge, hard_label_scores
from benchmarks.peers import PEERS, Outcome, run_peer
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec

EPSILON, DELTA = 1.0, 1e-5
EPSILONS = (0.2, 1.0, 3.0, 10.0)
SCHEMAS = ROOT / "benchmarks" / "schemas"
PUBLISHED = {
    "real data, as published": (0.765, 0.654),
    "PEARL, as published": (0.721, 0.618),
    "DP-MERF, as published": (0.641, 0.536),
}
TABLE_3 = {
    "logistic regression": (0.752, 0.661),
    "Gaussian naive Bayes": (0.661, 0.587),
    "Bernoulli naive Bayes": (0.763, 0.588),
    "linear SVM": (0.752, 0.568),
    "decision tree": (0.675, 0.696),
    "linear discriminant analysis": (0.755, 0.634),
    "AdaBoost": (0.709, 0.642),
    "bagging": (0.687, 0.659),
    "gradient boosting": (0.709, 0.706),
    "neural network": (0.744, 0.667),
}
"""ROC of PEARL and of DP-MERF by classifier, means of five runs, as PEARL's Table 3 has them."""
SEEDS, QUICK_SEEDS = (0, 1, 2), (0,)


def options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--methods", nargs="*", default=["nacre", "privbayes", "pearl"], help="methods to run side by side"
    )
    parser.add_argument("--protocols", nargs="+", default=["p3gm", "pearl"], choices=["p3gm", "pearl", "sweep"])
    parser.add_argument("--peers", nargs="*", default=[], choices=list(PEERS), help="other tools to run beside them")
    parser.add_argument("--peer-seeds", type=int, default=1, help="seeds of each peer; they take minutes a run")
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="of each row")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the sweep: AUROC against epsilon")


def synthesize(data: str | Path, schema: str, method: str, epsilon: float, seed: int, folder: Path) -> Outcome:
    """Run the command line in a process of its own."""
    words = {
        "--schema": SCHEMAS / schema,
        "--epsilon": epsilon,
        "--delta": DELTA,
        "--method": method,
        "--seed": seed,
        "--out": folder / "out",
        "--home": folder / "home",
    }
    command = [sys.executable, "-m", "nacre", "synthesize", data_dir() / data, "--no-prefect"]
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


def official_judge() -> TableJudge:
    """Judge against the official split."""
    train, test = (pd.read_parquet(data_dir() / f"adult_{part}.parquet") for part in ("train", "test"))
    return TableJudge(train, test, "income", ">50K")


def scores_table(args: Namespace, seeds: Sequence[int]) -> Table:
    """P3GM's protocol: official split, scores of four classifiers, and total variation."""
    judge = official_judge()
    title = f"Adult, official split, scores of four classifiers, epsilon={args.epsilon}, delta={DELTA}"
    table = Table(title, ["method", "AUROC", "AUPRC", "TVD 1-way", "TVD 2-way", "seconds", "peak MiB"], digits=4)
    real = judge.real()
    table.add("real data", real.auroc, real.auprc, 0.0, 0.0, "–", "–")
    for method in args.methods:
        ours = partial(synthesize, "adult_train.parquet", "adult.yaml", method, args.epsilon)
        add_row(table, judge, method, [partial(ours, seed) for seed in seeds])
    raw, codec = pq.read_table(data_dir() / "adult_train.parquet"), Codec(load_schema(SCHEMAS / "adult.yaml"))
    for peer in (PEERS[name] for name in args.peers):
        run = partial(run_peer, peer, raw, codec, args.epsilon, DELTA)
        add_row(table, judge, peer.name, [partial(run, seed) for seed in range(args.peer_seeds)])
    return table


def hard_label_tables(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """PEARL's protocol: its balanced subset, predicted labels of ten classifiers: their mean, and each (Table 3)."""
    train, test = (pd.read_parquet(data_dir() / f"adult_pearl_{part}.parquet") for part in ("train", "test"))
    title = (
        f"Adult, PEARL's balanced subset, predicted labels of ten classifiers, epsilon={args.epsilon}, delta={DELTA}"
    )
    real, schema = hard_label_scores(train, test, "label"), "adult_pearl.yaml"
    columns = [f"{name}, {score}" for name in ("real", *args.methods) for score in ("ROC", "PRC")]
    published = ["PEARL, ROC, as published", "DP-MERF, ROC, as published"]
    table, single = Table(title, ["method", "ROC", "PRC"], digits=4), Table(title, ["classifier", *columns, *published])
    table.add("real data", *np.mean(real, axis=0).tolist())
    for name, scores in PUBLISHED.items():
        table.add(name, *scores)
    found = []
    for method in args.methods:
        scores = []
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                made = synthesize("adult_pearl_train.parquet", schema, method, args.epsilon, seed, Path(folder)).table
            scores.append(hard_label_scores(made, test, "label"))
        found.append(np.array(scores))  # [seeds, classifiers, 2]
        table.add(method, *found[-1].mean(axis=1).T.tolist())
    for index, (name, figures) in enumerate(TABLE_3.items()):
        single.add(name, *real[index], *(list(each) for one in found for each in one[:, index].T.tolist()), *figures)
    return [table, single]


def sweep_table(args: Namespace, seeds: Sequence[int]) -> Table:
    """P3GM's protocol at several budgets, with the first method."""
    judge, method = official_judge(), args.methods[0]
    columns = ["epsilon", "AUROC", "AUPRC", "TVD 1-way", "TVD 2-way", "seconds", "peak MiB"]
    table = Table(f"Adult, official split, {method}, delta={DELTA}", columns, digits=4)
    for epsilon in EPSILONS:
        ours = partial(synthesize, "adult_train.parquet", "adult.yaml", method, epsilon)
        add_row(table, judge, f"{epsilon:g}", [partial(ours, seed) for seed in seeds])
    real = judge.real()
    table.add("real data", real.auroc, real.auprc, 0.0, 0.0, "–", "–")
    if args.plot:
        curve = [(float(name), fmean(scores)) for name, scores, *_ in table.rows[:-1]]
        plot_sweep(args.plot, {f"{method} on Adult": curve}, {f"{method} on Adult": real.auroc}, "AUROC")
    return table


SINGLE = {"p3gm": scores_table, "sweep": sweep_table}
"""Protocols of one table."""


def main() -> None:
    args = parse(__doc__, options)
    seeds = QUICK_SEEDS if args.quick else tuple(args.seeds)
    tables: list[Table] = []
    for name in args.protocols:
        tables += hard_label_tables(args, seeds) if name == "pearl" else [SINGLE[name](args, seeds)]
    report("adult", tables, seeds, args)


if __name__ == "__main__":
    main()
