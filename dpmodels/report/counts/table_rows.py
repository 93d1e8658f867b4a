"""The cells of a noisy table as rows: what each is called, what lies in it, its count and the error of that.

Privacy: post-processing of released counts and public noise scales.
"""

from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.contract.columns import Continuous, Datetime
from dpmodels.methods.parts.marginals import NoisyTable
from dpmodels.plural import OF_CATEGORIES, values_in_words
from dpmodels.report.bins import cell_label, group_labels
from dpmodels.report.counts.cell_values import CellValues

PARTS = " | "
"""Stands between the parts of a cell where all tables are listed; asked for by columns it is called as on a page."""
SCHEMA = pa.schema(
    [
        ("table", pa.int32()),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("columns", pa.list_(pa.string())),
        ("cells", pa.list_(pa.string())),
        ("low", pa.list_(pa.float64())),
        ("high", pa.list_(pa.float64())),
        ("mean", pa.list_(pa.float64())),
        ("stddev", pa.list_(pa.float64())),
        ("count", pa.float64()),
        ("standard_error", pa.float64()),
    ]
)
PLACES = {"columns": "column", "cells": "cell", "low": "low", "high": "high", "mean": "mean", "stddev": "stddev"}
"""What of a row is said of each of its columns, and what the first of these is called by, with `_1` behind it."""
NO_NUMBERS = (None, None, None, None)
Cell = tuple[str, float | None, float | None, float | None, float | None]
"""Label of a cell; and, in a column of numbers, the bounds, the mean and the standard deviation of the values in it.

Nulls have none of the four; dates have them in ticks, where a table is asked for by its columns.
"""


def rows_of_table(number: int, kind: str, table: NoisyTable, values: CellValues, asked: bool = False) -> pa.Table:
    """Return the rows of a table, which is listed under a number; ``asked`` if it is by its columns, not with all."""
    sides = [_cells(values, *side, asked) for side in zip(table.names, table.cells_of, strict=True)]
    combinations, size = list(product(*sides)), table.counts.size
    parts = [[[side[part] for side in each] for each in combinations] for part in range(5)]
    errors = np.broadcast_to(table.stddev, table.counts.shape).ravel()
    kinds = pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, dtype=np.int32)), pa.array([kind]))
    figures = [np.full(size, number), kinds, [list(table.names)] * size, *parts, table.counts.ravel(), errors]
    arrays = [pa.array(each, type=field.type) for each, field in zip(figures, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def side_by_side(table: pa.Table, columns: int) -> pa.Table:
    """Return the rows of all tables with a value in each field: what is said of each of their columns stands apart.

    Args:
        table: rows as ``rows_of_table`` has them.
        columns: the most that any table has; those of fewer have nulls behind them.
    """
    fields = {name: table[name] for name in ("table", "kind")}
    for place in range(columns):
        for several, one in PLACES.items():
            parts = (each[place] if place < len(each) else None for each in table[several].to_pylist())
            fields[f"{one}_{place + 1}"] = pa.array(parts, type=SCHEMA.field(several).type.value_type)
    return pa.table(fields | {name: table[name] for name in ("count", "standard_error")})


def _cells(values: CellValues, name: str, numbers: NDArray[np.int64], asked: bool) -> list[Cell]:
    """Describe the cells of one column, each of which joins the fine cells that have its number.

    Where the column was ``asked`` for, dates have figures in ticks.
    """
    column = values.columns[name]
    between = OF_CATEGORIES if asked else PARTS
    moments = values.of(name, numbers) if asked or not isinstance(column, Datetime) else None
    groups = [np.flatnonzero(numbers == cell) for cell in range(int(numbers.max()) + 1)]
    if not isinstance(column, Continuous):
        return [(between.join(cell_label(column, int(cell)) for cell in fine), *NO_NUMBERS) for fine in groups]
    name_of = values_in_words if asked else PARTS.join
    labels = [name_of(names) for names in group_labels(column, numbers)]
    if moments is None:
        return [(label, *NO_NUMBERS) for label in labels]
    first, last = column.grid.bounds
    cells = list[Cell]()
    for cell, (label, fine) in enumerate(zip(labels, groups, strict=True)):
        if fine[-1] < column.cells:
            low, high = float(first[fine[0]]), float(last[fine[-1]])
            cells.append((label, low, high, float(moments[0][cell]), float(moments[1][cell])))
        elif column.zero_state is not None and fine.tolist() == [column.cells]:
            cells.append((label, 0.0, 0.0, 0.0, 0.0))
        else:  # nulls, or a half that has them beside values
            cells.append((label, *NO_NUMBERS))
    return cells
