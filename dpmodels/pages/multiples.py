"""The pictures that a report begins with: every column by itself, and how well every two columns are reproduced."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmodels.pages.drawing import Figure
from dpmodels.pages.glance import likely_of_pair
from dpmodels.pages.maps import beside, square
from dpmodels.pages.page import percent, percent_up
from dpmodels.pages.plots import Shares, bars, histogram
from dpmodels.pages.uses import MOST_ABSENT, absent, listed, most_by_noise, weakened
from dpmodels.statistics.dependence import dependence

Facts = Mapping[str, Any]
MOST_CATEGORIES = 12
"""Categories drawn one by one; the rest of a longer list is drawn as one."""
FIRST, MOST = 12, 240
"""Columns of a table that are drawn at once; and those that are drawn at all."""
LISTED = 100
"""Pairs of columns that a table lists."""
LONG = re.compile(r"(?<![-:.\d])-?(\d{5,}(\.\d+)?|\d+\.\d+)(?![-:.\d])")
"""Numbers that are too long for a drawing."""
DAY = re.compile(r"\b(\d{4}-\d\d)-\d\d(?![-\d])")
"""A day, which is longer than a drawing has room for."""
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
    """Draw the columns table by table, in the order of the schema; those with a warning are among those drawn at once."""
    tables: dict[str, list[Facts]] = {}
    for one in columns:
        tables.setdefault(one.get("table", ""), []).append(one)
    room, drawn = MOST, list[Multiples]()
    for table, members in tables.items():
        warned_first = sorted(range(len(members)), key=lambda place: "warning" not in members[place])[:room]
        first, further = (
            [column_figure(members[place]) for place in sorted(some)]
            for some in (warned_first[:FIRST], warned_first[FIRST:])
        )
        room -= len(warned_first)
        drawn.append(Multiples(table, first, further, len(members) - len(warned_first)))
    return drawn


def column_figure(column: Facts) -> Figure:
    """Draw one column: its released counts as bars with whiskers, where there are any, and its synthetic shares."""
    order, labels, notes = list(range(len(column["labels"]))), column["labels"], [column["type"]]
    if column["ordered"]:
        order = order[: column["values"]]
        if axis := column.get("axis"):
            notes += [_height(axis["note"]), *([f"{percent(axis['beyond'])} beyond"] if axis["beyond"] else [])]
        notes += [f"{labels[index]}: {_share(column, index)}" for index in range(column["values"], len(labels))]
    elif len(order) > MOST_CATEGORIES:
        order = sorted(order, key=lambda index: -column["synthetic"][index])[: MOST_CATEGORIES - 1]
        notes.append(f"the {len(order)} largest of {len(labels)}")
    if names := absent(column):
        notes.append(f"no synthetic row has {listed(names, MOST_ABSENT)}")
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


def _height(note: str) -> str:
    """Say what the height of a bar is, of what an axis calls it: a share per so many units."""
    width = note.removeprefix("share per ")
    return f"height: share of the rows per {'width of ' * (width[-1:].isdigit() and width != '1')}{width}"


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


def pair_tables(facts: Facts) -> list[Figure]:
    """Draw some pairs of columns in groups, as they were released beside the synthetic rows."""
    pairs = facts.get("pairs") or {}
    within = {(first, second): likely_of_pair(figures) for first, second, *figures in pairs.get("distances", ())}
    farthest = max(within.values(), default=0.0)
    return [_pair_table(facts, one, within[*one["columns"]], farthest) for one in pairs.get("tables", ())]


def _pair_table(facts: Facts, table: Facts, within: float, farthest: float) -> Figure:
    """Draw one pair: two squares, how far apart they may be, and by how much the columns depend on each other."""
    columns, distances = facts["columns"], facts["pairs"]["distances"]
    first, second = (columns[place]["name"] for place in table["columns"])
    groups = [
        [(" or " if columns[place]["ordered"] else ", ").join(labels) for labels in of_one]
        for place, of_one in zip(table["columns"], table["labels"], strict=True)
    ]
    shares = {name: table[name] for name in ("released", "synthetic")}
    released, synthetic = (percent(dependence(np.array(each))) for each in shares.values())
    title, said = f"{first} with {second}", f"within {percent_up(within)}"
    noise = f"up to {percent(most_by_noise(table, distances))} by noise alone"
    foot = f"dependence: {released} released ({noise}), {synthetic} synthetic"
    foot += ": weakened" * weakened(table, distances)
    drawn = beside(title, f"{said}; {foot}", (first, second), (_brief(groups[0]), _brief(groups[1])), shares)
    rows = tuple(
        (f"{one}; {other}", *(percent(table[name][i][j]) for name in ("released", "stddev", "synthetic")))
        for i, one in enumerate(groups[0])
        for j, other in enumerate(groups[1])
    )
    header = (f"{first}; {second}", "released", "\N{PLUS-MINUS SIGN} 1 standard deviation", "synthetic")
    return Figure(title, said + ", the farthest off" * (within == farthest), drawn, header, rows, foot)


def _brief(labels: Sequence[str]) -> list[str]:
    """Write long numbers of labels in thousands or millions, and days as months where these tell them apart."""
    brief = [LONG.sub(lambda number: _in_thousands(float(number[0])), label) for label in labels]
    months = [DAY.sub(r"\1", label) for label in brief]
    return months if len(set(months)) == len(months) else brief


def _in_thousands(value: float) -> str:
    size = abs(value)
    if size < 1000:
        return f"{value:.4g}"
    return f"{value / 1e6:.3g}M" if size >= 1e6 else f"{value / 1e3:.3g}k" if size >= 1e4 else f"{value:.0f}"
