"""Amounts that are 0 in some rows: what do `zero_inflated` and `scale: log` change of zeros, mean and quantiles?

Each column is released with one companion by nacre's defaults. Amounts are log-normal around 40, between bounds of 0
and 10,000. `zeros made` is the share of synthetic rows that are exactly 0; `quantiles` the mean distance of the
quantiles of 5 to 95 %, by the real interquartile range of amounts. All have their spread over the releases.
"""

import sys
from argparse import ArgumentParser

import numpy as np
import pandas as pd

from benchmarks.adult import EPSILON
from benchmarks.common import Table, parse, report
from benchmarks.tails import Floats, release
from dpmodels.contract.schema import Schema

HIGH, LEVELS = 10_000, np.linspace(0.05, 0.95, 19)
KEYS: dict[str, dict[str, object]] = {
    "none": {},
    "zero_inflated": {"zero_inflated": True},
    "log": {"scale": "log"},
    "both": {"scale": "log", "zero_inflated": True},
}
HEAD = ["rows", "zeros, %", "round", "keys", "zeros made, %", "error of the mean, %", "quantiles, %"]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", nargs="+", type=int, default=[1000, 5000])
    parser.add_argument("--shares", nargs="+", type=float, default=[0, 0.15, 0.6], help="of rows that are 0")
    parser.add_argument("--releases", type=int, default=8, help="of each column and setting")
    parser.add_argument("--epsilon", type=float, default=EPSILON)


def amounts(rows: int, share: float, decimals: int | None) -> pd.DataFrame:
    """Return a column of amounts of which a share is 0, and a companion of three groups, larger in the later ones."""
    rng = np.random.default_rng(rows)
    group = rng.integers(0, 3, rows)
    value = np.minimum(rng.lognormal(3.4 + 0.3 * group, 0.9), HIGH)
    value = np.where(rng.random(rows) < share, 0, value if decimals is None else value.round(decimals))
    return pd.DataFrame({"value": value, "group": np.array(list("abc"))[group]})


def errors(made: Floats, real: Floats) -> list[float]:
    """Return in percent the synthetic rows that are 0, the error of the mean, and the distance of quantiles."""
    spread = float(np.subtract(*np.quantile(real[real > 0], [0.75, 0.25])))
    apart = float(np.abs(np.quantile(made, LEVELS) - np.quantile(real, LEVELS)).mean()) / spread
    return [100 * float((made == 0).mean()), 100 * (float(made.mean() / real.mean()) - 1), 100 * apart]


def main() -> None:
    args = parse(__doc__, options)
    releases = 1 if args.quick else args.releases
    table = Table(f"Amounts that may be 0, epsilon={args.epsilon}", HEAD, digits=1)
    for rows in args.rows:
        for share in args.shares:
            for decimals in (2, None):
                frame = amounts(rows, share, decimals)
                real = frame["value"].to_numpy()
                for name, keys in KEYS.items():
                    kept = {} if decimals is None else {"round": decimals}
                    value = {"type": "number", "min": 0, "max": HIGH, **kept, **keys}
                    columns = {"value": value, "group": {"type": "categorical", "values": list("abc")}}
                    schema = Schema.model_validate({"name": "zeros", "columns": columns})
                    made = [errors(release(frame, schema, {}, args.epsilon, seed)[0], real) for seed in range(releases)]
                    row = (rows, f"{100 * share:g}", "" if decimals is None else decimals, name)
                    table.add(*row, *zip(*made, strict=True))
                    print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
    report("zeros", [table], range(releases), args)


if __name__ == "__main__":
    main()
