"""How often what a report says a derived column is within holds, and how far beneath it the error is as a rule.

Sums, differences and products of every two number columns of real tables are declared as derived, of at most so many
pairs, and released by nacre's defaults. What the report says the quantiles of each are within is held against the
largest difference of the shares of rows below a value, real and synthetic. "unknown" is the part of which the report
states nothing. The table "near" is made up, the hardest there is: of two columns one is the other and little more, so
that their difference is all in what no group of values shows.

The second table holds the mean that the report states of each against the real one. "stated" is what it is within, as a
part of the real mean, in the middle of all.
"""

from argparse import ArgumentParser
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.adult import DELTA, EPSILON
from benchmarks.common import Table, parse, report
from benchmarks.coverage import load, released_facts
from dpmodels.codec.derive import derive
from dpmodels.codec.encode import Codec
from dpmodels.contract.columns import Integer, Number
from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.schema import Schema
from dpmodels.statistics.normal import NORMAL_95

HEAD = ["table", "formula", "columns", "unknown, %", "stated, %", "true, %", "beyond, %", "true / stated, as a rule"]
OF_MEANS = ["table", "formula", "means", "unknown, %", "stated, % of the mean", "beyond, %", "true / stated, as a rule"]
FORMULAS = {"sum": "{} + {}", "difference": "{} - {}", "product": "{} * {}"}
TABLES = ("adult-3000", "adult-32561", "creditcard-20790", "near-8000")
PAIRS = 40
"""Pairs of columns of a table, drawn once."""


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--releases", type=int, default=8, help="of each table")
    parser.add_argument("--epsilon", type=float, default=EPSILON)


def near(rows: int) -> tuple[pd.DataFrame, Schema]:
    """Make a table of prices with and without tax, of two measurements of one thing, and of two days in order."""
    rng = np.random.default_rng(0)
    price = rng.lognormal(4, 0.7, rows).clip(1, 2000).round(2)
    first, begin = rng.normal(50, 10, rows).clip(0, 100).round(2), rng.integers(0, 3000, rows)
    frame = pd.DataFrame(
        {
            "price": price,
            "total": (price * rng.choice([1.05, 1.1, 1.2], rows)).round(2),
            "first": first,
            "second": (first + rng.normal(0, 1, rows)).clip(0, 100).round(2),
            "begin": begin,
            "end": begin + rng.gamma(2, 20, rows).astype(int).clip(max=600),
        }
    )
    columns: dict[str, Any] = {
        name: Number(type="number", min=0, max=high, round=2)
        for name, high in (("price", 2000), ("total", 2500), ("first", 100), ("second", 100))
    }
    columns |= {name: Integer(type="integer", min=0, max=3650) for name in ("begin", "end")}
    return frame, Schema(name="near", columns=columns)


def with_formulas(schema: Schema) -> Schema:
    """Return a schema with sums, differences and products of pairs of its number columns."""
    numbers = [name for name, one in schema.columns.items() if isinstance(one, Integer | Number)]
    pairs = list(combinations(numbers, 2))
    drawn = sorted(np.random.default_rng(0).permutation(len(pairs))[:PAIRS])
    formulas = {
        f"{kind}_of_{'_'.join(pairs[place])}": Derived(type="derived", formula=formula.format(*pairs[place]))
        for place in drawn
        for kind, formula in FORMULAS.items()
    }
    return Schema(name=schema.name, target=schema.target, columns={**schema.columns, **formulas})


class Outcome(NamedTuple):
    """What is stated of a formula of a kind, None where nothing is, and what is true: of quantiles, and of the mean.

    ``mean`` is the real one, ``off`` how far the stated one is from it.
    """

    kind: str
    stated: float | None
    true: float
    mean: float
    within: float | None
    off: float


def outcomes(name: str, epsilon: float, seed: int) -> Iterator[Outcome]:
    """Release a table once, and yield what is stated and true of each formula."""
    frame, schema = near(int(name.split("-")[1])) if name.startswith("near") else load(name)
    schema = with_formulas(schema)
    codec = Codec(schema)
    facts, records, synthetic = released_facts(frame, schema, epsilon, seed)
    real, drawn = (pa.RecordBatch.from_pydict(dict(_modelled(codec, one))) for one in (records, synthetic))
    for one in facts["derived"]:
        column = schema.derived[one["name"]]
        values = [derive(column, codec.columns, table).to_numpy(zero_copy_only=False) for table in (real, drawn)]
        points = np.sort(np.concatenate(values))
        shares = [np.searchsorted(np.sort(each), points, side="right") / len(each) for each in values]
        true, mean, stated = (
            float(np.abs(shares[0] - shares[1]).max()),
            float(np.nanmean(values[0])),
            one.get("mean", {}),
        )
        error, estimate = stated.get("expected_error"), stated.get("estimate", 0.0)
        within = None if error is None else NORMAL_95 * error
        kind = one["name"].split("_")[0]
        yield Outcome(kind, one.get("quantiles_within"), true, mean, within, abs(estimate - mean))


def _modelled(codec: Codec, records: Any) -> Iterator[tuple[str, pa.Array]]:
    table = codec.decode(records)
    return ((name, table.column(name).combine_chunks()) for name in codec.columns)


def main() -> None:
    args = parse(__doc__, options)
    releases = 1 if args.quick else args.releases
    spent = f"epsilon={args.epsilon}, delta={DELTA}"
    table = Table(f"Stated and true errors of derived columns, {spent}", HEAD, digits=2)
    means = Table(f"Stated and true errors of the means of derived columns, {spent}", OF_MEANS, digits=2)
    for name in args.tables:
        every = [one for seed in range(releases) for one in outcomes(name, args.epsilon, seed)]
        for kind in FORMULAS:
            of_kind = [one for one in every if one.kind == kind]
            known = np.array([(one.stated, one.true) for one in of_kind if one.stated is not None]).reshape(-1, 2)
            unknown = 100 * (1 - len(known) / len(of_kind))
            ratio = known[:, 1] / known[:, 0]
            figures = (100 * known[:, 0].mean(), 100 * known[:, 1].mean(), 100 * (ratio > 1).mean(), np.median(ratio))
            table.add(name, kind, len(of_kind), unknown, *(map(float, figures) if len(known) else [""] * 4))
            print(table.markdown().splitlines()[-1], flush=True)
            stated = [one for one in of_kind if one.within is not None and one.mean]
            unknown = 100 * (1 - len(stated) / len(of_kind))
            parts = np.array([(one.off / one.within, one.within / abs(one.mean)) for one in stated if one.within])
            figures = (
                ()
                if not len(parts)
                else (100 * np.median(parts[:, 1]), 100 * (parts[:, 0] > 1).mean(), np.median(parts[:, 0]))
            )
            means.add(name, kind, len(of_kind), unknown, *(map(float, figures) if len(parts) else [""] * 3))
            print(means.markdown().splitlines()[-1], flush=True)
    report("derived", [table, means], range(releases), args)


if __name__ == "__main__":
    main()
