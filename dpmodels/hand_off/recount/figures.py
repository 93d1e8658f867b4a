"""The synthetic figures of a report that the rows which are handed over contradict.

Each is counted again as the report does: shares and means of single columns of all rows, and what is of several
columns, or of derived ones, of the first rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.columns import Derived, Integer, Number
from dpmodels.hand_off.recount.groups import NULL, Inside
from dpmodels.hand_off.recount.rows import HandedOver, Rows
from dpmodels.report.derived.means import known_means
from dpmodels.report.derived.shares import shown
from dpmodels.statistics.digits import beside

Facts = Mapping[str, Any]
SHARE, ROUNDED = 2e-6, 2e-8
"""By how much a share of some columns together, and of one column, may be off by its rounding."""
LEAST = 1e-300
"""Stands for the weight of no row, by which nothing can be divided."""
FIVE_DIGITS, CLOSE = 1e-5, 1e-9
"""How far a mean may be off that has six digits, and how far another order of adding may move it, relatively."""


class Differing(NamedTuple):
    """A figure that rows contradict: what it is of, as the report states it, and what the rows make it."""

    what: str
    stated: Any
    counted: Any


def differing(report: Facts, rows: HandedOver) -> Iterator[Differing]:
    """Yield the figures of the synthetic rows that are not those of the rows."""
    yield from of_columns(report["columns"], rows)
    names = [one["name"] for one in report["columns"]]
    for facts in report.get("derived", ()):
        yield from _of_derived(facts, report["columns"], rows.first)
    for table in (report["pairs"] or {}).get("tables", ()):
        yield from _of_pair(table, [names[place] for place in table["columns"]], rows.first)
    for one in (*_of_classes(report.get("rates") or {"columns": []}), *report.get("asked_rates", ())):
        for facts in one["columns"]:
            yield from _of_rates(facts, names[one["target"]], one["class"], names[facts["column"]], rows.first)
    for facts in (*report.get("groups", ()), *report.get("joint", ())):
        yield from _by_groups(facts, rows.first)


def of_columns(columns: Sequence[Facts], rows: Iterable[Rows]) -> Iterator[Differing]:
    """Compare the shares and the means of single columns, of which all rows are read."""
    sure, maybe = ({one["name"]: np.zeros(len(one["labels"])) for one in columns} for _ in range(2))
    sums, number = {one["name"]: np.zeros(2) for one in columns}, 0.0
    for these in rows:
        number += float(these.weights.sum())
        for one in columns:
            if not these.has(name := one["name"]):
                continue
            inside = these.groups(name, [[label] for label in one["labels"]])
            sure[name] += inside.sure @ these.weights
            maybe[name] += inside.maybe @ these.weights
            if "mean" in one and isinstance(these.columns[name], Integer | Number):
                values = these.numbers(name)
                there = np.isfinite(values)
                sums[name] += values[there] @ these.weights[there], these.weights[there].sum()
    for one in columns:
        name, in_all = one["name"], max(number, 1.0)
        if these.has(name):
            yield from _shares(
                f"the share of {name}", one["labels"], one["synthetic"], sure[name] / in_all, maybe[name] / in_all
            )
            yield from _mean(name, one.get("mean"), sums[name])


def _shares(
    what: str, labels: Sequence[str], stated: Sequence[float], low: Floats, high: Floats, slack: float = ROUNDED
) -> Iterator[Differing]:
    for label, share, least, most in zip(labels, stated, low.tolist(), high.tolist(), strict=True):
        if not least - slack <= share <= most + slack:
            yield Differing(f"{what}: {label}", share, least if share < least else most)


def _mean(name: str, mean: Facts | None, sums: Floats) -> Iterator[Differing]:
    """Compare the mean of a column, which is rounded beside its error."""
    if mean and mean.get("synthetic") is not None and sums[1]:
        counted, error = float(sums[0] / sums[1]), mean["expected_error"] or mean.get("expected_error_if_thinning_out")
        if not _is_rounded(mean["synthetic"], counted, error or 0.0):
            yield Differing(f"the mean of {name}", mean["synthetic"], counted)


def _is_rounded(stated: float, counted: float, error: float = 0.0) -> bool:
    """Tell whether a number is another one, rounded beside an error, however its parts were added up."""
    low, high = sorted(counted * (1 + off) for off in (-CLOSE, CLOSE))
    slack = FIVE_DIGITS * abs(counted) if error == 0.0 else 0.0
    return beside(low, error) - slack <= stated <= beside(high, error) + slack


def _of_derived(facts: Facts, columns: Sequence[Facts], rows: Rows) -> Iterator[Differing]:
    """Compare the values of a derived column, which are handed over."""
    name = facts["name"]
    column = rows.columns[name]
    if not rows.has(name) or not isinstance(column, Derived):
        return
    try:
        made = shown(column, rows.columns, rows.table.column(name).combine_chunks(), rows.weights)
    except (ValueError, ArithmeticError, StopIteration):
        return
    if facts["labels"] != made["labels"]:
        yield Differing(f"what the values of {name} are called", " ".join(facts["labels"]), " ".join(made["labels"]))
        return
    shares = np.array(made["synthetic"])
    yield from _shares(f"the share of {name}", facts["labels"], facts["synthetic"], shares, shares)
    mean, numbers = facts.get("mean", {}).get("synthetic"), rows.numbers(name)
    there = np.isfinite(numbers)
    follows = known_means(column, columns).get("mean", {}).get("synthetic")  # of all rows, as those of its columns
    if mean is not None and mean != follows and there.any():
        counted = float(np.average(numbers[there], weights=rows.weights[there]))
        if not abs(mean - counted) <= FIVE_DIGITS * abs(counted):
            yield Differing(f"the mean of {name}", mean, counted)


def _of_pair(table: Facts, names: Sequence[str], rows: Rows) -> Iterator[Differing]:
    """Compare the shares of two columns together."""
    if not rows.has(*names):
        return
    both = [rows.groups(name, labels) for name, labels in zip(names, table["labels"], strict=True)]
    sure, maybe = (
        (first * rows.weights) @ second.T / max(float(rows.weights.sum()), 1.0)
        for first, second in zip(*both, strict=True)
    )
    for labels, stated, low, high in zip(table["labels"][0], table["synthetic"], sure, maybe, strict=True):
        what = f"the share of {' and '.join(names)}: {' or '.join(labels)}"
        yield from _shares(what, list(map(" or ".join, table["labels"][1])), stated, low, high, SHARE)


def _of_classes(rates: Facts) -> Iterator[Facts]:
    """Yield the rates of each class of the target, of which the first alone has the groups by name."""
    yield rates
    for other in rates.get("others", ()):
        columns = [{**first, **one} for first, one in zip(rates["columns"], other["columns"], strict=True)]
        yield {**rates, **other, "columns": columns}


def _of_rates(facts: Facts, target: str, of_class: str, by: str, rows: Rows) -> Iterator[Differing]:
    """Compare the rates of a class in the groups of a column."""
    if rows.has(target, by):
        low, high = _rates(target, of_class, rows.groups(by, facts["labels"]), rows)
        labels = list(map(" or ".join, facts["labels"]))
        yield from _shares(f"the rate of {target} = {of_class} by {by}", labels, facts["synthetic"], low, high, SHARE)


def _rates(target: str, of_class: str, groups: Inside, rows: Rows) -> tuple[Floats, Floats]:
    """Return between what the rate of a class lies in each group; 0 in one without rows. Shapes: [groups] both.

    The target has null as a class; of other columns, rows without a value do not count.
    """
    null = rows.groups(target, [[NULL]]).sure[0]
    valid = np.ones(len(rows), dtype=np.bool_) if target == rows.schema.target else ~null
    is_class = rows.groups(target, [[of_class]]).sure[0]
    (sure, most), (others, most_others) = (
        [each @ (rows.weights * those) for each in groups] for those in (valid & is_class, valid & ~is_class)
    )
    return sure / np.maximum(sure + most_others, LEAST), most / np.maximum(most + others, LEAST)


def _by_groups(facts: Facts, rows: Rows) -> Iterator[Differing]:
    """Compare the means, or the rates, by the groups of one column or of two."""
    by = [facts["by"]] if isinstance(facts.get("by"), str) else facts.get("by", [])
    if not by or not rows.has(facts["column"], *by):
        return
    labels = [[one["labels"]] if len(by) == 1 else one["labels"] for one in facts["groups"]]
    sides = [rows.groups(name, [each[side] for each in labels]) for side, name in enumerate(by)]
    groups = Inside(*(np.logical_and.reduce(each) for each in zip(*sides, strict=True)))
    what = f"{facts['column']} by {' and '.join(by)}"
    stated = [one["synthetic"] for one in facts["groups"]]
    if "class" in facts:
        low, high = _rates(facts["column"], facts["class"], groups, rows)
        known = [(name, share, *ends) for name, share, *ends in zip(map(str, labels), stated, low, high, strict=True)]
        for name, share, least, most in known:
            if share is not None and not least - SHARE <= share <= most + SHARE:
                yield Differing(f"the rate of {what}: {name}", share, float(least if share < least else most))
        return
    numbers = rows.numbers(facts["column"])
    there = np.isfinite(numbers)
    for place, is_known in enumerate(groups.is_known):
        inside = numbers[groups.sure[place] & there]
        mean = float(inside.mean()) if len(inside) else None
        if is_known and not _is_mean(stated[place], mean):
            yield Differing(f"the mean of {what}: {labels[place]}", stated[place], mean)


def _is_mean(stated: float | None, mean: float | None) -> bool:
    return stated is mean if stated is None or mean is None else _is_rounded(stated, mean)
