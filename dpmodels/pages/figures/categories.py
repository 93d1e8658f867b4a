"""What a report says of categories: of which columns several are judged as one group, and which no row has."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dpmodels.pages.figures.relations import GROUPS
from dpmodels.pages.figures.ruled import EVERY_ROW

Facts = Mapping[str, Any]
MOST_CATEGORIES = 8
"""Bars of categories; the last of a longer list is what all others have together."""
NUMBER, WHOLE_NUMBER = re.compile(r"-?\d+(\.\d+)?"), re.compile(r"-?\d+")
"""A number as a label has it, and a whole one."""
OF_FEW = {"integer": (2, WHOLE_NUMBER), "derived": (MOST_CATEGORIES, NUMBER)}
"""Types of columns whose numbers may be drawn as categories are: up to so many, and what each of them looks like."""
CERTAIN = 4.0
"""Standard deviations of the noise of a share from which on it is no chance that synthetic rows depart from it."""
MOVED = 0.25
"""Part of itself that a category has to be moved by for anybody to mind."""


def joined(report: Facts) -> list[str]:
    """Name the columns of which several categories are judged as one group."""
    places = places_of_several(report) | joined_in_rates(report)
    return [one["name"] for place, one in enumerate(report["columns"]) if place in places]


def places_of_several(report: Facts) -> set[int]:
    """Return the places of the columns of which several categories are a group where two columns are looked at."""
    pairs = report.get("pairs") or {}
    there = {place for first, second, *_ in pairs.get("distances", ()) for place in (first, second)}
    many = {place for place in there if _categories(report["columns"][place]) > GROUPS}
    tables = [two for one in pairs.get("tables", ()) for two in zip(one["columns"], one["labels"], strict=True)]
    return many | _of_several(tables, report)


def joined_in_rates(report: Facts) -> set[int]:
    """Return the places of the columns of which several categories are a group where the target has a rate in each."""
    rates = report.get("rates") or {"columns": ()}
    return _of_several([(one["column"], one["labels"]) for one in rates["columns"]], report)


def _of_several(shown: Sequence[tuple[int, Sequence[Sequence[str]]]], report: Facts) -> set[int]:
    joined = {place for place, groups in shown if any(len(labels) > 1 for labels in groups)}
    return {place for place in joined if not report["columns"][place]["ordered"]}


def _categories(column: Facts) -> int:
    return 0 if column["ordered"] else sum(label != "null" for label in column["labels"])


def absent(column: Facts) -> list[str]:
    """Name the categories of a column that no synthetic row has."""
    if column["ordered"]:
        return []
    shares = zip(column["labels"], column["synthetic"], strict=True)
    return [label for label, share in shares if share == 0 and label != "null"]


def has_rules(report: Facts) -> bool:
    """Tell whether rows were held to rules of one row, by the checks that the gate made."""
    return any(EVERY_ROW in one["rule"] for one in report.get("gate", ()))


def within_ranges(report: Facts, dropped: Collection[str]) -> Iterator[str]:
    """Say that nothing tells categories apart within a range of a number, and name one.

    Columns were counted together in such ranges, and the target alone within them. Nothing is said where there is no
    such range, or no column of categories that is handed over beside the target.
    """
    columns, pairs = report["columns"], report.get("pairs") or {}
    others = [one for place, one in enumerate(columns) if place != pairs.get("target") and not one["ordered"]]
    numbers = [one for one in columns if one["name"] not in dropped]
    ranges = [f"{label} of {one['name']}" for one in numbers for label in one.get("ranges", ()) if " to " in label]
    if not pairs.get("distances") or not ranges or all(one["name"] in dropped for one in others):
        return
    but = ["those of the target"] if "target" in pairs else []
    but += ["what a rule of the schema says"] if has_rules(report) else []
    alike = f"there the rows of every category are spread alike{', but for ' * bool(but)}{' and '.join(but)}"
    yield f"which values within one range, such as {ranges[0]}, go with which category: {alike}"


def moved(report: Facts) -> dict[str, tuple[str, float, float]]:
    """Return the category of each column whose share departs most from what was released, which no noise explains.

    With its shares as released and of the synthetic rows; columns none of whose categories departs so far are left out.
    """
    farthest = dict[str, tuple[str, float, float]]()
    for column in report.get("columns", ()):
        if column.get("ordered", True) or "released_stddev" not in column:
            continue
        figures = (column[name] for name in ("labels", "released", "released_stddev", "synthetic"))
        departing = [
            (abs(synthetic / released - 1), label, released, synthetic)
            for label, released, stddev, synthetic in zip(*figures, strict=True)
            if label != "null" and released > CERTAIN * stddev and abs(synthetic - released) > CERTAIN * stddev
        ]
        if departing and max(departing)[0] > MOVED:
            farthest[column["name"]] = max(departing)[1:]
    return farthest


def is_of_few(column: Facts) -> bool:
    """Tell whether a column is drawn as categories are: one of two whole numbers, or a derived one of few numbers."""
    most, number = OF_FEW.get(column["type"], (0, NUMBER))
    values = column["labels"][: column["values"]] if column["ordered"] else ()
    return 2 <= len(values) <= most and all(map(number.fullmatch, values))
