"""The means that a report states by groups: of numbers by the categories that they were counted beside.

First are the pairs that a workload names, of two numbers too (ranges.py), and those with the target; of others it is
those whose groups differ by more than noise makes of so many pairs. A column that follows from others is among them
where all that it follows from was counted beside the groups; groups are made by columns that are looked up, too.

Privacy: post-processing of released counts, public noise scales and synthetic rows.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.convert import as_numbers, decode_column, plain
from dpmodels.codec.derive import derive
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.columns import Continuous, Datetime, Derived, Discrete, copy_of, helpers
from dpmodels.contract.derivation.reach import Ends
from dpmodels.contract.formula import moment_of, names_in
from dpmodels.contract.workload import in_order
from dpmodels.errors import Unsuitable
from dpmodels.pages.figures.group_means import are_apart
from dpmodels.plural import ZERO
from dpmodels.report.bins import group_labels
from dpmodels.report.counts.noisy_tables import Counted
from dpmodels.report.derived.counted import labels_of
from dpmodels.report.groups.cells import Inside, Way, keys_of, ways_of
from dpmodels.report.groups.means import Measured, Names, best_of, doubted, judged, means_of_groups
from dpmodels.report.groups.ranges import best_ranges, grouped_by, in_ranges
from dpmodels.report.groups.reconciled import MeanOfAll, ends_of_values, reconciled, related
from dpmodels.report.groups.wholes import made_to_agree, of_all_tables, wholes_of
from dpmodels.report.within import DIGITS
from dpmodels.statistics.digits import beside

MOST_TABLES, MOST_GROUPS, MOST_TRIED, LEAST = 24, 64, 96, 2
"""Pairs of numbers and groups that a report states means of, groups of each, and pairs that are looked at, at most; and
groups of which a mean is known, at least."""
MOST_BY = 12
"""Numbers whose means are asked for by a column, where a workload asks for any column by it."""
Facts = Mapping[str, Any]
Known = dict[tuple[str, str, str], tuple[Measured, dict[str, Whole]]]
"""What was measured of a column by another, and the cells that its groups are; last for whose mean ranges were made."""


class Drawn(NamedTuple):
    """A column that makes groups: what each is called, as in a report and in a table of cells, and each row's group.

    Attributes:
        labels: of each group, as ``group_labels`` has them.
        keys: what a table of cells calls each.
        rows: the place of each synthetic row's group. Shape: [B].
        order: the places of the groups, as the schema lists their first values.
    """

    labels: list[list[str]]
    keys: list[str]
    rows: Whole
    order: list[int]


def means_of_all(counted: Counted, known: Known, facts: Facts) -> dict[str, MeanOfAll]:
    """Return the means of all rows of amounts that are measured by groups, as all their tables tell them together.

    That of a column which is counted in the place of a derived one is that of this. Of what was clipped it is left out.
    """
    columns, tried = counted.columns, _tried(counted, facts)
    names = list(dict.fromkeys(name for name, _ in tried))
    alone = wholes_of(facts, names, columns)
    for name in names:
        if name not in alone and isinstance(columns[name], Derived) and (mean := counted.mean(name)) and mean[1] > 0:
            alone[name] = MeanOfAll(*mean)

    def measured(column: str, by: str) -> Measured | None:
        try:
            return _measured(counted, column, by, known, _ranges(counted, column, by))[0]
        except (Unsuitable, ValueError, ArithmeticError, pa.ArrowException):
            return None

    cut = {one["name"] for one in facts["columns"] if "clipped" in one or "discovered_bounds" in one}
    free = {name: one for name, one in alone.items() if cut.isdisjoint((name, *getattr(columns[name], "operands", ())))}
    together = made_to_agree(of_all_tables(free, tried, measured), columns, counted.rules.pairs)
    return together | {copy: one for name, one in together.items() if (copy := copy_of(name, columns))}


def _tried(counted: Counted, facts: Facts) -> dict[tuple[str, str], bool]:
    """Return the pairs of which means are looked at, as ``pairs_of`` has them."""
    return dict(islice(_each_once(pairs_of(counted.columns, facts), counted.columns), MOST_TRIED))


def group_means(
    counted: Counted, codec: Codec, records: Records, facts: Facts, known: Known | None = None
) -> list[dict[str, Any]]:
    """Return the means by groups that a report states.

    Args:
        counted: the tables of the release.
        codec: of the columns that were measured.
        records: synthetic rows.
        facts: what the report says of columns and pairs.
        known: what is measured already.
    """
    stated, values, known = list[dict[str, Any]](), dict[str, Floats](), Known() if known is None else known
    tried, cells = _tried(counted, facts), codec.to_cells(records).astype(np.int64)
    for (column, by), is_named in tried.items():
        if len(stated) == MOST_TABLES:
            break
        try:  # no mean is worth a hand-off that was paid for
            if column not in values:
                values[column] = values_of(counted.columns, codec, records, column)
            with np.errstate(over="ignore", invalid="ignore"):  # squares beyond what a number can be
                means = _stated(counted, codec, cells, (column, by), values[column], facts, known)
        except (Unsuitable, ValueError, ArithmeticError, pa.ArrowException):
            continue
        if means and (is_named or are_apart(means["groups"], list(tried.values()).count(False))):
            stated.append(means)
    return stated


def pairs_of(columns: Mapping[str, Any], facts: Facts) -> dict[tuple[str, str], bool]:
    """List what a report may state means of: a number, or what follows from numbers, and a column that makes groups.

    With each stands whether a workload names the two, or one of them is the target: it is stated whatever the means
    are. Of others only those are that differ by more than noise makes of so many pairs, since noise would choose them.

    Args:
        columns: those of the schema.
        facts: what the report says of columns and pairs.
    """
    pairs, names = facts["pairs"] or {}, [one["name"] for one in facts["columns"]]
    drawn, every = (
        [one["columns"] for one in pairs.get("tables", ())],
        [one[:2] for one in pairs.get("distances", ())],
    )
    asked = {frozenset(pair) for pair in facts.get("asked", ())}
    with_target = [one for one in every if pairs.get("target") in one]
    with_target.sort(key=lambda one: frozenset((names[one[0]], names[one[1]])) not in asked)
    named = [*drawn[: pairs.get("asked_for", 0)], *with_target]
    known = dict.fromkeys(
        (*_by_numbers(columns, facts.get("asked", ())), *_dropped(columns, facts.get("asked", ()))), True
    )
    known |= dict.fromkeys(_in_groups(columns, [(names[a], names[b]) for a, b in named]), True)
    others = _in_groups(columns, [(names[a], names[b]) for a, b in (*drawn, *every)])
    further = {pair: frozenset(pair) in asked for pair in others if pair not in known}
    return known | dict(sorted(further.items(), key=lambda one: not one[1]))


def _in_groups(columns: Mapping[str, Any], counted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield numbers and the columns that make groups of them, of columns two of which were counted together.

    Of a column that is counted in the place of a derived one, and handed to nobody, it is the derived one.
    """
    dropped, beside_each = helpers(columns), dict[str, list[str]]()
    for pair in counted:
        for one, base in (pair, pair[::-1]):
            beside_each.setdefault(base, []).append(one)
            if _makes_groups(base, columns, dropped):
                followed = _counted_for(one, columns) if one in dropped else one if is_amount(one, columns) else ""
                yield from ((followed, by) for by in _groups_of(base, columns) if followed)
    for base, others in beside_each.items():
        if _makes_groups(base, columns, dropped):
            following = list(_following(columns, {base, *others}, base))
            yield from ((one, by) for by in _groups_of(base, columns) for one in following)


def _each_once(
    pairs: Mapping[tuple[str, str], bool], columns: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, str], bool]]:
    """Leave out groups that are those of another column by other names: one that is looked up one to one by it."""
    for (column, by), is_named in pairs.items():
        one = columns[by]
        is_alike = isinstance(one, Derived) and len({*(one.values or {}).values()}) == len(one.values or ())
        if not (is_alike and (column, one.operands[0]) in pairs):
            yield (column, by), is_named


def asked_names(contract: Any, columns: Mapping[str, Any]) -> list[list[str]]:
    """List the pairs of columns that a workload names, in its order, by the names of what is handed over.

    A column that is counted in the place of a derived one, and handed to nobody, is the derived one. Of tables of any
    column by one these are the first numbers of the schema. A target that has classes stands first where its rate is
    asked for.
    """
    if not contract.workload:
        return []
    target = contract.target if contract.classes > 1 else None
    numbers = [name for name in columns if is_amount(name, columns)][:MOST_BY]
    return [
        [handed_over(name, columns) for name in pair]
        for pair in in_order(contract.workload, numbers, target)
        if {*pair} <= columns.keys()
    ]


def handed_over(name: str, columns: Mapping[str, Any]) -> str:
    """Name the derived number that a column is counted in the place of, where nobody is handed that; else itself."""
    return (_counted_for(name, columns) if name in helpers(columns) else "") or name


def _by_numbers(columns: Mapping[str, Any], asked: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield numbers and the numbers or dates that make groups of them, of two that a workload names together."""
    dropped = helpers(columns)
    for first, second in asked:
        if {first, second} <= columns.keys() - dropped and (pair := grouped_by(first, second, columns)):
            yield pair


def _dropped(columns: Mapping[str, Any], asked: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield numbers that are counted for figures alone, each with what a workload names it with, if that is received.

    Nobody is handed the number, so it makes no groups: its mean by the other column is what it was counted for. Of 0
    and 1 that is the rate of 1.
    """
    dropped = helpers(columns)
    for first, second in asked:
        for number, by in ((first, second), (second, first)):
            if number in dropped and by in columns.keys() - dropped and not isinstance(columns[by], Derived):
                yield number, by


def _makes_groups(base: str, columns: Mapping[str, Any], dropped: Collection[str]) -> bool:
    """Tell whether the values of a column are groups that somebody receives."""
    return base in columns and base not in dropped and not isinstance(columns[base], Continuous)


def _groups_of(base: str, columns: Mapping[str, Any]) -> list[str]:
    """Name a column, and those that are looked up by it."""
    is_by_it = (
        isinstance(one, Derived) and one.values is not None and one.operands == (base,) for one in columns.values()
    )
    return [base, *(name for name, so in zip(columns, is_by_it, strict=True) if so)]


def _counted_for(copy: str, columns: Mapping[str, Any]) -> str:
    """Name the derived number that a column is counted in the place of; empty if it is in the place of none."""
    return next((name for name in columns if copy_of(name, columns) == copy and name != copy), "")


def is_amount(name: str, columns: Mapping[str, Any]) -> bool:
    """Tell whether a column holds numbers that have a mean; those that are listed may be codes, unless one reckons."""
    column = columns[name]
    if isinstance(column, Discrete) and column.kind in ("integer", "number"):
        formulas = (getattr(one, "formula", None) or getattr(one, "computed", None) for one in columns.values())
        return any(name in names_in(str(one)) for one in formulas if one)
    return isinstance(column, Continuous) and not isinstance(column, Datetime)


def _following(columns: Mapping[str, Any], counted: set[str], base: str) -> Iterator[str]:
    """Yield derived numbers that follow from columns which are counted beside those that make groups."""
    for name, one in columns.items():
        if not isinstance(one, Derived) or one.formula is None or moment_of(one.formula, columns) is not None:
            continue
        copy = copy_of(name, columns)
        if copy in counted or ({*one.operands} <= counted and {*one.operands} != {base}):
            yield name


def groups_drawn(counted: Counted, codec: Codec, cells: Whole, by: str, merged: Mapping[str, Whole]) -> Drawn:
    """Return the groups that a column makes, as they are counted.

    Shapes: cells, those of the synthetic rows, [B, columns]; ``merged`` the counted cell of each of a column's.
    """
    follows = counted.columns[by]
    base = follows.operands[0] if isinstance(follows, Derived) else by
    other, merge = codec.columns[base], merged[base]
    labels, rows = group_labels(other, merge), merge[cells[:, list(codec.columns).index(base)]]
    keys, firsts = keys_of(other, merge), np.unique(merge, return_index=True)[1]
    order = sorted(np.argsort(firsts).tolist(), key=lambda place: labels[place] != [ZERO])
    if isinstance(follows, Derived):
        called = labels_of(follows, merge, counted.values)
        keys = list(dict.fromkeys(called[place] for place in order))
        labels, rows = [[key] for key in keys], np.array([keys.index(one) for one in called])[rows]
        order = list(range(len(keys)))
    return Drawn(labels, keys, rows, order)


def values_of(columns: Mapping[str, Any], codec: Codec, records: Records, column: str) -> Floats:
    """Return the numbers of a column in synthetic rows, null as NaN; of times of day in its units. Shape: [B]."""
    follows, places = columns[column], list(codec.columns)
    names = follows.operands if isinstance(follows, Derived) else (column,)
    decoded = {
        name: decode_column(codec.columns[name], records.states[:, place], records.values[:, place])
        for name, place in ((name, places.index(name)) for name in names)
    }
    if column in decoded:
        of_column: Any = codec.columns[column]
        return as_numbers(of_column, decoded[column])
    drawn = derive(follows, codec.columns, pa.RecordBatch.from_pydict(decoded))
    numbers: Floats = plain(drawn).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def _measured(
    counted: Counted, column: str, by: str, known: Known, ranges: tuple[str, Whole] | None = None
) -> tuple[Measured, dict[str, Whole]]:
    """Return what was measured of a column by another, and the cells that its groups are.

    ``ranges``: of a number that makes groups, for whose mean they were made, and that of each fine cell.

    Raises:
        Unsuitable: the two were not counted together, or not in these ranges.
    """
    key = (column, by, ranges[0] if ranges else "")
    if key not in known:
        group = ranges[1] if ranges else None
        ways = ways_of(counted, [by], column)
        known[key] = best_of([partial(lambda way: _means_by(counted, column, by, way(), group), way) for way in ways])
    return known[key]


def _means_by(
    counted: Counted, column: str, by: str, way: Way, group: Whole | None
) -> tuple[Measured, dict[str, Whole]]:
    """Return what one table tells of a column by another, in ranges of this, and the cells that its groups are."""
    names, (tables, merged) = Names.of(column, [by, column]), way
    frames = {term: one.to_pandas(date_as_object=False) for term, one in tables.items()}
    if group is not None:
        of, merge = counted.values.columns[by], merged[by]
        frames = {term: in_ranges(one, by, column, names, of, merge, group) for term, one in frames.items()}
        merged = {**merged, by: group}
    return means_of_groups(frames, [by], column, names), merged


def _ranges(counted: Counted, column: str, by: str) -> tuple[str, Whole] | None:
    """Return the ranges that a number makes groups of, by the table that tells most; None of what has categories."""
    of = counted.values.columns.get(by)
    if not isinstance(of, Continuous):
        return None
    return column, best_ranges(ways_of(counted, [by], column), by, of, partial(_means_by, counted, column, by))[0]


def _stated(
    counted: Counted, codec: Codec, cells: Whole, pair: tuple[str, str], values: Floats, facts: Facts, known: Known
) -> dict[str, Any] | None:
    """State the means of a column by another, with those of the synthetic rows; None where counts tell too little.

    Shapes: cells, those of the synthetic rows, [B, columns]; their values, [B].

    Raises:
        Unsuitable: the two were not counted together.
    """
    column, by = pair
    ranges = _ranges(counted, column, by)
    measured, merged = _measured(counted, column, by, known, ranges)
    every = {column: measured}
    for one in () if measured.is_dated else related(column, counted.columns, counted.rules.pairs)[1:]:
        with suppress(Unsuitable):
            every[one] = _measured(counted, one, by, known, ranges)[0]
    wholes, inside = wholes_of(facts, every, counted.columns), Inside.of(counted, [by], merged)
    term = reconciled(every, wholes, counted.columns, inside)
    means = doubted(judged(term, measured.is_dated), facts, column, counted.columns)
    drawn = groups_drawn(counted, codec, cells, by, merged)
    places = {key: place for place, key in enumerate(drawn.keys)}
    if len(places) < len(drawn.keys) or len(places) > MOST_GROUPS or not {*map(str, means.index)} <= {*places}:
        return None  # two groups are called alike, such as a category "null" and the rows that have none
    ends = ends_of_values(counted.columns, column)
    in_all, lines = max(float(means["count"].clip(lower=0).sum()), 1.0), list[dict[str, Any]]()
    of_groups = dict(zip(map(str, means.index), means.to_dict("records"), strict=True))
    for key in (drawn.keys[place] for place in drawn.order if drawn.keys[place] in of_groups):
        of_group = values[(drawn.rows == places[key]) & np.isfinite(values)]
        figures = figures_of_mean(of_groups[key], of_group, in_all, ends)
        lines.append({"labels": drawn.labels[places[key]], **figures})
    are_known = sum(one["released"] is not None for one in lines)
    stated = {"column": column, "by": by, "groups": lines} | cut_at(lines, ends)
    return stated if are_known >= LEAST else None


def figures_of_mean(mean: Mapping[Any, Any], of_group: Floats, in_all: float, ends: Ends) -> dict[str, Any]:
    """State the mean of a group; ``of_group``: the values of the synthetic rows in it; ``ends``: of all values."""
    is_known = math.isfinite(mean["mean"]) and math.isfinite(mean["within"])
    return {
        "share": round(max(mean["count"], 0.0) / in_all, DIGITS),
        "released": beside(min(max(mean["mean"], ends[0]), ends[1]), mean["within"]) if is_known else None,
        "within": float(f"{mean['within']:.3g}") if is_known else None,
        "synthetic": float(f"{of_group.mean():.6g}") if len(of_group) else None,
        "reason": mean["reason"],
    }


def cut_at(groups: Sequence[Facts], ends: Ends) -> dict[str, Any]:
    """Return between what the values of a column lie, where an interval of a mean reaches beyond; else nothing."""
    known = [one for one in groups if one["released"] is not None]
    low = min((one["released"] - one["within"] for one in known), default=ends[0])
    high = max((one["released"] + one["within"] for one in known), default=ends[1])
    if low >= ends[0] and high <= ends[1]:
        return {}
    return {"values_from_to": [end if math.isfinite(end) else None for end in ends]}
