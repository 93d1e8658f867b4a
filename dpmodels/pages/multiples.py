"""The pictures that a report begins with: every column by itself, and how well every two columns are reproduced."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmodels.pages.drawing import Figure
from dpmodels.pages.figures.categories import MOST_CATEGORIES, NUMBER, absent, is_of_few
from dpmodels.pages.figures.grades import grade
from dpmodels.pages.figures.labels import brief, group_name, joined_groups
from dpmodels.pages.figures.means import CLOSE, FAR
from dpmodels.pages.figures.named import listed
from dpmodels.pages.figures.relations import Relation, asked_pairs, likely_relations, relations
from dpmodels.pages.figures.ruled import BY_RULE
from dpmodels.pages.glance import likely_of_pair
from dpmodels.pages.maps import beside, stairs, steps
from dpmodels.pages.notes import not_handed_over
from dpmodels.pages.page import percent, percent_up
from dpmodels.pages.plots import DEVIATIONS, TWO, Shares, bars, histogram
from dpmodels.pages.uses import MOST_ABSENT
from dpmodels.pages.words import is_of_years
from dpmodels.plural import OF_CATEGORIES
from dpmodels.statistics.dependence import dependence

Facts = Mapping[str, Any]
FEW_CATEGORIES = 5
"""Categories of a column whose drawing is hardly higher than that of a number."""
TABLES = 3
"""Pairs of columns that are drawn at once."""
FIRST, FEW, MOST = 12, 3, 240
"""Columns of a table that are drawn at once; so few more, that they are too; and those that are drawn at all."""
LISTED = 100
"""Pairs of columns that a table lists."""
MOMENT, DAY = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?"), len("2024-12-31")
"""A moment as a label has it, and how many letters of it are its day."""
WHOLE = 1000
"""Size from which on it is written without decimals at the end of an axis."""
LEAST = 0.0001
"""The least share that values beyond an axis are said to be under."""
ROUNDED_SHARE = 1e-3
"""By how much a dependence of rounded shares may be off."""
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
    """Draw the columns table by table, in the order of the schema, long lists of categories and derived columns last.

    Of many columns those with a warning are drawn at once. Those that nobody receives are not.
    """
    tables: dict[str, list[Facts]] = {}
    for one in columns:
        tables.setdefault(one.get("table", ""), []).append(one)
    room, drawn = MOST, list[Multiples]()
    for table, members in tables.items():
        ranks = [("mark" in one, "warning" not in one) for one in members]
        warned_first = sorted(range(len(members)), key=ranks.__getitem__)[:room]
        received = sum("mark" not in one for one in members)
        number = min(received, FIRST if len(warned_first) > FIRST + FEW else FIRST + FEW)
        first, further = (
            [column_figure(one) for one in sorted((members[place] for place in sorted(some)), key=_order)]
            for some in (warned_first[:number], warned_first[number:])
        )
        room -= len(warned_first)
        drawn.append(Multiples(table, first, further, len(members) - len(warned_first)))
    return drawn


def _order(column: Facts) -> tuple[bool, bool]:
    """Return what columns are drawn by, beside their order in the schema: derived ones last, behind the high ones."""
    return "follows" in column, is_long(column)


def is_long(column: Facts) -> bool:
    """Tell whether a column is drawn higher than others: such ones stand together, behind these."""
    return (not column["ordered"] or is_of_few(column)) and len(column["labels"]) > FEW_CATEGORIES


def column_figure(column: Facts) -> Figure:
    """Draw one column: its released counts as bars with whiskers, where there are any, and its synthetic shares."""
    labels, notes = column["labels"], list[str]()
    groups: list[tuple[int, ...]] = [(index,) for index in range(len(labels))]
    has_axis = column["ordered"] and not is_of_few(column)
    if has_axis:
        groups = groups[: column["values"]]
        notes += [f"{labels[index]}: {_share(column, index)}" for index in range(column["values"], len(labels))]
        if axis := column.get("axis"):
            notes.append(_height(axis["note"]))
    elif not column["ordered"] and len(groups) > MOST_CATEGORIES:
        order = sorted(range(len(labels)), key=lambda index: -column["synthetic"][index])
        groups = [*((index,) for index in order[: MOST_CATEGORIES - 1]), tuple(order[MOST_CATEGORIES - 1 :])]
    if len(groups) < len(labels) and not column["ordered"]:
        notes.append(f"{len(groups[-1])} of {len(labels)} categories are one bar")
    if names := absent(column):
        notes.append(f"no synthetic row has {listed(names, MOST_ABSENT)}")
    synthetic = Shares("synthetic", [_together(column, group)[1] for group in groups])
    released = None
    if "released" in column:
        both = [_together(column, group) for group in groups]
        released = Shares("released", [one[0] for one in both], [one[2] for one in both])
    named = [_name(labels, group) for group in groups]
    kind = "time of day" if column.get("clock") else column["type"]
    caption = column["name"], " · ".join(filter(None, (kind, column.get("mark"), column.get("verdict"))))
    if has_axis:
        figure = histogram(*caption, named, released, synthetic, column.get("axis"), _beyond(column))
    else:
        figure = bars(*caption, named, released, synthetic, pale=[len(groups) - 1] * (len(groups) < len(labels)))
        figure = replace(figure, rows=_all_of(column)) if len(groups) < len(labels) else figure
    ranges = f"Shares are judged in the ranges {'; '.join(column['ranges'])}." if "ranges" in column else ""
    return replace(figure, foot=" · ".join(notes), more=ranges, brief=_inbrief(column, len(groups)))


def _inbrief(column: Facts, bars: int) -> str:
    """Say from where to where an axis is drawn, or how many categories are, and which of them most rows have."""
    labels, axis = column["labels"], column.get("axis") or {"edges": (), "note": ""}
    if column["ordered"] and not is_of_few(column):
        cells = zip(labels, axis["edges"], axis["edges"][1:], strict=False)
        drawn = [label for label, begin, end in cells if end > 0 and begin < 1]
        span = _span(_bound(column, drawn[0], 0), _bound(column, drawn[-1], -1)) if drawn else ""
        apart = " and ".join(label.removeprefix("exactly ") for label in labels[column["values"] :])
        logarithmic = "logarithmic" * ("logarithmic" in axis["note"])
        return ", ".join(filter(None, [span, f"and {apart}" * bool(apart), logarithmic]))
    share, place = max(((share, -place) for place, share in enumerate(column["synthetic"])), default=(0.0, 0))
    of = f"{bars - 1} of {len(labels)}, " if bars < len(labels) else ""
    return f"{of}{labels[-place]}: {percent(share)}" if labels else ""


def _span(first: str, last: str) -> str:
    """Say from where to where an axis is drawn: of moments of several days the days alone."""
    are_moments = all(map(MOMENT.fullmatch, (first, last))) and first[:DAY] != last[:DAY]
    return f"{first[:DAY]} to {last[:DAY]}" if are_moments else f"{first} to {last}"


def _name(labels: Sequence[str], group: Sequence[int]) -> str:
    return labels[group[0]] if len(group) == 1 else f"{len(group)} others together"


def _together(column: Facts, group: Sequence[int]) -> tuple[float, float, float]:
    """Return released and synthetic share of some values together, and the standard deviation of the first."""
    released, synthetic, deviations = (
        [column[key][index] for index in group] if key in column else [0.0]
        for key in ("released", "synthetic", "released_stddev")
    )
    return sum(released), sum(synthetic), math.hypot(*deviations)


def _beyond(column: Facts) -> tuple[str, str]:
    """Say what share the values have at most that an axis leaves out at either end, and how far they reach."""
    edges, labels = (column.get("axis") or {"edges": ()})["edges"], column["labels"]
    left = [n for n, edge in enumerate(edges[1:]) if edge <= 0]
    right = [n for n, edge in enumerate(edges[:-1]) if edge >= 1]
    low = high = ""
    if left:
        first, last = _bound(column, labels[left[0]], 0), _bound(column, labels[left[-1]], -1)
        low = f"\N{LEFTWARDS ARROW} {_at_most(column, left)} from {first} to {last}"
    if right:
        first, last = _bound(column, labels[right[0]], 0), _bound(column, labels[right[-1]], -1)
        high = f"{_at_most(column, right)} from {first} to {last} \N{RIGHTWARDS ARROW}"
    return low, high


def _bound(column: Facts, label: str, end: int) -> str:
    """Write where a range of values begins (0) or ends (-1), as ticks are written: large numbers are whole."""
    bound = label.split(" to ")[end]
    if not NUMBER.fullmatch(bound) or is_of_years(column):
        return bound
    return f"{float(bound):,.0f}" if abs(float(bound)) >= WHOLE else f"{float(bound):,.10g}"


def _at_most(column: Facts, group: Sequence[int]) -> str:
    """Say what share some values have at most, by the synthetic rows and by what was released with its noise."""
    released, synthetic, deviation = _together(column, group)
    return f"under {percent_up(max(max(released, 0.0) + DEVIATIONS * deviation, synthetic, LEAST))}"


def _height(note: str) -> str:
    """Say what shares the height of a bar counts, of what an axis calls it."""
    width = note.removeprefix("share per ")
    if width.startswith("bar "):
        return "logarithmic; share of rows per bar"
    return f"share of rows per {'width of ' * width[-1:].isdigit()}{width}"


def _all_of(column: Facts) -> tuple[tuple[str, ...], ...]:
    """Return the numbers of all categories of a column, of which few are drawn, up to ``LISTED``; the largest first.

    Released ones have two standard deviations of their noise beside them, as elsewhere.
    """
    order = sorted(range(len(column["labels"])), key=lambda index: -column["synthetic"][index])[:LISTED]
    keys = {
        key: 1 + (key == "released_stddev") for key in ("released", "released_stddev", "synthetic") if key in column
    }
    return tuple(
        (column["labels"][index], *(percent(times * column[key][index]) for key, times in keys.items()))
        for index in order
    )


def _share(column: Facts, index: int) -> str:
    synthetic = percent(column["synthetic"][index])
    return f"{percent(column['released'][index])}, synthetic {synthetic}" if "released" in column else synthetic


def pairs_figure(facts: Facts) -> Figure | None:
    """Draw how far off every two columns are at most in nineteen releases of twenty, and list them, the worst first."""
    names, dropped = [one["name"] for one in facts["columns"]], not_handed_over(facts)
    every = (facts.get("pairs") or {}).get("distances", ())
    if not (listed := [pair for pair in every if not dropped & {names[place] for place in pair[:2]}]):
        return None
    shown = sorted({place for pair in listed for place in pair[:2]})
    places = {place: index for index, place in enumerate(shown)}
    cells = [(places[second], places[first], likely_of_pair(figures)) for first, second, *figures in listed]
    asked, target = asked_pairs(facts), facts["pairs"].get("target")
    worst = sorted(listed, key=lambda pair: -likely_of_pair(pair[2:]))
    first, second, *figures = worst[0]
    farthest = percent_up(likely_of_pair(figures))
    most, brief = (
        f"{names[first]} with {names[second]}, {farthest}",
        f"stronger color is farther off, at most {farthest}",
    )
    if len(worst) > LISTED:
        worst.sort(key=lambda pair: target not in pair[:2] and (*pair[:2],) not in asked)
    rows = tuple(
        (f"{names[first]} with {names[second]}", *map(percent, figures[:2]), percent_up(likely_of_pair(figures)))
        for first, second, *figures in worst
    )
    title = "Within how much"
    scale = ("0", percent(FULL / 4), f"{percent(FULL)} or more")
    said = f"{len(rows):,} pairs; farthest off is {most}"
    drawn = stairs(title, said, [names[place] for place in shown], cells, FULL, scale)
    note = f"in percent of all rows, rounded up; the farthest is {most}"
    if len(rows) > LISTED:
        first = "" if target is None else f"those with {names[target]}, then "
        note += f"; the numbers are of {LISTED} pairs, {first}the farthest, and report.json has all"
    header = ("columns", "noise alone, on average", "synthetic rows to release", "within")
    return Figure(title, note, drawn, header, rows[:LISTED], part=steps(len(shown)), brief=brief)


IN_FEWER = " in these groups, {} in the broader ones of all pairs"
"""What is said of a pair that is drawn in other groups than those by which all pairs are judged."""


def pair_tables(facts: Facts) -> dict[tuple[int, int], Figure]:
    """Draw some pairs of columns, by their places, in groups, as they were released beside the synthetic rows.

    Those of which noise hides that the columns depend on each other are left out, but for the one farthest off and
    those that a workload asks for; and all with a column that nobody receives.
    """
    pairs = facts.get("pairs") or {}
    within = {(first, second): likely_of_pair(figures) for first, second, *figures in pairs.get("distances", ())}
    names, dropped = [one["name"] for one in facts["columns"]], not_handed_over(facts)
    received = {pair: error for pair, error in within.items() if not dropped & {names[place] for place in pair}}
    farthest = max(received.values(), default=0.0)
    hidden = {pair for pair, one in relations(facts).items() if not one.is_certain} - likely_relations(facts).keys()
    hidden -= {pair for pair, error in within.items() if error == farthest}
    hidden -= asked_pairs(facts)
    tables = {(one["columns"][0], one["columns"][1]): one for one in pairs.get("tables", ())}
    shown = {pair: one for pair, one in tables.items() if pair in received.keys() - hidden}
    return {pair: _pair_table(facts, one, within[pair], farthest) for pair, one in shown.items()}


def _pair_table(facts: Facts, table: Facts, within: float, farthest: float) -> Figure:
    """Draw one pair: two squares, how far apart they may be, and by how much the columns depend on each other."""
    columns = facts["columns"]
    first, second = (columns[place]["name"] for place in table["columns"])
    groups = [
        [group_name(columns[place], labels) for labels in of_one]
        for place, of_one in zip(table["columns"], table["labels"], strict=True)
    ]
    shares, by_itself = {name: table[name] for name in ("released", "synthetic")}, "distances" in table
    off = table["distances"][3] if by_itself else within
    title, said = f"{first} with {second}", f"within {percent_up(off)}"
    if percent_up(off) != percent_up(within):
        said += IN_FEWER.format(percent_up(within))
    foot = _of_relation(relations(facts).get((*table["columns"],)), dependence(np.array(table["released"])))
    drawn = beside(title, f"{said}; {foot}", (first, second), (brief(groups[0]), brief(groups[1])), shares)
    rows = tuple(
        (
            f"{one}; {other}",
            *map(percent, (table["released"][i][j], DEVIATIONS * table["stddev"][i][j], shares["synthetic"][i][j])),
        )
        for i, one in enumerate(groups[0])
        for j, other in enumerate(groups[1])
    )
    header = (f"{first}; {second}", "released", TWO, "synthetic")
    both = zip(table["columns"], table["labels"], strict=True)
    feet = filter(None, [foot, *(joined_groups(columns[place], of_one, by_itself) for place, of_one in both)])
    said += ", the farthest off" * (within == farthest)
    return Figure(title, said, drawn, header, rows, " · ".join(feet), grade=grade(off, CLOSE, FAR))


def _of_relation(relation: Relation | None, shown: float) -> str:
    """Say how two columns depend on each other as released and in the synthetic rows; ``shown``: by what is drawn."""
    if relation is None:
        return ""
    noise = f"up to {percent(relation.most)} by noise alone"
    single = " by single categories" if relation.released > shown + ROUNDED_SHARE else ""
    said = (
        f"dependence{single}: {percent(relation.released)} released ({noise}), {percent(relation.synthetic)} synthetic"
    )
    by_rate = ""
    if relation.standout is not None and relation.is_by_rate_alone:
        by_rate = f"; certain by the rate of {OF_CATEGORIES.join(relation.standout.labels)} alone"
    changed = ": weaker" * relation.is_weakened + ": stronger" * relation.is_stronger
    return said + by_rate + changed + f", {BY_RULE}" * relation.by_rule
