"""Groups that a number makes where a workload names it with another one: its values, or ranges of about equal size.

Of two numbers the one of at most twelve values makes groups, else a whole number rather than one with decimals, else
the one that is named last; a date makes groups of any number. Cells are joined as they are counted, so the ends are
theirs.

Privacy: post-processing of released counts and public noise scales.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmodels.arrays import Floats, Mask, Whole
from dpmodels.clock import clock_of, counted_time
from dpmodels.contract.columns import Continuous, Datetime, Derived, Modelled, copy_of
from dpmodels.errors import Unsuitable
from dpmodels.report.bins import group_labels, states_of
from dpmodels.report.groups.cells import Way, keys_of, summed
from dpmodels.report.groups.means import Measured, Names, unsure

if TYPE_CHECKING:
    import pandas as pd

DATE = 4
"""How well dates make groups, which have no means themselves."""
ROUNDED = 1e-3
"""Part of the largest value by which an end of a range may be off that is written with four digits."""
SINGLE, RANGES = 12, 8
"""Cells of values up to which each is a group by itself, and ranges that more are joined to."""
LEAST = 0.04
"""Part of the rows up to which a range is joined to the smaller one beside it."""


def grouped_by(first: str, second: str, columns: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return of two columns of numbers or dates, as a workload names them, which has the mean and which makes groups.

    None where one is no such column, or both are dates. A derived number is counted by another column in its place.
    """
    ranks = [_rank(name, columns) for name in (first, second)]
    if None in ranks or ranks == [DATE, DATE]:
        return None
    by, column = (first, second) if (ranks[0] or 0) > (ranks[1] or 0) else (second, first)
    return None if isinstance(columns[by], Derived) else (column, by)


def _rank(name: str, columns: Mapping[str, Any]) -> int | None:
    """Return how well the values of a column make groups; None of what is no column of numbers or dates."""
    column = columns[name]
    if isinstance(column, Derived):
        return 0 if isinstance(columns.get(copy_of(name, columns)), Continuous) else None
    if not isinstance(column, Continuous):
        return None
    if isinstance(column, Datetime):
        return DATE
    decimals = column.decimals
    is_few = decimals is not None and (column.high - column.low) * 10**decimals < SINGLE
    return 3 if is_few else 2 if decimals == 0 else 1


def ranges_of(column: Continuous, merge: Whole, counts: Floats) -> Whole:
    """Return the group of each fine cell: of few counted cells each, of more ranges of about equal released size.

    Shapes: ``merge``, the counted cell of each fine one, and what is returned, [fine cells]; ``counts`` [cells].

    Raises:
        Unsuitable: a cell has values beside what is none, such as null in a half of the rows.
    """
    first = np.array([np.flatnonzero(merge == cell)[0] for cell in range(len(counts))])
    is_value = first < column.cells
    if any("null" in names[1:] for names in group_labels(column, merge)):
        raise Unsuitable("nulls are counted among values")
    order = [int(cell) for cell in np.argsort(first) if is_value[cell]]
    number = np.zeros(len(counts), dtype=np.int64)
    number[order] = _joined(np.maximum(counts[order], 0.0))
    apart = [int(cell) for cell in np.argsort(first) if not is_value[cell]]
    number[apart] = number[order].max(initial=-1) + 1 + np.arange(len(apart))
    group: Whole = number[merge]
    return group


def best_ranges(
    tables: Iterable[Callable[[], Way]],
    by: str,
    of: Continuous,
    means_by: Callable[[Way, Whole | None], tuple[Measured, Mapping[str, Whole]]],
) -> tuple[Whole, Whole]:
    """Return the ranges of a number by which means have the least error, of every table's own; and the cells of that.

    Args:
        tables: each that the means may follow from.
        by: the number.
        of: its column.
        means_by: returns the means by one table, in its own cells or in ranges, and the cell of each fine one.

    Raises:
        Unsuitable: none of the tables tells means by ranges.
    """
    tried, faults = list[tuple[tuple[int, float], Whole, Whole]](), list[Unsuitable]()
    for read in tables:
        try:
            way = read()
            measured, merged = means_by(way, None)
            counts = {str(key): count for key, count in measured.whole.groups["count"].items()}
            sizes = np.array([counts.get(key, 0.0) for key in keys_of(of, merged[by])])
            group = ranges_of(of, merged[by], sizes)
            tried.append((unsure(means_by(way, group)[0]), group, merged[by]))
        except Unsuitable as fault:
            faults.append(fault)
    if not tried:
        raise faults[0]
    _, group, merge = min(tried, key=lambda one: one[0])
    return group, merge


def _joined(sizes: Floats) -> Whole:
    """Return the range of each of some neighboring cells. Shapes: [cells] both."""
    place = np.arange(len(sizes))
    if len(sizes) > SINGLE:
        middles = np.cumsum(sizes) - sizes / 2
        place = np.minimum(RANGES * middles / max(float(sizes.sum()), 1e-300), RANGES - 1).astype(np.int64)
    group: Whole = np.unique(place, return_inverse=True)[1]
    while (of_groups := np.bincount(group, sizes)).min() < LEAST * of_groups.sum() and len(of_groups) > 2:
        least = int(of_groups.argmin())
        beside = [one for one in (least - 1, least + 1) if 0 <= one < len(of_groups)]
        group[group == least] = min(beside, key=lambda one: float(of_groups[one]))
        group = np.unique(group, return_inverse=True)[1]
    return group


def cells_of_ranges(labels: Sequence[Sequence[str]], column: Continuous) -> list[Mask] | None:
    """Return which fine cells of a schema's column reach into each range of values that is called so.

    None if no such ranges can be: they lie within the bounds, one behind the other, and each is named once. A release
    may have cut the column into other cells, so those at the ends of a range may reach beyond it. Of exactly 0 and of
    null it is the cell of that. Shape: a mask [fine cells] of each.
    """
    states = {name: column.cells + place for place, name in enumerate(states_of(column))}
    (first, last), size, masks = column.grid.bounds, column.cells + len(states), list[Mask]()
    before, off = float(column.low), ROUNDED * max(abs(column.low), abs(column.high)) * (column.decimals is None)
    for names in labels:
        inside = np.zeros(size, dtype=np.bool_)
        for name in names:
            if name in states:
                inside[states.pop(name)] = True
                continue
            ends = ends_of_range(name, column)
            if ends is None or not before - off <= ends[0] <= ends[1] <= column.high + off:
                return None
            inside[: column.cells] |= (last >= ends[0] - off) & (first <= ends[1] + off)
            before = ends[1]
        masks.append(inside)
    return masks


def ends_of_range(name: str, column: Continuous) -> tuple[float, float] | None:
    """Read between what the values of a range lie, of a column of dates in ticks; None where that cannot be read."""
    low, _, high = name.partition(" to ")
    try:
        ends = [_value(one, column) for one in (low, high or low)]
    except (ValueError, OverflowError):
        return None
    return ends[0], ends[1]


def _value(text: str, column: Continuous) -> float:
    if isinstance(column, Datetime):
        return float(np.datetime64(text.replace(" ", "T"), column.tick).astype(np.int64))  # type: ignore[call-overload]
    return float(counted_time(text, clock)) if (clock := clock_of(column)) else float(text)


def in_ranges(
    cells: "pd.DataFrame", by: str, column: str, names: Names, of: Modelled, merge: Whole, group: Whole
) -> "pd.DataFrame":
    """Return cells of a column by another one, with those joined that are in one range of this.

    ``of`` is the column that makes groups. Shapes: ``merge`` and ``group``, the counted cell of each of its fine ones
    and the range, [fine cells].

    Raises:
        Unsuitable: a counted cell of this table is in two ranges.
    """
    if any(len(np.unique(group[merge == cell])) > 1 for cell in range(int(merge.max()) + 1)):
        raise Unsuitable(f"the ranges of {by} are not those that are counted beside {column}")
    keys, range_of = keys_of(of, group), {key: int(group[merge == at][0]) for at, key in enumerate(keys_of(of, merge))}
    called = {key: keys[place] for key, place in range_of.items()}
    sums = [one for one in (names.count, names.total, names.variance) if one in cells]
    renamed = cells.assign(**{by: cells[by].astype(object).map(lambda key: called[str(key)])})
    return summed(renamed, [by, column], (*sums, names.error))
