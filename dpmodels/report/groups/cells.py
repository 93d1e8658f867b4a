"""The cells of counted columns as tables, a row a cell: what it is called, what lies in it, and its count.

Privacy: post-processing of released counts and public noise scales.
"""

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Floats, Mask, Whole
from dpmodels.contract.columns import Continuous, Derived, Modelled
from dpmodels.contract.derivation.reach import Ends
from dpmodels.methods.parts.marginals import NoisyTable
from dpmodels.plural import OF_CATEGORIES, values_in_words
from dpmodels.report.bins import cell_label, group_labels
from dpmodels.report.counts.noisy_tables import Counted, Counts
from dpmodels.report.counts.table_rows import PARTS
from dpmodels.report.derived.counted import NULL, labels_of
from dpmodels.report.derived.possible import Rules

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("low", "high", "mean", "stddev")
"""What is said of the values in a cell of a column of numbers or dates."""
TOTALS = ("total", "total_variance")
"""What a cell has of the rows of its group, as all tables tell these, and of the variance of their noise."""
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


@dataclass(frozen=True)
class Inside:
    """Which fine cells of the columns that make groups are in each.

    Attributes:
        rules: those of the rows.
        columns: a column that was counted for each that makes groups, and which of its fine cells are called so.
    """

    rules: Rules
    columns: Sequence[tuple[str, Mapping[str, Mask]]]

    @classmethod
    def of(cls, counted: Counted, groups: Sequence[str], merged: Mapping[str, Whole]) -> "Inside":
        """Describe groups; ``merged`` has the cell of each fine one of every column that was counted."""
        return cls(counted.rules, [_called(counted, name, merged) for name in groups])

    def between(self, group: Hashable, formula: str) -> Ends:
        """Return between what rules leave a formula in a group, which is called after a value of each column."""
        low, high = -math.inf, math.inf
        for name, inside in self._of(group):
            least, most = self.rules.between(formula, name, inside)
            low, high = max(low, least), min(high, most)
        return (low, high) if low <= high else (-math.inf, math.inf)

    def fixed(self, group: Hashable, formulas: Collection[str]) -> dict[str, float]:
        """Return what those columns and formulas are that have a single value in a group."""
        ends = {one: self.between(group, one) for one in formulas}
        return {one: low for one, (low, high) in ends.items() if low == high}

    def _of(self, group: Hashable) -> Iterator[tuple[str, Mask]]:
        """Yield the columns of which it is known which fine cells are in a group, and these."""
        labels = group if isinstance(group, tuple) else (group,)
        for (name, cells), label in zip(self.columns, labels, strict=False):
            parts = [str(label)] if str(label) in cells else str(label).split(OF_CATEGORIES)
            if {*parts} <= cells.keys():
                yield name, np.logical_or.reduce([cells[part] for part in parts])


def _called(counted: Counted, name: str, merged: Mapping[str, Whole]) -> tuple[str, dict[str, Mask]]:
    """Return the column that groups are counted by, and by what each cell is called which fine ones are in it."""
    follows = counted.columns[name]
    base = follows.operands[0] if isinstance(follows, Derived) else name
    column, merge = counted.values.columns[base], merged[base]
    called = labels_of(follows, merge, counted.values) if isinstance(follows, Derived) else keys_of(column, merge)
    names = np.array(called, dtype=object)[merge]
    return base, {label: np.asarray(names == label, dtype=np.bool_) for label in dict.fromkeys(called)}


def keys_of(column: Modelled, merge: Whole) -> list[str]:
    """Return what a table of cells calls each cell of a column. Shapes: ``merge`` the cell of each fine one."""
    if isinstance(column, Continuous):
        return [values_in_words(names) for names in group_labels(column, merge)]
    fine = [np.flatnonzero(merge == cell) for cell in range(int(merge.max()) + 1)]
    return [OF_CATEGORIES.join(cell_label(column, int(one)) for one in each) for each in fine]


def summed(cells: "pd.DataFrame", names: Sequence[str], sums: Sequence[str]) -> "pd.DataFrame":
    """Add the figures of cells up that are called alike by the columns ``names``; the last is a standard error."""
    *_, error = sums
    cells = cells.assign(**{error: cells[error] ** 2})
    others = [one for one in cells if one not in (*names, *sums)]
    how = {one: "first" for one in others} | dict.fromkeys(sums, "sum")
    whole: pd.DataFrame = cells.groupby(list(names), observed=True, sort=False, as_index=False).agg(how)
    return whole.assign(**{error: whole[error] ** 0.5})


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
    cells = counted.cells(groups if term else names, groups, term, of, column)
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
    columns |= {apart(name, names): pa.array(one) for name, one in zip(TOTALS, cells.totals, strict=True)}
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
