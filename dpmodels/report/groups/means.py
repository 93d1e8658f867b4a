"""Means of groups from the cells of released tables, each with its error and the reason to distrust it.

Let c be the count of a cell, s the standard deviation of its noise, and m and d the mean and the standard deviation of
the values in it. All released tables together tell the rows n of a group, within t, better than the cells of one do.
With u the mean of m weighed by s^2, the mean of the group is u + sum c (m - u) / n, of which nothing depends on the
noise that all cells share. It is off by the noise, sqrt(sum (s (m - u))^2 + (t (mean - u))^2) / n, and by where values
lie inside a cell, sqrt(sum (.6 c d)^2) / n; derived/counted.py says what a formula of several adds. Where n is the sum
of c, this is sum c m / sum c.

Privacy: post-processing of released counts and public noise scales.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dpmodels.contract.columns import Derived, Discrete, copy_of
from dpmodels.errors import Unsuitable
from dpmodels.pages.figures.group_means import ALIKE
from dpmodels.pages.figures.open_means import DOUBTED
from dpmodels.report.groups.cells import TOTALS, apart
from dpmodels.report.numbers import STANDS

if TYPE_CHECKING:
    import pandas as pd

INSIDE = 0.6
"""Part of the standard deviation of the values in a cell by which their mean may be another one in a group: a measured
rule, and no proof (benchmarks.groups)."""
INTERVAL = 1.96
"""Standard errors on each side of a mean within which the real one lies in nineteen releases of twenty."""
ERRORS = ["within", "standard_error", "noise", "inside"]
DROWNED = "count is below 4 standard errors of it"
BEYOND = "noise puts it beyond every value of the column"
WIDE = "its interval spans the means of all counted ranges: name both columns in a workload, or spend more"
LARGER = "its error exceeds the mean itself"
ROUGH = 0.2
"""Part of a mean that its interval reaches either way, at most, for it to be relied on whatever other groups have."""
ROUNDING = 1e-6
"""Part of the largest value by which rounding may put a mean beyond all values that is one of them."""
UNKNOWN = (DROWNED, BEYOND)
REASONS = (DROWNED, BEYOND, WIDE, LARGER, DOUBTED, ALIKE)
"""Why a mean of a group is not to be taken at face value."""
Facts = Mapping[str, Any]
T = TypeVar("T")
EPOCH = "1970-01-01"
"""The moment that means of dates are reckoned from, in seconds."""
SPLIT = (
    "{column} has no mean by these groups: it would be a sum of means of its terms, and these have different rows, "
    "since some of its columns have nulls or are counted in other groups. For the next release have it counted beside "
    "(docs/columns-that-depend.md#a-column-for-figures-alone)"
)


@dataclass(frozen=True)
class Names:
    """What the figures of a cell are called beside the columns that it is of."""

    mean: str
    stddev: str
    shift: str
    count: str
    error: str
    total: str = "total"
    variance: str = "total_variance"

    @classmethod
    def of(cls, column: str, columns: Sequence[str]) -> "Names":
        """Name the figures of a column beside those of all columns of a table."""
        of_cells = (f"{column}_mean", f"{column}_stddev", f"{column}_shift", "count", "standard_error", *TOTALS)
        return cls(*(apart(name, columns) for name in of_cells))


class Term(NamedTuple):
    """What is summed up of one term of a column, or of the column itself.

    Attributes:
        groups: count, mean, noise and inside of each group, as ``nacre.means`` has them, and the shift beside inside.
        least, most: the means of the cells lie between.
        are_all: whether no cell holds nulls.
    """

    groups: "pd.DataFrame"
    least: float
    most: float
    are_all: bool = True


class Measured(NamedTuple):
    """The means of a column by groups, as one or several tables have them.

    Attributes:
        whole: its means.
        parts: the formulas whose means were added up to them, and the means of each.
        is_dated: whether they are dates, in seconds.
    """

    whole: Term
    parts: list[tuple[str, Term]]
    is_dated: bool


def means_of_groups(tables: "Mapping[str, pd.DataFrame]", heads: Sequence[str], column: str, names: Names) -> Measured:
    """Return the means of a column in groups, which are the index, with their errors.

    Args:
        tables: the cells of each term of the column by its formula, nulls as NaN.
        heads: the columns of them that make groups.
        column: what they are the means of.
        names: of the figures of a cell.

    Raises:
        Unsuitable: its terms are not of the same rows, or groups.
    """
    terms, is_dated = list[Term](), False
    for cells in tables.values():
        counted = cells.dropna(subset=names.mean)
        is_dated = not _is_numeric(counted[names.mean])
        are_all = len(counted) == len(cells)
        terms.append(_term(counted.set_index([*heads]), names, are_all)._replace(are_all=are_all))
    return Measured(_added(terms, column), list(zip(tables, terms, strict=True)), is_dated)


def best_of(ways: Iterable[Callable[[], tuple[Measured, T]]]) -> tuple[Measured, T]:
    """Return the means that tell most groups, and of these with the least error, with what else belongs to them.

    ``ways``: each returns means by another table.

    Raises:
        Unsuitable: none of the tables tells means.
    """
    made, faults = list[tuple[Measured, T]](), list[Unsuitable]()
    for way in ways:
        try:
            made.append(way())
        except Unsuitable as fault:
            faults.append(fault)
    if not made:
        raise faults[0]
    groups = max(len(one.whole.groups) for one, _ in made)
    return min(made, key=lambda one: (groups - len(one[0].whole.groups) + unsure(one[0])[0], unsure(one[0])[1]))


def unsure(measured: Measured) -> tuple[int, float]:
    """Return what means are chosen by: how many groups have none, and what all others are within, weighed by rows."""
    means = judged(measured.whole, measured.is_dated)
    known = means[means["mean"].notna()]
    within = known["within"].dt.total_seconds() if hasattr(known["within"], "dt") else known["within"]
    return len(means) - len(known), float((within * known["count"]).sum() / max(known["count"].sum(), 1.0))


def doubted(groups: "pd.DataFrame", facts: Facts, column: str, columns: Facts) -> "pd.DataFrame":
    """Give each mean that has no reason the one of the report to use no mean of what is counted for it.

    Those that noise puts beyond what values can be, as a share below 0, are set to the nearest of these. Of a derived
    column that is what it follows from, or the column that is counted in its place.

    Args:
        groups: the means.
        facts: those of a report; where there are none, nothing is doubted.
        column: what they are the means of.
        columns: those of the schema.
    """
    if "mean" in groups and _is_numeric(groups["mean"]):
        groups["mean"] = groups["mean"].clip(*_ends(column, columns))
    if is_doubted(facts, column, columns):
        is_free = groups["reason"] == ""
        if "within" in groups:  # a mean that a rule fixes is exact, whatever noise leaves open of others
            is_free &= groups["within"] != groups["within"] * 0
        groups["reason"] = groups["reason"].mask(is_free, DOUBTED)
    return groups


def is_doubted(facts: Facts, column: str, columns: Facts) -> bool:
    """Tell whether a report says to use no mean of what is counted for a column; the arguments are as above."""
    derived = next((name for name in columns if copy_of(name, columns) == column), column)
    copy = copy_of(derived, columns)
    names = (copy,) if copy else getattr(columns.get(derived), "operands", (column,))
    about = [one for one in facts.get("columns", ()) if one["name"] in names]
    about += [one for one in facts.get("derived", ()) if one["name"] == derived]
    return any("mean" in one.get("avoid", ()) or "open" in one.get("unseen", {}) for one in about)


def reasons_of(mean: Sequence[float], within: Sequence[float], ends: tuple[float, float]) -> list[str]:
    """Return why means of numbers, NaN where none is known, are not to be relied on; ``ends``: of what they may be."""
    import pandas as pd

    error = pd.Series(within, dtype="float64") / INTERVAL
    return [str(one) for one in _reasons(pd.Series(mean, dtype="float64"), error, pd.Series(ends))]


def _ends(column: str, columns: Facts) -> tuple[float, float]:
    """Return between what the means of a column lie, or the shares of a category where it has categories."""
    from dpmodels.report.groups.reconciled import ends_of_values

    one = columns.get(column)
    if one is None:
        return -math.inf, math.inf
    if isinstance(one, Discrete) or getattr(one, "values", None) is not None:
        listed = (one.values or {}).values() if isinstance(one, Derived) else getattr(one, "keys", ())
        numbers = [float(each) for each in listed] if one.kind in ("integer", "number") else []
        return min([0.0, *numbers]), max([1.0, *numbers])
    return ends_of_values(columns, column)


def _is_numeric(values: "pd.Series[Any]") -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(values))


def _added(terms: Sequence[Term], column: str) -> Term:
    """Add the means of the terms of a column up; their tables have independent noise, so errors add by squares.

    Raises:
        Unsuitable: they are not of the same rows, or groups.
    """
    first, *others = terms
    whole = first.groups.copy()
    for one in others:
        if set(one.groups.index) != set(whole.index):
            raise Unsuitable(SPLIT.format(column=column))
        more = one.groups.reindex(whole.index)
        whole["mean"] += more["mean"]
        whole["shift"] += more["shift"]
        for error in ("noise", "inside"):
            whole[error] = (whole[error] ** 2 + more[error] ** 2) ** 0.5
    if others and not all(one.are_all for one in terms):
        raise Unsuitable(SPLIT.format(column=column))
    return Term(whole, sum(one.least for one in terms), sum(one.most for one in terms))


def _term(cells: "pd.DataFrame", names: Names, are_all: bool = False) -> Term:
    """Sum cells up by the groups that are their index; of dates in seconds.

    Where cells have all rows of a group, and how many these are is known better than by the cells, that is what counts:
    the noise of the mean is then that of how the rows are spread over the cells, about the middle of its own.
    """
    import pandas as pd

    value, stddev, shift, count, error = names.mean, names.stddev, names.shift, names.count, names.error
    if not _is_numeric(cells[value]):
        since = cells[value] - pd.Timestamp(EPOCH)
        cells = cells.assign(**{value: since.dt.total_seconds(), stddev: cells[stddev].dt.total_seconds()})

    def sums(amounts: "pd.Series[float]") -> "pd.Series[float]":
        return amounts.groupby(level=cells.index.names, observed=True, sort=False).sum()

    variances = cells[error] ** 2
    records, off = sums(cells[count]), sums(variances) ** 0.5
    middle = (sums(variances * cells[value]) / sums(variances)).fillna(0.0)
    if are_all and names.total in cells:
        records, off = sums(cells[names.total]), sums(cells[names.variance]) ** 0.5
    known = records.where(records > STANDS * off)
    apart_by = cells[value] - middle.reindex(cells.index)
    about = sums(cells[count] * apart_by) / known
    mean = middle + about
    noise = (sums(variances * apart_by**2) + (off * about) ** 2) ** 0.5 / known
    inside = sums((INSIDE * cells[count].clip(lower=0) * cells[stddev]) ** 2) ** 0.5 / known
    moved = sums(cells[count].clip(lower=0) * cells[shift]) / known if shift in cells else 0.0 * known
    groups = pd.DataFrame(
        {"count": records, "mean": mean, "noise": noise, "inside": inside, "shift": moved, "off": off}
    )
    return Term(groups, float(cells[value].min()), float(cells[value].max()))


def judged(term: Term, is_dated: bool = False) -> "pd.DataFrame":
    """Return means of groups with what they are within, and the reason to distrust each."""
    import pandas as pd

    mean, noise, inside, shift = (term.groups[one] for one in ("mean", "noise", "inside", "shift"))
    values, whole = pd.Series([term.least, term.most]), (noise**2 + inside**2) ** 0.5 + shift / INTERVAL
    inside = (whole**2 - noise**2) ** 0.5
    mean = _moved_in(mean, INTERVAL * whole, values)
    reason = _reasons(mean, whole, values, is_dated)
    lost = reason.isin(UNKNOWN)
    figures = {"mean": mean, "within": INTERVAL * whole, "standard_error": whole, "count": term.groups["count"]}
    means = pd.DataFrame(figures | {"reason": reason, "noise": noise, "inside": inside})
    means.loc[lost, ["mean", *ERRORS]] = float("nan")
    if is_dated:
        seconds = means[["mean", *ERRORS]].round().apply(pd.to_timedelta, unit="s")
        means = means.assign(**{"mean": pd.Timestamp(EPOCH) + seconds["mean"], **{one: seconds[one] for one in ERRORS}})
    return means


def _moved_in(mean: "pd.Series[float]", half: "pd.Series[float]", values: "pd.Series[float]") -> "pd.Series[float]":
    """Set a mean that is beyond all values to the nearest of them, where its interval reaches so far."""
    nearest = mean.clip(values.min(), values.max())
    return nearest.where((mean - nearest).abs() <= half + ROUNDING * max(float(values.abs().max()), 1.0), mean)


def _reasons(
    mean: "pd.Series[float]", error: "pd.Series[float]", values: "pd.Series[float]", is_dated: bool = False
) -> "pd.Series[str]":
    """Return why the mean of a group is not to be taken at face value; empty where nothing speaks against it.

    What groups surely differ by is the distance of the highest lower end of an interval from the lowest upper end: a
    group that noise put far away from the others has a wide interval, and adds little to it. A group may be relied on
    whose interval, widened as so many groups need, does not reach the mean of all groups, weighed by their errors, or
    is narrow beside the mean.
    An error of dates is held beside all that they may be, since their 0 is no date of the data.

    Shapes: ``mean`` and ``error`` [groups], NaN where a group does not stand out; ``values`` of the cells.
    """
    import pandas as pd

    half, (least, most) = INTERVAL * error, (values.min(), values.max())
    differ = max(float((mean - half).max() - (mean + half).min()), 0.0)
    weights = 1 / error.clip(lower=1e-100) ** 2
    middle = float((mean * weights).sum() / weights[mean.notna()].sum()) if mean.notna().any() else 0.0
    groups = max(int(mean.notna().sum()), 1)  # the one of them that noise pushed up most is no finding (Bonferroni)
    reach = half * NormalDist().inv_cdf(1 - 0.025 / groups) / INTERVAL
    is_rough = (half > ROUGH * (most - least if is_dated else mean.abs())) & ((mean - middle).abs() <= reach)
    tests = {  # the last that holds is said
        ALIKE: (half > differ) & is_rough & (mean.notna().sum() > 1),
        LARGER: (half > mean.abs()) & (least >= 0 and not is_dated),
        WIDE: (2 * half >= most - least) & (most > least),
        BEYOND: (mean < least) | (mean > most),
        DROWNED: mean.isna(),
    }
    reason = pd.Series("", index=mean.index)
    for why, holds in tests.items():
        reason = reason.mask(holds, why)
    return reason
