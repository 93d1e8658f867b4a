"""The largest cell of a column: how much of the column it holds, and whether anything says how values lie within it.

Privacy: post-processing of released counts.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpmodels.evaluation.pages.page import percent
from dpmodels.evaluation.published.bins import cell_label
from dpmodels.schema.columns import Continuous, Modelled
from dpmodels.schema.interval import Floats, Scaled

MOST_ASSUMED = 0.5
"""Largest share of the records whose places within one cell a report may assume without a warning."""
SETTINGS = ("fine_cells", "cells")
"""Settings of the methods that say into how many cells an interval is cut."""
MOST_CELLS = 4096
"""The largest number of cells that any method takes."""


def largest_cell(column: Modelled, counts: Floats, records: float) -> dict[str, Any]:
    """Describe the cell with the largest released count; ``part_of_range`` only of a cell of several values.

    However small that part of the range is, it can hold a whole distribution, where the bounds are far too wide.
    """
    index = int(np.argmax(counts))
    facts = {"label": cell_label(column, index), "share": round(min(1.0, float(counts[index]) / records), 8)}
    if isinstance(column, Continuous) and index < column.cells:
        first, last = (bounds[index] for bounds in column.cell_bounds())
        if first < last:
            facts["part_of_range"] = round(float((last - first) / (column.high - column.low)), 8)
    return facts


def warning(column: Modelled, largest: Mapping[str, Any], measurement: Mapping[str, Any]) -> str | None:
    """Say what to do about a column most of which lies in one cell of several values; None if there is nothing."""
    if "part_of_range" not in largest or largest["share"] <= MOST_ASSUMED:
        return None
    return (
        f"{percent(largest['share'])} of the records lie in one cell, {largest['label']}. How they lie within it is "
        f"assumed: no released number says it, and no error stated here counts it. For the next release, "
        f"{' or '.join(_advice(column, measurement))}."
    )


def _advice(column: Modelled, measurement: Mapping[str, Any]) -> Iterator[str]:
    """Name what makes the cell narrower; more cells only where it is the setting that keeps them few."""
    yield "declare narrower public bounds"
    if isinstance(column, Scaled) and not column.log:
        yield "declare scale: log"
    cells = getattr(column, "cells", 0)
    for name in SETTINGS:
        if measurement.get(name) == cells < MOST_CELLS:
            yield f"ask for more cells (model.measurement.{name}, now {cells})"
