"""Means of groups from the cells of released tables, each with its error and the reason to distrust it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

from dpmodels.artifact import write_whole
from dpmodels.authoring.asked import form_of
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.pages.glance import within_of
from tasks.run.ready import check_new_file
from tasks.run.store import Run
from tasks.run.table_file import check_ending, write_table
from tasks.stages.csv_forms import write_form
from tasks.stages.noisy_tables import apart, read_cells
from tasks.stages.ranges import Groups, columns_and_bins, joined, names_in, with_shares

if TYPE_CHECKING:
    import pandas as pd

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
CSV = ".csv"
EPOCH = "1970-01-01"
"""The moment that means of dates are reckoned from, in seconds."""


MEANS = ("column", "released", "within", "synthetic", "at_least", "at_most", "p99_released", "p99_within", "reason")
"""What is stated of a mean in a report, as a frame calls it."""
OPEN = "noise leaves the {} open"
FAR = "noise may hide values that put the mean far off"
AVOID = "use no {}: `facts` has the column's warning"
CUT = "values beyond discovered bounds were set to them, so the errors are larger"
SPLIT = (
    "the mean of {column} by groups would be a sum of means of its terms, and these have different rows, since some of "
    "its columns have nulls or are counted in other groups: name all its columns in one entry of a workload"
)


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


def means(run: Run, column: str, by: Groups = (), value: object = None) -> "pd.DataFrame":
    """Return means of a column of a run's release, as ``nacre.means`` describes them; charges nothing.

    Raises:
        Unsuitable: categories have no ``value``, edges are none, or the release counts none of these columns together.
    """
    groups, bins = columns_and_bins(by)
    names = names_in(groups)
    if not names and value is None and (whole := _of_report(run, column)) is not None:
        return whole
    return _by_groups(run, column, names, bins, value)


def write_means(frame: "pd.DataFrame", out: Path, text: str = "") -> "pd.DataFrame":
    """Write means to a new file, in the format of its ending, and return them; it is whole or absent.

    ``text`` says how a CSV file writes numbers and dates, as a schema's key does; numbers then have six digits.

    Raises:
        ArtifactError: the path is taken or cannot be written.
        InvalidArgument: the ending names no format, or none that ``text`` goes with.
    """
    import pyarrow as pa

    check_new_file(out)
    check_ending(out)
    form, ending = form_of(text), out.suffix.lower()
    if form is None:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        write_whole(out, lambda path: write_table(iter([table]), path, ending))
        return frame
    if ending != CSV:
        raise InvalidArgument("text", text, f"go with a file that ends in {CSV}")
    numbers = frame.select_dtypes("float")
    short = frame.assign(**{str(name): numbers[name].map(lambda one: float(f"{one:.6g}")) for name in numbers})
    batches = pa.Table.from_pandas(short, preserve_index=False).to_batches()
    write_whole(out, lambda path: write_form(batches, {}, form, path))
    return frame


def _by_groups(run: Run, column: str, names: list[str], bins: Mapping[str, object], value: object) -> "pd.DataFrame":
    """Return means by groups from the cells of all these columns; ``bins`` are the edges of those that are joined."""
    columns = [*names, *names_in([column])]
    of_cells = (f"{column}_mean", f"{column}_stddev", f"{column}_shift")
    mean, stddev, shift, count, error = (apart(name, columns) for name in (*of_cells, "count", "standard_error"))
    terms, heads = list[Term](), names or [OF_ALL]
    for table in read_cells(run, names, column, as_category=value is not None):
        cells = table.to_pandas(date_as_object=False)
        if bins:
            cells = joined(cells, bins, columns, (count, error))
        cells = with_shares(cells, column, value, (mean, stddev), _is_boolean(run, column))
        _check_values(cells, mean, column, names)
        counted = cells.dropna(subset=mean).assign(**({} if names else {OF_ALL: column}))
        one = _term(counted.set_index(heads), mean, stddev, count, error, shift)
        terms.append(one._replace(are_all=len(counted) == len(cells)))
    is_dated = not _is_numeric(counted[mean])
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
        whole["shift"] += more["shift"]
        for error in ("noise", "inside"):
            whole[error] = (whole[error] ** 2 + more[error] ** 2) ** 0.5
    if others and not all(one.are_all for one in terms):
        raise Unsuitable(SPLIT.format(column=column))
    return Term(whole, sum(one.least for one in terms), sum(one.most for one in terms))


def _facts_of(run: Run) -> Mapping[str, Any]:
    """Return what the report of a run says; nothing before it has one, or of one that somebody changed."""
    checked = run.finished("validate")
    if checked is None:
        return {}
    facts: Mapping[str, Any] = json.loads(checked.path.joinpath("report.json").read_text(encoding="utf-8"))
    return facts


def _doubted(groups: "pd.DataFrame", run: Run, column: str) -> "pd.DataFrame":
    """Give each mean that has no reason the one of its column, or of one that it follows from, to use no mean of it."""
    facts = _facts_of(run)
    follows = [one["follows"] for one in facts.get("derived", ()) if one["name"] == column]
    names = {column, *(name for each in follows for name in each)}
    about = [one for one in (*facts.get("columns", ()), *facts.get("derived", ())) if one["name"] in names]
    if any("mean" in one.get("avoid", ()) or "open" in one.get("unseen", {}) for one in about):
        groups["reason"] = groups["reason"].where(groups["reason"] != "", DOUBTED)
    return groups


def _of_report(run: Run, column: str) -> "pd.DataFrame | None":
    """Return the mean of all rows as the report states it; None where it states none, or leaves it open."""
    import pandas as pd

    facts = _facts_of(run)
    columns = {one["name"]: one for one in (*facts.get("columns", ()), *facts.get("derived", ()))}
    one = columns.get(column, {})
    if "mean" not in one or one["type"] == "datetime" or one["mean"]["expected_error"] is None:
        return None
    _, mean, within, *_, reason = stated_mean(one)
    nulls = [_part_of_nulls(columns[name]) for name in one.get("follows", (column,))]
    count = facts["released_records"] * (1 - nulls[0]) if not any(nulls) or len(nulls) == 1 else float("nan")
    figures = {"mean": mean, "within": within, "standard_error": within / INTERVAL, "count": count, "reason": reason}
    return pd.DataFrame([{OF_ALL: column, **figures, "noise": float("nan"), "inside": float("nan")}])


def _part_of_nulls(column: Mapping[str, Any]) -> float:
    """Return the part of the rows in which a column is null, as released."""
    return float(column["released"][column["labels"].index("null")]) if "null" in column["labels"] else 0.0


def stated_mean(column: Mapping[str, Any]) -> list[Any]:
    """Return what a report states of a mean, in the order of ``MEANS``, and why it is not to be relied on."""
    missing, unseen = float("nan"), column.get("unseen", {})
    could_be = unseen.get("means", (missing,) * 2)
    mean, p99 = (within_of(column, figure) if figure in column else missing for figure in ("mean", "p99"))
    doubted = [name for name in ("mean", "total", "p99") if name in column.get("avoid", ())]
    said = {
        AVOID.format(" and no ".join(doubted)): bool(doubted),
        OPEN.format("mean"): mean is None,
        FAR: "far" in unseen,
        OPEN.format("99 % quantile"): p99 is None,
        CUT: bool(column.get("discovered_bounds")),
    }
    synthetic = column["mean"].get("synthetic", missing)  # reports of page layouts up to 6 have none
    mean, p99 = (missing if within is None else float(f"{within:.6g}") for within in (mean, p99))
    quantile = column.get("p99", {"estimate": missing})["estimate"], p99
    reason = "; ".join(reason for reason, holds in said.items() if holds)
    return [column["name"], column["mean"]["estimate"], mean, synthetic, *could_be, *quantile, reason]


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
    ends = [apart(f"{name}_{end}", groups) for name in groups for end in ("low", "high")]
    about = [each for each in cells if each in groups or each in ends]
    heads = cells[about].drop_duplicates(groups)
    heads = heads.astype(dict.fromkeys(groups, object))  # of a category `.map` makes another, which adds to nothing
    means.columns = [apart(str(figure), groups) for figure in means]
    return heads.join(means, on=groups).reset_index(drop=True)


def _is_boolean(run: Run, column: str) -> bool:
    """Tell whether a column of a run's table, or of the root of its tree, is true or false."""
    from dpmodels.contract.columns import Boolean

    contract = run.plan.release.contract
    table: Any = contract.tables[contract.root] if contract.kind == "tree" else contract
    return isinstance(table.columns.get(column), Boolean)


def _means_of(cells: "pd.DataFrame", value: str, stddev: str, count: str, error: str) -> "pd.DataFrame":
    """Return the means of cells by the groups that are their index; the other arguments name the figures of a cell."""
    return _judged(_term(cells, value, stddev, count, error), not _is_numeric(cells[value]))


def _term(cells: "pd.DataFrame", value: str, stddev: str, count: str, error: str, shift: str = "") -> Term:
    """Sum cells up by the groups that are their index; of dates in seconds.

    The arguments name the figures of a cell; ``shift`` is that of a formula of several numbers (derived/counted.py).
    """
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
    moved = sums(cells[count].clip(lower=0) * cells[shift]) / known if shift in cells else 0.0 * known
    groups = pd.DataFrame({"count": records, "mean": mean, "noise": noise, "inside": inside, "shift": moved})
    return Term(groups, float(cells[value].min()), float(cells[value].max()))


def _judged(term: Term, is_dated: bool) -> "pd.DataFrame":
    """Return means of groups with what they are within, and the reason to distrust each."""
    import pandas as pd

    mean, noise, inside, shift = (term.groups[one] for one in ("mean", "noise", "inside", "shift"))
    values, whole = pd.Series([term.least, term.most]), (noise**2 + inside**2) ** 0.5 + shift / INTERVAL
    inside = (whole**2 - noise**2) ** 0.5
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
