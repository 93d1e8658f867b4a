"""Check that the means by groups of a report add up: to those of formulas, and over all groups to that of all rows.

Means as released are estimated together, so they agree but for what noise leaves (reconciled.py); where they could not
be, each is off by its own noise. Those of the synthetic rows agree but for rounding.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.columns import Derived, Discrete, Integer
from dpmodels.contract.derivation.polynomial import LEAST_UNIT, Polynomial, reach_of_product, settled
from dpmodels.contract.schema import Schema
from dpmodels.statistics.normal import NORMAL_95

Facts = Mapping[str, Any]
ROUNDED = 1e-5
"""By how much a figure may miss what it is by its rounding, as a part of those that it is reckoned from."""
MOST_OFF = 3
"""Times what noise puts a sum off in nineteen releases of twenty, by which it may miss what it should be."""
INFEASIBLE = 2
"""What ``linprog`` says where no point keeps all bounds."""


def add_up(report: Facts, table: Schema) -> bool:
    """Tell whether the means by groups of a report, of which each is possible by itself, are possible together."""
    return _are_sums(report, table) and _make_wholes(report, table)


def are_wholes(report: Facts) -> bool:
    """Tell whether the means of all rows that all tables tell together are those stated, each with an error."""
    columns = {one["name"]: one.get("mean", {}) for one in (*report["columns"], *report.get("derived", ()))}
    return all(
        len(one) == 2
        and all(type(each) in (int, float) and math.isfinite(each) for each in one)
        and one[1] > 0
        and columns.get(name, {}).get("estimate") == one[0]
        for name, one in report.get("wholes", {}).items()
    )


def _are_sums(report: Facts, table: Schema) -> bool:
    """Tell whether the means of a group, as released and synthetic, keep formulas, and rules of two columns."""
    written, means = _written(report, table), dict[tuple[str, tuple[str, ...]], dict[str, Facts]]()
    for one in report.get("groups", ()):
        for group in one["groups"] if one["column"] in written else ():
            means.setdefault((one["by"], tuple(group["labels"])), {})[one["column"]] = group
    for (by, labels), groups in means.items():
        values = _values(table.columns[by], by, labels)
        of = {name: settled(polynomial, values) for name, polynomial in written.items()}
        for kind in ("released", "synthetic") if len(groups) > 1 else ():
            known = {name: one for name, one in groups.items() if one[kind] is not None}
            figures = {name: one[kind] for name, one in known.items()}
            noise = {name: MOST_OFF * (one["within"] if kind == "released" else 0.0) for name, one in known.items()}
            if not _are_possible(figures, noise, of, table):
                return False
    return True


def _written(report: Facts, table: Schema) -> dict[str, Polynomial]:
    """Write the amounts out, of which means are stated, that are sums of products of columns in every row.

    A quotient, say, is null in some rows.
    """
    from dpmodels.report.groups.reconciled import ends_of_values, polynomials_of

    stated = {one["column"] for one in report.get("groups", ())}
    return {
        name: of
        for name, of in polynomials_of(table.columns).items()
        if name in stated
        and {factor for product in of for factor in product} <= {*table.columns}
        and all(map(math.isfinite, ends_of_values(table.columns, name)))
    }


def _are_possible(
    figures: Mapping[str, float], noise: Mapping[str, float], of: Mapping[str, Polynomial], table: Schema
) -> bool:
    """Tell whether products of columns can have means that give those of sums of them, each but for so much noise.

    Every product lies where its columns reach: a linear programme, of which it is asked whether any point is in it.
    """
    from scipy.optimize import linprog

    from dpmodels.report.groups.reconciled import is_of_all_rows

    products = list(dict.fromkeys(one for name in figures for one in of[name] if one))
    rows, most = list[Floats](), list[float]()
    if not products:
        return True
    low, high = np.array([reach_of_product(one, table.columns) for one in products]).T

    def add(polynomial: Polynomial, end: float) -> None:
        """Let a sum be at most so much; its products are counted from where each begins, in parts of its range."""
        row = np.array([polynomial.get(one, 0.0) for one in products])
        scale = max(float(np.abs(row * (high - low)).max()), 1e-300)
        rows.append(row * (high - low) / scale)
        most.append((end - polynomial.get((), 0.0) - float(row @ low)) / scale)

    for name, figure in figures.items():
        off = noise[name] + ROUNDED * abs(figure) + _rounding(table.columns[name])
        add(of[name], figure + off)
        add({one: -factor for one, factor in of[name].items()}, off - figure)
    for pair in table.rules:
        if {pair.lower, pair.upper} <= of.keys() and is_of_all_rows(pair, table.columns):
            difference = dict(of[pair.lower])
            for one, factor in of[pair.upper].items():
                difference[one] = difference.get(one, 0.0) - factor
            if {*difference} <= {(), *products}:
                add(difference, 0.0)
    return bool(linprog(np.zeros(len(products)), np.array(rows), most, bounds=(0, 1)).status != INFEASIBLE)


def _rounding(column: Any) -> float:
    """Return by how much values may be off what their formula gives: by their decimals, and by rounding within it."""
    from dpmodels.report.groups.reconciled import decimals_of

    if not isinstance(column, Derived):
        return 0.0
    decimals, parts = decimals_of(column), str(column.formula).count("round(")
    return 0.5 / LEAST_UNIT * max(parts, 1) + (0.0 if decimals is None else 1 / 10**decimals)


def _values(column: Any, name: str, labels: Sequence[str]) -> dict[str, float]:
    """Return the value that a column has in all rows of a group, where it is one number."""
    is_number = isinstance(column, Integer) or (isinstance(column, Discrete) and column.kind in ("integer", "number"))
    if not is_number or len(labels) != 1:
        return {}
    try:
        return {name: float(labels[0])}
    except ValueError:
        return {}


def _make_wholes(report: Facts, table: Schema) -> bool:
    """Tell whether the mean over all groups is that of all rows, where an error of this is stated on any terms."""
    columns, together = (
        {one["name"]: one for one in (*report["columns"], *report.get("derived", ()))},
        report.get("wholes", {}),
    )
    for means in report.get("groups", ()):
        mean, groups = columns.get(means["column"], {}).get("mean", {}), means["groups"]
        error = mean.get("expected_error") or mean.get("expected_error_if_thinning_out")
        error = together[means["column"]][1] if means["column"] in together else error
        if error is None or any(one["released"] is None for one in groups):
            continue
        missed = sum(one["share"] * one["released"] for one in groups) - mean["estimate"]
        within = math.hypot(NORMAL_95 * error, *(one["share"] * one["within"] for one in groups))
        largest = max(abs(one["released"]) for one in groups)
        rounding = ROUNDED * len(groups) * largest + _rounding(table.columns[means["column"]])
        if abs(missed) > MOST_OFF * within + rounding:
            return False
    return True
