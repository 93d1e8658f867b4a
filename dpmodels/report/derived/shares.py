"""What a report says of derived columns: their synthetic values, and within what they are where that is known.

A derived column is never measured. What it is in the synthetic rows follows from those. How far that is from the real
table follows from the one column that it is looked up by, or whose order its formula keeps (derivation/monotone.py);
of a formula of two columns, from what these are within together, as benchmarks.derived measures.

Privacy: post-processing of the synthetic rows, the public schema, and what a report says of other columns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.convert import as_numbers, decode_column, plain
from dpmodels.codec.derive import derive
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.columns import Continuous, Datetime, Number, copy_of
from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.derivation.monotone import is_monotone, is_monotone_in_each
from dpmodels.contract.derivation.reach import reach
from dpmodels.contract.derivation.unstated import CHANGED
from dpmodels.contract.formula import is_whole, moment_of
from dpmodels.generators.ends import steps_at
from dpmodels.pages.glance import likely_error, likely_of_pair, rank_error, unresolved
from dpmodels.pages.notes import COUNTED_AS
from dpmodels.report.axis import FEW, LARGE, LEAST_PART, LONG_TAIL, axis_of
from dpmodels.report.bins import MOST, Bins
from dpmodels.report.derived.counted import named_value
from dpmodels.report.derived.means import counted_mean, has_counted_mean, known_means
from dpmodels.report.pair import Pair
from dpmodels.report.within import DIGITS

Facts = dict[str, Any]
Interval = Number | Datetime
IN_GROUPS, TO_COUNTED = "rank_distance_in_groups", "rank_distance_to_counted"
"""What a report calls by how much quantiles may move in groups of two columns; and how far those of a derived column
are in the synthetic rows from those of the column that is counted in its place."""
MOST_IN_GROUPS = 0.1
"""Beyond it the values within a group decide what a formula gives, and no error of it is stated."""
MOST_POINTS = 2**40
"""Steps of its last decimal that a number may be from 0; beyond them it is taken to be a real one."""
FEW_VALUES = 8
"""Numbers of a derived column that are told apart, each by itself: up to so many are drawn as a bar each."""
ZEROS, FEW_AMOUNTS = 0.05, 10
"""Part of the rows that are exactly 0 from which on these are no part of an axis; so few other values are no amount."""


def derived_facts(
    derived: Mapping[str, Derived],
    codec: Codec,
    records: Records,
    columns: Sequence[Facts],
    weights: Floats | None = None,
    pairs: Mapping[tuple[int, int], Pair] = MappingProxyType({}),
    prefix: str = "",
    mean_of: Callable[[str], tuple[float, float] | None] | None = None,
) -> list[Facts]:
    """Describe the derived columns of a table, as a report describes its others.

    Args:
        derived: the columns by name; those that follow from a key are left out, as it is made up.
        codec: of the columns that they follow from.
        records: synthetic rows.
        columns: what the report says of the columns that were measured.
        weights: of the rows, where they are not all alike. Shape: [B].
        pairs: every two columns that were counted together, by their places among ``columns``.
        prefix: what the names of a table's columns begin with in a report on several tables.
        mean_of: the mean of a column by counts, and by what standard deviation it is off, None where unknown.
    """
    places = {name.removeprefix(prefix): place for place, name in enumerate(codec.columns) if name.startswith(prefix)}
    local = {name: codec.columns[prefix + name] for name in places}
    distances, cells, facts = [[*two, *p.figures] for two, p in pairs.items()], codec.to_cells(records), list[Facts]()
    for name, column in derived.items():
        if not len(records) or not {*column.operands} <= {*places}:
            continue
        operands = {one: _decoded(local[one], records, places[one]) for one in column.operands}
        values = derive(column, local, pa.RecordBatch.from_pydict(operands))
        about = _named(name, column, prefix, copy := copy_of(name, local))
        try:  # no picture is worth a hand-off that was paid for
            about |= shown(column, local, values, np.ones(len(values)) if weights is None else weights)
        except (ValueError, ArithmeticError, StopIteration):  # values that no axis holds, as 1e-320
            continue
        pair = _pair_of(column, places, pairs) if weights is None and is_of_two(column, local) else None
        about |= _in_groups(column, local, codec, pair, cells, operands) | changed_in(column, local, prefix)
        about |= _to_copy(about, copy, local, records, places, values) if weights is None else {}
        known = known_within(column, columns, distances, about, prefix, copy)
        known |= {} if mean_of and _is_counted(column, local, columns, copy) else known_means(column, columns, prefix)
        if mean_of is not None and "axis" in about and "mean" not in known:
            known |= _mean(name, column, local, columns, _values_of(column, local, values), mean_of)
        missing = np.logical_or.reduce([one.is_null() for one in operands.values()]).sum()
        facts.append(about | (known if values.null_count == missing or TO_COUNTED in about else {}))
    return facts


def _named(name: str, column: Derived, prefix: str, copy: str) -> Facts:
    """Name a derived column, what it follows from, and what is counted in its place; ``copy``: empty of nothing."""
    follows = [prefix + one for one in column.operands]
    named: Facts = {"name": prefix + name, "type": "derived", "follows": follows}
    return named | ({COUNTED_AS: prefix + copy} if copy else {})


def _to_copy(
    about: Facts,
    copy: str,
    columns: Mapping[str, Any],
    records: Records,
    places: Mapping[str, int],
    values: pa.Array,
) -> Facts:
    """Say how far a derived column is from what is counted in its place; nothing where nothing is."""
    if not copy:
        return {}
    return to_counted(about, columns[copy], _decoded(columns[copy], records, places[copy]), values)


def _is_counted(column: Derived, columns: Mapping[str, Any], reported: Sequence[Facts], copy: str) -> bool:
    """Tell whether a mean is that of what is counted in place of a column, and not of what it follows from."""
    return bool(copy) and has_counted_mean(column, columns, reported, copy)


def _pair_of(column: Derived, places: Mapping[str, int], pairs: Mapping[tuple[int, int], Pair]) -> Pair | None:
    """Return the counts of the first and the last column that one follows from."""
    two = sorted(places[name] for name in column.operands)
    return pairs.get((two[0], two[-1]))


def is_of_two(column: Derived, columns: Mapping[str, Any]) -> bool:
    """Tell whether something may be stated of a formula of two columns: no value is divided by 0, and none repeats."""
    formula = str(column.formula)
    return (
        column.values is None
        and len(column.operands) == 2
        and is_monotone_in_each(formula)
        and bool(np.isfinite(reach(formula, columns)).all())
    )


def changed_in(column: Derived, columns: Mapping[str, Any], prefix: str = "") -> dict[str, list[str]]:
    """Name the columns of a formula whose values outside of the schema were changed before anything was measured."""
    names = [prefix + name for name in column.operands if getattr(columns[name], "outside", "") in CHANGED]
    return {"changed": names} if names else {}


def known_within(
    column: Derived,
    reported: Sequence[Mapping[str, Any]],
    distances: Sequence[Sequence[float]],
    moved: Mapping[str, Any],
    prefix: str = "",
    copy: str = "",
) -> dict[str, float]:
    """Return what the shares, or quantiles, of a derived column are within; nothing where that is not known.

    Of one column that it is looked up by, the shares hold; of one whose order its formula keeps, the quantiles. Of two
    columns it is what they are within together, in groups, with what the worse of them is within by itself, and how
    far its values may move within these groups. Of one that is counted beside, it is what that is within, and how far
    the synthetic values of both are from each other, if that is less.

    Args:
        column: what it follows from.
        reported: what a report says of the columns that were measured.
        distances: of every two columns, as a report lists them.
        moved: how far quantiles may move in groups of two columns, and are from what is counted in place of it, under
            ``IN_GROUPS`` and ``TO_COUNTED``; nothing where that was not looked at.
        prefix: what the names of the table's columns begin with in the report.
        copy: the column that is counted in place of it; empty where none is.
    """
    place = {one["name"]: index for index, one in enumerate(reported)}
    names = [prefix + name for name in column.operands]
    known = _of_operands(column, reported, distances, moved.get(IN_GROUPS), [place.get(name, -1) for name in names])
    beside = reported[place[prefix + copy]] if copy and prefix + copy in place else {}
    if TO_COUNTED not in moved or "released" not in beside or unresolved(beside):
        return known
    of_copy = round(min(1.0, rank_error(beside) + moved[TO_COUNTED]), DIGITS)
    return {"quantiles_within": min(of_copy, known.get("quantiles_within", 1.0))}


def _of_operands(
    column: Derived,
    reported: Sequence[Mapping[str, Any]],
    distances: Sequence[Sequence[float]],
    in_groups: float | None,
    places: Sequence[int],
) -> dict[str, float]:
    """Return what a derived column is within by what it follows from; ``places`` of that in a report, -1 of none."""
    operands = [reported[place] for place in places if place >= 0]
    if len(operands) < len(places):
        return {}
    if any("released" not in one or unresolved(one) or "discovered_bounds" in one for one in operands):
        return {}
    errors = [rank_error(one) if one["ordered"] else likely_error(one) for one in operands]
    if len(operands) == 1:
        if column.values is not None:
            return {"shares_within": likely_error(operands[0])}
        keeps = is_monotone(str(column.formula)) or not operands[0]["ordered"]
        return {"quantiles_within": errors[0]} if keeps else {}
    of_pair = [likely_of_pair(figures) for *two, figures in _split(distances) if two == sorted(places)]
    if not of_pair or in_groups is None or in_groups > MOST_IN_GROUPS:
        return {}
    return {"quantiles_within": round(min(1.0, of_pair[0] + max(errors) + in_groups), DIGITS)}


def to_counted(about: Facts, copy: Any, drawn: pa.Array, values: pa.Array) -> Facts:
    """Say how far the quantiles of a derived column are from those of what is counted in its place, in synthetic rows.

    Nothing where values beyond the bounds of that were changed, since it is another column then.
    """
    if "axis" not in about or not isinstance(copy, Continuous) or copy.outside in CHANGED:
        return {}
    both = (np.where(np.isnan(one), -np.inf, one) for one in (as_numbers(copy, drawn), _as_floats(None, values)))
    return {TO_COUNTED: round(_kolmogorov(*both), DIGITS)}


def _split(distances: Sequence[Sequence[float]]) -> Iterator[tuple[float, float, Sequence[float]]]:
    return ((first, second, figures) for first, second, *figures in distances)


def _mean(
    name: str,
    column: Derived,
    local: Mapping[str, Any],
    columns: Sequence[Facts],
    drawn: Floats,
    mean_of: Callable[[str], tuple[float, float] | None],
) -> Facts:
    """Return what is said of a mean by counts, of a column that is counted beside by what is said of that."""
    copy = copy_of(name, local)
    beside: Facts = next((one["mean"] for one in columns if one["name"] == copy and "mean" in one), {})
    error = beside.get("expected_error") or beside.get("expected_error_if_thinning_out")
    known = counted_mean(column, local, columns, (beside["estimate"], error), drawn, copy) if error else {}
    if not known and has_counted_mean(column, local, columns) and (mean := mean_of(name)):
        return counted_mean(column, local, columns, mean, drawn)
    return known


def _decoded(column: Any, records: Records, place: int) -> pa.Array:
    return decode_column(column, records.states[:, place], records.values[:, place])


def _in_groups(
    column: Derived,
    columns: Mapping[str, Any],
    codec: Codec,
    pair: Pair | None,
    cells: NDArray[np.integer[Any]],
    operands: Mapping[str, pa.Array],
) -> Facts:
    """Say how far quantiles may move in groups of two columns, where these join the cells of the synthetic rows."""
    names = [*codec.columns]
    two = sorted(names.index(one.name) for one in pair.columns) if pair else []
    if pair is None or [len(one.group) for one in pair.columns] != [codec.cell_sizes[place] for place in two]:
        return {}
    return {IN_GROUPS: _moved(column, columns, pair, cells[:, two], operands)}


def _moved(
    column: Derived,
    columns: Mapping[str, Any],
    pair: Pair,
    cells: NDArray[np.integer[Any]],
    operands: Mapping[str, pa.Array],
) -> float:
    """Say how far the quantiles of a formula of two columns may move where only groups of their values are known.

    In each group of both, which the release counted, rows exchange values of the second: so that it rises as the first
    does, and so that it falls. What is returned is the larger Kolmogorov distance to the rows as they are. Shapes:
    cells [B, 2], in the order of the pair.
    """
    groups = np.stack([one.group[cell] for one, cell in zip(pair.columns, cells.T, strict=True)])
    names = [name for name in columns if name in operands]
    first, second = (as_numbers(columns[name], operands[name]) for name in names)
    rising, as_they_are = np.lexsort((first, *groups)), _reckoned(column, columns, operands)
    moved = list[float]()
    for sign in (1, -1):
        order = np.empty_like(rising)
        order[rising] = np.lexsort((sign * second, *groups))
        exchanged = {**operands, names[1]: operands[names[1]].take(pa.array(order))}
        moved.append(_kolmogorov(as_they_are, _reckoned(column, columns, exchanged)))
    return round(max(moved), DIGITS)


def _reckoned(column: Derived, columns: Mapping[str, Any], operands: Mapping[str, pa.Array]) -> Floats:
    """Return what a formula gives as numbers or ticks, null as the least of all."""
    values = derive(column, columns, pa.RecordBatch.from_pydict(dict(operands)))
    numbers = _as_floats(moment_of(str(column.formula), columns), values)
    return np.where(np.isnan(numbers), -np.inf, numbers)


def _kolmogorov(values: Floats, others: Floats) -> float:
    """Return the largest difference of the shares of values up to any number."""
    values, others = np.sort(values), np.sort(others)
    points = np.concatenate([values, others])
    shares = [np.searchsorted(one, points, side="right") / len(one) for one in (values, others)]
    return float(np.abs(shares[0] - shares[1]).max())


def shown(column: Derived, columns: Mapping[str, Any], values: pa.Array, weight: Floats) -> Facts:
    """Return the bins that a derived column is drawn as, with the share of the rows in each."""
    if column.values is not None:
        return _of_categories([named_value(one) for one in values.to_pylist()], names_of_values(column), weight)
    stand_in, numbers = _on_interval(column, columns, values)
    null, is_zero = np.isnan(numbers), numbers == 0
    if stand_in is None:
        names = [named_value(value) for value in values.to_pylist()]
        return _of_categories(names, sorted({*names} - {"null"}), weight)
    states = {"exactly 0": is_zero & (isinstance(stand_in, Number) and _are_apart(numbers)), "null": null}
    inside = ~(states["exactly 0"] | null)
    steps, few = steps_at(stand_in, numbers[inside]), np.unique(numbers[inside])
    has_few = isinstance(stand_in, Number) and len(few) <= FEW_VALUES
    stand_in = _cut_at(stand_in, steps) if has_few else _cut(stand_in, steps)
    cells = np.minimum(np.searchsorted(stand_in.edges, steps, side="right"), stand_in.cells) - 1
    bins = Bins.of(stand_in)
    shares = bins.join(np.bincount(cells, weight[inside], minlength=stand_in.cells).astype(np.float64)) / weight.sum()
    apart = {name: weight[those].sum() / weight.sum() for name, those in states.items() if those.any()}
    named = [f"{value + 0.0:.10g}" for value in few] if has_few else bins.labels
    labels, every = [*named, *apart], [*shares, *apart.values()]
    facts = {"labels": labels, "values": bins.values, "ordered": True, "synthetic": _rounded(every)}
    return facts | {"axis": axis_of(stand_in, bins, shares, shares)}


def _cut_at(column: Interval, steps: Whole) -> Interval:
    """Cut a column of few values into a cell for each of them. Shapes: steps [B]."""
    return column.cut(np.array([0, *np.unique(steps)[1:], column.edges[-1]], dtype=np.int64))


def _are_apart(numbers: Floats) -> bool:
    """Tell whether so many values of an amount are exactly 0 that they are no part of how the others lie."""
    values = numbers[~np.isnan(numbers)]
    others = values[values != 0]
    is_amount = values.min() >= 0 and len(np.unique(others)) > FEW_AMOUNTS
    return bool(is_amount and len(others) < (1 - ZEROS) * len(values))


def _cut(column: Interval, steps: Whole) -> Interval:
    """Cut a column into cells of equal width, but for what few rows have at either end. Shapes: steps [B].

    Those of amounts with a long tail grow with their values, since their axis is logarithmic.
    """
    last = int(column.edges[-1])
    first, median, large, end = np.quantile(steps, [FEW, 0.5, LARGE, 1 - FEW], method="nearest")
    inner = np.linspace(first, min(end + 1, last), MOST - 1)
    if isinstance(column, Number) and column.low >= 0 and large > LONG_TAIL * median > 0:
        inner = np.geomspace(np.quantile(steps[steps > 0], LEAST_PART), min(end + 1, last), MOST - 1)
    inner = np.rint(inner)
    return column.cut(np.unique([0.0, *inner, last]).astype(np.int64))


def _of_categories(values: Sequence[str], names: Sequence[str], weight: Floats) -> Facts:
    """Count values by name, null last; the names of all other values are public."""
    labels = [*names, *["null"] * ("null" in values and "null" not in names)]
    place = {name: index for index, name in enumerate(labels)}
    shares = np.bincount([place[one] for one in values], weight, minlength=len(labels)) / weight.sum()
    return {"labels": labels, "values": len(labels), "ordered": False, "synthetic": _rounded(shares)}


def names_of_values(column: Derived) -> list[str]:
    """Name what a derived column may be looked up to be; nothing of a formula."""
    return list(dict.fromkeys(map(named_value, (column.values or {}).values())))


def _on_interval(column: Derived, columns: Mapping[str, Any], values: pa.Array) -> tuple[Interval | None, Floats]:
    """Return a column from the least to the largest of some values, None of fewer than two, and these as numbers."""
    formula = str(column.formula)
    moment = moment_of(formula, columns)
    decimals = None if moment else 0 if is_whole(formula, columns) else column.round
    numbers = _as_floats(moment, values)
    numbers = numbers if decimals is None else np.round(numbers, decimals)  # float32 has others
    there = numbers[~np.isnan(numbers)]
    if not len(there) or (low := float(there.min())) == (high := float(there.max())):
        return None, numbers
    if moment:
        ticks = np.array([low, high]).astype(f"datetime64[{moment.tick}]")
        first, last = ticks.astype("datetime64[s]").tolist()
        return Datetime(type="datetime", min=first, max=last, resolution=moment.resolution), numbers
    if decimals is not None and max(-low, high) * 10.0**decimals > MOST_POINTS:
        decimals = None
    return Number(type="number", min=low, max=high, round=decimals), numbers


def _values_of(column: Derived, columns: Mapping[str, Any], values: pa.Array) -> Floats:
    """Return derived numbers that are not null."""
    numbers = _as_floats(moment_of(str(column.formula), columns), values)
    return numbers[~np.isnan(numbers)]


def _as_floats(moment: Datetime | None, values: pa.Array) -> Floats:
    """Return derived values as numbers, or as ticks of the column that a formula adds to; null as NaN."""
    if moment:
        return as_numbers(moment, values)
    numbers: Floats = plain(values).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def _rounded(shares: Sequence[float] | Floats) -> list[float]:
    return [round(float(share), 8) for share in shares]
