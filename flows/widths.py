"""Within what figures of groups will be, by the noise of a plan: for the rows that a schema says, or for three."""

from collections.abc import Iterator, Sequence
from typing import Any

from dpmodels.methods.registry import of_kind, system_of
from dpmodels.methods.tables.asked_widths import Width, widths_of
from dpmodels.releases.plan import Line

UNSAID = (1_000, 10_000, 100_000)
"""Rows for which it is said where a schema says no number of them."""
MEANT = (
    "about, in 95 of 100 releases; means in standard deviations of their column, and up to three times as wide where a "
    "few values are far away"
)
NOTHING, ALL = 0.5, 1.0
"""Widths of a share, and of a mean in standard deviations, from which on a figure says nothing."""


def planned_widths(line: Line) -> list[Width]:
    """Return what figures of each entry of the workload, and of the target, will be within; none of other methods."""
    contract = line.contract
    if not contract.is_table or contract.whole is not contract or line.method in of_kind("each document"):
        return []
    looks = system_of(line.method, line.measurement).of(line)
    by_rows = [widths_of(looks, line, rows) for rows in _rows(contract.rows)]
    return [one for of_entry in zip(*by_rows, strict=True) for one in of_entry]


def _rows(declared: Any) -> list[int]:
    """Return for how many rows widths are said: for those that are declared, or some that there may be by that."""
    low, high = (declared.min, declared.max) if declared else (0, None)
    ends = {one for one in (low, high) if one and (one == high or one >= UNSAID[0])}
    between = (one for one in UNSAID if low < one and (high is None or one < high))
    return sorted(ends if high is not None and low in ends else {*ends, *between})


def in_lines(widths: Sequence[Width]) -> Iterator[str]:
    """Write widths as a line for each entry and number of rows, below what they are."""
    if widths:
        yield MEANT
    for one in widths:
        points = [f"{100 * each:.2g}" if each < NOTHING else "" for each in one.shares]
        stddevs = [f"{each:.2g}" if each < ALL else "" for each in one.means]
        parts = _both("shares", points, "points"), _both("means", stddevs, "standard deviations")
        yield f"{one.asked}, of {one.rows:,} rows: {', '.join(filter(None, parts))}, in groups of 5 % and 20 %"


def _both(figures: str, widths: Sequence[str], unit: str) -> str:
    """Write the widths of figures in both groups, of which an empty one says nothing."""
    if not any(widths):
        return f"{figures} unknown" if widths else ""
    return f"{figures} {' and '.join(f'±{one}' if one else 'unknown' for one in widths)} {unit}"
