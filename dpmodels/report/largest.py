"""What a release does not tell apart: values within one cell, and fine cells that were counted together.

Privacy: post-processing of released counts.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.contract.numbers import Scaled
from dpmodels.generators.refinements.tails import SIGNIFICANT
from dpmodels.methods.parts.marginals import Marginal
from dpmodels.pages.page import percent
from dpmodels.report.bins import cell_label
from dpmodels.statistics.normal import HALF_NORMAL

MOST_ASSUMED = 0.5
"""Largest share of the records whose places within one cell a report may assume without a warning."""
MOST_WITHIN = 0.25
"""Largest distance that noise may add among cells that are counted together without a warning."""
IN_A_CELL = (
    "{crowd} lie in one cell, {label}. How they lie within it is assumed: no released number says it, and no distance "
    "stated here counts it, so these rows answer nothing that is finer than this cell. For the next release, {advice}."
)
TOO_THIN = (
    "{share} of the records lie in {members} {what} too thin to be counted alone. Their number together is known as "
    "well as any count; among one another the noise may put them {apart} apart from the truth. For the next release, "
    "{advice} or spend more."
)
FEWER = "list fewer categories"
LOGARITHMIC = "declare scale: log"
FEW_ZEROS = " (where few of them are)"
MORE_CELLS = "ask for more cells (model.measurement.{setting}, now {members})"
AT_ONE_END = 0.01
"""Part of a column's range that a cell at its end is smaller than for what lies there to be taken for cut."""
AT_BOUND = (
    "check the unit of the values, and write a larger max or a smaller min if values lie beyond (they are set to the "
    "bound, so no figure tells how far)"
)
"""The advice where most values are at a bound to which what lies beyond is set."""
ZEROS_APART = "declare zero_inflated: true (where many of them are exactly 0)"
UNCUT = {
    "min": "write a smaller min (where values below 0 were set to it)",
    "max": "write a larger max (where values above 0 were set to it)",
}
NARROWER = "declare narrower public bounds (not so narrow that a true value lies beyond them)"
"""The one advice of narrower bounds: whoever follows it may set what lies beyond to a bound, or leave its rows out."""
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
    column: Modelled,
    noisy: Marginal,
    largest: Mapping[str, Any],
    together: Mapping[str, Any] | None,
    measurement: Mapping[str, Any],
) -> str | None:
    """Say what to do about a column that the release does not resolve; None where there is nothing to do.

    Most of such a column lies in one cell of several values, or is counted together under noise that hides its parts.
    """
    cell, share = crowd_of(column, noisy)
    if isinstance(column, Continuous) and share > MOST_ASSUMED and np.ptp(_ends(column, cell)) > 0:
        apart = " and ".join(["zero"] * (column.zero_state is not None) + ["null"] * column.nullable)
        most = (
            f"{percent(share)} of the values other than {apart}"
            if apart
            else f"{percent(largest['share'])} of the records"
        )
        advice = " or ".join(_advice(column, cell, measurement))
        return IN_A_CELL.format(crowd=most, label=cell_label(column, cell), advice=advice)
    if together and together["distance_within"] > MOST_WITHIN:
        help_ = FEWER if together["what"] == "categories" else NARROWER
        shares = {"share": percent(together["share"]), "apart": percent(together["distance_within"])}
        return TOO_THIN.format(**shares, members=together["members"], what=together["what"], advice=help_)
    return None


def crowd_of(column: Modelled, noisy: Marginal) -> tuple[int, float]:
    """Return the cell of values that holds most, and its share of them; 0 where it does not stand out of its noise."""
    if not isinstance(column, Continuous):
        return 0, 0.0
    counts, stddev = noisy.counts[: column.cells], noisy.stddev
    cell = int(np.argmax(counts))
    if noisy.ends is not None:
        counts = noisy.ends.pooled.counts
        cell = int(np.argmax(counts))
        stddev = math.sqrt(float(noisy.ends.pooled.covariance[cell, cell]))
    count = float(counts[cell])
    return cell, count / max(float(counts.sum()), count) if count > SIGNIFICANT * stddev else 0.0


def _ends(column: Continuous, cell: int) -> Floats:
    """Return the least and the largest value of a cell."""
    return np.array([bounds[cell] for bounds in column.grid.bounds], dtype=np.float64)


def _advice(column: Continuous, cell: int, measurement: Mapping[str, Any]) -> Iterator[str]:
    """Name what makes the cell narrower; more cells only where it is the setting that keeps them few."""
    ends, interval = _ends(column, cell), column.interval
    narrow = np.ptp(ends) < AT_ONE_END * (column.high - column.low)
    if column.outside == "clip" and narrow and any(bound and bound in ends for bound in (column.low, column.high)):
        yield AT_BOUND
    if column.outside == "clip":
        yield from (
            UNCUT[key] for key, bound in zip(UNCUT, (column.low, column.high), strict=True) if bound == 0 and 0 in ends
        )
    zeros = isinstance(column, Scaled) and not column.zero_inflated and bool(ends[0] <= 0 <= ends[1])
    if zeros and column.low < column.high:
        yield ZEROS_APART
        if interval.points is not None and np.ptp(ends) < 1.5 * interval.step:
            return  # of its two values one is 0, and nothing else would tell them apart
    yield NARROWER
    wider = np.ptp(replace(interval, log=True).to_unit(ends)) > np.ptp(interval.to_unit(ends))
    if isinstance(column, Scaled) and not column.log and wider:
        yield LOGARITHMIC + (FEW_ZEROS if zeros else "")  # zeros crowd there by any scale
    for name in SETTINGS:
        if measurement.get(name) == column.cells < MOST_CELLS:
            yield MORE_CELLS.format(setting=name, members=column.cells)


def counted_together(column: Modelled, noisy: Marginal, records: float) -> dict[str, Any] | None:
    """Describe the fine cells that were too thin to be counted alone; None where there are none.

    How they lie among one another rests on the first histogram alone: ``distance_within`` is the total variation that
    its noise puts between them, at most their whole share.
    """
    cells = np.bincount(noisy.cell_of)
    shared = cells > 1
    if not shared.any():
        return None
    share = float(np.clip(noisy.pooled[shared].sum() / records, 0.0, 1.0))
    members = int(cells[shared].sum())
    noise = HALF_NORMAL * noisy.stddev * members / (2 * records)
    return {
        "what": "intervals" if isinstance(column, Continuous) else "categories",
        "members": members,
        "of": len(noisy.cell_of),
        "into": int(shared.sum()),
        "share": round(share, 8),
        "distance_within": round(min(share, noise), 8),
    }
