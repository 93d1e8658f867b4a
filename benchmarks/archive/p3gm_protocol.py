"""P3GM by the paper's own protocol: ten folds of Adult, and Kaggle Credit by each classifier, with and without privacy.

Adult is all of its 48,842 rows in ten folds by chance. Credit is the partial public file unless NACRE_DATA holds the
whole one (benchmarks/tables.py). At epsilon 1000 noise loses next to nothing, and clipping stays.
"""

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.adult import DELTA, EPSILON, synthesize
from benchmarks.common import Table, data_dir, parse, report
from benchmarks.judge import TableJudge
from benchmarks.tables import HELD_OUT, PARTIAL, QUICK_ROWS, TASKS

SEEDS, FOLDS, NO_NOISE = (0, 1, 2), 10, 1000.0
TABLE_2 = {
    "logistic regression": (0.9617, 0.9454, 0.9380, 0.6542, 0.6865, 0.6530),
    "AdaBoost": (0.9599, 0.9330, 0.9146, 0.5737, 0.6528, 0.4574),
    "GBM": (0.9619, 0.9442, 0.9221, 0.6838, 0.6734, 0.5231),
    "XGBoost": (0.9395, 0.9321, 0.9247, 0.2745, 0.6469, 0.4824),
}
"""As published: VAE and PGM without privacy and P3GM at epsilon 1, by AUROC, then by AUPRC."""
ROWS = {"VAE": ("dp-vae", NO_NOISE), "PGM": ("p3gm", NO_NOISE), "P3GM": ("p3gm", EPSILON)}


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--methods", nargs="+", default=["p3gm"], help="of the folds")
    parser.add_argument("--seeds", nargs="+", type=int, help="of the splits of Credit")


def made_of(train: pd.DataFrame, schema: str, method: str, epsilon: float, seed: int) -> pd.DataFrame:
    """Release rows by the command line, and return the synthetic ones."""
    with tempfile.TemporaryDirectory() as folder:
        train.to_parquet(data := Path(folder) / "train.parquet", index=False)
        table = synthesize(data, schema, method, epsilon, seed, Path(folder)).table
    assert table is not None
    return table


def folds(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Adult in ten folds: each is held out once, and the other nine are released."""
    parts = [pd.read_parquet(data_dir() / f"adult_{part}.parquet") for part in ("train", "test")]
    rows = pd.concat(parts, ignore_index=True)
    fold = np.random.default_rng(0).permutation(len(rows)) % FOLDS
    title = f"Adult, {len(rows):,} rows in {FOLDS} folds, epsilon={EPSILON}, delta={DELTA}"
    table = Table(title, ["method", "AUROC", "AUPRC"], digits=4)
    table.add("real data, as published", 0.9119, 0.7844)
    table.add("P3GM, as published", 0.8321, 0.5917)
    numbers = range(1 if args.quick else FOLDS)
    judges = [TableJudge(rows[fold != number], rows[fold == number], "income", ">50K") for number in numbers]
    real = [judge.real() for judge in judges]
    table.add("real data", [one.auroc for one in real], [one.auprc for one in real])
    for method in args.methods:
        verdicts = []
        for number, judge in zip(numbers, judges, strict=True):
            made = made_of(rows[fold != number], "adult.yaml", method, EPSILON, number)
            scores = judge.by_classifier(made).values()
            verdicts.append(np.mean([(one.auroc, one.auprc) for one in scores], axis=0))
            print(f"Adult, {method}, fold {number}: {verdicts[-1].round(4)}", file=sys.stderr, flush=True)
        auroc, auprc = np.transpose(verdicts).tolist()
        table.add(method, auroc, auprc)
    return [table]


def classifiers(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Credit by each classifier, beside the paper's table 2."""
    task = TASKS["creditcard"]
    frame, complete = task.load()
    frame = frame.sample(min(QUICK_ROWS, len(frame)), random_state=0) if args.quick else frame
    name = "creditcard" if complete else PARTIAL["creditcard"]
    heads = ["classifier", *(f"{row}, {score}" for score in ("AUROC", "AUPRC") for row in ROWS)]
    table = Table(f"{name}; VAE and PGM at epsilon {NO_NOISE:g}, P3GM at {EPSILON:g}", heads, digits=4)
    scores: dict[str, list[dict[str, tuple[float, float]]]] = {row: [] for row in ROWS}
    for seed in seeds:
        test = frame.sample(frac=HELD_OUT, random_state=seed)
        train = frame.drop(test.index)
        judge = TableJudge(train, test, task.target, task.positive)
        for row, (method, epsilon) in ROWS.items():
            by_classifier = judge.by_classifier(made_of(train, "creditcard.yaml", method, epsilon, seed))
            scores[row].append({one: (verdict.auroc, verdict.auprc) for one, verdict in by_classifier.items()})
            print(f"Credit, {row}, split {seed}: {scores[row][-1]}", file=sys.stderr, flush=True)
    for one, published in TABLE_2.items():
        cells = [[split[one][place] for split in scores[row]] for place in (0, 1) for row in ROWS]
        table.add(one, *cells)
        table.add(f"{one}, as published", *published)
    return [table]


PARTS: dict[str, Callable[[Namespace, Sequence[int]], list[Table]]] = {"folds": folds, "classifiers": classifiers}


def main() -> None:
    args = parse(__doc__, options)
    seeds = args.seeds or SEEDS[: 1 if args.quick else None]
    report("p3gm_protocol", [table for part in args.parts for table in PARTS[part](args, seeds)], seeds, args)


if __name__ == "__main__":
    main()
