"""More out of a release that is paid for, at no cost: rows under conditions, and its noisy tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.groups_in_words import groups_in_python
from nacre.places import Place
from nacre.result import Result, run_of
from nacre.words import warn_of_release

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from tasks.stages.draw_rows import Drawn
    from tasks.stages.ranges import Groups

MOST_BEFORE = 2**40
"""Rows that identifiers may come after: those of trees are numbered by products of it."""


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

    - the cell, in a column that is called as in the data: the value where each cell is one of the numbers or booleans
      that the schema lists, else text, so also where one holds nulls or several values, such as "7, 8";
    - for numbers and dates its bounds in ``age_low`` and ``age_high``, and in ``age_mean`` and ``age_stddev`` mean and
      standard deviation of the values in it, as the generator draws them; nulls have none, and dates are in UTC;
    - ``count``, as it was released, so it may lie below 0; ``standard_error`` of it; and ``share`` of all counts;
    - ``likely``, the most likely count, which reports and ``nacre.means`` take: none is below 0, and all tables of a
      category add up to the same rows.

    It is the table with the least noise; classes of the target that are not asked for are added up. A figure whose
    name is that of a column has a ``_`` behind it.

        ages = nacre.marginals(made, "age")
        ages.plot.bar(x="age", y="count", yerr="standard_error")

    Without columns, it is all tables at once, a row for each cell of each: ``column_1`` and ``cell_1``, ``column_2``
    and ``cell_2`` say what is counted, and ``low_1``, ``high_1``, ``mean_1`` and ``stddev_1`` what lies in cells of
    numbers; of tables of fewer columns the further ones are empty. ``table`` numbers the tables. ``kind`` is
    ``measured`` for a count as it was released, ``combined`` for the average of all that was released of the same cells
    of one column, and of it by the classes of the target.

    Raises:
        NacreError: the run has released nothing yet, its method releases no counts, or none of these columns together.
    """
    import pyarrow as pa

    from nacre.listing import Listing
    from tasks.stages.noisy_tables import read_counts, read_tables
    from tasks.stages.ranges import names_in

    stored_run, names = run_of(run, home), names_in(columns)
    tables = [read_counts(stored_run, names)] if names else read_tables(stored_run)
    return Listing(pa.concat_tables(tables).to_pandas(date_as_object=False))


def means(
    run: "str | Result",
    column: str,
    *,
    by: "Groups" = (),
    value: object = None,
    total: bool = False,
    home: Place | None = None,
) -> "pd.DataFrame":
    """Return means of a column of numbers or dates, with their errors, from released counts; charges nothing.

    ``by="cause"`` gives a row for each cause, nothing one for all rows. The mean of a boolean is the share of true,
    of yes and no that of yes, of other categories that of ``value``; of dates a moment, whose errors are durations.

    - the group, in columns that are called as in the data, values as ``marginals`` has them, and of numbers and dates
      its bounds; of all rows ``column`` names the column. Listed values keep the schema's order, nulls last;
    - ``mean`` of the values that are not null, and what it is ``within``: 1.96 times its ``standard_error``;
    - ``count`` of these (``likely`` of ``marginals``); with ``total`` their ``total``, and its ``total_within``;
    - ``reason`` to distrust a mean, or none. It is NaN where the group does not stand out of its noise, and where that
      puts it beyond all values. Others leave the figure: its interval spans the means of all counted ranges, its error
      exceeds it, or what groups surely differ by, or the report says to use none; of a share why a report sets it back;
    - ``noise`` and ``inside``, what the standard error is made of: of counts, and of where values lie in a cell.

    ``attrs["value"]`` is the category of shares; ``attrs["notes"]`` say what was joined or left out.

    Args:
        run: the run's name, or its result.
        column: of numbers or dates, or a boolean; of categories with ``value``.
        by: the column, or the columns, whose values make the groups; None makes none. A number or a date alone makes
            about eight ranges, as in a report, and ``{"age": None}`` a group of each counted value. A dictionary joins:
            ``{"age": [0, 18, 65]}``, each from an edge up to the next one, or ``{"age": 10}``, a width; ``"08:00"``, a
            time; ``{"ward": [["north", "south"]]}``, categories. Counted ranges go where their middle lies.
        value: the category whose share is asked for.
        total: whether totals are asked for; dates and times of day have none.
        home: where state lies; by default the result's, ``NACRE_HOME``, or ``.nacre``.

    Raises:
        NacreError: categories have no ``value``, edges are none, or the release counts none of these columns together.
    """
    from nacre.listing import Listing
    from tasks.stages.means import means as means_of

    frame = means_of(run_of(run, home), column, by, value, total)
    frame.attrs = {key: [*map(groups_in_python, one)] if key == "notes" else one for key, one in frame.attrs.items()}
    return Listing.of(frame)
