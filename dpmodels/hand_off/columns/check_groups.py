"""Check the means by groups of a report: they are of pairs that were counted, and lie where their columns reach."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.contract.columns import Continuous, Derived
from dpmodels.contract.schema import Schema
from dpmodels.hand_off.columns.check_columns import MORE, are_groups
from dpmodels.hand_off.columns.check_doubts import are_doubted
from dpmodels.hand_off.columns.check_rates import are_in_order, are_of_size
from dpmodels.hand_off.columns.fixed import cells_of, may_be_sure, rules_of

Facts = Mapping[str, Any]
ROUNDED, ROUNDED_VALUE = 1e-4, 1e-5
"""By how much a sum of shares, and a figure as a part of the largest, may miss what it is by its rounding."""
MOST_OFF, DRAWN_APART = 4, 0.1
"""Times what a mean is within that noise may put it off; and standard deviations by which the first synthetic rows may
miss the mean of all."""
LEAST_WIDE = 0.2 * 1.96
"""Times what the least noise of a cell makes of a mean, that an interval is at least."""
DOUBTED_BEFORE = "the report says to use no mean of the column: noise hides values far out"
"""A reason that earlier versions gave."""
CUT = "values_from_to"
"""Between what the values of a column lie, where an interval of a mean reaches beyond."""
KEYS = {"labels", "share", "released", "within", "synthetic", "reason"}
"""What is said of a group."""


def are_called(report: Facts, table: Schema) -> bool:
    """Tell whether means by groups are of a table's columns, and have names of groups and reasons that nacre gives."""
    from dpmodels.report.groups.means import REASONS

    return all(
        means.keys() - {CUT} == {"column", "by", "groups"}
        and {means["column"], means["by"]} <= table.columns.keys()
        and all(one.keys() == KEYS and one["reason"] in ("", DOUBTED_BEFORE, *REASONS) for one in means["groups"])
        and are_groups_of(means["by"], [one["labels"] for one in means["groups"]], report, table)
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
        and all(_are_means(one, table, report) for one in means)
    )


def _are_means(means: Facts, table: Schema, report: Facts) -> bool:
    """Tell whether the means of a column by groups can be, and lie on both sides of that of all rows.

    They are those of parts of its rows, so that of all is between them: of the synthetic rows but for the first of
    these, which are looked at, and of the real ones within the noise.
    """
    from dpmodels.report.groups.reconciled import ends_of_values
    from dpmodels.report.groups.stated import LEAST

    groups, (low, high) = means["groups"], ends_of_values(table.columns, means["column"])
    slack = slack_of(means["column"], table)
    known = [one for one in groups if one["released"] is not None]
    return (
        all(is_mean(one, low - slack, high + slack) for one in groups)
        and len(known) >= LEAST
        and are_ends(means, table)
        and are_doubted(means, report, table)
        and abs(sum(one["share"] for one in groups) - 1) <= ROUNDED * len(groups)
        and _are_about(means["column"], groups, known, report, slack)
        and _keep_rules(means, table, slack)
        and _are_of_size(means, table, report)
        and _are_noisy(means, groups, report, table)
    )


def _are_noisy(means: Facts, groups: Sequence[Facts], report: Facts, table: Schema) -> bool:
    """Tell whether intervals are as wide as the least noise of any count makes them, of columns that no rule binds.

    The noise of the count of a cell moves a mean by the distance of its values, of which a column has many; what is
    measured elsewhere makes that less, and never a fifth of it.
    """
    column = {one["name"]: one for one in report["columns"]}.get(means["column"], {})
    noises = [one for name, one in report["noise_stddev"].items() if name.startswith("records in")]
    bound = {name for rule in table.implications for name in rule.columns}
    bound |= {name for rule in table.rules for name in (rule.lower, rule.upper)}
    stddev, records = column.get("mean", {}).get("synthetic_stddev"), report["released_records"]
    if not stddev or not noises or not records or not bound.isdisjoint((means["column"], means["by"])):
        return True
    least = LEAST_WIDE * min(noises) * stddev / records
    return all(one["within"] * one["share"] >= least for one in groups if one["within"] is not None)


def slack_of(name: str, table: Schema) -> float:
    """Return by how much a mean may miss what values can be, by its rounding and theirs."""
    from dpmodels.report.groups.reconciled import decimals_of, ends_of_values

    decimals = decimals_of(table.columns[name])
    return ROUNDED_VALUE * max(1.0, *map(abs, ends_of_values(table.columns, name))) + (
        0.0 if decimals is None else 0.5 / 10**decimals
    )


def are_ends(means: Facts, table: Schema) -> bool:
    """Tell whether it is said between what a column's values lie exactly where an interval reaches beyond."""
    from dpmodels.report.groups.reconciled import ends_of_values
    from dpmodels.report.groups.stated import cut_at

    cut = cut_at(means["groups"], ends_of_values(table.columns, means["column"]))
    return {key: means[key] for key in means.keys() & {CUT}} == cut


def _keep_rules(means: Facts, table: Schema, slack: float) -> bool:
    """Tell whether means lie where the rules of a schema leave values in a group, as all rows keep these.

    No other than those that rules fix are without noise.
    """
    column, by, labels = table.columns[means["column"]], means["by"], [one["labels"] for one in means["groups"]]
    formula, rules = str(column.formula) if isinstance(column, Derived) else means["column"], rules_of(table)
    for group, inside in zip(means["groups"], cells_of(table.columns[by], labels), strict=True):
        if group["within"] == 0 and not may_be_sure(table, means["column"], by, group["labels"]):
            return False
        if inside is not None:
            low, high = rules.between(formula, by, inside)
            figures = [group[key] for key in ("released", "synthetic") if group[key] is not None]
            if not all(low - slack <= one <= high + slack for one in figures):
                return False
    return True


def _are_of_size(means: Facts, table: Schema, report: Facts) -> bool:
    """Tell whether groups have the sizes, and the order, that their column has; of columns that are null nowhere."""
    column, by = table.columns[means["column"]], {one["name"]: one for one in report["columns"]}.get(means["by"])
    counted = [table.columns[name] for name in (column.operands if isinstance(column, Derived) else [means["column"]])]
    groups = means["groups"]
    if by is None:
        return True
    has_nulls = any(getattr(one, "nullable", False) for one in counted)
    return are_in_order([one["labels"] for one in groups], by) and (
        has_nulls or are_of_size([(one["labels"], one["share"]) for one in groups], by)
    )


def _are_about(column: str, groups: Sequence[Facts], known: Sequence[Facts], report: Facts, slack: float) -> bool:
    """Tell whether the mean of all rows, where a report states it, is between those of groups."""
    every = {one["name"]: one for one in (*report["columns"], *report.get("derived", ()))}
    mean = every.get(column, {}).get("mean")
    drawn = [one["synthetic"] for one in groups if one["synthetic"] is not None]
    if not mean or len(known) < len(groups):
        return True
    off = MOST_OFF * (mean["expected_error"] or 0.0) + slack
    ends = [one["released"] + sign * MOST_OFF * one["within"] for sign in (-1, 1) for one in known]
    some = DRAWN_APART * mean.get("synthetic_stddev", math.inf) + slack
    synthetic = mean.get("synthetic", drawn[0] if drawn else 0.0)
    return min(ends) - off <= mean["estimate"] <= max(ends) + off and (
        not drawn or min(drawn) - some <= synthetic <= max(drawn) + some
    )


def is_mean(group: Facts, low: float, high: float) -> bool:
    """Tell whether what is said of a group can be, of a figure that lies between two ends."""
    from dpmodels.report.groups.means import UNKNOWN

    figures = [group[key] for key in ("released", "within", "synthetic") if group[key] is not None]
    values = [group[key] for key in ("released", "synthetic") if group[key] is not None]
    return (
        all(type(one) in (int, float) and math.isfinite(one) for one in (*figures, group["share"]))
        and (group["released"] is None) == (group["within"] is None)
        and not (group["reason"] in UNKNOWN and group["released"] is not None)
        and all(low <= one <= high for one in values)
        and (group["within"] or 0) >= 0
        and 0 <= group["share"] <= 1 + ROUNDED
    )


def are_groups_of(by: str, labels: Any, report: Facts, table: Schema) -> bool:
    """Tell whether groups are called after the values of a column, or after what these are looked up to be."""
    from dpmodels.report.derived.shares import names_of_values
    from dpmodels.report.groups.ranges import SINGLE, cells_of_ranges
    from dpmodels.report.groups.stated import MOST_GROUPS

    column = table.columns[by]
    if by not in table.modelled and not isinstance(column, Derived):
        return False
    named = [label for one in labels for label in one if not MORE.fullmatch(label)]
    if len({*named}) < len(named):
        return False
    if isinstance(column, Derived):
        return all(len(one) == 1 and one[0] in (*names_of_values(column), "null") for one in labels)
    (known,) = [one["labels"] for one in report["columns"] if one["name"] == by]
    if not are_groups(labels, table.modelled[by], known, MOST_GROUPS, SINGLE):
        return False
    return not isinstance(column, Continuous) or cells_of_ranges(labels, column) is not None
