"""What a rule such as ``a <= b`` does to the columns that it is about, and how far counts with few values reach.

Invented loans, closed some 300 days after they were opened, and chains of three numbers, released without a rule and
with it; "rejection": where rows that break it are drawn anew without a look at its columns. Rank error: the largest
difference of running shares among these. Gap: mean difference of the last and the first. Pairs: these with the others,
total variation in four groups by four. Broken: rows that a generator draws; left: once values of overlapping cells are
exchanged. CPU: seconds of drawing 100,000 rows. Visits from 0 to 50, few of which are above 11; "no shape": the same
release, where noise alone says how far they reach.
"""

from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.stats import ks_2samp

from benchmarks.adult import DELTA, EPSILON
from benchmarks.common import Table, parse, report
from benchmarks.joint import tables_apart
from benchmarks.sampling import best
from dpmodels.audit.desks import measured
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.generators import targets
from dpmodels.generators.constraints import Rules, sample_valid
from dpmodels.generators.refinements import spares
from dpmodels.generators.sampling import Sampler
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft

HEAD = ["table", "release", "rank error, %", "gap", "real gap", "pairs, %", "broken, %", "left, %", "CPU, s"]
SHORT = ["release", "largest real value", "synthetic rows beyond it, %", "synthetic mean / real mean"]
ROWS, COHORT_ROWS, SPEED_ROWS = 10_000, 5_000, 100_000
KINDS = {  # what is declared of a column, by the type of its values; visits have another bound
    "M": {"type": "datetime", "min": date(2015, 1, 1), "max": date(2026, 12, 31)},
    "f": {"type": "number", "min": 0, "max": 1000},
    "i": {"type": "integer", "min": 0, "max": 3},
    "b": {"type": "boolean"},
}


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--releases", type=int, default=8, help="of each table, without its rule and with it")


def loans(rng: np.random.Generator) -> pd.DataFrame:
    """Invent loans that run longer where they are large, and fail where they are dear."""
    size, risk = rng.normal(size=(2, ROWS))
    opened, length = rng.integers(0, 3287, ROWS), rng.gamma(2, 150 * np.exp(0.3 * size - 0.045)).clip(max=1095)
    start = np.datetime64("2015-01-01") + opened
    others = {"amount": np.exp(3 + 0.7 * size), "rate": 20 + 4 * risk, "channel": np.digitize(opened / 800, [1, 2, 3])}
    return _frame(rng, {"opened": start, "closed": start + length.astype(int)} | others, risk - 2)


def chain(rng: np.random.Generator) -> pd.DataFrame:
    """Invent three numbers, each at least the one before, that are larger where a fourth is."""
    size = rng.normal(size=ROWS)
    numbers = dict(zip("abc", np.cumsum(rng.gamma(2, 10 * np.exp(0.4 * size), (3, ROWS)), axis=0), strict=True))
    return _frame(rng, numbers | {"weight": 70 + 10 * size + 8 * rng.normal(size=ROWS)}, size - 1)


def cohort(rng: np.random.Generator) -> pd.DataFrame:
    """Invent people whose visits, a mixture of Poisson counts, are few."""
    rate = rng.choice([0.5, 2, 4.5], COHORT_ROWS, p=[0.7, 0.25, 0.05])
    scores = {f"score{i}": 50 * rate + 100 * rng.random(COHORT_ROWS) for i in range(9)}
    return _frame(rng, {"visits": rng.poisson(rate)} | scores, rate - 3)


def _frame(rng: np.random.Generator, columns: dict[str, np.ndarray], odds: np.ndarray) -> pd.DataFrame:
    """Return the columns with one of noise and a target of these log odds."""
    return pd.DataFrame(columns | {"region": rng.integers(0, 4, len(odds)), "target": rng.logistic(odds) > 0})


def fits(frame: pd.DataFrame, seed: int, rules: Sequence[str] = ()) -> Callable[[], Sampler]:
    """Measure a table once by nacre's defaults; return what fits a generator to the release."""
    columns = {name: KINDS[frame[name].dtype.kind] | ({"max": 50} if name == "visits" else {}) for name in frame}
    keys = {"name": "rules", "target": "target", "columns": columns, "constraints": [*rules]}
    schema, system = Schema.model_validate(keys), create("nacre", {}, {})
    line = system.plan(schema, PrivacyBudget(epsilon=EPSILON, delta=DELTA))
    with TemporaryDirectory() as folder:
        records = Codec(schema).encode(pa.Table.from_pandas(frame, preserve_index=False))
        release, _ = measured(system, Path(folder) / "run", line, records)
    return lambda: system.fit(release, Craft(seed=seed))


def numbers_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return all columns as numbers, dates as days."""
    return frame.apply(lambda x: x.astype("M8[s]").astype(int) / 86_400 if x.dtype.kind == "M" else x.astype(float))


def drawn(model: Sampler, seed: int) -> pd.DataFrame:
    """Return the synthetic table of a run, as numbers."""
    records = Records.concat([*sample_valid(model, model.default_rows(), seed)])
    return numbers_of(Codec(model.schema).decode(records).to_pandas(date_as_object=False))


def figures(model: Sampler, real: pd.DataFrame, rules: Rules, seed: int) -> list[float]:
    """Return the figures of a release, in the order of the table."""
    ruled = [name for name in real if any(name in (rule.lower, rule.upper) for rule in rules.constraints)]
    synthetic, others = drawn(model, seed), [name for name in real if name not in ruled]
    rank = 100 * max(ks_2samp(real[name], synthetic[name], method="asymp").statistic for name in ruled)
    gaps = [(each[ruled[-1]] - each[ruled[0]]).mean() for each in (synthetic, real)]
    pairs = 100 * np.mean([tables_apart(real[[a, b]], synthetic[[a, b]]) for a in ruled for b in others])
    rows = Records.concat([*model.sample(model.default_rows(), seed)])
    broken = [100 * (~rules.hold(x)).mean() for x in (rows, rules.settle(rows, np.random.default_rng(seed)))]
    return [rank, *gaps, pairs, *broken, best(lambda: [*sample_valid(model, SPEED_ROWS, seed)], 1)]


def sides(frame: pd.DataFrame, rules: Sequence[str], seed: int) -> dict[str, list[float]]:
    """Release a table without rules and with them; return the figures of both, and those of rejection alone."""
    real, free, bound = numbers_of(frame), fits(frame, seed)(), fits(frame, seed, rules)()
    checked = Rules(bound.schema)
    lines = {side: figures(model, real, checked, seed) for side, model in (("no rule", free), ("rule", bound))}
    with patch.object(spares, "FEW", 1.0):  # share of broken rows up to which columns are not looked at
        return lines | {"rule, rejection": figures(bound, real, checked, seed)}


def reach(frame: pd.DataFrame, seed: int) -> dict[str, list[float]]:
    """Release the cohort once; return the figures of its visits, and those where their end follows no shape."""
    fit, real = fits(frame, seed), frame["visits"]
    rows = {"default": drawn(fit(), seed)["visits"]}
    with patch.object(targets, "FEWEST", 1000):  # cells of a column from which on its ends follow a shape
        rows["no shape"] = drawn(fit(), seed)["visits"]
    return {side: [real.max(), 100 * (x > real.max()).mean(), x.mean() / real.mean()] for side, x in rows.items()}


def main() -> None:
    args = parse(__doc__, options)
    seeds = range(1 if args.quick else args.releases)
    ruled = Table(f"Columns of a rule, {ROWS:,} rows, epsilon={EPSILON}, delta={DELTA}", HEAD, digits=2)
    short = Table(f"Visits, one of twelve columns, {COHORT_ROWS:,} rows, the same budget", SHORT, digits=2)
    for name, table, rules in (("loans", loans, ["opened <= closed"]), ("chain", chain, ["a <= b", "b <= c"])):
        releases = [sides(table(np.random.default_rng(seed)), rules, seed) for seed in seeds]
        for side in releases[0]:
            ruled.add(name, side, *zip(*(each[side] for each in releases), strict=True))
    releases = [reach(cohort(np.random.default_rng(seed)), seed) for seed in seeds]
    for side in releases[0]:
        short.add(side, *zip(*(each[side] for each in releases), strict=True))
    report("rules", [ruled, short], seeds, args)


if __name__ == "__main__":
    main()
