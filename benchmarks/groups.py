"""How often the means by groups that a report states hold, and how far beneath what they are within the error is.

Real tables, or their first rows, are released by nacre's defaults with a workload that asks for numbers by categories,
and every mean by a group that the report states is held against the real one. What should hold in nineteen releases of
twenty may be exceeded in 5 % of them. "relied on" are the means that the report has no reason to distrust. "stated" is
what a mean is within, as a part of it, in the middle of all; "as a rule" the median of what is true by what is stated.

"differences" are those of each two groups of one column, held to the root of the sum of the squares of what both means
are within, of the means that are relied on.

Three tables are made up. Rooms and hotels of "bills" have prices of their own, so that groups lie apart within a range
of amounts; a bill is counted, and what is paid is derived: both are nights times price. An amount of "sales" has a long
tail, which one kind has alone. Of "pay" three sums are counted beside, of which gross is base, overtime and bonus
together, and rules say who has neither of these.
"""

from argparse import ArgumentParser
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.adult import DELTA, EPSILON
from benchmarks.common import Table, parse, report
from benchmarks.coverage import load, released_facts
from dpmodels.contract.schema import Schema

HEAD = ["table", "which", "means", "stated, % of the mean", "beyond, %", "true / stated, as a rule", "nine of ten"]
TABLES = ("adult-3000", "adult-32561", "bills-14200", "sales-16000", "pay-11400")
WORKLOADS = {
    "adult": (
        ("age", "hours_per_week", "education_num", "capital_gain", "capital_loss"),
        ("workclass", "marital_status", "occupation", "sex"),
    ),
    "bills": (("bill", "price", "nights"), ("hotel", "room", "channel")),
    "sales": (("amount", "age"), ("kind", "rate", "department")),
    "pay": (("base_counted", "overtime_counted", "gross_counted", "bonus"), ("site", "grade", "contract")),
}
"""Numbers of which means are asked for, and the categories that they are asked by."""
JOINT = {"bills": (("price", "nights", "hotel"), ("price", "nights", "room"))}
"""What is counted all together, so that a product of prices and nights has means by groups."""
ALL, RELIED_ON, DIFFERENCES, EXACT = "all", "relied on", "differences", 1e-6
"""Which means are counted; and what a mean that a rule makes exact may be off by, which is its rounding."""


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


def pay(rows: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Make a table of staff, whose pay is made of three parts that each is counted beside, and its schema's columns."""
    rng = np.random.default_rng(0)
    sites, contracts = np.array(["A", "B", "C", "D", "E"]), np.array(["permanent", "fixed", "agency"])
    grade, contract = (
        rng.choice(8, rows, p=[0.19, 0.27, 0.21, 0.15, 0.09, 0.05, 0.025, 0.015]),
        rng.choice(3, rows, p=[0.78, 0.15, 0.07]),
    )
    hours = rng.choice([15, 20, 30, 37.5], rows, p=[0.08, 0.12, 0.2, 0.6])
    rate = ((10.5 + 1.6 * grade + 0.1 * grade**2) * rng.lognormal(0, 0.1, rows)).clip(9, 60).round(2)
    works = (rng.random(rows) < 0.2) & (contract < 2)
    overtime_hours = (works * rng.gamma(1.5, 27, rows)).clip(0, 240).round(1)
    bonus = ((grade > 2) & (rng.random(rows) < 0.6)) * rng.gamma(2, 900 + 200 * grade, rows)
    frame = pd.DataFrame(
        {
            "site": sites[rng.choice(5, rows, p=[0.31, 0.24, 0.18, 0.17, 0.1])],
            "grade": (grade + 1).astype(str),
            "contract": contracts[contract],
            "hours": hours,
            "rate": rate,
            "overtime_hours": overtime_hours,
            "bonus": bonus.clip(0, 25000).round().astype(int),
        }
    )
    frame["base"] = (52 * frame["hours"] * frame["rate"]).round(2)
    frame["overtime"] = (1.5 * frame["overtime_hours"] * frame["rate"]).round(2)
    frame["gross"] = (frame["base"] + frame["overtime"] + frame["bonus"]).round(2)
    base, overtime = "52 * hours * rate", "1.5 * overtime_hours * rate"
    columns: dict[str, Any] = {
        "site": {"type": "categorical", "values": sites.tolist()},
        "grade": {"type": "categorical", "values": [str(one) for one in range(1, 9)]},
        "contract": {"type": "categorical", "values": contracts.tolist()},
        "hours": {"type": "categorical", "values": [15, 20, 30, 37.5]},
        "rate": {"type": "number", "min": 9, "max": 60, "round": 2},
        "overtime_hours": {"type": "number", "min": 0, "max": 240, "round": 1, "zero_inflated": True},
        "bonus": {"type": "integer", "min": 0, "max": 25000, "zero_inflated": True},
        "base": {"type": "derived", "formula": base, "round": 2},
        "overtime": {"type": "derived", "formula": overtime, "round": 2},
        "gross": {"type": "derived", "formula": f"{base} + {overtime} + bonus", "round": 2},
    }
    for name, most in (("base", 117000), ("overtime", 21600), ("gross", 163600)):
        counted = {"type": "number", "min": 0, "max": most, "round": 2, "computed": name, "keep": "drop"}
        frame[f"{name}_counted"] = frame[name]
        columns[f"{name}_counted"] = counted | ({"zero_inflated": True} if name == "overtime" else {})
    return frame, columns


RULES = {"pay": ("when contract = agency then overtime_hours = 0", "when grade = 1 then bonus = 0")}
"""What every row of a table keeps."""


def table_of(name: str) -> tuple[pd.DataFrame, Schema]:
    """Return a table, and its schema with a workload of every number by every category."""
    base, rows = name.split("-")
    if base == "adult":
        frame, schema = load(name)
        keys = schema.model_dump(mode="json", exclude_unset=True)
        keys.pop("target", None)
    else:
        frame, columns = {"bills": bills, "sales": sales, "pay": pay}[base](int(rows))
        keys = {"name": base, "unit": "record", "columns": columns, "constraints": list(RULES.get(base, ()))}
    numbers, groups = WORKLOADS[base]
    asked: list[dict[str, Any]] = [{"columns": [number, group], "weight": 2} for number in numbers for group in groups]
    asked += [{"columns": list(together), "weight": 2, "joint": True} for together in JOINT.get(base, ())]
    return frame, Schema.model_validate(keys | {"workload": asked})


class Outcome(NamedTuple):
    """What a report states of the mean of a group, by how much it is above the real one, and the real one."""

    within: float
    above: float
    mean: float
    reason: str


def outcomes(name: str, epsilon: float, seed: int) -> Iterator[list[Outcome]]:
    """Release a table once, and yield the means by one column's groups that its report states beside the real ones."""
    frame, schema = table_of(name)
    facts, _, _ = released_facts(frame, schema, epsilon, seed)
    for one in facts.get("groups", ()):
        of_rows = frame[one["by"]].astype(str)
        stated = []
        for group in one["groups"]:
            values = frame[one["column"]][of_rows.isin(group["labels"])]
            if (
                group["within"] is not None
                and len(values)
                and not any(label.endswith(" more") for label in group["labels"])
            ):
                mean = float(values.mean())
                stated.append(Outcome(group["within"], group["released"] - mean, mean, group["reason"]))
        yield stated


def differences(means: list[Outcome]) -> Iterator[Outcome]:
    """Yield the difference of each two groups whose means are relied on."""
    for one, other in combinations([mean for mean in means if not mean.reason], 2):
        within = float(np.hypot(one.within, other.within))
        yield Outcome(within, one.above - other.above, one.mean - other.mean, "")


def main() -> None:
    args = parse(__doc__, options)
    releases = 1 if args.quick else args.releases
    table = Table(f"Stated and true errors of means by groups, epsilon={args.epsilon}, delta={DELTA}", HEAD, digits=2)
    for name in args.tables:
        columns = [means for seed in range(releases) for means in outcomes(name, args.epsilon, seed)]
        every = [one for means in columns for one in means]
        relied = [one for one in every if not one.reason]
        apart = [one for means in columns for one in differences(means)]
        for which, those in ((ALL, every), (RELIED_ON, relied), (DIFFERENCES, apart)):
            if not those:
                continue
            stated = np.array([one.within / abs(one.mean) for one in those if one.mean])
            ratio = np.array([abs(one.above) / max(one.within, EXACT) for one in those])
            figures = (100 * np.median(stated), 100 * (ratio > 1).mean(), *np.quantile(ratio, [0.5, 0.9]))
            table.add(name, which, len(those), *map(float, figures))
            print(table.markdown().splitlines()[-1], flush=True)
    report("groups", [table], range(releases), args)


if __name__ == "__main__":
    main()
