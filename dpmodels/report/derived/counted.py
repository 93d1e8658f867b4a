"""The values of a formula in the cells of columns that were counted together, and their mean.

Let c be the noisy count of a cell, s its noise_stddev, and m and d the mean and the standard deviation of what the
formula gives of the values in the cell, if its columns do not depend on each other there. Then the mean is sum c m /
sum c. It is off by the noise, sqrt(sum (s (m - mean))^2) / sum c, and since values of one column may lie elsewhere in a
cell beside those of another, by about sqrt(sum (c d / 2)^2) / sum c. Where numbers rise or fall together within a cell,
the formula gives more or less there, and it may in all cells alike: by sum c b / sum c, where b is the most that this
moves m, or d where a maximum, a minimum or an absolute value changes sides within the cell.

Privacy: post-processing of released counts and public noise scales.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.derivation.monotone import is_monotone
from dpmodels.contract.derivation.tariff import is_placed
from dpmodels.contract.derivation.terms import has_kink, needs_values
from dpmodels.contract.formula import in_short, moment_of, names_in, reckon
from dpmodels.errors import Unsuitable
from dpmodels.groups_in_words import EDGES, grouped
from dpmodels.methods.parts.marginals import NoisyTable
from dpmodels.report.bins import cell_label, group_labels
from dpmodels.report.counts.cell_values import CellValues
from dpmodels.report.numbers import STANDS
from dpmodels.statistics.normal import NORMAL_95

RANGES = (
    "the release counts {name} in ranges of several values each, of which {formula} cannot be told: its values in the "
    "synthetic rows have no stated error"
)
SEVERAL = (
    "the release counts {name} in cells such as {cell}, in which it has several values: group by {name} itself, of "
    "numbers in bands such as {bands}"
)
HALVES = "the release counts {name} in cells that hold nulls among values"
NULL = "null"
INSIDE = 0.5
"""Part of the standard deviation of the values in a cell by which their mean may be another one beside those of another
column: a measured rule, and no proof (benchmarks.derived)."""
ALIKE = 1e-9
"""Part of what a formula gives up to which a difference is one of rounding."""


class Moments(NamedTuple):
    """What a formula gives in each cell. Shapes: those of the counts, NaN where it is null.

    Attributes:
        mean, stddev: of the values, if the columns do not depend on each other within the cell.
        shift: by how much the mean is off at most where they rise or fall together.
    """

    mean: Floats
    stddev: Floats
    shift: Floats


@dataclass(frozen=True)
class Points:
    """Values that stand for those in each cell of a column. Shapes: values and weights [cells, points].

    NaN stands for null. Of numbers they are two, which have the mean and the standard deviation of those in the cell.
    """

    values: Floats
    weights: Floats
    are_numbers: bool = False

    @property
    def pair(self) -> Floats:
        """Return two values of equal weight for each cell: its mean less and plus its standard deviation, within it."""
        mean = (self.weights * self.values).sum(axis=1)
        stddev = np.sqrt((self.weights * (self.values - mean[:, None]) ** 2).sum(axis=1))
        ends = self.values.min(axis=1), self.values.max(axis=1)
        return np.stack([np.maximum(mean - stddev, ends[0]), np.minimum(mean + stddev, ends[1])], axis=1)

    @property
    def are_exact(self) -> bool:
        """Tell whether all points of each cell are one value."""
        spread = np.where(self.weights > 0, self.values, self.values[:, :1]) - self.values[:, :1]
        return not np.nan_to_num(spread).any()


def values_in(name: str, numbers: Whole, values: CellValues) -> Points:
    """Return the points of each cell of a column. Shapes: numbers, the cell of each fine one, [n].

    Raises:
        Unsuitable: a cell has nulls among values.
    """
    column = values.columns[name]
    cells = int(numbers.max()) + 1
    fine = [np.flatnonzero(numbers == cell) for cell in range(cells)]
    if not isinstance(column, Continuous):
        return _of_categories(name, column, fine)
    points, weights = np.full((cells, 2), np.nan), np.full((cells, 2), 0.5)
    first, last = column.grid.bounds
    means, stddevs = values.of(name, numbers) or (np.empty(0), np.empty(0))
    for cell, inside in enumerate(fine):
        if inside[-1] < column.cells:
            ends = float(first[inside[0]]), float(last[inside[-1]])
            points[cell], weights[cell] = _two_points(float(means[cell]), float(stddevs[cell]), *ends)
        elif column.zero_state is not None and inside.tolist() == [column.cells]:
            points[cell] = 0.0
        elif inside[0] < column.cells:
            raise Unsuitable(HALVES.format(name=name))
    return Points(points, weights, are_numbers=True)


def _two_points(mean: float, stddev: float, low: float, high: float) -> tuple[Floats, Floats]:
    """Return two values between the ends of a cell, with weights, that have a mean and a standard deviation."""
    below, above = min(stddev, max(mean - low, 0.0)), min(stddev, max(high - mean, 0.0))
    if below < stddev and below > 0:
        above = min(stddev**2 / below, max(high - mean, 0.0))
    elif above < stddev and above > 0:
        below = min(stddev**2 / above, max(mean - low, 0.0))
    whole = below + above
    weights = np.array([above, below]) / whole if whole else np.array([0.5, 0.5])
    return np.array([mean - below, mean + above]), weights


def _of_categories(name: str, column: Modelled, fine: Sequence[Whole]) -> Points:
    """Return the numbers, or places, of the categories in each cell, all alike."""
    codes = _codes(column, sum(map(len, fine)))
    most = max(map(len, fine))
    points, weights = np.zeros((len(fine), most)), np.zeros((len(fine), most))
    for cell, inside in enumerate(fine):
        if np.isnan(codes[inside]).any() and not np.isnan(codes[inside]).all():
            raise Unsuitable(HALVES.format(name=name))
        points[cell] = codes[inside[0]]
        points[cell, : len(inside)], weights[cell, : len(inside)] = codes[inside], 1 / len(inside)
    return Points(points, weights)


def _codes(column: Modelled, size: int) -> Floats:
    """Return the number, or place, of each category as a formula has it, NaN of those that the schema does not list."""
    keys = getattr(column, "keys", ())
    codes = np.full(size, np.nan)
    codes[: len(keys)] = np.arange(len(keys)) if is_placed(column) else [float(key) for key in keys]
    return codes


def moments_of(formula: str, table: NoisyTable, values: CellValues, columns: Mapping[str, Any]) -> Moments:
    """Return mean and standard deviation of what a formula gives in each cell of a table, NaN where that is null.

    Args:
        formula: of columns of the table, without faults.
        table: the counts, of these columns and perhaps of others.
        values: what cells stand for.
        columns: those of the schema.

    Raises:
        Unsuitable: it is a date, it tells apart what ranges do not, or a cell has nulls among values.
    """
    if moment_of(formula, columns):
        raise Unsuitable(f"`{in_short(formula)}` is a date: ask for the columns that it follows from")
    axes = {name: table.names.index(name) for name in names_in(formula)}
    points = {name: values_in(name, table.cells_of[axis], values) for name, axis in axes.items()}
    for name in needs_values(formula):
        if not points[name].are_exact:
            raise Unsuitable(RANGES.format(name=name, formula=f"`{in_short(formula)}`"))
    order = sorted(axes, key=axes.__getitem__)
    given, weight = _given(formula, order, [(points[name].values, points[name].weights) for name in order], columns)
    known = np.where(weight > 0, given, 0.0)
    mean = (weight * known).sum(axis=-1)
    stddev = np.sqrt((weight * (known - mean[..., None]) ** 2).sum(axis=-1))
    shift = _shift(formula, order, points, columns)
    if has_kink(formula):  # then what values do within a cell moves all cells that it crosses alike
        shift = np.where(shift > ALIKE * (np.abs(mean) + stddev), np.maximum(shift, stddev), shift)
    shape = [size if name in axes else 1 for name, size in zip(table.names, table.counts.shape, strict=True)]
    whole = (np.broadcast_to(one.reshape(shape), table.counts.shape) for one in (mean, stddev, shift))
    return Moments(*whole)


def _given(
    formula: str, order: Sequence[str], points: Sequence[tuple[Floats, Floats]], columns: Mapping[str, Any]
) -> tuple[Floats, Floats]:
    """Return what a formula gives of every combination of points in every cell, and the weights of these.

    Shapes: of each column values and weights [cells, points] -> [cells of the first, cells of the second, ..., all].
    """
    operands, weight = dict[str, Floats](), np.ones(1)
    for place, (name, (values, weights)) in enumerate(zip(order, points, strict=True)):
        shape = [1] * (2 * len(order))
        shape[place], shape[len(order) + place] = values.shape
        operands[name] = values.reshape(shape)
        weight = weight * weights.reshape(shape)
    cells = [len(values) for values, _ in points]
    given = np.broadcast_to(reckon(formula, operands, columns), weight.shape)
    return given.reshape(*cells, -1), weight.reshape(*cells, -1)


def _shift(formula: str, order: Sequence[str], points: Mapping[str, Points], columns: Mapping[str, Any]) -> Floats:
    """Return by how much means are off at most where numbers rise or fall together within a cell; 0 of one number.

    Each number is at one of two values, in a half of the rows at either: those of the others are at any beside it, or
    always at the same one, or at the other. Categories stand beside all of these alike.
    """
    numbers = [name for name in order if points[name].are_numbers and not points[name].are_exact]
    sides = [points[name].pair if name in numbers else points[name].values for name in order]
    cells = [len(side) for side in sides]
    if len(numbers) < 2:
        return np.zeros(cells)
    halves = [
        np.full((len(side), 2), 0.5) if name in numbers else points[name].weights
        for name, side in zip(order, sides, strict=True)
    ]
    given, weight = _given(formula, order, list(zip(sides, halves, strict=True)), columns)
    shape, inner = [side.shape[1] for side in sides], tuple(range(len(cells), 2 * len(cells)))
    given = np.where(weight > 0, given * weight, 0.0).reshape(*cells, *shape)
    apart, places, worst = given.sum(axis=inner), np.indices(shape), np.zeros(cells)
    first, *others = (places[order.index(name)] for name in numbers)
    for turned in product((0, 1), repeat=len(others)):  # which of the others fall as the first rises
        is_so = np.logical_and.reduce([one == (first + turn) % 2 for one, turn in zip(others, turned, strict=True)])
        worst = np.maximum(worst, np.abs((given * is_so).sum(axis=inner) * 2 ** len(others) - apart))
    return worst


def tails_joined(table: NoisyTable, names: Collection[str], values: CellValues) -> NoisyTable:
    """Join the cells at either end of some columns whose values do not stand out of their noise, so that they add less.

    Where a tail is long they are many, and far from the mean: what noise alone makes of them would be all of its error.
    """
    counts, variances, cells_of = table.counts, np.broadcast_to(np.square(table.stddev), table.counts.shape), []
    for axis, (name, cells) in enumerate(zip(table.names, table.cells_of, strict=True)):
        joined = values.joined(name, cells) if name in names else None
        cells_of.append(cells if joined is None else joined)
        if joined is not None:
            place = np.empty(int(cells.max()) + 1, dtype=np.int64)
            place[cells] = joined
            starts = np.flatnonzero(np.diff(place, prepend=-1))
            counts, variances = (np.add.reduceat(one, starts, axis=axis) for one in (counts, variances))
    return replace(table, counts=counts, stddev=np.sqrt(variances), cells_of=tuple(cells_of))


def mean_of(table: NoisyTable, moments: Moments) -> tuple[float, float] | None:
    """Return the mean of what is not null, and the standard deviation that it is off by; None if noise drowns it."""
    there = ~np.isnan(moments.mean)
    counts, (means, stddevs, shifts) = table.counts[there], (one[there] for one in moments)
    noise = np.broadcast_to(table.stddev, table.counts.shape)[there]
    records = float(counts.sum())
    if not records > STANDS * math.sqrt(float((noise**2).sum())):
        return None
    mean = float(counts @ means) / records
    off = [noise * (means - mean), INSIDE * np.maximum(counts, 0.0) * stddevs]
    shift = float(np.maximum(counts, 0.0) @ shifts) / NORMAL_95
    return mean, (math.sqrt(sum(float((one**2).sum()) for one in off)) + shift) / records


def labels_of(column: Derived, numbers: Whole, values: CellValues) -> list[str]:
    """Name the value of a derived column in each cell of the one column that it follows from.

    Shapes: numbers, the cell of each fine one, [n] -> [cells].

    Raises:
        Unsuitable: a cell holds several of its values, or it is a date.
    """
    (name,) = column.operands
    other, labels = values.columns[name], list[str]()
    each = _looked_up(column, other) if column.values is not None else _reckoned(str(column.formula), name, other)
    for cell in range(int(numbers.max()) + 1):
        inside = np.flatnonzero(numbers == cell)
        several = dict.fromkeys(each[fine] for fine in inside)
        if len(several) > 1 or None in several:
            label = " or ".join(group_labels(other, numbers)[cell][:3])
            raise Unsuitable(SEVERAL.format(name=name, cell=label, bands=grouped(name, EDGES)))
        labels += [one for one in several if one is not None]
    return labels


def _looked_up(column: Derived, other: Modelled) -> list[str | None]:
    """Name what each category stands for; what is not listed stands for null."""
    named = {key: named_value(value) for key, value in (column.values or {}).items()}
    return [named.get(cell_label(other, cell), NULL) for cell in range(other.size)]


def _reckoned(formula: str, name: str, other: Modelled) -> list[str | None]:
    """Name what a formula gives in every fine cell, None where that may be several values."""
    if moment_of(formula, {name: other}):
        return [None] * other.size
    if isinstance(other, Continuous):
        ends = [np.append(one, 0.0) for one in other.grid.bounds]
        low, high = (reckon(formula, {name: one}, {name: other}) for one in ends)
        is_one = (ends[0] == ends[1]) | (is_monotone(formula) & (low == high))
        states = [float(low[-1])] * (other.zero_state is not None)
        known = [_named(x) if one else None for x, one in zip(low[:-1], is_one[:-1], strict=True)] + [
            *map(_named, states)
        ]
        return known + [NULL] * (other.size - len(known))
    codes = _codes(other, other.size)
    return [_named(x) for x in reckon(formula, {name: codes}, {name: other})]


def _named(number: float) -> str:
    return NULL if math.isnan(number) else f"{number:.10g}"


def named_value(value: Any) -> str:
    """Write a value that is looked up, as those of categories are."""
    if isinstance(value, bool):
        return str(value).lower()
    return NULL if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)
