"""Within what figures of groups will be, by the noise of a plan: for the rows that a schema says, or for three."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.methods.registry import of_kind, system_of
from dpmodels.methods.tables.asked_widths import Width, widths_of
from dpmodels.releases.plan import Line

UNSAID = (1_000, 10_000, 100_000)
"""Rows for which it is said where a schema says no number of them."""
WITHIN, OF_ROWS = "figures within", "of {rows:,} rows"
"""What a plan's facts call within what figures of groups will be: what that means, and the figures by rows."""
MEANT = (
    "about, in 95 of 100 releases, in groups of 5 % and of 20 % of the rows. Means are in standard deviations of their "
    "column, which are half of its range at most; with a few values far away, up to three times as wide"
)
NOTHING, ALL = 0.5, 1.0
"""Widths of a share, and of a mean in standard deviations, from which on a figure says nothing."""


def planned_widths(line: Line) -> list[Width]:
    """Return what figures of each entry of the workload, and of the target, will be within; none of other methods."""
    contract = line.contract
    if not contract.is_table or contract.whole is not contract or line.method in of_kind("each document"):
        return []
    looks = system_of(line.method, line.measurement).of(line)
    return [width for rows in _rows(contract.rows) for width in widths_of(looks, line, rows)]


def _rows(declared: Any) -> list[int]:
    """Return for how many rows widths are said: for those that are declared, or some that there may be by that."""
    low, high = (declared.min, declared.max) if declared else (0, None)
    ends = {one for one in (low, high) if one and (one == high or one >= UNSAID[0])}
    between = (one for one in UNSAID if low < one and (high is None or one < high))
    return sorted(ends if high is not None and low in ends else {*ends, *between})


def as_facts(widths: Sequence[Width]) -> dict[str, str]:
    """Write widths as a fact for each number of rows, of a line for each entry, behind what they are."""
    facts = {WITHIN: MEANT} if widths else {}
    for rows in dict.fromkeys(one.rows for one in widths):
        lines = [_in_words(one) for one in widths if one.rows == rows]
        facts[OF_ROWS.format(rows=rows)] = "\n".join(lines)
    return facts


def of_middle_rows(facts: Mapping[str, str]) -> dict[str, str]:
    """Return of a plan's facts the widths for one number of rows, the middle one of those that it has."""
    start, end = OF_ROWS.split("{rows:,}")
    names = [name for name in facts if name.startswith(start) and name.endswith(end)]
    return {name: facts[name] for name in names[len(names) // 2 :][:1]}


def _in_words(width: Width) -> str:
    """Write what shares and means of an entry will be within, the latter in the unit of their column too."""
    points = [f"{100 * each:.2g}" if each < NOTHING else "" for each in width.shares]
    stddevs = [f"{each:.2g}" if each < ALL else "" for each in width.means]
    parts = _both("shares", points, "points"), _both("means", stddevs, "standard deviations") + _at_most(width)
    return f"{width.asked}: {', '.join(filter(None, parts))}"


def _at_most(width: Width) -> str:
    """Say what means are within at most, by the bounds of their column; nothing where all of them are unknown."""
    stated = [each if each < ALL else 0.0 for each in width.means]
    if not any(stated):
        return ""
    most, of = (width.largest_stddev, width.number) if width.number else (50.0, "% of its range")
    rounded = [f"{float(f'{most * each:.2g}'):,.12g}" if each else "" for each in stated]
    return f" ({_both('at most', rounded, of)})"


def _both(figures: str, widths: Sequence[str], unit: str) -> str:
    """Write the widths of figures in both groups, of which an empty one says nothing."""
    if not any(widths):
        return f"{figures} unknown" if widths else ""
    return f"{figures} {' and '.join(f'±{one}' if one else 'unknown' for one in widths)} {unit}"
