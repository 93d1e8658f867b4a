"""Means of a run's release, of all rows or by groups, as ``nacre.means`` and ``nacre means`` say them."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmodels.arrays import Whole
from dpmodels.artifact import write_whole
from dpmodels.contract.columns import Boolean, Continuous
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.groups_in_words import EACH, grouped
from dpmodels.pages.figures.means import doubted_figures
from dpmodels.pages.figures.open_means import IF_THIN
from dpmodels.pages.glance import within_of
from dpmodels.report.counts.noisy_tables import Counted
from dpmodels.report.groups.cells import Inside, Way, apart, keys_of, ways_of
from dpmodels.report.groups.means import (
    INTERVAL,
    Measured,
    Names,
    best_of,
    doubted,
    judged,
    means_of_groups,
)
from dpmodels.report.groups.ranges import best_ranges, in_ranges
from dpmodels.report.groups.reconciled import reconciled, related
from dpmodels.report.groups.wholes import wholes_of
from tasks.run.ready import check_new_file
from tasks.run.store import Run
from tasks.run.table_file import check_ending, write_table
from tasks.stages.bands import BANDS, NOTES, VALUE, said_of, with_uncounted
from tasks.stages.counted_names import as_asked, counted_names
from tasks.stages.csv_forms import form_to_write, write_form
from tasks.stages.listed import in_order, with_values
from tasks.stages.noisy_tables import read_counted
from tasks.stages.ranges import Groups, columns_and_bins, joined, leaves_out, names_in, with_shares
from tasks.stages.share_reasons import judged_as_rates
from tasks.stages.totals import check_total, noise_of_rows, notes_of_totals, with_totals

if TYPE_CHECKING:
    import pandas as pd

OF_ALL = "column"
"""Heads the one entry of a mean of all rows, which is the name of the column."""
CSV = ".csv"
JOINED = "counted values are joined to ranges of about equal size, as in a report; {} has each by itself"
MEANS = (
    "column",
    "released",
    "released_within",
    "synthetic",
    "within",
    "at_least",
    "at_most",
    "p99_released",
    "p99_within",
    "reason",
)
"""What is stated of a mean in a report, as a frame calls it."""
OPEN = "noise leaves the {} open"
FAR = "noise may hide values that put the mean far off"
AVOID = "use no {}: `facts` has the column's warning"
ONLY = f"{{}} only {IF_THIN}: `facts` has the column's warning"
CUT = "values beyond discovered bounds were set to them, so the errors are larger"


def means(run: Run, column: str, by: Groups = (), value: object = None, total: bool = False) -> "pd.DataFrame":
    """Return means of a column of a run's release, as ``nacre.means`` describes them; charges nothing.

    ``total`` asks for totals beside them.

    Raises:
        Unsuitable: categories have no ``value``, edges are none, what has no total is asked for one, or the release
            counts none of these columns together.
    """
    groups, bins, is_alone = columns_and_bins(by)
    names = names_in(groups)
    if not names and value is None and (whole := _of_report(run, column, total)) is not None:
        return whole
    return _by_groups(run, column, names, bins, value, is_alone, total)


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
    form, ending = form_to_write(text), out.suffix.lower()
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


def _by_groups(
    run: Run, column: str, names: list[str], bins: Mapping[str, object], value: object, is_alone: bool, total: bool
) -> "pd.DataFrame":
    """Return means by groups from the cells of all these columns; ``bins`` are the edges of those that are joined.

    A number or a date that ``is_alone`` is joined to the ranges of a report.
    """
    counted = read_counted(run)
    if total and value is None:
        check_total(column, counted.columns)
    asked, in_place = names, counted_names([one for one in names if one != column], counted.columns)
    names, bins = (
        [in_place.get(one, one) for one in names],
        {in_place.get(one, one): each for one, each in bins.items()},
    )
    ranges = _ranges(counted, column, names[0], value) if is_alone else None
    measured, cells, merged = _measured(counted, column, names, bins, value, ranges)
    if names and value is None and not measured.is_dated:
        every = {column: measured}
        for one in related(column, counted.columns, counted.rules.pairs)[1:]:
            with suppress(Unsuitable):
                every[one] = _measured(counted, one, names, bins, None, ranges)[0]
        facts = {} if any(map(leaves_out, bins.values())) else _facts_of(run)
        wholes = wholes_of(facts, every, counted.columns)
        inside = Inside.of(counted, names, merged)
        measured = measured._replace(whole=reconciled(every, wholes, counted.columns, inside))
    groups = doubted(judged(measured.whole, measured.is_dated), _facts_of(run), column, counted.columns)
    groups, of_rates = judged_as_rates(groups) if VALUE in cells.attrs and len(names) == 1 else (groups, [])
    groups = with_totals(groups, measured.whole.groups["off"]) if total else groups
    mean = Names.of(column, [*names, column]).mean
    made = _beside(cells.dropna(subset=mean), groups, names or [OF_ALL])
    made = with_values(in_order(made, names, counted.columns), names, counted.columns)
    made.columns = [*as_asked(map(str, made), in_place).values()]
    called = as_asked(cells.attrs.get(BANDS, ()), in_place)
    bands = {called[name]: each for name, each in cells.attrs.get(BANDS, {}).items()}
    if len(names) == 1 and (name := asked[0]) in bands:
        made = with_uncounted(made, name, [apart(f"{name}_{end}", [name]) for end in ("low", "high")], bands[name])
    made.attrs = said_of({**cells.attrs, BANDS: bands}, column)
    notes = of_rates if ranges is None else [*of_rates, JOINED.format(grouped(asked[0], EACH))]
    return _noted(made, [*notes, *(notes_of_totals(_facts_of(run)) if total else ())])


def _noted(means: "pd.DataFrame", notes: Sequence[str]) -> "pd.DataFrame":
    """Say more beside means."""
    if notes:
        means.attrs[NOTES] = [*means.attrs.get(NOTES, ()), *notes]
    return means


def _ranges(counted: Counted, column: str, by: str, value: object) -> Whole | None:
    """Return the range of each fine cell of a number or a date, as a report has it; None where no cells are joined."""
    of = counted.values.columns.get(by)
    if not isinstance(of, Continuous) or by == column:
        return None
    ways = ways_of(counted, [by], column, as_category=value is not None)

    def means_by(way: Way, group: Whole | None) -> tuple[Measured, Mapping[str, Whole]]:
        measured, (_, merged) = _means_by(counted, column, [by], way, {}, value, group)
        return measured, merged

    try:
        group, merge = best_ranges(ways, by, of, means_by)
    except Unsuitable:
        return None
    return group if group.max() < merge.max() else None


def _measured(
    counted: Counted,
    column: str,
    names: list[str],
    bins: Mapping[str, object],
    value: object = None,
    ranges: Whole | None = None,
) -> "tuple[Measured, pd.DataFrame, Mapping[str, Whole]]":
    """Return what was measured of a column by groups, the cells that these are of, and of each fine one which it is."""
    ways = ways_of(counted, names, column, as_category=value is not None)

    def by(way: Callable[[], Way]) -> "tuple[Measured, tuple[pd.DataFrame, Mapping[str, Whole]]]":
        return _means_by(counted, column, names, way(), bins, value, ranges)

    measured, (cells, merged) = best_of([partial(by, way) for way in ways])
    return measured, cells, merged


def _means_by(
    counted: Counted,
    column: str,
    names: list[str],
    way: Way,
    bins: Mapping[str, object],
    value: object,
    ranges: Whole | None,
) -> "tuple[Measured, tuple[pd.DataFrame, Mapping[str, Whole]]]":
    """Return the means by one table, and its cells."""
    figures, heads = Names.of(column, columns := [*names, column]), names or [OF_ALL]
    is_boolean, tables = isinstance(counted.columns.get(column), Boolean), dict[str, "pd.DataFrame"]()
    for term, table in way.tables.items():
        cells = table.to_pandas(date_as_object=False)
        if bins:
            sums = [one for one in (figures.count, figures.total, figures.variance) if one in cells]
            cells = joined(cells, bins, columns, (*sums, figures.error), counted.columns)
        elif ranges is not None:
            cells = _joined(cells, counted, columns, figures, way.merged[names[0]], ranges)
        cells = with_shares(cells, column, value, (figures.mean, figures.stddev), is_boolean)
        _check_values(cells, figures.mean, column, names)
        tables[term] = cells if names else cells.assign(**{OF_ALL: column})
    last, groups = [*tables.values()][-1], {} if ranges is None else {names[0]: ranges}
    return means_of_groups(tables, heads, column, figures), (last, {**way.merged, **groups})


def _joined(
    cells: "pd.DataFrame", counted: Counted, columns: Sequence[str], figures: Names, merge: Whole, ranges: Whole
) -> "pd.DataFrame":
    """Join the cells of a number or a date that are in one range, whose bounds are theirs.

    Shapes: ``merge`` and ``ranges``, the counted cell of each fine one and the range, [fine cells].
    """
    by, column = columns
    of: Any = counted.values.columns[by]
    places = {key: int(ranges[merge == at][0]) for at, key in enumerate(keys_of(of, merge))}
    range_of = cells[by].astype(object).map(lambda key: places[str(key)])
    for end in ("low", "high"):
        if (name := apart(f"{by}_{end}", columns)) in cells:
            in_range = cells.groupby(range_of)[name]
            cells = cells.assign(**{name: range_of.map(in_range.min() if end == "low" else in_range.max())})
    return in_ranges(cells, by, column, figures, of, merge, ranges)


def _facts_of(run: Run) -> Mapping[str, Any]:
    """Return what the report of a run says; nothing before it has one, or of one that somebody changed."""
    checked = run.finished("validate")
    if checked is None:
        return {}
    facts: Mapping[str, Any] = json.loads(checked.path.joinpath("report.json").read_text(encoding="utf-8"))
    return facts


def _of_report(run: Run, column: str, total: bool) -> "pd.DataFrame | None":
    """Return the mean of all rows as the report states it; None where it states none, or leaves it open."""
    import pandas as pd

    facts = _facts_of(run)
    columns = {one["name"]: one for one in (*facts.get("columns", ()), *facts.get("derived", ()))}
    one, wholes = columns.get(column, {}), facts.get("wholes", {})
    is_known = "mean" in one and (column in wholes or one["mean"]["expected_error"] is not None)
    if not is_known or one["type"] == "datetime":
        return None
    _, mean, within, *_, reason = stated_mean(one, wholes)
    nulls = [_part_of_nulls(columns[name]) for name in one.get("follows", (column,))]
    shares, stddevs = zip(*nulls, strict=True)
    count = facts["released_records"] * (1 - shares[0]) if not any(shares) or len(nulls) == 1 else float("nan")
    figures = {"mean": mean, "within": within, "standard_error": within / INTERVAL, "count": count, "reason": reason}
    means = pd.DataFrame([{OF_ALL: column, **figures, "noise": float("nan"), "inside": float("nan")}])
    if not total:
        return means
    counted = read_counted(run)
    check_total(column, counted.columns)
    off = noise_of_rows(facts["released_records"], counted.records_stddev, stddevs)
    return _noted(with_totals(means, off), notes_of_totals(facts))


def _part_of_nulls(column: Mapping[str, Any]) -> tuple[float, float]:
    """Return the part of the rows in which a column is null, as released, and the noise of that."""
    if "null" not in column["labels"]:
        return 0.0, 0.0
    place = column["labels"].index("null")
    return float(column["released"][place]), float(column["released_stddev"][place])


def stated_mean(column: Mapping[str, Any], wholes: Mapping[str, Sequence[float]]) -> list[Any]:
    """Return what a report states of a mean, in the order of ``MEANS``, and why it is not to be relied on.

    ``wholes``: the means that all tables tell together, each with the standard error that it has by itself.
    """
    missing, unseen = float("nan"), column.get("unseen", {})
    could_be = unseen.get("means", (missing,) * 2)
    mean, p99 = (within_of(column, figure) if figure in column else missing for figure in ("mean", "p99"))
    avoided = column.get("avoid", ())
    of_no_use, on_terms = ([one for one in names if one in avoided] for names in doubted_figures(column))
    said = {
        AVOID.format(" and no ".join(of_no_use)): bool(of_no_use),
        ONLY.format(" and ".join(on_terms)): bool(on_terms),
        OPEN.format("mean"): mean is None,
        FAR: "far" in unseen,
        OPEN.format("99 % quantile"): p99 is None,
        CUT: bool(column.get("discovered_bounds")),
    }
    synthetic = column["mean"].get("synthetic", missing)  # reports of page layouts up to 6 have none
    mean, p99 = (missing if within is None else float(f"{within:.6g}") for within in (mean, p99))
    quantile = column.get("p99", {"estimate": missing})["estimate"], p99
    reason = "; ".join(reason for reason, holds in said.items() if holds)
    released = INTERVAL * wholes[column["name"]][1] if column["name"] in wholes else mean
    return [column["name"], column["mean"]["estimate"], released, synthetic, mean, *could_be, *quantile, reason]


def _check_values(cells: "pd.DataFrame", value: str, column: str, names: Sequence[str]) -> None:
    """Refuse a column of categories, and cells that hold nulls among values; ``value`` is the mean of a cell."""
    if value not in cells:
        shares = f"`nacre marginals RUN {shlex.join([*names, column])}` has shares"
        raise Unsuitable(f"column {column} has no numbers or dates; {shares}, and --value CATEGORY asks for one")
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
