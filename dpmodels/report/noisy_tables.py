"""The noisy tables of a release as rows: columns, cells, count and standard error, for whoever wants just these.

Privacy: post-processing of released counts and public noise scales.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.contract.columns import Continuous, Datetime, Derived
from dpmodels.errors import Unsuitable, near
from dpmodels.methods.parts.marginals import Marginals, NoisyTable
from dpmodels.methods.registry import create, of_kind
from dpmodels.plural import OF_CATEGORIES, OF_VALUES
from dpmodels.releases.release import Release
from dpmodels.report.bins import cell_label, group_labels
from dpmodels.report.cell_values import CellValues

MEASURED, COMBINED = "measured", "combined"
"""A count as it was released; and the average of all that was released of the same cells of one column, or of it by the
classes of the target."""
LEAST_ROWS = 2**16
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
NO_NUMBERS = (None, None, None, None)
Cell = tuple[str, float | None, float | None, float | None, float | None]
"""Label of a cell; and, in a column of numbers, the bounds, the mean and the standard deviation of the values in it.

Nulls have none of the four; dates have them in ticks, where a table is asked for by its columns.
"""


class Counts(NamedTuple):
    """The rows of one table, and the ticks in which cells of its columns of dates are described, by column."""

    rows: pa.Table
    ticks: dict[str, str]


def noisy_tables(release: Release) -> Iterator[pa.Table]:
    """Yield the rows of all tables that a release holds, some tables at a time.

    Raises:
        Unsuitable: its method releases no counts.
    """
    measured, combined, values = _tables_of(release)
    rows = list[pa.Table]()
    for number, (kind, table) in enumerate(_of_kinds(measured, combined)):
        rows.append(_rows(number, kind, table, values))
        if sum(map(len, rows)) >= LEAST_ROWS:
            yield pa.concat_tables(rows)
            rows = []
    if rows:
        yield pa.concat_tables(rows)


def noisy_table(release: Release, names: Sequence[str]) -> Counts:
    """Return the rows of the table of some columns whose counts have the least noise.

    Counts that were released by the classes of the target are added up where these are not asked for.

    Raises:
        Unsuitable: its method releases no counts, or none of these columns together.
    """
    measured, combined, values = _tables_of(release)
    counted = dict.fromkeys(name for table in (*measured, *combined) for name in table.names)
    for name in names:
        if name not in counted:
            raise Unsuitable(_uncounted(name, list(counted), release.line.contract))
    if len(set(names)) < len(names):
        raise Unsuitable(f"name each of the columns {', '.join(names)} once")
    known = [(kind, each) for kind, table in _of_kinds(measured, combined) if (each := table.over(names)) is not None]
    if not known:
        rule = "ask for columns of one of its tables, which a call without columns lists"
        raise Unsuitable(f"the release counts {' and '.join(names)} in no table together; {rule}")
    kind, best = min(known, key=lambda one: (float(np.mean(one[1].stddev)), -one[1].counts.size))
    columns = {name: values.columns[name] for name in names}
    ticks = {name: column.tick for name, column in columns.items() if isinstance(column, Datetime)}
    return Counts(_rows(0, kind, best, values, asked=True), ticks)


def _uncounted(name: str, counted: Sequence[str], contract: Any) -> str:
    """Say why a column is not counted: it follows from others, or is left out, or is none."""
    table = contract.tables[contract.root] if contract.kind == "tree" else contract
    column = table.columns.get(name)
    if isinstance(column, Derived):
        operands = " and ".join(column.operands)
        not_counted = "not counted (the report draws it, and says within what it is where that is known)"
        instead = f"ask for {operands}, or take {name} of the synthetic rows, whose error is not known"
        counts = f"the release counts {', '.join(counted)}"
        return f"column {name} is derived from {operands}, and {not_counted}: {instead}; {counts}"
    if column is not None:
        return f"column {name} is not modeled, so not counted: the release counts {', '.join(counted)}"
    return f"the release counts no column {name}, but {', '.join(counted)}{near(name, counted)}"


def _of_kinds(measured: Sequence[NoisyTable], combined: Sequence[NoisyTable]) -> list[tuple[str, NoisyTable]]:
    """Say of each table whether it is as it was released, as it is where nothing was combined."""
    kind = COMBINED if measured else MEASURED
    return [*((MEASURED, table) for table in measured), *((kind, table) for table in combined)]


def _tables_of(release: Release) -> tuple[list[NoisyTable], list[NoisyTable], CellValues]:
    """Return the tables that a release measured, the combined counts of each column, and what cells stand for."""
    line = release.line
    system = create(line.method, line.measurement, {}) if line.method in of_kind("table") else None
    marginals = system.marginals(release) if system else None
    if system is None or marginals is None:
        raise Unsuitable(f"the release of {line.method} holds no counts of columns, so there are no tables to write")
    combined = [
        NoisyTable((name,), (one.cell_of,), one.pooled, one.pooled_stddev) for name, one in marginals.columns.items()
    ]
    combined += _by_class(marginals)
    return list(system.tables(release)), combined, CellValues(marginals.codec.columns, marginals.columns)


def _by_class(marginals: Marginals) -> Iterator[NoisyTable]:
    """Yield the counts of each column by the classes of the target, where these were counted."""
    target = marginals.codec.schema.target
    classes = (np.arange(marginals.codec.schema.classes),)
    for name, one in marginals.columns.items():
        if target is not None and one.by_class is not None:
            yield NoisyTable((target, name), (*classes, one.cell_of), *one.by_class, independent=True)


def _rows(number: int, kind: str, table: NoisyTable, values: CellValues, asked: bool = False) -> pa.Table:
    sides = [_cells(values, *side, asked) for side in zip(table.names, table.cells_of, strict=True)]
    combinations, size = list(product(*sides)), table.counts.size
    parts = [[[side[part] for side in each] for each in combinations] for part in range(5)]
    errors = np.broadcast_to(table.stddev, table.counts.shape).ravel()
    kinds = pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, dtype=np.int32)), pa.array([kind]))
    figures = [np.full(size, number), kinds, [list(table.names)] * size, *parts, table.counts.ravel(), errors]
    arrays = [pa.array(each, type=field.type) for each, field in zip(figures, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _cells(values: CellValues, name: str, numbers: NDArray[np.int64], asked: bool) -> list[Cell]:
    """Describe the cells of one column, each of which joins the fine cells that have its number.

    Where the column was ``asked`` for, dates have figures in ticks.
    """
    column = values.columns[name]
    between = PARTS if not asked else OF_VALUES if isinstance(column, Continuous) else OF_CATEGORIES
    moments = values.of(name, numbers) if asked or not isinstance(column, Datetime) else None
    groups = [np.flatnonzero(numbers == cell) for cell in range(int(numbers.max()) + 1)]
    if not isinstance(column, Continuous):
        return [(between.join(cell_label(column, int(cell)) for cell in fine), *NO_NUMBERS) for fine in groups]
    labels = [between.join(names) for names in group_labels(column, numbers)]
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
