"""How often what a report says a derived column is within holds, and how far beneath it the error is as a rule.

Sums, differences and products of every two number columns of real tables are declared as derived, of at most so many
pairs, and released by nacre's defaults. What the report says the quantiles of each are within is held against the
largest difference of the shares of rows below a value, real and synthetic. "unknown" is the part of which the report
states nothing. The table "near" is made up, the hardest there is: of two columns one is the other and little more, so
that their difference is all in what no group of values shows.
"""

from argparse import ArgumentParser
from collections.abc import Iterator
from itertools import combinations
from typing import Any

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

HEAD = ["table", "formula", "columns", "unknown, %", "stated, %", "true, %", "beyond, %", "true / stated, as a rule"]
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


def outcomes(name: str, epsilon: float, seed: int) -> Iterator[tuple[str, float | None, float]]:
    """Release a table once, and yield of each formula its kind, what is stated, and what is true."""
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
        yield one["name"].split("_")[0], one.get("quantiles_within"), float(np.abs(shares[0] - shares[1]).max())


def _modelled(codec: Codec, records: Any) -> Iterator[tuple[str, pa.Array]]:
    table = codec.decode(records)
    return ((name, table.column(name).combine_chunks()) for name in codec.columns)


def main() -> None:
    args = parse(__doc__, options)
    releases = 1 if args.quick else args.releases
    table = Table(f"Stated and true errors of derived columns, epsilon={args.epsilon}, delta={DELTA}", HEAD, digits=2)
    for name in args.tables:
        every = [one for seed in range(releases) for one in outcomes(name, args.epsilon, seed)]
        for kind in FORMULAS:
            of_kind = [(stated, true) for each, stated, true in every if each == kind]
            known = np.array([(stated, true) for stated, true in of_kind if stated is not None]).reshape(-1, 2)
            unknown = 100 * (1 - len(known) / len(of_kind))
            ratio = known[:, 1] / known[:, 0]
            figures = (100 * known[:, 0].mean(), 100 * known[:, 1].mean(), 100 * (ratio > 1).mean(), np.median(ratio))
            table.add(name, kind, len(of_kind), unknown, *(map(float, figures) if len(known) else [""] * 4))
            print(table.markdown().splitlines()[-1], flush=True)
    report("derived", [table], range(releases), args)


if __name__ == "__main__":
    main()
