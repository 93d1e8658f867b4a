"""What few rows share: the ages in the children's ward of a made hospital, with and without a workload that names them.

One row in sixteen lies in that ward, and one in a hundred of its patients is of age. All other wards have adults alone.
Adults: the share of those aged 18 or more in the synthetic ward, and of those aged 30 or more. The errors are total
variation between synthetic and real tables of two columns, ages in steps of five years and other numbers in tenths: of
ward and age, and the mean over all others. The rank correlation is that of days and cost, .86 in the real rows.
*before* is nacre as it was before a workload cut its columns; *strong_steps=0* fits the same release as it was fitted
before fits went on for relations (decision 0072).
"""

from argparse import ArgumentParser
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.adult import DELTA
from benchmarks.common import Table, parse, report
from dpmodels.audit.desks import measured
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft

WARDS = ["internal", "surgery", "orthopedics", "neurology", "obstetrics", "children"]
SHARES = [0.31, 0.23, 0.16, 0.13, 0.11, 0.06]
EPSILONS = (1.0, 3.0, 10.0)
NAMED = [{"columns": ["age", "ward"]}]
SETTINGS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "none": ([], {}),
    "columns: [age, ward], before": (NAMED, {"asked_cells": False}),
    "columns: [age, ward]": (NAMED, {}),
    "by: ward": ([{"by": "ward"}], {}),
}
BEFORE = {"strong_steps": 0}
"""The training that ends where noise explains all pairs together."""
HEAD = ["epsilon", "workload", "18 or more", "30 or more", "ward with age", "other pairs", "rank correlation"]
COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "integer", "min": 0, "max": 110},
    "ward": {"type": "categorical", "values": WARDS},
    "sex": {"type": "categorical", "values": ["f", "m"]},
    "admitted": {"type": "integer", "min": 0, "max": 1095},
    "days": {"type": "integer", "min": 1, "max": 90},
    "cost": {"type": "number", "min": 0, "max": 200_000},
    "insurer": {"type": "categorical", "values": ["a", "b", "c", "d", "e"]},
    "again": {"type": "boolean"},
}


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=9_000)
    parser.add_argument("--releases", type=int, default=8, help="of each table")
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))


def made(rows: int, seed: int) -> pd.DataFrame:
    """Return cases of a hospital: age by ward, days by ward and age, cost by days, and who comes again by age."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(len(WARDS), rows, p=SHARES)
    middle, spread = np.array([68, 55, 60, 63, 31, 7])[ward], np.array([15, 18, 17, 17, 5, 5])[ward]
    age = np.where(ward == 5, rng.integers(0, 18, rows), np.clip(rng.normal(middle, spread), 18, 104)).astype(int)
    age = np.where((ward == 5) & (rng.random(rows) < 0.01), rng.integers(18, 25, rows), age)
    days = np.clip(rng.gamma(2, (2 + age / 40) * np.where(ward == 4, 0.6, 1)), 1, 90).astype(int)
    return pd.DataFrame(
        {
            "age": age,
            "ward": np.array(WARDS)[ward],
            "sex": np.where(rng.random(rows) < np.where(ward == 4, 1, 0.5), "f", "m"),
            "admitted": rng.integers(0, 1096, rows),
            "days": days,
            "cost": np.clip(days * rng.lognormal(6.6, 0.5, rows), 0, 200_000).round(2),
            "insurer": rng.choice(list("abcde"), rows, p=[0.36, 0.27, 0.17, 0.1, 0.1]),
            "again": rng.random(rows) < 0.05 + age / 900,
        }
    )


def released(
    rows: pd.DataFrame, workload: list[dict[str, Any]], epsilon: float, measurement: dict[str, Any], seed: int
) -> list[pd.DataFrame]:
    """Release the rows once, and return as many synthetic ones, by nacre's defaults and as fitted before."""
    schema = Schema.model_validate({"name": "hospital", "columns": COLUMNS, "target": "again", "workload": workload})
    system, codec = create("nacre", measurement, {}), Codec(schema)
    line = system.plan(schema, PrivacyBudget(epsilon=epsilon, delta=DELTA))
    with TemporaryDirectory() as folder:
        records = codec.encode(pa.Table.from_pandas(rows, preserve_index=False))
        release, _ = measured(system, Path(folder) / "run", line, records)
    fitted = (create("nacre", measurement, each).fit(release, Craft(seed=seed)) for each in ({}, BEFORE))
    return [codec.decode(one.draw(len(rows), np.random.default_rng(seed))).to_pandas() for one in fitted]


def cells_of(real: pd.DataFrame, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the cells of every column: steps of five years, tenths of the real numbers, or the values themselves."""
    edges = {name: np.unique(real[name].quantile(np.arange(1, 10) / 10)) for name in ("admitted", "days", "cost")}
    cut = {name: np.digitize(rows[name].astype(float), each) for name, each in edges.items()}
    return {**{name: rows[name].astype(str).to_numpy() for name in rows}, **cut, "age": rows["age"].to_numpy() // 5}


def apart(real: pd.DataFrame, synthetic: pd.DataFrame) -> tuple[float, float]:
    """Return the total variation between the tables of ward and age, and the mean over all other pairs of columns."""
    cells, distances = [cells_of(real, rows) for rows in (real, synthetic)], {}
    for pair in combinations(real, 2):
        one, other = (pd.Series(list(zip(*map(each.__getitem__, pair), strict=True))).value_counts() for each in cells)
        distances[pair] = 0.5 * float(one.sub(other, fill_value=0).abs().sum()) / len(real)
    asked = distances.pop(("age", "ward"))
    return asked, float(np.mean([*distances.values()]))


def figures(real: pd.DataFrame, synthetic: pd.DataFrame) -> tuple[float, ...]:
    """Return what the table says of one release."""
    children = synthetic.loc[synthetic["ward"] == "children", "age"]
    rank = synthetic["days"].astype(float).corr(synthetic["cost"].astype(float), method="spearman")
    return float((children >= 18).mean()), float((children >= 30).mean()), *apart(real, synthetic), float(rank)


def main() -> None:
    args = parse(__doc__, options)
    releases = 1 if args.quick else args.releases
    table = Table(f"nacre, delta={DELTA}, {args.rows:,} rows", HEAD)
    for epsilon in args.epsilons[:1] if args.quick else args.epsilons:
        for words, (workload, measurement) in SETTINGS.items():
            runs = list[list[tuple[float, ...]]]()
            for seed in range(releases):
                rows = made(args.rows, seed)
                synthetic = released(rows, workload, epsilon, measurement, seed)
                runs.append([figures(rows, each) for each in synthetic])
            for said, chosen in zip((words, f"{words}; strong_steps=0"), zip(*runs, strict=True), strict=True):
                table.add(f"{epsilon:g}", said, *map(list, zip(*chosen, strict=True)))
    report("ward", [table], range(releases), args)


if __name__ == "__main__":
    main()
