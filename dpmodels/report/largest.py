"""What a release does not tell apart: values within one cell, and fine cells that were counted together.

Privacy: post-processing of released counts.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.contract.numbers import Scaled
from dpmodels.methods.parts.marginals import Marginal
from dpmodels.pages.page import percent
from dpmodels.report.bins import cell_label
from dpmodels.report.fidelity import HALF_NORMAL

MOST_ASSUMED = 0.5
"""Largest share of the records whose places within one cell a report may assume without a warning."""
MOST_WITHIN = 0.25
"""Largest distance that noise may add among cells that are counted together without a warning."""
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
        first, last = (bounds[index] for bounds in column.grid.bounds)
        if first < last:
            facts["part_of_range"] = round(float((last - first) / (column.high - column.low)), 8)
    return facts


def warning(
    column: Modelled, largest: Mapping[str, Any], together: Mapping[str, Any] | None, measurement: Mapping[str, Any]
) -> str | None:
    """Say what to do about a column that the release does not resolve; None where there is nothing to do.

    Most of such a column lies in one cell of several values, or is counted together under noise that hides its parts.
    """
    if "part_of_range" in largest and largest["share"] > MOST_ASSUMED:
        return (
            f"{percent(largest['share'])} of the records lie in one cell, {largest['label']}. How they lie within it "
            f"is assumed: no released number says it, and no distance stated here counts it. For the next release, "
            f"{' or '.join(_advice(column, measurement))}."
        )
    if together and together["distance_within"] > MOST_WITHIN:
        help_ = "list fewer categories" if together["what"] == "categories" else "declare narrower public bounds"
        return (
            f"{percent(together['share'])} of the records lie in {together['members']} {together['what']} too thin to "
            f"be counted alone. Together they are right; among one another the noise may put them "
            f"{percent(together['distance_within'])} apart from the truth. For the next release, {help_} or spend more."
        )
    return None


def _advice(column: Modelled, measurement: Mapping[str, Any]) -> Iterator[str]:
    """Name what makes the cell narrower; more cells only where it is the setting that keeps them few."""
    yield "declare narrower public bounds"
    if isinstance(column, Scaled) and not column.log:
        yield "declare scale: log"
    cells = getattr(column, "cells", 0)
    for name in SETTINGS:
        if measurement.get(name) == cells < MOST_CELLS:
            yield f"ask for more cells (model.measurement.{name}, now {cells})"


def counted_together(column: Modelled, noisy: Marginal, records: float) -> dict[str, Any] | None:
    """Describe the fine cells that were too thin to be counted alone; None where there are none.

    How they lie among one another rests on the first histogram alone: ``distance_within`` is the total variation that
    its noise puts between them, at most their whole share.
    """
    cells = np.bincount(noisy.place)
    shared = cells > 1
    if not shared.any():
        return None
    share = float(np.clip(noisy.pooled[shared].sum() / records, 0.0, 1.0))
    members = int(cells[shared].sum())
    noise = HALF_NORMAL * noisy.stddev * members / (2 * records)
    return {
        "what": "intervals" if isinstance(column, Continuous) else "categories",
        "members": members,
        "of": len(noisy.place),
        "into": int(shared.sum()),
        "share": round(share, 8),
        "distance_within": round(min(share, noise), 8),
    }
