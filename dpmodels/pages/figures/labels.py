"""What groups of values and of categories are called in drawings, in full and in short."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.pages.figures.relations import GROUPS, MOST_SINGLE
from dpmodels.plural import OF_CATEGORIES, values_in_words

Facts = Mapping[str, Any]
LONG = re.compile(r"(?<![-:.\d])-?(\d{5,}(\.\d+)?|\d+\.\d+)(?![-:.\d])")
"""Numbers that are too long for a drawing."""
DAY = re.compile(r"\b(\d{4}-\d\d)-\d\d(?![-\d])")
SPAN = re.compile(r"(\d{4})-(\d\d)-(\d\d) to \1-(?:\2-(\d\d)|(\d\d-\d\d))(?![\d ])")
"""A day, which is longer than a drawing has room for."""
FROM_ZERO = re.compile(r"^exactly 0, or [\d.]+ to ")
"""A range of positive values that 0 is joined to."""
MORE = re.compile(r"(\d[\d,]*) more")
"""What stands for the categories of a group beyond those that are named."""


def group_name(column: Facts, labels: Sequence[str]) -> str:
    """Name a group of values of a column by all that is in it."""
    return values_in_words(labels) if column["ordered"] else OF_CATEGORIES.join(labels)


def joined_groups(column: Facts, groups: Sequence[Sequence[str]], as_counted: bool = False) -> str:
    """Say how many categories of a column are drawn joined to groups of several; empty where none is.

    Args:
        column: whose categories they are.
        groups: the labels of each.
        as_counted: whether each category is drawn by itself that was counted by itself.
    """
    joined = [number_in(labels) for labels in groups if len(labels) > 1]
    if column["ordered"] or not joined:
        return ""
    into = "one group" if len(joined) == 1 else f"{len(joined)} groups"
    if as_counted and (len(column["labels"]) <= MOST_SINGLE or len(groups) > GROUPS):
        return (
            f"the release counted {sum(joined)} categories of {column['name']} as {into}, so nothing tells them apart"
        )
    return f"{sum(joined)} categories of {column['name']} are joined to {into}"


def number_in(labels: Sequence[str]) -> int:
    """Count the categories of a group, those that it does not name too."""
    return sum(int(more[1].replace(",", "")) if (more := MORE.fullmatch(label)) else 1 for label in labels)


def brief(labels: Sequence[str]) -> list[str]:
    """Write long numbers of labels in thousands or millions, and days as months where these tell them apart."""
    short = [LONG.sub(lambda number: _in_thousands(float(number[0])), label) for label in labels]
    short = [FROM_ZERO.sub("0 to ", label).replace("exactly 0, or ", "0, or ") for label in short]
    months = [DAY.sub(r"\1", label).replace(" to ", "\N{EN DASH}") for label in short]
    apart = all(len({*label.split("\N{EN DASH}")}) == 1 + label.count("\N{EN DASH}") for label in months)
    are_spans = all(" to " in label for label in short if DAY.search(label))
    if apart and are_spans and DAY.search(" ".join(short)) and len(set(months)) == len(months):
        return months
    return [SPAN.sub(_days, label) for label in short]


def _days(span: re.Match[str]) -> str:
    """Write two days of a year without what the second repeats."""
    return f"{span[1]}-{span[2]}-{span[3]}\N{EN DASH}{span[4] or span[5]}"


def _in_thousands(value: float) -> str:
    size = abs(value)
    if size < 1000:
        return f"{value:.4g}"
    return f"{value / 1e6:.3g}M" if size >= 1e6 else f"{value / 1e3:.3g}k" if size >= 1e4 else f"{value:.0f}"
