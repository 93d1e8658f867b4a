"""Hold what a plan says that figures will be within, before anything is charged, against what reports then state.

Real and made-up tables are released by nacre's defaults, with a workload of numbers by categories or with a target. The
plan is told the number of rows. Of every group with 2 to 50 % of the rows, what the report states a mean or a rate to
be within is divided by what the plan says of an entry of the workload, or of the target, for a group of that size; of a
mean in standard deviations of the synthetic column. A plan may say "about" if nine of ten lie within a factor of two.
"""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import coverage, groups
from benchmarks.adult import DELTA, EPSILON
from benchmarks.common import Table, parse, report
from dpmodels.methods.registry import system_of
from dpmodels.methods.tables.asked_widths import Width, widths_of
from dpmodels.pages.figures.rates import by_class
from dpmodels.pages.plots import DEVIATIONS
from dpmodels.releases.plan import Line

HEAD = ["table", "figures", "number", "stated / planned, one of twenty", "half", "nineteen", "within a factor of 2, %"]
TABLES = ("sales-16000", "bills-14200", "adult-3000", "adult-3000 with a target", "creditcard-20790 with a target")
TARGET, LEAST, MOST, FACTOR = " with a target", 0.02, 0.5, 2
Ratio = tuple[str, float]
"""Whether it is of means or of rates, and what is stated by what is planned."""


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--releases", type=int, default=4, help="of each table")


def ratios(facts: dict[str, Any], line: Line) -> Iterator[Ratio]:
    """Yield what a report states by what the plan says, figure by figure."""
    rows, looks = round(facts["released_records"]), system_of(line.method, line.measurement).of(line)
    names = [one["name"] for one in facts["columns"]]
    stddevs = {one["name"]: one["mean"].get("synthetic_stddev") for one in facts["columns"] if "mean" in one}

    def planned(pair: tuple[str, str], share: float) -> Width | None:
        asked = {" by ".join(pair), " by ".join(pair[::-1]), *(f"any column by {name}" for name in pair)}
        return next((one for one in widths_of(looks, line, rows, [share]) if one.asked in asked), None)

    for one in facts["groups"]:
        for group in one["groups"]:
            if not LEAST <= group["share"] <= MOST or not group["within"] or one["column"] not in stddevs:
                continue
            if (width := planned((one["column"], one["by"]), group["share"])) and width.means:
                yield "means", group["within"] / stddevs[one["column"]] / width.means[0]
    for each in filter(None, [facts.get("rates"), *facts.get("asked_rates", ())]):
        for of, one in ((of_class, one) for of_class in by_class(each) for one in of_class["columns"]):
            for share, stddev in zip(one["share"], one["stddev"], strict=True):
                if not LEAST <= share <= MOST or not stddev:
                    continue
                if (width := planned((names[of["target"]], names[one["column"]]), share)) and width.shares:
                    yield "rates", DEVIATIONS * stddev / width.shares[0]


def main() -> None:
    args = parse(__doc__, options)
    releases = 1 if args.quick else args.releases
    table = Table(f"Stated and planned widths, epsilon={EPSILON}, delta={DELTA}", HEAD, digits=2)
    for name in args.tables:
        frame, schema = coverage.load(name.removesuffix(TARGET)) if TARGET in name else groups.table_of(name)
        frame = frame[[one for one in schema.columns if one in frame]]
        every = list[Ratio]()
        for seed in range(releases):
            facts, _, _, of_release = coverage._released(frame, schema, EPSILON, seed)
            every += ratios(facts, of_release.release.line)
        for figures in ("means", "rates"):
            if len(some := np.array([ratio for one, ratio in every if one == figures])):
                inside = float(((some < FACTOR) & (some > 1 / FACTOR)).mean())
                table.add(name, figures, len(some), *map(float, np.quantile(some, [0.05, 0.5, 0.95])), 100 * inside)
                print(table.markdown().splitlines()[-1], flush=True)
    report("widths", [table], range(releases), args)


if __name__ == "__main__":
    main()
