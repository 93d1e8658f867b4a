"""Totals of a column by groups: the mean of each times its rows, and what both are off by together.

With N the rows of a group and t the standard deviation of their noise, M its mean and w what that is within in nineteen
releases of twenty, the total N M is within sqrt((N w)^2 + (1.96 t M)^2). Mean and rows are of the same noise, which
mostly takes from one what it adds to the other.

Privacy: post-processing of released counts and public noise scales.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpmodels.clock import clock_of
from dpmodels.contract.columns import Datetime, Derived
from dpmodels.contract.formula import moment_of
from dpmodels.errors import Unsuitable
from dpmodels.pages.figures.named import has_first_rows
from dpmodels.report.groups.means import INTERVAL

if TYPE_CHECKING:
    import pandas as pd

TOTAL, TOTAL_WITHIN = "total", "total_within"
"""What a total is called, and what it is off by at most in nineteen releases of twenty."""
OF_FIRST_ROWS = "totals are of the rows of each user that were used, and not of all"
OF_MOMENTS = "a total of {column} says nothing, since it holds {what}: leave `total` out"


def check_total(column: str, columns: Mapping[str, Any]) -> None:
    """Refuse the total of what adds up to nothing.

    Raises:
        Unsuitable: a column holds dates or times of day.
    """
    one = columns.get(column)
    is_dated = isinstance(one, Datetime) or (
        isinstance(one, Derived) and one.formula is not None and moment_of(one.formula, columns) is not None
    )
    if is_dated or clock_of(one):
        raise Unsuitable(OF_MOMENTS.format(column=column, what="dates" if is_dated else "times of day"))


def with_totals(means: "pd.DataFrame", off: "pd.Series[float] | float") -> "pd.DataFrame":
    """Lay the total of each group, and what it is within, behind the number of its rows; ``off``: the noise of that."""
    count, mean = means["count"], means["mean"]
    within = ((count * means["within"]) ** 2 + (INTERVAL * off * mean) ** 2) ** 0.5
    place = [*means].index("count") + 1
    figures = means.copy()
    figures.insert(place, TOTAL, mean * count)
    figures.insert(place + 1, TOTAL_WITHIN, within)
    return figures


def noise_of_rows(records: float, stddev: float, of_nulls: Sequence[float]) -> float:
    """Return the noise of the number of rows in which a column is not null.

    Args:
        records: all rows, as released.
        stddev: the noise of that.
        of_nulls: the noise of the shares of nulls.
    """
    return math.hypot(stddev, records * math.hypot(*of_nulls))


def notes_of_totals(facts: Mapping[str, Any]) -> list[str]:
    """Say of which rows totals are, where these are not all."""
    return [OF_FIRST_ROWS] if has_first_rows(facts) else []
