"""Means of groups from the cells of released tables, each with its error and the reason to distrust it."""

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

from dpmodels.errors import Unsuitable
from nacre.cells import joined, names_in, with_shares

if TYPE_CHECKING:
    import pandas as pd

    from nacre.reporting import Report
    from tasks.run.store import Run

INTERVAL = 1.96
"""Standard errors on each side of a mean within which the real one lies in nineteen releases of twenty."""
ERRORS = ["within", "standard_error", "noise", "inside"]
DROWNED = "count is below 4 standard errors of it"
BEYOND = "noise puts it beyond every value of the column"
WIDE = "its interval spans the means of all counted ranges: name both columns in a workload, or spend more"
LARGER = "its error exceeds the mean itself"
ROUGH = 0.2
"""Part of a mean that its interval reaches either way, at most, for it to be relied on whatever other groups have."""
DOUBTED = "the report says to use no mean of the column: noise hides values far out"
ALIKE = "its error exceeds what groups surely differ by"
"""Why a mean of a group is not to be taken at face value."""
OF_ALL = "column"
"""Heads the one entry of a mean of all rows, which is the name of the column."""
EPOCH = "1970-01-01"
"""The moment that means of dates are reckoned from, in seconds."""


SPLIT = (
    "the mean of {column} by groups would be a sum of means of its terms, and these have different rows, since some of "
    "its columns have nulls or are counted in other groups: name all its columns in one entry of a workload"
)


class Term(NamedTuple):
    """What is summed up of one term of a column, or of the column itself.

    Attributes:
        groups: count, mean, noise and inside of each group, as ``nacre.means`` has them.
        least, most: the means of the cells lie between.
        are_all: whether no cell holds nulls.
    """

    groups: "pd.DataFrame"
    least: float
    most: float
    are_all: bool = True


def means_by_groups(
    run: "Run", column: str, names: list[str], bins: "Mapping[str, object]", value: object
) -> "pd.DataFrame":
    """Return the means of a column by groups, from the cells of all these columns; the arguments are as for ``means``.

    ``bins`` are the edges of those columns whose cells are joined.
    """
    from tasks.stages.noisy_tables import apart, read_cells

    columns = [*names, *names_in([column])]
    figures = tuple(apart(name, columns) for name in (f"{column}_mean", f"{column}_stddev", "count", "standard_error"))
    terms, heads = list[Term](), names or [OF_ALL]
    for table in read_cells(run, names, column):
        cells = table.to_pandas(date_as_object=False)
        if bins:
            cells = joined(cells, bins, columns, (figures[2], figures[3]))
        cells = with_shares(cells, column, value, figures, _is_boolean(run, column))
        _check_values(cells, figures[0], column, names)
        counted = cells.dropna(subset=figures[0]).assign(**({} if names else {OF_ALL: column}))
        one = _term(counted.set_index(heads), *figures)
        terms.append(one._replace(are_all=len(counted) == len(cells)))
    is_dated = not _is_numeric(counted[figures[0]])
    groups = _doubted(_judged(_added(terms, column), is_dated), run, column)
    return _beside(counted, groups, heads)


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
        for error in ("noise", "inside"):
            whole[error] = (whole[error] ** 2 + more[error] ** 2) ** 0.5
    if others and not all(one.are_all for one in terms):
        raise Unsuitable(SPLIT.format(column=column))
    return Term(whole, sum(one.least for one in terms), sum(one.most for one in terms))


def _report_of(run: "Run") -> "Report | None":
    """Return the report of a run; None before it has one."""
    from nacre.reporting import Report

    checked = run.finished("validate")
    return None if checked is None else Report(checked.path)


def _doubted(groups: "pd.DataFrame", run: "Run", column: str) -> "pd.DataFrame":
    """Give each mean that has no reason the one of its column, where the report says to use no mean of it."""
    report = _report_of(run)
    columns = [] if report is None else report.facts.get("columns", ())
    if any(one["name"] == column and "mean" in one.get("avoid", ()) for one in columns):
        groups["reason"] = groups["reason"].where(groups["reason"] != "", DOUBTED)
    return groups


def mean_of_report(run: "Run", column: str) -> "pd.DataFrame | None":
    """Return the mean of all rows as the report states it; None where it states none, or leaves it open."""
    import pandas as pd

    from nacre.listing import Listing

    report = _report_of(run)
    if report is None:
        return None
    stated_means = (one for one in report.facts.get("columns", ()) if "mean" in one)
    one = next((one for one in stated_means if one["name"] == column), None)
    if one is None or one["type"] == "datetime" or one["mean"]["expected_error"] is None:
        return None
    (stated,) = report.means[report.means["column"] == column].to_dict("records")
    nulls = one["released"][one["labels"].index("null")] if "null" in one["labels"] else 0.0
    figures = {"mean": stated["released"], "within": stated["within"], "standard_error": stated["within"] / INTERVAL}
    count = report.facts["released_records"] * (1 - nulls)
    unsplit = {"noise": float("nan"), "inside": float("nan")}
    return Listing(pd.DataFrame([{OF_ALL: column, **figures, "count": count, "reason": stated["reason"], **unsplit}]))


def _check_values(cells: "pd.DataFrame", value: str, column: str, names: Sequence[str]) -> None:
    """Refuse a column of categories, and cells that hold nulls among values; ``value`` is the mean of a cell."""
    if value not in cells:
        shares = f"marginals(run, {', '.join(map(repr, [*names, column]))}) has shares"
        raise Unsuitable(
            f"column {column} has no numbers or dates; {shares}, and value='CATEGORY' asks for the share of one"
        )
    if (cells[value].isna() & (cells[column] != "null")).any():
        raise Unsuitable(f"the release counts {column} beside {' and '.join(names)} in halves, nulls among values")


def _beside(cells: "pd.DataFrame", means: "pd.DataFrame", groups: list[str]) -> "pd.DataFrame":
    """Lay what groups are called, and their bounds, beside their means; a figure makes way for a column of its name."""
    from nacre.listing import Listing
    from tasks.stages.noisy_tables import apart

    ends = [apart(f"{name}_{end}", groups) for name in groups for end in ("low", "high")]
    about = [each for each in cells if each in groups or each in ends]
    heads = cells[about].drop_duplicates(groups)
    heads = heads.astype(dict.fromkeys(groups, object))  # of a category `.map` makes another, which adds to nothing
    means.columns = [apart(str(figure), groups) for figure in means]
    return Listing(heads.join(means, on=groups).reset_index(drop=True))


def _is_boolean(run: "Run", column: str) -> bool:
    """Tell whether a column of a run's table, or of the root of its tree, is true or false."""
    from dpmodels.contract.columns import Boolean

    contract = run.plan.release.contract
    table: Any = contract.tables[contract.root] if contract.kind == "tree" else contract
    return isinstance(table.columns.get(column), Boolean)


def _means_of(cells: "pd.DataFrame", value: str, stddev: str, count: str, error: str) -> "pd.DataFrame":
    """Return the means of cells by the groups that are their index; the other arguments name the figures of a cell."""
    return _judged(_term(cells, value, stddev, count, error), not _is_numeric(cells[value]))


def _term(cells: "pd.DataFrame", value: str, stddev: str, count: str, error: str) -> Term:
    """Sum cells up by the groups that are their index; of dates in seconds."""
    import pandas as pd

    from dpmodels.report.numbers import STANDS

    if not _is_numeric(cells[value]):
        since = cells[value] - pd.Timestamp(EPOCH)
        cells = cells.assign(**{value: since.dt.total_seconds(), stddev: cells[stddev].dt.total_seconds()})

    def sums(amounts: "pd.Series[float]") -> "pd.Series[float]":
        return amounts.groupby(level=cells.index.names, observed=True, sort=False).sum()

    records = sums(cells[count])
    known = records.where(records > STANDS * sums(cells[error] ** 2) ** 0.5)
    mean = sums(cells[count] * cells[value]) / known
    noise = sums((cells[error] * (cells[value] - mean.reindex(cells.index))) ** 2) ** 0.5 / known
    inside = sums((cells[count].clip(lower=0) * cells[stddev]) ** 2) ** 0.5 / known
    groups = pd.DataFrame({"count": records, "mean": mean, "noise": noise, "inside": inside})
    return Term(groups, float(cells[value].min()), float(cells[value].max()))


def _judged(term: Term, is_dated: bool) -> "pd.DataFrame":
    """Return means of groups with what they are within, and the reason to distrust each."""
    import pandas as pd

    mean, noise, inside = (term.groups[one] for one in ("mean", "noise", "inside"))
    values, whole = pd.Series([term.least, term.most]), (noise**2 + inside**2) ** 0.5
    mean = _moved_in(mean, INTERVAL * whole, values)
    reason = _reasons(mean, whole, values, is_dated)
    lost = reason.isin((DROWNED, BEYOND))
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
    return nearest.where((mean - nearest).abs() <= half, mean)


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
    weights = 1 / error.clip(lower=1e-300) ** 2
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
