"""What figures of groups are within at epsilon 1, by how many rows there are, as a plan has it for 15 columns.

The table is Adult's by its schema alone: no row is read. A share, or rate, is that of the target's classes in groups of
any column, or of two columns that the workload names; a mean is of a number by a category that the workload names. Both
are half the width of an interval that holds in nineteen releases of twenty, as `nacre plan` has it and as
`benchmarks.widths` holds it against what reports state.
"""

from argparse import ArgumentParser

from benchmarks.adult import DELTA, EPSILON, SCHEMAS
from benchmarks.common import Table, parse, report
from dpmodels.authoring.lint import load_schema
from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import create
from dpmodels.methods.tables.asked_widths import widths_of
from dpmodels.privacy import PrivacyBudget

HEAD = ["rows", "rate of the target, points", "rate that was asked for, points"]
HEAD += ["mean that was asked for, standard deviations of its column"]
ROWS = (1_000, 10_000, 100_000)
RATES, MEANS = "workclass by race", "hours_per_week by education"
WORKLOAD = [{"columns": one.split(" by ")} for one in (RATES, MEANS)]
NOTHING, ALL = 0.5, 1.0


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))


def both(parts: tuple[float, ...], most: float, times: float = 1) -> str:
    """Write what figures are within in groups of 5 % and of 20 % of the rows; a dash where that says nothing."""
    return " / ".join(f"{times * one:.2g}" if one < most else "–" for one in parts)


def main() -> None:
    args = parse(__doc__, options)
    keys = load_schema(SCHEMAS / "adult.yaml").model_dump(mode="json", exclude_unset=True)
    schema = Schema.model_validate(keys | {"workload": WORKLOAD})
    system = create("nacre", {}, {})
    line = system.plan(schema, PrivacyBudget(epsilon=EPSILON, delta=DELTA))
    table = Table(f"Figures within, epsilon={EPSILON}, delta={DELTA}, in groups of 5 % and 20 %", HEAD)
    for rows in args.rows:
        widths = {one.asked: one for one in widths_of(system.of(line), line, rows)}
        of_target = widths[f"any column by {schema.target}"].shares
        asked = both(widths[RATES].shares, NOTHING, 100), both(widths[MEANS].means, ALL)
        table.add(f"{rows:,}", both(of_target, NOTHING, 100), *asked)
    report("expected", [table], [], args)


if __name__ == "__main__":
    main()
