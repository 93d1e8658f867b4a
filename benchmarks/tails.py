"""Skewed number columns with bounds that are true, 10 and 1,000 times too wide: what becomes of mean, p99 and p99.9?

Each column is released with one companion by nacre's defaults. An error is that of the synthetic column, by the real
value. The limit for a mean is 3 % or twice the error of a private mean at a tenth of the budget, whichever is more: a
sum clipped at the value that suits it best, which no private mean could know, with Gaussian noise, over the true number
of rows. The bounds are too wide upwards: the lower one is what it was. The second table holds the errors that a report
states against those that came about, by root mean squares over all releases of a column.
"""

import math
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.adult import DELTA, EPSILON
from benchmarks.common import Table, data_dir, parse, report
from benchmarks.light import read
from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.audit.desks import measured
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft
from dpmodels.report.bins import CellTally
from dpmodels.report.numbers import errors_of

Floats = NDArray[np.float64]
LOG = {"type": "number", "round": 2, "min": 0, "scale": "log"}
WIDE = (1, 10, 1000)
STATED = ["column", "mean: real, %", "stated, %", "stated / real", "p99: real, %", "stated, %", "stated / real"]
HEAD = ["column", "bounds", "settings", "error of the mean, %", "limit, %", "within", "p99, %", "p99.9, %", "seconds"]


@dataclass(frozen=True)
class Source:
    """A column of a public table, the bound that its documentation or a round figure gives, and a companion."""

    rows: Callable[[], pd.DataFrame]
    column: str
    companion: str
    high: float
    keys: dict[str, Any] = field(default_factory=lambda: LOG)

    def load(self) -> pd.DataFrame:
        """Return both columns; the companion as words."""
        frame = self.rows()[[self.column, self.companion]].dropna(subset=[self.column])
        whole = self.keys["type"] == "integer"
        number = frame[self.column].astype(float).clip(self.keys["min"], self.high).round(self.keys.get("round", 9))
        return pd.DataFrame(
            {
                "value": number.astype("int64") if whole else number,
                "group": frame[self.companion].astype(str),
            }
        ).reset_index(drop=True)

    def schema(self, frame: pd.DataFrame, times: int) -> Schema:
        """Return a schema whose upper bound is so many times as far from the lower one."""
        low = self.keys["min"]
        groups = {"type": "categorical", "values": sorted(frame["group"].unique())}
        columns = {"value": {**self.keys, "max": low + times * (self.high - low)}, "group": groups}
        return Schema.model_validate({"name": "tails", "target": "group", "columns": columns})


def _parquet(name: str, rows: int | None = None) -> Callable[[], pd.DataFrame]:
    return lambda: pd.read_parquet(data_dir() / f"{name}.parquet").head(rows)


def _statsmodels(name: str) -> Callable[[], pd.DataFrame]:
    def load() -> pd.DataFrame:
        from statsmodels import datasets

        frame: pd.DataFrame = getattr(datasets, name).load_pandas().data
        return frame

    return load


def _incomes() -> pd.DataFrame:
    rows = _parquet("nist/national2019")()
    return rows.assign(PINCP=pd.to_numeric(rows["PINCP"], errors="coerce"))


SOURCES = {
    "purchase": Source(_parquet("creditcard_fraud_time_amount_full", 7874), "Amount", "Class", 30_000),
    "card": Source(
        _parquet("creditcard_fraud_sample"), "Amount", "Class", 30_000, {"type": "number", "round": 2, "min": 0}
    ),
    "gain": Source(
        _parquet("adult_train"),
        "capital_gain",
        "income",
        99_999,
        {"type": "integer", "min": 0, "scale": "log", "zero_inflated": True},
    ),
    "order": Source(_parquet("berka/order"), "amount", "k_symbol", 15_000, {"type": "number", "min": 0}),
    "transfer": Source(_parquet("berka/trans"), "amount", "type", 100_000),
    "income": Source(
        _incomes, "PINCP", "SEX", 1_500_000, {"type": "integer", "min": 0, "scale": "log", "zero_inflated": True}
    ),
    "affairs": Source(
        _statsmodels("fair"), "affairs", "children", 60, {"type": "number", "min": 0, "zero_inflated": True}
    ),
    "visits": Source(_statsmodels("randhie"), "mdvis", "hlthg", 80, {"type": "integer", "min": 0}),
}


def _made(values: Floats) -> Callable[[], pd.DataFrame]:
    group = np.random.default_rng(4).choice(list("abc"), len(values))
    return lambda: pd.DataFrame({"value": values.round(2), "group": group})


def _awkward() -> dict[str, Source]:
    """Make columns of which little can be known: few rows, few values among zeros, long, far and even tails."""
    rng = np.random.default_rng(3)
    plain, rows = {**LOG, "scale": "linear"}, 3000
    zeros = np.where(rng.random(rows) < 0.97, 0, rng.lognormal(7.3, 1, rows))
    far = np.where(rng.random(20_000) < 0.995, rng.normal(50, 10, 20_000), rng.normal(80_000, 5000, 20_000))
    columns = {
        "few": (rng.lognormal(5, 0.7, 600), 10_000, plain),
        "zeros": (zeros, 100_000, {**LOG, "zero_inflated": True}),
        "long": (rng.lognormal(5, 2.2, rows), 100_000, LOG),
        "far": (far, 100_000, plain),
    }
    both = {**plain, "min": -1_000_000}
    refund = np.where(rng.random(5000) < 0.99, rng.lognormal(3, 1, 5000), -rng.lognormal(7, 1, 5000))
    columns |= {
        "claims": (np.where(rng.random(20_000) < 0.98, 0, rng.uniform(0, 100_000, 20_000)), 100_000, plain),
        "fees": (np.where(rng.random(20_000) < 0.97, 12, rng.uniform(0, 100_000, 20_000)), 100_000, plain),
        "refund": (refund, 1_000_000, both),
        "sparse": (np.where(rng.random(5000) < 0.97, 0, rng.lognormal(6, 1, 5000)), 1_000_000, plain),
        "gap": (np.where(rng.random(600) < 0.9, 10, 50_000), 1_000_000, both),
        "outliers": (np.append(rng.lognormal(3, 0.5, 4998), [900_000, 500_000]), 1_000_000, plain),
    }
    refunds = np.where(rng.random(1991) < 0.06, rng.lognormal(2.6, 1.1, 1991), 0)
    columns["refunds"] = (refunds, 5000, {**plain, "zero_inflated": True})  # all that is above zero, in one cell
    return {name: Source(_made(values), "value", "group", high, keys) for name, (values, high, keys) in columns.items()}


AWKWARD = _awkward()


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--columns", nargs="+", default=list(SOURCES), choices=[*SOURCES, *AWKWARD])
    parser.add_argument("--settings", nargs="+", default=["default"], help="measurements to hold against each other")
    parser.add_argument("--wide", nargs="+", type=int, default=list(WIDE), help="how many times too wide bounds are")
    parser.add_argument("--releases", type=int, default=8, help="of each column and width")
    parser.add_argument("--epsilon", type=float, default=EPSILON)


def private_mean(values: Floats, epsilon: float) -> float:
    """Return the root mean squared error of a clipped mean with Gaussian noise, clipped where it is least."""
    noise = gaussian_noise_multiplier(PrivacyBudget(epsilon=epsilon, delta=DELTA))
    cuts = np.unique(np.quantile(values[values > 0], 1 - np.logspace(-5, -0.3, 200)))
    bias = [float(np.maximum(values - cut, 0).mean()) for cut in cuts]
    return min(math.hypot(off, noise * cut / len(values)) for off, cut in zip(bias, cuts, strict=True))


def release(
    frame: pd.DataFrame, schema: Schema, settings: dict[str, object], epsilon: float, seed: int
) -> tuple[Floats, list[float]]:
    """Measure, fit and sample once; return the synthetic column, and the errors stated of its mean and its p99."""
    system, codec = create("nacre", settings, {}), Codec(schema)
    records = codec.encode(pa.Table.from_pandas(frame, preserve_index=False))
    line = system.plan(schema, PrivacyBudget(epsilon=epsilon, delta=DELTA))
    with tempfile.TemporaryDirectory() as folder:
        released, _ = measured(system, Path(folder), line, records)
        model, marginals = system.fit(released, Craft(seed=seed)), system.marginals(released.value)
    tally, parts = CellTally(marginals.codec), []
    for batch in model.sample(model.default_rows(), seed):
        tally.add(batch)
        parts.append(codec.decode(batch)["value"].to_numpy().astype(float))
    column, noisy = marginals.codec.columns["value"], marginals.columns["value"]
    stated = errors_of(column, noisy, tally.cells[0] / tally.rows)
    return np.concatenate(parts), [expected(stated[key]) if stated else math.nan for key in ("mean", "p99")]


def expected(fact: Mapping[str, float]) -> float:
    """Return the error that is stated of a figure, where noise leaves it open that of values that thin out."""
    return fact.get("expected_error_if_thinning_out", fact["expected_error"])


@dataclass
class Errors:
    """Errors of mean and p99 in percent, one pair a release: those that came about, and those that were stated."""

    real: list[Sequence[float]] = field(default_factory=list)
    stated: list[Sequence[float]] = field(default_factory=list)

    def line(self) -> list[float]:
        """Return for mean and p99 the real and the stated error, by root mean squares, and the one over the other."""
        real, stated = (np.sqrt(np.nanmean(np.square(each), axis=0)) for each in (self.real, self.stated))
        return np.stack([real, stated, stated / real], axis=1).ravel().tolist()


def together(lines: list[list[float]]) -> list[float | str]:
    """Return the geometric mean of what stated errors are times the real ones, over columns."""
    mean, p99 = (float(np.exp(np.mean(np.log([line[place] for line in lines])))) for place in (2, 5))
    return ["", "", mean, "", "", p99]


def apart(made: Floats, real: Floats) -> list[float]:
    """Return by how many percent mean, p99 and p99.9 differ."""
    return [100 * (a - b) / b for a, b in zip(_figures(made), _figures(real), strict=True)]


def _figures(values: Floats) -> list[float]:
    """Return mean, p99 and p99.9."""
    return [float(values.mean()), *np.quantile(values, [0.99, 0.999]).tolist()]


def main() -> None:
    args = parse(__doc__, options)
    releases = 1 if args.quick else args.releases
    table = Table(f"Skewed columns, epsilon={args.epsilon}, delta={DELTA}", HEAD, digits=1)
    held, lines = Table("Stated and real errors, all bounds together", STATED, digits=2), []
    for name in args.columns:
        source = (SOURCES | AWKWARD)[name]
        frame, errors = source.load(), Errors()
        real = frame["value"].to_numpy().astype(float)
        limit = max(3.0, 200 * private_mean(real, args.epsilon / 10) / real.mean())
        for times in args.wide:
            schema = source.schema(frame, times)
            for words in args.settings:
                begun = time.perf_counter()
                made = [release(frame, schema, read(words), args.epsilon, seed) for seed in range(releases)]
                seconds = (time.perf_counter() - begun) / releases
                mean, p99, p999 = zip(*(apart(each, real) for each, _ in made), strict=True)
                within = f"{sum(abs(x) <= limit for x in mean)} of {releases}"
                table.add(name, f"x{times}", words, mean, limit, within, p99, p999, seconds)
                print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
                stated = [
                    [100 * off / true for off, true in zip(each, _figures(real), strict=False)] for _, each in made
                ]
                errors.real += [*zip(mean, p99, strict=True)]
                errors.stated += stated
        lines.append(errors.line())
        held.add(name, *lines[-1])
    held.add("geometric mean", *together(lines))
    report("tails", [table, held], range(releases), args)


if __name__ == "__main__":
    main()
