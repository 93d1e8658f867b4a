"""Drawings of all classes of a target by another column: for each group one bar of its classes, end to end.

A column's own drawing has whiskers for one class; here the noise of every class stands in the table beneath.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dpmodels.pages.drawing import WIDTH, Figure, box, cut, fitted, number, svg, words
from dpmodels.pages.figures.labels import brief, group_name, joined_groups
from dpmodels.pages.figures.rates import by_class, with_rows, worst_rate
from dpmodels.pages.page import percent, percent_up
from dpmodels.pages.plots import DEVIATIONS, TWO

Facts = Mapping[str, Any]
SERIES = ("released", "synthetic")
BESIDE, HIGH, APART, LETTER = 58.0, 13.0, 11.0, 7.0
"""Room for the names of both bars; the height of a bar, what is between groups, and the width of a letter."""
SHADES = {2: (3, 7), 3: (2, 5, 8), 4: (2, 4, 6, 8), 5: (1, 3, 5, 6, 8), 6: (1, 2, 4, 5, 7, 8)}
"""Shades of so many classes, the first one lightest."""
WRITTEN = 0.08
"""Part of a bar from which on its percentage fits into it."""


def class_figures(report: Facts) -> list[Figure]:
    """Draw the rates of all classes that a report states by every other column; nothing where it states one class."""
    rates = report.get("rates")
    if not rates or "others" not in rates:
        return []
    target = report["columns"][rates["target"]]
    every = sorted(by_class(rates), key=lambda one: target["labels"].index(one["class"]))
    names = [one["class"] for one in every]
    columns = zip(*(one["columns"] for one in every), strict=True)
    return [_stacked(report["columns"][of_each[0]["column"]], names, of_each) for of_each in columns]


def class_names(report: Facts) -> str:
    """Say which of a target's classes have rates where not all do; empty where all have, or one alone."""
    rates = report.get("rates") or {}
    if "others" not in rates:
        return ""
    labels = [label for label in report["columns"][rates["target"]]["labels"] if label != "null"]
    number = 1 + len(rates["others"])
    return f"These are the {number} largest of {len(labels)} classes." if number < len(labels) else ""


def _stacked(column: Facts, names: Sequence[str], rates: Sequence[Facts]) -> Figure:
    """Draw the classes of each group, as released and in the synthetic rows; ``rates``: one for each class."""
    first, groups = rates[0], with_rows(rates[0])
    labels = [group_name(column, first["labels"][group]) for group in groups]
    parts, top = _legend(names)
    for group, label in zip(groups, brief(labels), strict=True):
        parts.append(fitted(0, top + 10, label, int(WIDTH / LETTER), "start", "label"))
        for line, series in enumerate(SERIES):
            y = top + 15 + line * (HIGH + 1)
            parts.append(words(0, y + 10, series, "start"))
            parts += _bar(y, [one[series][group] for one in rates])
        top += 15 + 2 * (HIGH + 1) + APART
    said = f"within {percent_up(max(map(worst_rate, rates)))[:-1].strip()} points"
    described = f"Shares of {len(names)} classes in {len(labels)} groups, {said}"
    rows = tuple(
        (
            f"{label}; {name}",
            *map(percent, (one["released"][group], DEVIATIONS * one["stddev"][group], one["synthetic"][group])),
            percent_up(one["within"][group]),
        )
        for group, label in zip(groups, labels, strict=True)
        for name, one in zip(names, rates, strict=True)
    )
    header = ("rows with; class", "rate, released", TWO, "synthetic", "within")
    drawn = svg(top, column["name"], described, parts)
    return Figure(column["name"], said, drawn, header, rows, joined_groups(column, first["labels"]))


def _legend(names: Sequence[str]) -> tuple[list[Markup], float]:
    """Write which shade is of which class, and return where the bars begin."""
    parts, x, y = list[Markup](), 0.0, 0.0
    for shade, name in zip(SHADES[len(names)], names, strict=True):
        shown = cut(name, 18)
        wide = 16 + LETTER * len(shown) + 10
        if x and x + wide > WIDTH:
            x, y = 0.0, y + 16
        parts += [box(x, y, 10, 10, f"heat s{shade}"), words(x + 14, y + 9, shown, "start", "label")]
        x += wide
    return parts, y + 20


def _bar(y: float, shares: Sequence[float]) -> list[Markup]:
    """Draw shares end to end; what all of them leave of the rows stays empty."""
    parts, x, room = list[Markup](), BESIDE, WIDTH - BESIDE
    for shade, share in zip(SHADES[len(shares)], shares, strict=True):
        width = min(room * share, WIDTH - x)
        parts.append(box(x, y, max(width - 0.6, 0.0), HIGH, f"heat s{shade}"))
        if share >= WRITTEN:
            parts.append(words(x + width / 2, y + 10, number(round(100 * share)), "middle", "cell"))
        x += width
    return parts
