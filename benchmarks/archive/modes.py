"""Whether the modes of numbers that PEARL's appendix E suggests would help it on Adult.

The paper proposes a private mixture of Gaussians for each number, and its component beside the value. Here a number of
Adult gets a column of the component that it most probably came from, of a mixture that was fitted to the real rows
without noise and free of charge: more than a private mixture could give. The rest is the command line at its defaults.
"""

import tempfile
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from sklearn.mixture import GaussianMixture

from benchmarks.adult import DELTA, EPSILON, SCHEMAS, Outcome, add_row, official_judge, synthesize
from benchmarks.common import Table, data_dir, parse, report

MODES = 5
NUMBERS = ("integer", "number")


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--modes", type=int, default=MODES, help="components a number")


def with_modes(folder: Path, modes: int) -> tuple[Path, Path, list[str]]:
    """Write Adult and its schema with a column of components for each number; return both and the names of those."""
    rows = pd.read_parquet(data_dir() / "adult_train.parquet")
    schema = yaml.safe_load((SCHEMAS / "adult.yaml").read_text())
    numbers = [name for name, column in schema["columns"].items() if column["type"] in NUMBERS]
    for name in numbers:
        values = np.log1p(rows[[name]].to_numpy(dtype=np.float64))
        rows[f"{name}_mode"] = (
            GaussianMixture(modes, random_state=0, reg_covar=1e-4).fit_predict(values).astype(np.int8)
        )
        schema["columns"][f"{name}_mode"] = {"type": "categorical", "values": list(range(modes)), "dtype": "int8"}
    rows.to_parquet(folder / "adult.parquet")
    (folder / "adult.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))
    return folder / "adult.parquet", folder / "adult.yaml", [f"{name}_mode" for name in numbers]


def run(modes: int, seed: int, folder: Path) -> Outcome:
    """Synthesize with modes and leave them out of what is judged."""
    with tempfile.TemporaryDirectory() as inputs:
        data, schema, added = with_modes(Path(inputs), modes)
        outcome = synthesize(data, str(schema), "pearl", EPSILON, seed, folder)
    return outcome if outcome.table is None else replace(outcome, table=outcome.table.drop(columns=added))


def table_of(args: Namespace) -> Table:
    """Judge both by P3GM's protocol."""
    judge, title = official_judge(), f"Adult, official split, epsilon={EPSILON}, delta={DELTA}"
    table = Table(title, ["method", "AUROC", "AUPRC", "TVD 1-way", "TVD 2-way", "seconds", "peak MiB"], digits=4)
    plain = partial(synthesize, "adult_train.parquet", "adult.yaml", "pearl", EPSILON)
    add_row(table, judge, "pearl", [partial(plain, seed) for seed in args.seeds])
    given = [partial(run, args.modes, seed) for seed in args.seeds]
    add_row(table, judge, f"pearl, {args.modes} modes a number, given for nothing", given)
    return table


def main() -> None:
    args = parse(__doc__, options)
    report("modes", [table_of(args)], args.seeds, args)


if __name__ == "__main__":
    main()
