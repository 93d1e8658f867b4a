"""Check the joint tables of a report: they are those of the workload, with figures that a release can have."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.contract.schema import Schema
from dpmodels.hand_off.columns.check_doubts import are_doubted
from dpmodels.hand_off.columns.check_groups import CUT, KEYS, ROUNDED, are_ends, are_groups_of, is_mean, slack_of
from dpmodels.hand_off.columns.check_rates import are_in_order, are_of_size, has_noise, is_fixed_so
from dpmodels.hand_off.columns.fixed import cells_of, fixed_rate, may_be_fixed, may_be_sure, rules_of
from dpmodels.statistics.normal import NORMAL_95

Facts = Mapping[str, Any]
ASKED, ANSWERED = {"columns", "place"}, {"column", "by", "groups"}
"""What is said of a table, and of one whose figures are stated."""
MOST_OFF = 3
"""Times what noise puts two figures apart in nineteen releases of twenty, by which they may be."""


def are_joint(report: Facts, table: Schema) -> bool:
    """Tell whether joint tables are those that a workload asks for, and their groups are called after values."""
    from dpmodels.report.groups.joint import asked_joint

    every = report.get("joint", [])
    named = [{key: one[key] for key in ASKED} for one in every]
    return not every or (
        named == asked_joint(table, table.columns) and all(_is_called(one, report, table) for one in every)
    )


def _is_called(joint: Facts, report: Facts, table: Schema) -> bool:
    from dpmodels.report.groups.joint import MOST_CELLS
    from dpmodels.report.groups.means import REASONS

    if joint.keys() == ASKED:
        return True
    groups, labels = joint["groups"], [one["labels"] for one in joint["groups"]]
    return (
        joint.keys() - {CUT, "class"} == ASKED | ANSWERED
        and not {CUT, "class"} <= joint.keys()
        and len(joint["by"]) == 2
        and sorted([joint["column"], *joint["by"]]) == sorted(joint["columns"])
        and len(groups) <= MOST_CELLS
        and all(one.keys() == KEYS and one["reason"] in ("", *REASONS) and len(one["labels"]) == 2 for one in groups)
        and len({str(one) for one in labels}) == len(labels)
        and all(
            are_groups_of(by, _once([one[side] for one in labels]), report, table)
            for side, by in enumerate(joint["by"])
        )
        and ("class" not in joint or _is_class(joint, report))
    )


def _once(labels: Sequence[list[str]]) -> list[list[str]]:
    return [[*one] for one in dict.fromkeys(map(tuple, labels))]


def _is_class(joint: Facts, report: Facts) -> bool:
    """Tell whether a rate is of the class whose rates by one column are stated."""
    return joint["class"] in [one["class"] for one in _rates_of(joint, report)]


def are_joint_figures(report: Facts, table: Schema) -> bool:
    """Tell whether means and rates of joint tables lie where their columns reach; their words are known."""
    return all(_are_figures(one, report, table) for one in report.get("joint", ()) if "groups" in one)


def _are_figures(joint: Facts, report: Facts, table: Schema) -> bool:
    from dpmodels.report.groups.reconciled import ends_of_values
    from dpmodels.report.groups.stated import LEAST

    is_rate, groups = "class" in joint, joint["groups"]
    slack = 0.0 if is_rate else slack_of(joint["column"], table)
    low, high = (0.0, 1.0) if is_rate else ends_of_values(table.columns, joint["column"])
    return (
        all(is_mean(one, low - slack, high + slack) for one in groups)
        and (is_rate or (are_ends(joint, table) and are_doubted(joint, report, table)))
        and sum(one["released"] is not None for one in groups) >= LEAST
        and abs(sum(one["share"] for one in groups) - 1) <= ROUNDED * len(groups)
        and _are_in_order(joint, report)
        and all(_make_up(joint, side, report, table) for side in (0, 1))
        and all(_is_ruled(one, joint, report, table) for one in groups)
    )


def _are_in_order(joint: Facts, report: Facts) -> bool:
    """Tell whether combinations stand in the order of the groups of one column, and then of the other."""
    columns, places = {one["name"]: one for one in report["columns"]}, list[list[int]]()
    for side, by in enumerate(joint["by"]):
        labels = [one["labels"][side] for one in joint["groups"]]
        once = _once(labels)
        if by in columns and not are_in_order(once, columns[by]):
            return False
        places.append([once.index(one) for one in labels])
    pairs = list(zip(*places, strict=True))
    return pairs == sorted(pairs)


def _make_up(joint: Facts, side: int, report: Facts, table: Schema) -> bool:
    """Tell whether combinations are as many rows as the groups of one column, with their figure, but for noise."""
    groups, stated = list[tuple[list[str], float]](), _stated(joint, side, report)
    column, by = table.columns[joint["column"]], {one["name"]: one for one in report["columns"]}.get(joint["by"][side])
    for labels in _once([one["labels"][side] for one in joint["groups"]]):
        lines = [one for one in joint["groups"] if one["labels"][side] == labels]
        share = sum(one["share"] for one in lines)
        groups.append((labels, share))
        figure, within = stated.get(str(labels), (None, None))
        if figure is None or within is None or share <= 0 or any(one["released"] is None for one in lines):
            continue
        missed = sum(one["share"] * one["released"] for one in lines) / share - figure
        off = math.hypot(within, *(one["share"] * one["within"] / share for one in lines))
        if abs(missed) > MOST_OFF * off + ROUNDED * max(1.0, abs(figure)):
            return False
    counted = [table.columns[one] for one in getattr(column, "operands", [joint["column"]])]
    return by is None or any(getattr(one, "nullable", False) for one in counted) or are_of_size(groups, by)


def _stated(joint: Facts, side: int, report: Facts) -> dict[str, tuple[float | None, float | None]]:
    """Return the mean or rate by one column that a report states beside those by two, and within what each is."""
    by, names = joint["by"][side], [one["name"] for one in report["columns"]]
    if "class" not in joint:
        every = [one for one in report.get("groups", ()) if (one["column"], one["by"]) == (joint["column"], by)]
        return {str(one["labels"]): (one["released"], one["within"]) for each in every for one in each["groups"]}
    rates = [one for of in _rates_of(joint, report) for one in of["columns"] if names[one["column"]] == by]
    return {
        str(labels): (rate, NORMAL_95 * off)
        for one in rates
        for labels, rate, off in zip(one["labels"], one["released"], one["stddev"], strict=True)
    }


def _rates_of(joint: Facts, report: Facts) -> list[Facts]:
    """Return what a report says of the rates of a joint table's column."""
    every = [*([report["rates"]] if report.get("rates") else []), *report.get("asked_rates", ())]
    return [one for one in every if report["columns"][one["target"]]["name"] == joint["column"]]


def _is_ruled(group: Facts, joint: Facts, report: Facts, table: Schema) -> bool:
    """Tell whether a figure that rules fix is that, without noise, and no other has as little noise."""
    one, by = joint["column"], joint["by"]
    if "class" not in joint:
        sides = zip(by, group["labels"], strict=True)
        return group["within"] != 0 or any(may_be_sure(table, one, name, labels) for name, labels in sides)
    (labels,) = [each["labels"] for each in report["columns"] if each["name"] == one]
    taken, rules = labels.index(joint["class"]), rules_of(table)
    others = [at for at, label in enumerate(labels) if at != taken and (label != "null" or one == table.target)]
    inside = [cells_of(table.columns[name], [each])[0] for name, each in zip(by, group["labels"], strict=True)]
    known = [(name, cells) for name, cells in zip(by, inside, strict=True) if cells is not None]
    fixed = [fixed_rate(rules, one, name, cells, taken, others) for name, cells in known]
    may_be = len(known) < len(by) or any({*rule.columns} == {one, *by} for rule in rules.implications)
    may_be |= any(may_be_fixed(rules, one, name, cells, taken, others) for name, cells in known)
    off = group["within"]
    figures = group["released"], off, group["synthetic"]
    is_noisy = not off or has_noise(group["share"], group["released"], off / NORMAL_95, report)
    return is_noisy and is_fixed_so(figures, next((one for one in fixed if one is not None), None), off != 0 or may_be)
