"""The pictures that a report begins with: every column by itself, and how well every two columns are reproduced."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpmodels.pages.drawing import Figure
from dpmodels.pages.glance import likely_of_pair
from dpmodels.pages.maps import square
from dpmodels.pages.page import percent, percent_up
from dpmodels.pages.plots import Shares, bars, histogram

Facts = Mapping[str, Any]
MOST_CATEGORIES = 12
"""Categories drawn one by one; the rest of a longer list is drawn as one."""
FIRST, MOST = 12, 240
"""Columns of a table that are drawn at once; and those that are drawn at all."""
LISTED = 100
"""Pairs of columns that a table lists."""
FULL = 0.2
"""Distance of two columns that is drawn in full color."""


@dataclass(frozen=True)
class Multiples:
    """The columns of one table: drawn at once, drawn where somebody opens them, and how many are not drawn."""

    table: str
    first: Sequence[Figure]
    further: Sequence[Figure]
    left_out: int


def multiples(columns: Sequence[Facts]) -> list[Multiples]:
    """Draw the columns table by table, those with a warning first, in the order of the schema."""
    tables: dict[str, list[Facts]] = {}
    for one in columns:
        tables.setdefault(one.get("table", ""), []).append(one)
    room, drawn = MOST, list[Multiples]()
    for table, members in tables.items():
        figures = [column_figure(one) for one in sorted(members, key=lambda one: "warning" not in one)[:room]]
        room -= len(figures)
        drawn.append(Multiples(table, figures[:FIRST], figures[FIRST:], len(members) - len(figures)))
    return drawn


def column_figure(column: Facts) -> Figure:
    """Draw one column: its released counts as bars with whiskers, where there are any, and its synthetic shares."""
    order, labels, notes = list(range(len(column["labels"]))), column["labels"], [column["type"]]
    if column["ordered"]:
        order = order[: column["values"]]
        if axis := column.get("axis"):
            height = f"height: {axis['note'].replace('share', 'share of the rows', 1)}"
            notes += [height, *([f"{percent(axis['beyond'])} beyond"] if axis["beyond"] else [])]
        notes += [f"{labels[index]}: {_share(column, index)}" for index in range(column["values"], len(labels))]
    elif len(order) > MOST_CATEGORIES:
        order = sorted(order, key=lambda index: -column["synthetic"][index])[: MOST_CATEGORIES - 1]
        notes.append(f"the {len(order)} largest of {len(labels)}")
    synthetic = Shares("synthetic", [column["synthetic"][index] for index in order])
    released = None
    if "released" in column:
        deviations = [column["released_stddev"][index] for index in order]
        released = Shares("released", [column["released"][index] for index in order], deviations)
    named, told = [labels[index] for index in order], (column["name"], column.get("verdict", ""))
    if column["ordered"]:
        figure = histogram(*told, named, released, synthetic, column.get("axis"))
    else:
        figure = bars(*told, named, released, synthetic)
        if len(order) < len(labels):
            figure = replace(figure, rows=_all_of(column))
    return replace(figure, foot=" · ".join(filter(None, notes)))


def _all_of(column: Facts) -> tuple[tuple[str, ...], ...]:
    """Return the numbers of all categories of a column, of which few are drawn, up to ``LISTED``; the largest first."""
    order = sorted(range(len(column["labels"])), key=lambda index: -column["synthetic"][index])[:LISTED]
    keys = [key for key in ("released", "released_stddev", "synthetic") if key in column]
    return tuple((column["labels"][index], *(percent(column[key][index]) for key in keys)) for index in order)


def _share(column: Facts, index: int) -> str:
    synthetic = percent(column["synthetic"][index])
    return f"{percent(column['released'][index])}, synthetic {synthetic}" if "released" in column else synthetic


def pairs_figure(facts: Facts) -> Figure | None:
    """Draw how far off every two columns are at most in nineteen releases of twenty, and list them, the worst first."""
    listed = (facts.get("pairs") or {}).get("distances")
    if not listed:
        return None
    names = [one["name"] for one in facts["columns"]]
    shown = sorted({place for pair in listed for place in pair[:2]})
    places = {place: index for index, place in enumerate(shown)}
    cells = [(places[second], places[first], likely_of_pair(figures)) for first, second, *figures in listed]
    worst = sorted(listed, key=lambda pair: -likely_of_pair(pair[2:]))
    rows = tuple(
        (f"{names[first]} with {names[second]}", *map(percent, figures[:2]), percent_up(likely_of_pair(figures)))
        for first, second, *figures in worst
    )
    title, most = "Two columns together", f"{rows[0][0]}, {rows[0][3]}"
    said, scale = f"{len(rows):,} pairs; farthest off is {most}", ("0", f"{percent(FULL)} or more")
    drawn = square(title, said, [names[place] for place in shown], cells, FULL, scale)
    note = f"in percent; the more color, the farther off it may be; the farthest is {most}"
    if len(rows) > LISTED:
        note += f"; the numbers beneath are the {LISTED} farthest, and report.json has all"
    header = ("columns", "noise alone, on average", "synthetic rows to release", "within")
    return Figure(title, note, drawn, header, rows[:LISTED])
