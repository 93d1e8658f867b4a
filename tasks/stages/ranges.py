"""The cells of a released table made ready for means: ranges joined to wider ones, and shares of a category."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence, Set
from datetime import date, time
from itertools import pairwise
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dpmodels.clock import WRITTEN, clock_of, counted_time, has_seconds, time_of_day
from dpmodels.codec.text_values import TRUTH
from dpmodels.errors import Unsuitable, near
from dpmodels.groups_in_words import EACH, EDGES, grouped
from dpmodels.plural import OF_CATEGORIES
from dpmodels.report.groups.rates import YES
from tasks.stages.bands import BANDS, VALUE, Bands

if TYPE_CHECKING:
    import pandas as pd

Groups = str | Sequence[str] | Mapping[str, object] | None
"""What makes groups: columns, or a dictionary that says of each into which ranges its numbers or dates are joined, or
which of its categories; None leaves each value that is counted by itself."""
RANGES = "ranges"
"""What numbers and dates are joined to where nothing is said: the ranges of a report."""
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
MOST_BINS = 1000
LEAST = 1e-300
"""What a width is more than, and one divided by it is less."""
NULL = "null"


def columns_and_bins(by: Groups) -> tuple[list[Any], dict[str, Any], bool]:
    """Return the columns that make groups, of those that are joined their edges, or a width, and whether one is alone
    of which nothing is said.

    Raises:
        Unsuitable: these are none.
    """
    if isinstance(by, Mapping):
        check_bins(bins := {name: edges for name, edges in by.items() if edges not in (None, RANGES)})
        return list(by), bins, [*by.values()] == [RANGES]
    names = [by] if isinstance(by, str) else list(by or ())
    return names, {}, len(names) == 1


def groups_of(words: Sequence[str]) -> dict[str, object]:
    """Read groups as they are typed: a column, and of numbers or dates behind ``=`` edges, a width or ``each``.

    Raises:
        Unsuitable: a column is named twice, or what stands behind ``=`` is no number and no list.
    """
    groups = dict[str, object]()
    for word in words:
        name, sign, text = word.rpartition("=")
        if not sign and "," in word:
            raise Unsuitable(
                f"name each group by itself, as --by {' --by '.join(part.strip() for part in word.split(','))}"
            )
        column = name if sign else word
        if column in groups:
            raise Unsuitable(f"name {column} once among the groups")
        groups[column] = (None if text == EACH else _edges_in(word, text)) if sign else RANGES
    return groups


def _edges_in(word: str, text: str) -> object:
    """Read a list of edges, or a width."""
    parts = [part.strip() for part in text.split(",")]
    if "+" in text and DAY.search(text) is None:
        return [[one.strip() for one in part.split("+")] for part in parts]
    try:
        return float(text) if len(parts) == 1 else [float(part) for part in parts]
    except ValueError:
        if len(parts) > 1 and (all(map(DAY.fullmatch, parts)) or all(map(WRITTEN.fullmatch, parts))):
            return parts
    raise Unsuitable(
        f"the edges in {word} are none: write numbers, days or times of day, as age=0,18,65, "
        "seen=2020-01-01,2020-07-01 or at=08:00,12:30,20:00; and join categories by +, as ward=north+south"
    )


def check_bins(bins: Mapping[str, Any]) -> None:
    """Refuse what can be no edges of ranges and no width.

    Raises:
        Unsuitable: it is such.
    """
    for name, one in bins.items():
        is_list = hasattr(one, "__len__") and not isinstance(one, str | bytes | Mapping | Set)
        edges = list(one) if is_list else []
        if edges and all(isinstance(each, list | tuple) for each in edges):
            _check_categories(name, edges)
            continue
        width = grouped(name, "10")
        example = f"write edges that rise, as in {grouped(name, EDGES)}, or a width above 0, as in {width}"
        if edges:
            try:
                rise = all(low < high for low, high in pairwise(edges))
            except TypeError:
                rise = False
            if len(edges) < 2 or not rise or len(edges) > MOST_BINS:
                raise Unsuitable(f"the edges of {name} are none: {example}")
        elif not _is_width(one):
            raise Unsuitable(f"{name} is given no edges: {example}")


def _check_categories(name: str, groups: Sequence[Sequence[object]]) -> None:
    """Refuse categories to be joined that are none, or are in two groups.

    Raises:
        Unsuitable: they are such.
    """
    every = [one for group in groups for one in group]
    are_categories = all(isinstance(one, str | Real) for one in every)
    if (
        not all(groups)
        or not all(map(str, every))
        or not are_categories
        or len({*map(_as_category, every)}) < len(every)
    ):
        raise Unsuitable(
            f"the groups of {name} are none: list categories, each once, as in {grouped(name, 'north+south')}"
        )


def _as_category(value: object) -> str:
    """Write a category as a release calls it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_width(one: object) -> bool:
    """Tell whether it is a number above 0 that a column can be divided by."""
    if isinstance(one, bool) or not isinstance(one, Real):
        return False
    try:
        return LEAST < float(one) < 1 / LEAST
    except OverflowError:
        return False


def joined(
    cells: "pd.DataFrame",
    bins: Mapping[str, Any],
    names: Sequence[str],
    sums: tuple[str, ...],
    contracted: Mapping[str, Any] = MappingProxyType({}),
) -> "pd.DataFrame":
    """Join the cells of columns to ranges or groups of categories: counts add up, and their errors by their squares.

    A cell belongs to the range in which its middle lies; what lies in none is left out, and nulls stay by themselves.
    Bands between edges that get none are named, and refused where none gets one; of a width they are left out.
    Bounds are those of the cells that were joined, so they say what is really counted. ``names`` are the columns whose
    cells stay apart from each other, and ``sums`` the names of what adds up, the last of which is a standard error;
    ``contracted`` are the columns of the schema, which say of what times of day are counted in. ``attrs`` of the result
    have the bands.
    """
    from dpmodels.report.groups.cells import apart, summed

    bands = dict[str, Bands]()
    for name, edges in bins.items():
        ends = tuple(apart(f"{name}_{end}", names) for end in ("low", "high"))
        if leaves_out(edges):
            cells, bands[name] = _labelled(cells, name, edges, ends, contracted.get(name))
        else:
            cells = _in_groups(cells, name, edges, ends)
    whole = summed(cells, names, sums)
    whole.attrs[BANDS] = bands
    return whole


def leaves_out(joined_by: Any) -> bool:
    """Tell whether what cells are joined by are edges or a width, beyond which rows are left out, and no categories."""
    return not hasattr(joined_by, "__len__") or not isinstance(next(iter(joined_by)), list | tuple)


def _in_groups(
    cells: "pd.DataFrame", name: str, groups: Sequence[Sequence[object]], ends_of: tuple[str, ...]
) -> "pd.DataFrame":
    """Call the cells of categories that are joined after all of these; the others stay as they are called."""
    if ends_of[0] in cells:
        raise Unsuitable(f"column {name} has numbers or dates: join them by edges, as in {grouped(name, EDGES)}")
    labels = [str(one) for one in cells[name].astype(object).unique()]
    joint = {label: parts for label in labels if not {*(parts := label.split(OF_CATEGORIES))} & {*labels}}
    called = {label: label for label in labels}
    for group in groups:
        asked = [_as_category(one) for one in group]
        inside = [one for one in labels if one in asked or (one in joint and {*joint[one]} <= {*asked})]
        reached = {one for label in inside for one in (label, *joint.get(label, ()))}
        for one in (each for each in asked if each not in reached):
            beside = [label for label, parts in joint.items() if one in parts]
            if beside:
                raise Unsuitable(f"the release counts {beside[0]} of {name} together: join all of them, or none")
            raise Unsuitable(f"the release counts no {one} of {name}, but {', '.join(labels[:10])}{near(one, labels)}")
        is_taken = OF_CATEGORIES.join(asked) in {*labels} - {*inside}  # by a category that is called so
        between = " + " if is_taken else OF_CATEGORIES
        called |= dict.fromkeys(inside, between.join(asked))
    return cells.assign(**{name: cells[name].astype(object).map(lambda one: called[str(one)])})


def _labelled(
    cells: "pd.DataFrame", name: str, edges: Any, ends_of: tuple[str, ...], column: Any = None
) -> "tuple[pd.DataFrame, Bands]":
    """Give each cell the label and the bounds of its range, and say of the bands where they begin and end.

    ``ends_of`` names the bounds; ``column`` is that of the schema, which counts times of day where it has a clock.
    """
    import pandas as pd

    low, high = ends_of
    if low not in cells:
        raise Unsuitable(
            f"column {name} has no numbers or dates to join: leave its edges out, as in {grouped(name)}, or list "
            f"categories to join, as in {grouped(name, 'north+south')}"
        )
    middle = cells[low] + (cells[high] - cells[low]) / 2
    least, most, is_value = cells[low].min(), cells[high].max(), middle.notna()
    limits = _limits(name, edges, least, most, clock_of(column))
    last = len(limits) - 2
    places = pd.Series(limits.searchsorted(middle.fillna(least), side="right") - 1, cells.index)
    places = places.mask(middle == limits.iloc[-1], last)
    is_listed = hasattr(edges, "__len__")
    uncounted = _uncounted(name, limits, places[is_value], (least, most), column) if is_listed else ()
    kept = ~is_value | places.between(0, last)
    is_cut = _are_cut(limits, cells[low][is_value], cells[high][is_value])
    left_out = [bool((is_value & beyond).any()) for beyond in (places < 0, places > last)]
    cells, ranges, values = cells[kept].copy(), places[kept], is_value[kept]
    ends = cells[values].groupby(ranges[values]).agg(low=(low, "min"), high=(high, "max"))
    begins, stops = ([_written(one, column) for one in ends[end]] for end in ("low", "high"))
    written = [f"{one} to {other}" for one, other in zip(begins, stops, strict=True)]
    bands = Bands(tuple(begins), stops[-1] if stops else "", is_cut, left_out[0], left_out[1], uncounted)
    cells[name] = cells[name].astype(object)
    for figure, figures in ((low, ends["low"]), (high, ends["high"]), (name, pd.Series(written, ends.index))):
        cells.loc[values, figure] = ranges[values].map(figures)
    return cells, bands


def _uncounted(
    name: str, limits: "pd.Series[Any]", places: "pd.Series[Any]", ends: tuple[Any, Any], column: Any
) -> tuple[tuple[Any, Any, str], ...]:
    """Return the ranges between the least and the most value in which no cell has its middle; ``places`` has its range.

    Raises:
        Unsuitable: no range has one.
    """
    every = [(limits.iloc[place], limits.iloc[place + 1]) for place in range(len(limits) - 1)]
    there = [place for place, (start, end) in enumerate(every) if start < ends[1] and end > ends[0]]
    empty = [every[place] for place in there if not (places == place).any()]
    said = [f"{_written(start, column)} to {_written(end, column)}" for start, end in empty]
    if empty and len(empty) == len(there):
        counted = f"`nacre marginals RUN {shlex.quote(name)}` has the ranges that are counted"
        between = f"from {', '.join(said)}"
        raise Unsuitable(f"the release counts no range of {name} whose middle lies {between}: make it wider; {counted}")
    return tuple((*one, words) for one, words in zip(empty, said, strict=True))


def _are_cut(limits: "pd.Series[Any]", lows: "pd.Series[Any]", highs: "pd.Series[Any]") -> bool:
    """Tell whether a limit lies within a cell, which is joined whole to one of the ranges beside it.

    Whole numbers end below where the next cell begins, others there; the last cell ends with the values of the column.
    """
    starts, most = {*lows}, highs.max()
    inside = (
        ((lows < one) & ((highs > one) | ((highs == one) & (one not in starts and one != most)))).any()
        for one in limits
    )
    return any(map(bool, inside))


def _limits(name: str, edges: Any, least: Any, most: Any, clock: int = 0) -> "pd.Series[Any]":
    """Return the limits of ranges: those that were given, or multiples of a width. Units: ``clock`` ticks a second."""
    import pandas as pd

    is_dated = isinstance(least, pd.Timestamp)
    if hasattr(edges, "__len__"):
        try:
            if is_dated and not all(isinstance(edge, date) or DAY.fullmatch(str(edge)[:10]) for edge in edges):
                raise ValueError
            if not is_dated:
                are_times = clock and all(isinstance(edge, str | time) for edge in edges)
                return pd.Series([float(counted_time(str(e), clock) if are_times else e) for e in edges])
            limits = pd.to_datetime(list(edges))
            if limits.tz is not None:
                raise ValueError
            return pd.Series(limits)
        except (ValueError, TypeError, OverflowError, AttributeError):
            numbers = "times of day, as '08:00', or numbers" if clock else "numbers"
            kind = "days, as '2020-01-31'" if is_dated else numbers
            raise Unsuitable(f"the edges of {name} must be {kind}") from None
    first, last = (0, MOST_BINS + 1) if is_dated else (math.floor(least / edges), math.floor(most / edges) + 1)
    if last - first > MOST_BINS:
        raise Unsuitable(f"a width makes no ranges of {name}: write its edges as a list")
    return pd.Series([place * float(edges) for place in range(first, last + 1)])


def _written(value: Any, column: Any = None) -> str:
    """Write an end of a range; of a moment the day, and of a column with a clock the time of day."""
    if clock := clock_of(column):
        return time_of_day(value, clock, has_seconds(column))
    return f"{value:.10g}" if isinstance(value, int | float) else str(value)[:10]


def with_shares(
    cells: "pd.DataFrame", column: str, value: object, figures: Sequence[str], is_boolean: bool
) -> "pd.DataFrame":
    """Give the cells of a column of categories a mean, 1 of the one that is asked for and 0 of others.

    No value of a cell differs from it, so nothing is added to the error; nulls have no mean. Of a boolean and of yes
    and no it is true and yes that are asked for where nothing is.

    Raises:
        Unsuitable: the release does not count this category by itself.
    """
    if figures[0] in cells:
        if value is not None:
            raise Unsuitable(f"column {column} has numbers or dates, whose mean needs no value: leave it out")
        return cells
    labels = [str(one) for one in cells[column].astype(object).unique() if one != NULL]
    meant = [one for one in labels if one.casefold() in YES]
    others = {one.casefold() for one in labels if one not in meant[:1]}
    if value is None and len(meant) == 1 and (is_boolean or (others and others <= {*YES[meant[0].casefold()]})):
        value = meant[0]
    if value is None:
        return cells
    asked = str(value).lower() if isinstance(value, bool) else str(value)
    if asked not in labels:
        if is_boolean and (truth := str(TRUTH.get(asked.casefold()))) in labels:
            raise Unsuitable(f"{asked} of {column} is counted as {truth}: ask for --value {truth}")
        there = f"there are {', '.join(labels[:10])}{near(asked, labels)}"
        raise Unsuitable(f"the release does not count {asked} of {column} by itself; {there}")
    texts = cells[column].astype(object)
    known = texts.map({one: float(one == asked) for one in labels})
    cells[figures[0]], cells[figures[1]] = known.astype(float), 0.0
    cells.attrs[VALUE] = asked
    return cells


def names_in(columns: Sequence[object]) -> list[str]:
    """Return the names of columns that were given one by one, or as one list."""
    if len(columns) == 1 and isinstance(columns[0], list | tuple):
        columns = columns[0]
    names = [name for name in columns if isinstance(name, str)]
    if len(names) < len(columns):
        raise Unsuitable('columns must be names, as in marginals(run, "age", "income")')
    return names
