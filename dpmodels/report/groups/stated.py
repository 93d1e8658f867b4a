"""The means that a report states by groups: of numbers by the categories that they were counted beside.

First are the pairs that the report draws; of others it is those whose groups are told apart. A column that follows from
others is among them where all that it follows from was counted beside the groups; groups are made by columns that are
looked up, too.

Privacy: post-processing of released counts, public noise scales and synthetic rows.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Floats
from dpmodels.codec.convert import as_numbers, decode_column, plain
from dpmodels.codec.derive import derive
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.columns import Continuous, Datetime, Derived, Discrete, copy_of, helpers
from dpmodels.contract.formula import moment_of, names_in
from dpmodels.errors import Unsuitable
from dpmodels.pages.figures.group_means import are_apart
from dpmodels.plural import OF_CATEGORIES
from dpmodels.report.bins import cell_label, group_labels
from dpmodels.report.derived.counted import labels_of
from dpmodels.report.groups.cells import cells_of
from dpmodels.report.groups.means import Names, doubted, means_of_groups
from dpmodels.report.noisy_tables import Counted
from dpmodels.report.within import DIGITS
from dpmodels.statistics.digits import beside

MOST_TABLES, MOST_GROUPS, MOST_TRIED = 24, 64, 96
"""Pairs of numbers and groups that a report states means of, groups of each, and pairs that are looked at, at most."""
Facts = Mapping[str, Any]


class Drawn(NamedTuple):
    """A column that makes groups: what each is called, as in a report and in a table of cells, and each row's group.

    Attributes:
        labels: of each group, as ``group_labels`` has them.
        keys: what a table of cells calls each.
        rows: the place of each synthetic row's group. Shape: [B].
    """

    labels: list[list[str]]
    keys: list[str]
    rows: Any


def group_means(counted: Counted, codec: Codec, records: Records, facts: Facts) -> list[dict[str, Any]]:
    """Return the means by groups that a report states.

    Args:
        counted: the tables of the release.
        codec: of the columns that were measured.
        records: synthetic rows.
        facts: what the report says of columns and pairs.
    """
    stated = list[dict[str, Any]]()
    groups, values = dict[str, Drawn | None](), dict[str, Floats]()
    drawn = {*pairs_of(counted.columns, facts, "tables")}
    for column, by in islice(pairs_of(counted.columns, facts), MOST_TRIED):
        if by not in groups:
            groups[by] = _drawn(counted, codec, records, by, column)
        if (made := groups[by]) is None or len(stated) == MOST_TABLES:
            continue
        try:  # no mean is worth a hand-off that was paid for
            if column not in values:
                values[column] = _values(counted.columns, codec, records, column)
            means = _stated(counted, column, by, made, values[column], facts)
        except (ValueError, ArithmeticError, pa.ArrowException):
            continue
        if means and ((column, by) in drawn or are_apart(means["groups"])):
            stated.append(means)
    return stated


def pairs_of(columns: Mapping[str, Any], facts: Facts, of: str = "") -> list[tuple[str, str]]:
    """List what a report may state means of: a number, or what follows from numbers, and a column that makes groups.

    Args:
        columns: those of the schema.
        facts: what the report says of columns and pairs.
        of: whether the pairs are the drawn ``tables`` alone, or all of which it states ``distances``; empty for both,
            those that are drawn first.
    """
    pairs, names = facts["pairs"] or {}, [one["name"] for one in facts["columns"]]
    places = {"tables": [one["columns"] for one in pairs.get("tables", ())]}
    places["distances"] = [one[:2] for one in pairs.get("distances", ())]
    known = [_in_groups(columns, [(names[a], names[b]) for a, b in places[key]]) for key in places if of in ("", key)]
    return list(dict.fromkeys(chain.from_iterable(known)))


def _in_groups(columns: Mapping[str, Any], counted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield numbers and the columns that make groups of them, of columns two of which were counted together."""
    dropped, beside_each = helpers(columns), dict[str, list[str]]()
    for pair in counted:
        for one, other in (pair, pair[::-1]):
            beside_each.setdefault(one, []).append(other)
    for base, others in beside_each.items():
        if base not in columns or isinstance(columns[base], Continuous) or base in dropped:
            continue
        looked_up = [name for name, one in columns.items() if _is_looked_up(one) and one.operands == (base,)]
        for by in (base, *looked_up):
            yield from ((one, by) for one in others if is_amount(one, columns) and one not in dropped)
            yield from ((one, by) for one in _following(columns, {base, *others}, base))


def _is_looked_up(column: Any) -> bool:
    return isinstance(column, Derived) and column.values is not None


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


def _drawn(counted: Counted, codec: Codec, records: Records, by: str, column: str) -> Drawn | None:
    """Return the groups that a column makes, as they are counted beside a number; None where they are too many."""
    follows = counted.columns[by]
    base = follows.operands[0] if isinstance(follows, Derived) else by
    other = codec.columns[base]
    numbers = [name for name in _bases(counted.columns, column) if name != base]
    best = next((one for name in numbers if (one := counted.over([base, name])) is not None), None)
    if best is None:
        return None
    merge = best[1].cells_of[best[1].names.index(base)]
    cells = codec.to_cells(records)[:, list(codec.columns).index(base)]
    groups = int(merge.max()) + 1
    fine = [np.flatnonzero(merge == group) for group in range(groups)]
    keys = [OF_CATEGORIES.join(cell_label(other, int(cell)) for cell in each) for each in fine]
    labels, rows = group_labels(other, merge), merge[cells]
    if isinstance(follows, Derived):
        try:
            called = labels_of(follows, merge, counted.values)
        except Unsuitable:
            return None
        keys = list(dict.fromkeys(called))
        labels, rows = [[key] for key in keys], np.array([keys.index(one) for one in called])[rows]
    return Drawn(labels, keys, rows) if len(keys) <= MOST_GROUPS else None


def _bases(columns: Mapping[str, Any], column: str) -> Sequence[str]:
    """Name the columns that are counted for a number: itself, or those that it follows from."""
    follows, copy = columns[column], copy_of(column, columns)
    return (copy,) if copy else follows.operands if isinstance(follows, Derived) else (column,)


def _values(columns: Mapping[str, Any], codec: Codec, records: Records, column: str) -> Floats:
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


def _stated(
    counted: Counted, column: str, by: str, drawn: Drawn, values: Floats, facts: Facts
) -> dict[str, Any] | None:
    """State the means of one column by another, with those of the synthetic rows; None where counts tell too little."""
    names = Names.of(column, [by, column])
    try:
        tables = [one.to_pandas(date_as_object=False) for one in cells_of(counted, [by], column)]
        means = doubted(means_of_groups(tables, [by], column, names), facts, column)
    except Unsuitable:
        return None
    places = {key: place for place, key in enumerate(drawn.keys)}
    if not {*map(str, means.index)} <= {*places} or means["mean"].notna().sum() < 2:
        return None
    in_all, lines = max(float(means["count"].clip(lower=0).sum()), 1.0), list[dict[str, Any]]()
    for key, mean in zip(map(str, means.index), means.to_dict("records"), strict=True):
        of_group = values[(drawn.rows == places[key]) & np.isfinite(values)]
        is_known = math.isfinite(mean["mean"])
        lines.append(
            {
                "labels": drawn.labels[places[key]],
                "share": round(max(mean["count"], 0.0) / in_all, DIGITS),
                "released": beside(mean["mean"], mean["within"]) if is_known else None,
                "within": float(f"{mean['within']:.3g}") if is_known else None,
                "synthetic": float(f"{of_group.mean():.6g}") if np.isfinite(of_group).any() else None,
                "reason": mean["reason"],
            }
        )
    return {"column": column, "by": by, "groups": lines}
