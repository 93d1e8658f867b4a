"""What three to five columns show together and no two of them do: kept only where a workload asks for a joint table.

One column is the exclusive or of the others, but in a tenth of the rows; numbers have it in their signs. Six more
columns of noise stand beside them. Agreement: in what part of the rows the last column is what the others say. The
error of pairs: total variation between the synthetic and the real tables of two columns, the mean over all pairs.
"""

from argparse import ArgumentParser
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.adult import DELTA, EPSILON
from benchmarks.common import Table, parse, report
from dpmodels.audit.desks import measured
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft

ROWS, OTHERS = 20_000, 6
HEAD = ["columns", "workload", "agreement", "of", "two-way TVD"]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--releases", type=int, default=8, help="of each table")


def made(columns: int, numbers: bool, seed: int) -> tuple[dict[str, Any], pd.DataFrame]:
    """Return the columns of a schema, and rows whose last column follows from the others taken together."""
    rng = np.random.default_rng(seed)
    first = rng.random((columns - 1, ROWS)) < 0.5
    sides = np.vstack([first, np.logical_xor.reduce(first) ^ (rng.random(ROWS) < 0.1)])
    sizes = np.abs(rng.normal(size=sides.shape)).clip(0, 4)
    values = np.where(sides, sizes, -sizes) if numbers else sides
    kind = {"type": "number", "min": -4, "max": 4} if numbers else {"type": "boolean"}
    noise = {f"noise{i}": rng.integers(0, 5, ROWS) for i in range(OTHERS)}
    fields = {f"x{i}": kind for i in range(columns)} | {name: {"type": "integer", "min": 0, "max": 4} for name in noise}
    return fields, pd.DataFrame({f"x{i}": each for i, each in enumerate(values)} | noise)


def agreement(rows: pd.DataFrame, columns: int) -> float:
    """Return in what part of the rows the last column is what the others say."""
    sides = rows[[f"x{i}" for i in range(columns)]].to_numpy() > 0
    return float((np.logical_xor.reduce(sides[:, :-1], axis=1) == sides[:, -1]).mean())


def tables_apart(real: pd.DataFrame, synthetic: pd.DataFrame) -> float:
    """Return the mean total variation of the tables of two columns, numbers cut into quarters of the real rows."""
    apart = []
    cut = {
        name: np.quantile(real[name], [0.25, 0.5, 0.75]) if real[name].nunique() > 5 else np.arange(5) + 0.5
        for name in real
    }
    cells = [
        {name: np.searchsorted(cut[name], rows[name].astype(float)) for name in real} for rows in (real, synthetic)
    ]
    for one, other in combinations(real, 2):
        counts = [np.bincount(10 * each[one] + each[other], minlength=100) / len(each[one]) for each in cells]
        apart.append(0.5 * float(np.abs(counts[0] - counts[1]).sum()))
    return float(np.mean(apart))


def released(fields: dict[str, Any], workload: list[dict[str, Any]], rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Release a table once by nacre's defaults, and return as many synthetic rows."""
    schema = Schema.model_validate({"name": "joint", "columns": fields, "workload": workload})
    system, codec = create("nacre", {}, {}), Codec(schema)
    line = system.plan(schema, PrivacyBudget(epsilon=EPSILON, delta=DELTA))
    with TemporaryDirectory() as folder:
        records = codec.encode(pa.Table.from_pandas(rows, preserve_index=False))
        release, _ = measured(system, Path(folder) / "run", line, records)
        drawn = system.fit(release, Craft(seed=seed)).draw(len(rows), np.random.default_rng(seed))
    synthetic: pd.DataFrame = codec.decode(drawn).to_pandas()
    return synthetic


def main() -> None:
    args = parse(__doc__, options)
    releases = 1 if args.quick else args.releases
    table = Table(f"nacre, epsilon={EPSILON}, delta={DELTA}, {ROWS:,} rows", HEAD)
    kinds = [(3, False), (4, False), (5, False), (3, True)]
    for columns, numbers in kinds[:1] if args.quick else kinds:
        names = [f"x{i}" for i in range(columns)]
        for words, workload in {
            "none": [],
            "their pairs": [{"columns": names}],
            "joint": [{"columns": names, "joint": True}],
        }.items():
            agree, apart, real = [], [], []
            for seed in range(releases):
                fields, rows = made(columns, numbers, seed)
                synthetic = released(fields, workload, rows, seed)
                agree.append(agreement(synthetic, columns))
                apart.append(tables_apart(rows, synthetic))
                real.append(agreement(rows, columns))
            kind = "numbers" if numbers else "yes or no"
            table.add(f"{columns}, {kind}", words, agree, float(np.mean(real)), apart)
    report("joint", [table], range(releases), args)


if __name__ == "__main__":
    main()
