"""More out of a release that is paid for, at no cost: rows under conditions, and its noisy tables."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from dpmodels.errors import InvalidArgument, Unsuitable
from nacre.cells import Groups, columns_and_bins, joined, with_shares
from nacre.places import Place
from nacre.result import Result, run_of
from nacre.words import warn_of_release

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from nacre.reporting import Report
    from tasks.run.store import Run
    from tasks.stages.draw_rows import Drawn

MOST_BEFORE = 2**40
"""Rows that identifiers may come after: those of trees are numbered by products of it."""
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


def sample(
    run: "str | Result",
    rows: int,
    *,
    where: "str | Sequence[str] | Mapping[str, object]" = (),
    seed: int | None = None,
    after: int | None = None,
    device: str = "auto",
    home: Place | None = None,
) -> "pd.DataFrame | dict[str, pd.DataFrame]":
    """Draw rows from the generator of a finished run, if you like only such as meet conditions; charges nothing.

    Of a tree of tables, units are drawn with all their rows: a dictionary with a frame for each table.

    ``attrs`` of each frame say how rare such rows are: ``share``, the part of a plain sample that meets the conditions,
    and ``records``, how many records of the data set do by the release; also the ``run`` and its ``method``. A
    ``nacre.ReleaseWarning`` is given where that is fewer than one record.

    Args:
        run: the run's name, or what ``nacre.synthesize`` returned.
        rows: rows to draw, or units of a tree.
        where: conditions such as ``"age>60"`` or ``"ward!=north"``, with ``=``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``;
            all must hold; a dictionary has one value for each column. As in SQL, a null meets none but
            ``"COLUMN=null"``.
        seed: the same seed draws the same rows; by default the one after the run's, for other rows than the run's own.
        after: how many rows, or units, have the identifiers before these; by default those of the hand-off, so that
            both can be put together.
        device: auto, cpu or cuda.
        home: where state lies; by default that of the result, ``NACRE_HOME``, or ``.nacre``.

    Raises:
        NacreError: a condition is none, a value is not in the schema, or no row, or too few, meet the conditions.
    """
    from tasks.stages.draw_rows import RARE, draw_rows

    stored_run = run_of(run, home)
    if after is not None and not 0 <= after <= MOST_BEFORE:
        raise InvalidArgument("after", after, f"lie between 0 and {MOST_BEFORE}")
    batches = list(draw_rows(stored_run, rows, _conditions(where), seed, device, after))
    if batches[-1][1].records < 1:
        warn_of_release(RARE)
    return _as_frames(stored_run.plan.release.contract, batches)


def _as_frames(contract: Any, batches: "Sequence[tuple[pa.Table, Drawn]]") -> "pd.DataFrame | dict[str, pd.DataFrame]":
    """Return drawn rows as one frame, or as one for each table of a tree, with what is known of them."""
    import pyarrow as pa

    from dpmodels.codec.flat import public_tables, split
    from nacre.listing import to_pandas

    drawn, facts = pa.concat_tables(table for table, _ in batches), batches[-1][1]
    is_tree = contract.kind == "tree"
    tables = {**public_tables(contract), **split(contract, drawn)} if is_tree else {"": drawn}
    frames = {name: to_pandas(table) for name, table in tables.items()}
    for frame in frames.values():
        frame.attrs.update(run=facts.run, method=facts.method, share=facts.share, records=facts.records)
    return frames if is_tree else frames[""]


def _conditions(where: "str | Sequence[str] | Mapping[str, object]") -> tuple[str, ...]:
    """Return conditions as they are typed, in whichever form they were given."""
    if isinstance(where, Mapping):
        where = [f"{name}={_one_value(name, value)}" for name, value in where.items()]
    return (where,) if isinstance(where, str) else tuple(map(str, where))


def _one_value(name: str, value: object) -> object:
    """Return the value of a condition; a list that has one alone stands for it.

    Raises:
        Unsuitable: there are several values, or none.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return value
    values = list(value)
    if len(values) == 1:
        return values[0]
    calls = " and ".join(f"where={{{name!r}: {one!r}}}" for one in values[:2]) or f"where={{{name!r}: VALUE}}"
    several = f"{name} is given {len(values)}: draw rows for each by itself, with {calls}, and put them together"
    raise Unsuitable(f"a condition has one value, and {several}" if values else f"a condition has one value: {calls}")


def marginals(run: "str | Result", *columns: "str | Sequence[str]", home: Place | None = None) -> "pd.DataFrame":
    """Return what a run's release counts, with the standard error of each count; charges nothing.

    ``marginals(run, "age")`` and ``marginals(run, "age", "income")`` have a row for each cell of these columns:

    - the cell, as text in a column that is called as in the data;
    - for numbers and dates its bounds in ``age_low`` and ``age_high``, and in ``age_mean`` and ``age_stddev`` mean and
      standard deviation of the values in it, as the generator draws them; nulls have none, and dates are in UTC;
    - ``count``, as it was released, so it may lie below 0; ``standard_error`` of it; and ``share`` of all counts.

    It is the table with the least noise; classes of the target that are not asked for are added up. A figure whose
    name is that of a column has a ``_`` behind it.

    Without columns, it is all tables at once, a row for each count: ``columns`` and ``cells`` say what is counted.
    ``kind`` is ``measured`` for a count as it was released, ``combined`` for the average of all that was released of
    the same cells of one column, and of it by the classes of the target.

    Raises:
        NacreError: the run has released nothing yet, its method releases no counts, or none of these columns together.
    """
    import pyarrow as pa

    from nacre.listing import Listing
    from tasks.stages.noisy_tables import read_counts, read_tables

    stored_run, names = run_of(run, home), _names_in(columns)
    tables = [read_counts(stored_run, names)] if names else read_tables(stored_run)
    return Listing(pa.concat_tables(tables).to_pandas(date_as_object=False))


def means(
    run: "str | Result", column: str, *, by: Groups = (), value: object = None, home: Place | None = None
) -> "pd.DataFrame":
    """Return means of a column of numbers or dates, with their errors, from released counts; charges nothing.

    ``by="cause"`` gives a row for each cause, nothing one for all rows. The mean of a boolean is the share of true,
    of yes and no that of yes, of other categories that of ``value``; of dates a moment, whose errors are durations.

    - the group, in columns that are called as in the data, and of numbers and dates its bounds, as ``marginals`` has
      them; of all rows ``column`` names the column;
    - ``mean`` of the values that are not null, in units of the column, and what it is ``within`` in nineteen releases
      of twenty: 1.96 times its ``standard_error``;
    - ``count`` of these values, as released;
    - ``reason`` to distrust a mean; empty if there is none. The mean is NaN where the group does not stand out of its
      noise, and where noise puts it beyond all values of the column. Others leave the figure: its interval spans the
      means of all counted ranges, its error exceeds it, or what groups surely differ by, or the report says to use none
      of these;
    - ``noise`` and ``inside``, what the standard error is made of: the noise of the counts, and that values of a group
      may lie elsewhere in a cell than those of all groups, by a standard deviation of them in every cell.

    The interval is for the mean of the real rows. It says nothing of the people that they are a sample of. The mean of
    all rows is the report's, where it states one with its error, which is not told apart into ``noise`` and ``inside``.
    A mean that noise puts a little beyond all values of the column is set to the nearest of them.

    Args:
        run: the run's name, or its result.
        column: of numbers or dates, or a boolean; of categories with ``value``.
        by: the column, or the columns, whose values make the groups; None makes none. A dictionary joins the ranges of
            numbers or dates: ``{"age": [0, 18, 65, 105], "ward": None}``, each from an edge up to the next one, or
            ``{"age": 10}``, a width. A counted range goes where its middle lies: ``age_low`` and ``age_high`` say what
            was joined. What lies beyond the edges is left out.
        value: the category whose share is asked for.
        home: where state lies; by default the result's, ``NACRE_HOME``, or ``.nacre``.

    Raises:
        NacreError: categories have no ``value``, edges are none, or the release counts none of these columns together.
    """
    groups, bins = columns_and_bins(by)
    names, stored_run = _names_in(groups), run_of(run, home)
    if not names and value is None and (whole := _of_report(stored_run, column)) is not None:
        return whole
    return _by_groups(stored_run, column, names, bins, value)


def _by_groups(
    run: "Run", column: str, names: list[str], bins: "Mapping[str, object]", value: object
) -> "pd.DataFrame":
    """Return the means of a column by groups, from the cells of all these columns; the arguments are as for ``means``.

    ``bins`` are the edges of those columns whose cells are joined.
    """
    from tasks.stages.noisy_tables import apart

    columns = [*names, *_names_in([column])]
    figures = tuple(apart(name, columns) for name in (f"{column}_mean", f"{column}_stddev", "count", "standard_error"))
    cells = marginals(run.name, *columns, home=run.home)
    if bins:
        cells = joined(cells, bins, columns, (figures[2], figures[3]))
    cells = with_shares(cells, column, value, figures, _is_boolean(run, column))
    _check_values(cells, figures[0], column, names)
    counted = cells.dropna(subset=figures[0]).assign(**({} if names else {OF_ALL: column}))
    groups = _means_of(counted.set_index(names or [OF_ALL]), *figures)
    return _beside(counted, _doubted(groups, run, column), names or [OF_ALL])


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


def _of_report(run: "Run", column: str) -> "pd.DataFrame | None":
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
    import pandas as pd

    from dpmodels.report.numbers import STANDS

    is_dated = not pd.api.types.is_numeric_dtype(cells[value])
    if is_dated:
        since = cells[value] - pd.Timestamp(EPOCH)
        cells = cells.assign(**{value: since.dt.total_seconds(), stddev: cells[stddev].dt.total_seconds()})

    def sums(amounts: "pd.Series[float]") -> "pd.Series[float]":
        return amounts.groupby(level=cells.index.names, observed=True, sort=False).sum()

    records = sums(cells[count])
    known = records.where(records > STANDS * sums(cells[error] ** 2) ** 0.5)
    mean = sums(cells[count] * cells[value]) / known
    noise = sums((cells[error] * (cells[value] - mean.reindex(cells.index))) ** 2) ** 0.5 / known
    inside = sums((cells[count].clip(lower=0) * cells[stddev]) ** 2) ** 0.5 / known
    whole = (noise**2 + inside**2) ** 0.5
    mean = _moved_in(mean, INTERVAL * whole, cells[value])
    reason = _reasons(mean, whole, cells[value], is_dated)
    lost = reason.isin((DROWNED, BEYOND))
    figures = {"mean": mean, "within": INTERVAL * whole, "standard_error": whole, "count": records, "reason": reason}
    means = pd.DataFrame(figures | {"noise": noise, "inside": inside})
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


def _names_in(columns: Sequence[object]) -> list[str]:
    """Return the names of columns that were given one by one, or as one list."""
    if len(columns) == 1 and isinstance(columns[0], list | tuple):
        columns = columns[0]
    names = [name for name in columns if isinstance(name, str)]
    if len(names) < len(columns):
        raise Unsuitable('columns must be names, as in marginals(run, "age", "income")')
    return names
