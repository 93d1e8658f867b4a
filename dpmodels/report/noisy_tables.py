"""The noisy tables of a release as rows: columns, cells, count and standard error, for whoever wants just these.

Privacy: post-processing of released counts and public noise scales.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.contract.columns import Continuous, Datetime, Modelled
from dpmodels.errors import Unsuitable
from dpmodels.methods.parts.marginals import NoisyTable
from dpmodels.methods.registry import create, of_kind
from dpmodels.releases.release import Release
from dpmodels.report.bins import cell_label, range_label

MEASURED, COMBINED = "measured", "combined"
"""A count as it was released; and the average of all that was released of the same cells of one column."""
LEAST_ROWS = 2**16
SCHEMA = pa.schema(
    [
        ("table", pa.int32()),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("columns", pa.list_(pa.string())),
        ("cells", pa.list_(pa.string())),
        ("low", pa.list_(pa.float64())),
        ("high", pa.list_(pa.float64())),
        ("count", pa.float64()),
        ("standard_error", pa.float64()),
    ]
)
Cell = tuple[str, float | None, float | None]
"""Label of a cell; and, of the values of a column of numbers, the bounds (datetimes have them in the label)."""


def noisy_tables(release: Release) -> Iterator[pa.Table]:
    """Yield the rows of all tables that a release holds, some tables at a time.

    Raises:
        Unsuitable: its method releases no counts.
    """
    line = release.line
    system = create(line.method, line.measurement, {}) if line.method in of_kind("table") else None
    marginals = system.marginals(release) if system else None
    if system is None or marginals is None:
        raise Unsuitable(f"the release of {line.method} holds no counts of columns, so there are no tables to write")
    combined = {
        name: NoisyTable((name,), (one.cell_of,), one.pooled, one.pooled_stddev)
        for name, one in marginals.columns.items()
    }
    measured, rows = list(system.tables(release)), list[pa.Table]()
    kinds = [MEASURED] * len(measured) + [COMBINED if measured else MEASURED] * len(combined)
    for number, (kind, table) in enumerate(zip(kinds, [*measured, *combined.values()], strict=True)):
        rows.append(_rows(number, kind, table, marginals.codec.columns))
        if sum(map(len, rows)) >= LEAST_ROWS:
            yield pa.concat_tables(rows)
            rows = []
    if rows:
        yield pa.concat_tables(rows)


def _rows(number: int, kind: str, table: NoisyTable, columns: dict[str, Modelled]) -> pa.Table:
    sides = [
        _cells(columns[name], cell_of_column) for name, cell_of_column in zip(table.names, table.cells_of, strict=True)
    ]
    combinations, size = list(product(*sides)), table.counts.size
    parts = [[[side[part] for side in each] for each in combinations] for part in range(3)]
    errors = np.broadcast_to(table.stddev, table.counts.shape).ravel()
    kinds = pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, dtype=np.int32)), pa.array([kind]))
    values = [np.full(size, number), kinds, [list(table.names)] * size, *parts, table.counts.ravel(), errors]
    arrays = [pa.array(each, type=field.type) for each, field in zip(values, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _cells(column: Modelled, numbers: NDArray[np.int64]) -> list[Cell]:
    """Describe the cells of one column, each of which joins the fine cells that have its number."""
    return [_cell(column, np.flatnonzero(numbers == cell)) for cell in range(int(numbers.max()) + 1)]


def _cell(column: Modelled, fine: NDArray[np.int64]) -> Cell:
    if not isinstance(column, Continuous) or fine[0] >= column.cells:
        return " | ".join(cell_label(column, int(cell)) for cell in fine), None, None
    low, high = (float(bounds[at]) for bounds, at in zip(column.grid.bounds, (fine[0], fine[-1]), strict=True))
    label = range_label(column, low, high)
    return (label, None, None) if isinstance(column, Datetime) else (label, low, high)
