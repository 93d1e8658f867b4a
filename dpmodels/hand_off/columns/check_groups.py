"""Check the means by groups of a report: they are of pairs that were counted, and lie where their columns reach."""

import math
from collections.abc import Mapping
from typing import Any

from dpmodels.contract.columns import Continuous, Derived
from dpmodels.contract.derivation.reach import reach
from dpmodels.contract.schema import Schema
from dpmodels.hand_off.columns.check_columns import are_groups

Facts = Mapping[str, Any]
ROUNDED = 1e-4
"""By how much a figure, or a sum of shares, may miss what it is by its rounding."""
KEYS = {"labels", "share", "released", "within", "synthetic", "reason"}
"""What is said of a group."""


def are_called(report: Facts, table: Schema) -> bool:
    """Tell whether means by groups are of a table's columns, and have names of groups and reasons that nacre gives."""
    from dpmodels.report.groups.means import REASONS

    return all(
        means.keys() == {"column", "by", "groups"}
        and {means["column"], means["by"]} <= table.columns.keys()
        and all(one.keys() == KEYS and one["reason"] in ("", *REASONS) for one in means["groups"])
        and _are_groups(means["by"], [one["labels"] for one in means["groups"]], report, table)
        for means in report.get("groups", [])
    )


def are_means(report: Facts, table: Schema) -> bool:
    """Tell whether means are of pairs that a report says it counted, each once, and lie where their columns reach."""
    from dpmodels.report.groups.stated import MOST_TABLES, pairs_of

    means = report.get("groups", [])
    pairs = [(one["column"], one["by"]) for one in means]
    return (
        len({*pairs}) == len(pairs) <= MOST_TABLES
        and (not pairs or {*pairs} <= {*pairs_of(table.columns, report)})
        and all(_are_means(one, table) for one in means)
    )


def _are_means(means: Facts, table: Schema) -> bool:
    low, high = _ends(table.columns[means["column"]], table)
    slack = ROUNDED * max(1.0, abs(low), abs(high))
    groups = means["groups"]
    return all(_is_mean(one, low - slack, high + slack) for one in groups) and abs(
        sum(one["share"] for one in groups) - 1
    ) <= ROUNDED * len(groups)


def _ends(column: Any, table: Schema) -> tuple[float, float]:
    """Return between what the numbers of a column lie."""
    if isinstance(column, Derived):
        return reach(str(column.formula), table.columns)
    if isinstance(column, Continuous):
        return min(float(column.low), 0.0), max(float(column.high), 0.0)
    numbers = [float(key) for key in column.keys]
    return min(numbers), max(numbers)


def _is_mean(group: Facts, low: float, high: float) -> bool:
    figures = [group[key] for key in ("released", "within", "synthetic") if group[key] is not None]
    values = [group[key] for key in ("released", "synthetic") if group[key] is not None]
    return (
        all(type(one) in (int, float) and math.isfinite(one) for one in (*figures, group["share"]))
        and (group["released"] is None) == (group["within"] is None)
        and all(low <= one <= high for one in values)
        and (group["within"] or 0) >= 0
        and 0 <= group["share"] <= 1 + ROUNDED
    )


def _are_groups(by: str, labels: Any, report: Facts, table: Schema) -> bool:
    """Tell whether groups are called after the values of a column, or after what these are looked up to be."""
    from dpmodels.report.derived.shares import names_of_values
    from dpmodels.report.groups.stated import MOST_GROUPS

    column = table.columns[by]
    if by not in table.modelled and not isinstance(column, Derived):
        return False
    if isinstance(column, Derived):
        return all(len(one) == 1 and one[0] in (*names_of_values(column), "null") for one in labels)
    (known,) = [one["labels"] for one in report["columns"] if one["name"] == by]
    return are_groups(labels, table.modelled[by], known, MOST_GROUPS)
