"""About within what the figures that are asked for will be, before anything is charged: of public noise scales alone.

    share   1.96 s sqrt(c) / n                                                 report/groups/rates.py, of a rare class
    mean    hypot(1.1 * 1.96 s sqrt(c k) / n, 0.04), in standard deviations of its column     report/groups/means.py

with s the standard deviation of the noise of a cell of a pair of columns, n the rows of a group, c the cells of a group
and k those of the number. The cells are those that so many rows would lead to if every column's lay evenly. 1.1 and
0.04, for where values lie inside of cells, are measured (benchmarks.widths).

Privacy: reads no data; a post-processing of public parameters.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median_high
from typing import Any, NamedTuple

import numpy as np

from dpmodels.contract.columns import Continuous, Datetime, Discrete, Modelled
from dpmodels.contract.workload import weighed
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.products import Products
from dpmodels.methods.tables.looks import Looks
from dpmodels.releases.plan import Line
from dpmodels.releases.steps import NoisySum

GROUPS = (0.05, 0.2)
"""Parts of the rows that the groups have, of which it is said what a figure will be within."""
IN_95_OF_100, MEASURED, INSIDE = 1.96, 1.1, 0.04
RARE = 0.2
"""Rows of the smallest class of a target, as a part of what each has if all are alike."""
TWO = 2
"""Values of a column up to which its rates are stated in ranges of numbers."""
Wide = tuple[float, ...]
Cells = tuple[Modelled, int]
"""A column, and into how many cells it is cut."""


class Width(NamedTuple):
    """What figures of groups of ``GROUPS`` are about within, in nineteen releases of twenty.

    Attributes:
        asked: which columns, as a workload names them.
        rows: of the data set.
        shares: of a share or rate; parts of the group. Empty where no two columns have a share.
        means: of a mean; standard deviations of its column. Empty where no column is a number.
        number: the column that the means are of, where it is one alone; else empty.
        largest_stddev: the standard deviation that no values within its bounds exceed, half of its range.
    """

    asked: str
    rows: int
    shares: tuple[float, ...]
    means: tuple[float, ...]
    number: str = ""
    largest_stddev: float = 0.0


def widths_of(looks: Any, line: Line, rows: int, parts: Sequence[float] = GROUPS) -> list[Width]:
    """Return what the figures of each entry of a workload, and of the target, will be within; none of other methods.

    Of an entry of several pairs of columns it is the middle one of each, in groups of ``parts`` of the rows.
    """
    if type(looks) is not Looks or looks.mix is None:
        return []
    steps = line.noise_stddev(looks.zooms, looks.first.l2_sensitivity)
    second = _expected(looks, steps, rows)
    if isinstance(second, Products):
        return []
    names, columns = second.partition.names, second.partition.columns
    every, of_pairs = [*zip(columns, second.partition.sizes, strict=True)], steps * second.count_stddevs[1]
    sizes = [(part, part * rows) for part in parts]
    asked = {one.text: [*one.pairs(names)] for one in weighed(looks.schema)}
    widths = [
        _middle(text, rows, [_pair(sizes, of_pairs[i, j], every[i], every[j]) for i, j in pairs])._replace(
            **_number({names[i]: columns[i] for pair in pairs for i in pair})
        )
        for text, pairs in asked.items()
        if pairs
    ]
    target = looks.schema.target
    if second.partition.class_column is not None and target:
        classes = looks.schema.modelled[target], second.partition.classes
        noise = [_of_class(looks, second, one) * steps for one in columns]
        of_target = [_pair(sizes, stddev, one, classes) for stddev, one in zip(noise, every, strict=True)]
        widths.append(_middle(f"any column by {target}", rows, of_target))
    return widths


def _expected(looks: Looks, steps: float, rows: int) -> Moments:
    """Return the second look as so many rows would lead to it, if the values of every column lay evenly.

    Of the classes of a target one is small, as the rare ones are that rates are asked for.
    """
    classes, sizes = looks.fine.classes, looks.fine.sizes
    small = 1.0 if classes == 1 else RARE / classes
    of_classes = rows * np.array([small, *[(1 - small) / max(classes - 1, 1)] * (classes - 1)])
    even = np.repeat([looks.first.one_way / size for size in sizes], sizes)
    return looks.second(NoisySum(np.rint(np.outer(of_classes, even)).astype(np.int64).ravel(), steps, looks.first))


def _of_class(looks: Looks, second: Moments, column: Modelled) -> float:
    """Return what noise of one step makes of the count of a cell in a class, of both looks where the first has it."""
    weights = [second.one_way, *([] if isinstance(column, Continuous) else [looks.first.one_way])]
    return 1 / math.hypot(*weights)


def _pair(
    sizes: Sequence[tuple[float, float]], stddev: float, first: Cells, second: Cells
) -> tuple[list[Wide], list[Wide]]:
    """Return within what shares and means of one of two columns are in the groups of the other, where it has any."""
    shares, means = list[Wide](), list[Wide]()
    for (column, cells), (other, others) in ((first, second), (second, first)):
        is_cut = isinstance(other, Continuous)
        share = [IN_95_OF_100 * stddev * math.sqrt(max(1, part * others * is_cut)) / n for part, n in sizes]
        if _has_mean(column):
            means.append(tuple(math.hypot(MEASURED * one * math.sqrt(cells), INSIDE) for one in share))
        elif isinstance(column, Discrete) and (isinstance(other, Discrete) or cells <= TWO):
            shares.append(tuple(share))
    return shares, means


def _has_mean(column: Modelled) -> bool:
    return isinstance(column, Continuous) and not isinstance(column, Datetime)


def _number(columns: Mapping[str, Modelled]) -> dict[str, Any]:
    """Return the only one of some columns that has means, and the most that its values can vary by."""
    numbers = {name: one for name, one in columns.items() if isinstance(one, Continuous) and _has_mean(one)}
    if len(numbers) != 1:
        return {}
    ((name, column),) = numbers.items()
    return {"number": name, "largest_stddev": (column.high - column.low) / 2}


def _middle(asked: str, rows: int, pairs: Sequence[tuple[list[Wide], list[Wide]]]) -> Width:
    """Return the widths of the middle one of some pairs of columns."""
    shares, means = (_of_all([one for each in pairs for one in each[of]]) for of in (0, 1))
    return Width(asked, rows, shares, means)


def _of_all(widths: Sequence[Wide]) -> Wide:
    """Return the middle one of some widths, in groups of each size."""
    return tuple(median_high(part) for part in zip(*widths, strict=True))
