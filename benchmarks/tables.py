"""P3GM's other tables: TSTR by the scores of four classifiers. Credit and ISOLET are the partial public files,
unless NACRE_DATA holds creditcard.parquet (284,807 rows, Time, V1-V28, Amount, Class) or isolet.parquet (7,797 rows,
f1-f617, letter).

Rows are split 70/30 at random, anew for each seed; the papers' ten-fold figures stand beside ours for orientation.
"""

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.adult import DELTA, EPSILON, add_row, synthesize
from benchmarks.common import Table, data_dir, parse, report
from benchmarks.judge import TableJudge

SEEDS, QUICK_SEEDS, QUICK_ROWS = (0, 1, 2), (0,), 4_000
HELD_OUT = 0.3


def _esr(raw: pd.DataFrame) -> pd.DataFrame:
    return raw.drop(columns=["recording", "chunk", "y"]).assign(seizure=raw["y"] == 1)


def _isolet(raw: pd.DataFrame) -> pd.DataFrame:
    return raw.drop(columns=["letter", "part"], errors="ignore").assign(vowel=raw["letter"].isin([1, 5, 9, 15, 21]))


@dataclass(frozen=True)
class Task:
    """A file, its target, what P3GM prints for it at this budget, how to shape it, and the whole file of a part."""

    file: str
    target: str
    positive: object
    published: str
    shape: Callable[[pd.DataFrame], pd.DataFrame] = lambda raw: raw
    whole: str = ""

    def load(self) -> tuple[pd.DataFrame, bool]:
        """Return the rows, and whether they are all there are: the whole file is read where ``NACRE_DATA`` has it."""
        found = bool(self.whole) and (data_dir() / self.whole).exists()
        return self.shape(pd.read_parquet(data_dir() / (self.whole if found else self.file))), found or not self.whole


TASKS = {
    "esr": Task("esr.parquet", "seizure", True, ".8243 / .7559 (real .8698 / .8098)", _esr),
    "creditcard": Task(
        "creditcard_fraud_sample.parquet",
        "Class",
        1,
        ".9232 / .5208 (real .9663 / .8927), full file",
        whole="creditcard.parquet",
    ),
    "isolet": Task(
        "isolet_parts_1_5.parquet",
        "vowel",
        True,
        ".6855 / .3287 (real .9891 / .9623), full file",
        _isolet,
        "isolet.parquet",
    ),
}
PARTIAL = {
    "creditcard": "creditcard (partial: 20,790 of 284,807 rows)",
    "isolet": "isolet (partial: 3,119 of 7,797 rows)",
}


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--methods", nargs="+", default=["nacre"])
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)


def run_table(name: str, methods: list[str], epsilon: float, seeds: tuple[int, ...], most: int | None = None) -> Table:
    """Run every method on one table, or on some of its rows; each seed has its own split."""
    task = TASKS[name]
    columns = ["method", "AUROC", "AUPRC", "TVD 1-way", "TVD 2-way", "seconds", "peak MiB"]
    frame, complete = task.load()
    frame = frame.sample(min(most or len(frame), len(frame)), random_state=0)
    title = f"{name if complete else PARTIAL[name]}, epsilon={epsilon}, delta={DELTA}; P3GM prints {task.published}"
    table = Table(title, columns, digits=4)
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            test = frame.sample(frac=HELD_OUT, random_state=seed)
            train = frame.drop(test.index)
            judge = TableJudge(train, test, task.target, task.positive)
            real = judge.real()
            table.add(f"real data, split {seed}", real.auroc, real.auprc, 0.0, 0.0, "–", "–")
            data = Path(folder) / f"{seed}.parquet"
            train.to_parquet(data, index=False)
            for method in methods:
                ours = partial(synthesize, data, f"{name}.yaml", method, epsilon, seed)
                add_row(table, judge, f"{method}, split {seed}", [ours])
                print(f"{name}: {table.rows[-1]}", file=sys.stderr, flush=True)
    return table


def main() -> None:
    args = parse(__doc__, options)
    seeds, most = (QUICK_SEEDS, QUICK_ROWS) if args.quick else (tuple(args.seeds), None)
    tables = [run_table(name, args.methods, args.epsilon, seeds, most) for name in args.tables]
    report("tables", tables, seeds, args)


if __name__ == "__main__":
    main()
