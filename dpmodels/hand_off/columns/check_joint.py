"""Check the joint tables of a report: they are those of the workload, with figures that a release can have."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.contract.schema import Schema
from dpmodels.hand_off.columns.check_doubts import are_doubted
from dpmodels.hand_off.columns.check_groups import CUT, KEYS, ROUNDED, are_ends, are_groups_of, is_mean, slack_of

Facts = Mapping[str, Any]
ASKED, ANSWERED = {"columns", "place"}, {"column", "by", "groups"}
"""What is said of a table, and of one whose figures are stated."""


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
    """Tell whether a column has the class that a rate is of."""
    return any(one["name"] == joint["column"] and joint["class"] in one["labels"] for one in report["columns"])


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
    )
