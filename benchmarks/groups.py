"""How often the means by groups that a report states hold, and how far beneath what they are within the error is.

Real tables, or their first rows, are released by nacre's defaults with a workload that asks for numbers by categories,
and every mean by a group that the report states is held against the real one. What should hold in nineteen releases of
twenty may be exceeded in 5 % of them. "relied on" are the means that the report has no reason to distrust. "stated" is
what a mean is within, as a part of it, in the middle of all; "as a rule" the median of what is true by what is stated.

Two tables are made up. Rooms and hotels of "bills" have prices of their own, so that groups lie apart within a range of
amounts; a bill is counted, and what is paid is derived: both are nights times price. An amount of "sales" has a long
tail, which one kind has alone.
"""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.adult import DELTA, EPSILON
from benchmarks.common import Table, parse, report
from benchmarks.coverage import load, released_facts
from dpmodels.contract.schema import Schema

HEAD = ["table", "which", "means", "stated, % of the mean", "beyond, %", "true / stated, as a rule", "nine of ten"]
TABLES = ("adult-3000", "adult-32561", "bills-14200", "sales-16000")
WORKLOADS = {
    "adult": (
        ("age", "hours_per_week", "education_num", "capital_gain", "capital_loss"),
        ("workclass", "marital_status", "occupation", "sex"),
    ),
    "bills": (("bill", "price", "nights"), ("hotel", "room", "channel")),
    "sales": (("amount", "age"), ("kind", "rate", "department")),
}
"""Numbers of which means are asked for, and the categories that they are asked by."""
JOINT = {"bills": (("price", "nights", "hotel"), ("price", "nights", "room"))}
"""What is counted all together, so that a product of prices and nights has means by groups."""
ALL, RELIED_ON = "all", "relied on"


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--releases", type=int, default=8, help="of each table")
    parser.add_argument("--epsilon", type=float, default=EPSILON)


def bills(rows: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Make a table of stays in hotels, of which a bill is the price of a night for each, and its schema's columns."""
    rng = np.random.default_rng(0)
    hotels, rooms, channels = np.array(["A", "B", "C", "D", "E", "F"]), np.array(["single", "double", "suite"]), "dopc"
    hotel = rng.choice(6, rows, p=[0.24, 0.22, 0.14, 0.2, 0.12, 0.08])
    room = rng.choice(3, rows, p=[0.25, 0.62, 0.13])
    price = np.array([1, 1.12, 0.95, 0.9, 0.88, 0.75])[hotel] * np.array([60, 95, 260])[room]
    price = (price * rng.lognormal(0, 0.2, rows)).clip(10, 900).round(2)
    nights = (1 + rng.gamma(1.4, 1.8, rows)).astype(int).clip(1, 21)
    frame = pd.DataFrame(
        {
            "hotel": hotels[hotel],
            "room": rooms[room],
            "channel": rng.choice(list(channels), rows),
            "price": price,
            "nights": nights,
            "bill": (price * nights).round(2),
            "paid": (price * nights).round(2),
        }
    )
    columns = {
        "hotel": {"type": "categorical", "values": hotels.tolist()},
        "room": {"type": "categorical", "values": rooms.tolist()},
        "channel": {"type": "categorical", "values": list(channels)},
        "price": {"type": "number", "min": 10, "max": 900, "round": 2},
        "nights": {"type": "integer", "min": 1, "max": 21},
        "bill": {"type": "number", "min": 10, "max": 18900, "round": 2, "scale": "log"},
        "paid": {"type": "derived", "formula": "price * nights", "round": 2},
    }
    return frame, columns


def sales(rows: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Make a table of sales, of which one kind alone has large amounts, and its schema's columns."""
    rng = np.random.default_rng(0)
    kinds, rates, departments = (
        np.array(["prescribed", "advised", "other"]),
        np.array(["0", "30", "65", "100"]),
        "abcde",
    )
    kind = rng.choice(3, rows, p=[0.56, 0.25, 0.19])
    spread = np.array([0.9, 0.4, 0.5])[kind]
    amount = np.array([24, 10, 16])[kind] * rng.lognormal(0, 1, rows) ** spread
    frame = pd.DataFrame(
        {
            "kind": kinds[kind],
            "rate": rates[np.where(kind == 0, rng.choice([1, 2, 3], rows, p=[0.25, 0.45, 0.3]), 0)],
            "department": rng.choice(list(departments), rows),
            "age": (rng.normal(np.array([58, 43, 42])[kind], 18)).clip(0, 101).astype(int),
            "amount": amount.clip(1, 1200).round(2),
        }
    )
    columns = {
        "kind": {"type": "categorical", "values": kinds.tolist()},
        "rate": {"type": "categorical", "values": rates.tolist()},
        "department": {"type": "categorical", "values": list(departments)},
        "age": {"type": "integer", "min": 0, "max": 101},
        "amount": {"type": "number", "min": 1, "max": 1200, "round": 2, "scale": "log"},
    }
    return frame, columns


def table_of(name: str) -> tuple[pd.DataFrame, Schema]:
    """Return a table, and its schema with a workload of every number by every category."""
    base, rows = name.split("-")
    if base == "adult":
        frame, schema = load(name)
        keys = schema.model_dump(mode="json", exclude_unset=True)
        keys.pop("target", None)
    else:
        frame, columns = {"bills": bills, "sales": sales}[base](int(rows))
        keys = {"name": base, "unit": "record", "columns": columns}
    numbers, groups = WORKLOADS[base]
    asked: list[dict[str, Any]] = [{"columns": [number, group], "weight": 2} for number in numbers for group in groups]
    asked += [{"columns": list(together), "weight": 2, "joint": True} for together in JOINT.get(base, ())]
    return frame, Schema.model_validate(keys | {"workload": asked})


class Outcome(NamedTuple):
    """What a report states of the mean of a group, and what is true."""

    within: float
    off: float
    mean: float
    reason: str


def outcomes(name: str, epsilon: float, seed: int) -> Iterator[Outcome]:
    """Release a table once, and yield each mean by a group that its report states beside the real one."""
    frame, schema = table_of(name)
    facts, _, _ = released_facts(frame, schema, epsilon, seed)
    for one in facts.get("groups", ()):
        of_rows = frame[one["by"]].astype(str)
        for group in one["groups"]:
            values = frame[one["column"]][of_rows.isin(group["labels"])]
            if group["within"] and len(values) and not any(label.endswith(" more") for label in group["labels"]):
                mean = float(values.mean())
                yield Outcome(group["within"], abs(group["released"] - mean), mean, group["reason"])


def main() -> None:
    args = parse(__doc__, options)
    releases = 1 if args.quick else args.releases
    table = Table(f"Stated and true errors of means by groups, epsilon={args.epsilon}, delta={DELTA}", HEAD, digits=2)
    for name in args.tables:
        every = [one for seed in range(releases) for one in outcomes(name, args.epsilon, seed)]
        for which in (ALL, RELIED_ON):
            those = [one for one in every if which == ALL or not one.reason]
            if not those:
                continue
            stated = np.array([one.within / abs(one.mean) for one in those if one.mean])
            ratio = np.array([one.off / one.within for one in those])
            figures = (100 * np.median(stated), 100 * (ratio > 1).mean(), *np.quantile(ratio, [0.5, 0.9]))
            table.add(name, which, len(those), *map(float, figures))
            print(table.markdown().splitlines()[-1], flush=True)
    report("groups", [table], range(releases), args)


if __name__ == "__main__":
    main()
