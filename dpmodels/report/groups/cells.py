"""The cells of counted columns as tables, a row a cell: what it is called, what lies in it, and its count.

Privacy: post-processing of released counts and public noise scales.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Floats, Whole
from dpmodels.methods.parts.marginals import NoisyTable
from dpmodels.report.derived.counted import NULL
from dpmodels.report.noisy_tables import PARTS, Counted, Counts

NUMBERS = ("low", "high", "mean", "stddev")
"""What is said of the values in a cell of a column of numbers or dates."""
DAY = "D"
SECONDS = {DAY: 86_400, "h": 3600, "m": 60, "s": 1}
"""Seconds of each tick of dates, by numpy's name for it."""


class Way(NamedTuple):
    """Tables that the mean of a column by groups follows from: the sum of the means of each.

    Attributes:
        tables: one for each term of its formula, by what that is; or one alone by an empty text.
        merged: the cell of each fine one of every column that was counted for the first. Shapes: [fine cells].
    """

    tables: dict[str, pa.Table]
    merged: dict[str, Whole]


def ways_of(counted: Counted, groups: Sequence[str], column: str, as_category: bool = False) -> list[Callable[[], Way]]:
    """Return what reads the cells of a column beside those of the columns that make groups, by every table to be tried.

    A column that follows from others is counted as it is, or by its formula, or term by term. ``as_category`` asks for
    the values of a column as they are called, also where they are numbers. What is returned raises ``Unsuitable`` where
    the release has not counted what is needed together, or tells too little.
    """
    ways = list[Callable[[], Way]]()
    for terms in [[""]] if as_category else counted.ways(groups, column):
        names = list(groups) if terms[0] else [*groups, column]
        tables = counted.tables(names, terms[0]) if len(terms) == 1 and not as_category else []
        ways += [partial(_way, counted, groups, column, terms, of) for of in (*tables, *([None] * (not tables)))]
    return ways


def _way(
    counted: Counted, groups: Sequence[str], column: str, terms: Sequence[str], of: tuple[str, NoisyTable] | None
) -> Way:
    parts = [_beside(counted, groups, column, term, of) for term in terms]
    return Way({term: table for term, (table, _) in zip(terms, parts, strict=True)}, parts[0][1])


def _beside(
    counted: Counted, groups: Sequence[str], column: str, term: str, of: tuple[str, NoisyTable] | None = None
) -> tuple[pa.Table, dict[str, Whole]]:
    """Lay the cells of groups out beside a column, or beside what a term of its formula gives."""
    names = [*groups, column]
    cells = counted.cells(groups if term else names, groups, term, of)
    columns = _columns(cells.counts, names)
    for name, labels in cells.groups.items():
        columns[name] = pa.array(labels, pa.string()).dictionary_encode()
    if cells.moments is not None:
        is_null = np.isnan(cells.moments.mean).ravel()
        labels = [PARTS.join(row) for row in cells.counts.rows["cells"].to_pylist()]
        columns[column] = pa.array(np.where(is_null, NULL, labels), pa.string()).dictionary_encode()
        for figure, values in cells.moments._asdict().items():
            columns[apart(f"{column}_{figure}", names)] = pa.array(values.ravel(), mask=is_null)
    if cells.ends is not None:
        columns |= _between(columns, apart(f"{column}_mean", names), apart(f"{column}_stddev", names), cells.ends)
    ordered = sorted(columns, key=lambda name: names.index(name) if name in names else len(names))
    return pa.table({name: columns[name] for name in ordered} | _counts(cells.counts, names)), cells.merged


def _between(columns: dict[str, pa.Array], mean: str, stddev: str, ends: tuple[Floats, Floats]) -> dict[str, pa.Array]:
    """Return means and standard deviations of the values in cells that lie between two ends; dates stay as they are."""
    if mean not in columns or not pa.types.is_floating(columns[mean].type):
        return {}
    low, high = (one.ravel() for one in ends)
    means, stddevs = (columns[one].to_numpy(zero_copy_only=False) for one in (mean, stddev))
    held = np.clip(means, low, high), np.minimum(stddevs, np.maximum(high - low, 0.0) / 2)
    return {name: pa.array(one, mask=np.isnan(means)) for name, one in zip((mean, stddev), held, strict=True)}


def tidy(counts_of: Counts) -> pa.Table:
    """Lay counts out with a column for each column of theirs, whose cells keep their order; numbers have bounds."""
    names = counts_of.rows["columns"][0].as_py()
    return pa.table(_columns(counts_of, names) | _counts(counts_of, names))


def _columns(counts_of: Counts, names: Sequence[str]) -> dict[str, pa.Array]:
    """Return what the cells of those columns that have a name in ``names`` are called, and what lies in them."""
    table, columns = counts_of.rows, dict[str, pa.Array]()
    rows = table.select(["cells", *NUMBERS]).to_pydict()
    for axis, name in enumerate(table["columns"][0].as_py()):
        if name not in names:
            continue
        columns[name] = pa.array([row[axis] for row in rows["cells"]], pa.string()).dictionary_encode()
        numbers = {f"{name}_{part}": [row[axis] for row in rows[part]] for part in NUMBERS}
        if any(low is not None for low in numbers[f"{name}_low"]):
            tick = counts_of.ticks.get(name, "")
            columns |= {apart(figure, names): _side(side, figure, tick) for figure, side in numbers.items()}
    return columns


def _counts(counts_of: Counts, names: Sequence[str]) -> dict[str, pa.Array]:
    """Return the counts of cells, with their errors and shares, under names that no column has."""
    table, counts = counts_of.rows, counts_of.rows["count"].to_numpy()
    figures = {"count": counts, "standard_error": table["standard_error"].to_numpy(), "share": counts / counts.sum()}
    return {apart(name, names): pa.array(values) for name, values in figures.items()}


def _side(side: Sequence[float | None], figure: str, tick: str) -> pa.Array:
    """Return a figure of the values in each cell: a number, or of dates in ticks a date, a moment or a duration."""
    if not tick:
        return pa.array(side, pa.float64())
    whole = pa.array([None if one is None else round(one * SECONDS[tick]) for one in side], pa.int64())
    if figure.endswith("_stddev"):
        return whole.cast(pa.duration("s"))
    moments = whole.cast(pa.timestamp("s"))
    return moments.cast(pa.date32()) if tick == DAY and not figure.endswith("_mean") else moments


def apart(figure: str, columns: Sequence[str]) -> str:
    """Return the name of a figure beside columns: with a ``_`` behind it where one of them is called as it is."""
    return f"{figure}_" if figure in columns else figure
