"""How a column is shown: its public cells, joined to two dozen bins at most and named in the schema's own units."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.clock import clock_of, has_seconds, time_of_day
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.columns import Continuous, Datetime, Integer, Modelled, Number, names_of
from dpmodels.contract.continuous import decode_numbers
from dpmodels.report.within import NAMED

MOST = 24
"""Bins of an interval column, if nothing else is asked for."""


@dataclass(frozen=True)
class Bins:
    """The bins of one column.

    Attributes:
        labels: one a bin; bins of values come first, then "exactly 0" and "null" where the column has them.
        bin_of_cell: from cell to bin.
        values: bins of values; all of them are in order.
        ordered: whether the values lie on an axis.
    """

    labels: tuple[str, ...]
    bin_of_cell: NDArray[np.int64]
    values: int
    ordered: bool

    @classmethod
    def of(cls, column: Modelled, most: int = MOST) -> "Bins":
        """Cut a column's cells into bins, values on an interval into ``most`` at most, from the schema alone."""
        if not isinstance(column, Continuous):
            return cls(_names(column), np.arange(column.size), column.size, ordered=False)
        first, last = column.grid.bounds
        group = np.arange(column.cells) // -(-column.cells // most)
        if column.log and column.decimals is not None and column.cells > most:  # cells of single points are not equal
            bin_of_cell = np.minimum(column.interval.to_unit(first) * most, most - 1).astype(np.int64)
            group = np.unique(bin_of_cell, return_inverse=True)[1]
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        ends = zip(first[starts], last[[*(starts[1:] - 1), -1]], strict=True)
        labels = [range_label(column, float(low), float(high)) for low, high in ends]
        specials = states_of(column)
        bin_of_cell = np.concatenate([group, len(labels) + np.arange(len(specials))])
        return cls((*labels, *specials), bin_of_cell, len(labels), ordered=True)

    def join(self, cells: Floats) -> Floats:
        """Add the numbers of the cells up by bin. Shapes: [cells] -> [bins]."""
        total: Floats = np.bincount(self.bin_of_cell, cells, minlength=len(self.labels)).astype(np.float64)
        return total

    @property
    def sizes(self) -> Floats:
        """Count the cells of each bin."""
        return self.join(np.ones(len(self.bin_of_cell)))


class CellTally:
    """Counts a stream of records by cell, column by column, and adds the values of number columns up.

    Attributes:
        sums: of each column its values and their weights; both are 0 of columns without numbers. Shapes: [columns, 2].
    """

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.rows: float = 0
        self.cells = [np.zeros(size) for size in codec.cell_sizes]
        self.sums = np.zeros((len(self.cells), 2))

    def add(self, records: Records, units: float | None = None, weights: Floats | None = None) -> None:
        """Count one more batch; of so many ``units``, where rows of different weight make one."""
        self.rows += len(records) if units is None else units
        for counts, cells in zip(self.cells, self.codec.to_cells(records).T, strict=True):
            counts += np.bincount(cells, weights, minlength=len(counts))
        for place, column in enumerate(self.codec.columns.values()):
            if isinstance(column, Integer | Number):
                values = decode_numbers(column, records.states[:, place], records.values[:, place])
                there = ~np.isnan(values)
                weight = np.ones(len(values)) if weights is None else weights
                self.sums[place] += np.where(there, values, 0.0) @ weight, there @ weight

    def mean(self, name: str) -> float | None:
        """Return the mean of a number column's values, nulls left out; None where there are none."""
        total, weight = self.sums[[*self.codec.columns].index(name)].tolist()
        return total / weight if weight else None

    def join(self, other: "CellTally") -> None:
        """Add the counts of other rows."""
        self.rows += other.rows
        for counts, more in zip(self.cells, other.cells, strict=True):
            counts += more
        self.sums += other.sums


def cell_label(column: Modelled, cell: int) -> str:
    """Name one cell by its values, or by the state it stands for."""
    if not isinstance(column, Continuous):
        return _names(column)[cell]
    if cell >= column.cells:
        return states_of(column)[cell - column.cells]
    first, last = (bounds[cell] for bounds in column.grid.bounds)
    return range_label(column, float(first), float(last))


def group_labels(column: Modelled, group: NDArray[np.int64]) -> list[list[str]]:
    """Name each group of a column's cells by what is in it: a range, states without a value, or categories.

    Of many categories the first are named, and how many more there are. Shapes: ``group`` one number a cell, from 0.
    """
    labels = []
    for one in range(int(group.max()) + 1):
        cells = np.flatnonzero(group == one)
        if isinstance(column, Continuous) and (values := cells[cells < column.cells]).size:
            first, last = column.grid.bounds
            cells = cells[len(values) :]
            named = [range_label(column, float(first[values[0]]), float(last[values[-1]]))]
        else:
            named = []
        named += [cell_label(column, int(cell)) for cell in cells[:NAMED]]
        labels.append(named + [f"{len(cells) - NAMED:,} more"] * (len(cells) > NAMED))
    return labels


def states_of(column: Continuous) -> list[str]:
    """Name the cells of a column that hold no value of its interval, which stand behind all others."""
    return ["exactly 0"] * (column.zero_state is not None) + ["null"] * column.nullable


def _names(column: Modelled) -> tuple[str, ...]:
    return (*names_of(column), *["null"] * column.nullable)


def range_label(column: Continuous, low: float, high: float) -> str:
    """Name a bin by the values it begins and ends with."""
    first, last = written(column, low), written(column, high)
    return first if first == last else f"{first} to {last}"


def written(column: Continuous, x: float) -> str:
    """Write one value in the units of its column."""
    if isinstance(column, Datetime):
        moment = np.datetime64(int(x), column.tick)  # type: ignore[call-overload]
        return str(moment).replace("T", " ")
    if clock := clock_of(column):
        return time_of_day(x, clock, has_seconds(column))
    if column.decimals is None:
        return f"{x:.4g}" if abs(x) < 10_000 or abs(x) >= 1e15 else f"{x:.0f}"
    return f"{x:.{column.decimals}f}" if column.decimals <= 4 or abs(x) >= 1e6 else f"{x:.6g}"
