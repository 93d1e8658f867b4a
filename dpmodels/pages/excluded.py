"""Which groups and pairs of columns the good figures of a report leave out, by name.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Mapping
from typing import Any

from dpmodels.pages.figures.labels import group_name
from dpmodels.pages.figures.rate_groups import counting
from dpmodels.pages.figures.relations import Relation, relations
from dpmodels.pages.notes import not_handed_over

Facts = Mapping[str, Any]
DROPPED = "not handed over"
"""How pages mark a column that nobody receives."""


def received_columns(report: Facts) -> list[dict[str, Any]]:
    """Return the columns of a report, derived ones last; those that nobody receives are marked."""
    dropped, columns = not_handed_over(report), [*report["columns"], *report.get("derived", ())]
    return [{**one, "mark": DROPPED} if one["name"] in dropped else one for one in columns]


def pale_groups(report: Facts) -> dict[str, list[str]]:
    """Name, by column, the groups whose rates of the target no figure counts: they have few rows or are known worst."""
    columns, rates = report.get("columns", ()), report.get("rates") or {"columns": ()}
    every = {columns[one["column"]]["name"]: _pale(one, columns[one["column"]]) for one in rates["columns"]}
    return {name: groups for name, groups in every.items() if groups}


def _pale(rates: Facts, column: Facts) -> list[str]:
    """Name the groups of a column that do not count, each as the report's figure does."""
    counted = {*counting(rates)}
    return [group_name(column, labels) for index, labels in enumerate(rates["labels"]) if index not in counted]


def weaker_pairs(report: Facts) -> list[str]:
    """Name the pairs of columns that depend on each other for certain, and less in the rows than as released."""
    return [" with ".join(names) for one, names in _certain(report) if one.is_weakened]


def stronger_pairs(report: Facts) -> list[str]:
    """Name the pairs of columns that depend on each other for certain, and more in the rows than as released."""
    return [" with ".join(names) for one, names in _certain(report) if one.is_stronger and not one.by_rule]


def strongest_pair(report: Facts) -> list[str]:
    """Name the two columns that depend most on each other, for certain and by no rule; nothing where none do."""
    return next(([*names] for one, names in _certain(report) if not one.by_rule), [])


def _certain(report: Facts) -> list[tuple[Relation, tuple[str, str]]]:
    """Return the relations that are certain, of columns that are handed over, the strongest first, with their names."""
    dropped, every = not_handed_over(report), list[tuple[Relation, tuple[str, str]]]()
    for one in sorted(relations(report).values(), key=lambda one: -one.released):
        first, other = (report["columns"][place]["name"] for place in one.columns)
        if one.is_certain and not {first, other} & dropped:
            every.append((one, (first, other)))
    return every
