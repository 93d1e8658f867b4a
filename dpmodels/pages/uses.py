"""What synthetic rows may be used for, with care, or not at all, by the bounds that their report states."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaincinv

from dpmodels.pages.glance import likely_error, likely_of_pair, rank_error, unresolved, worst_first
from dpmodels.pages.page import percent
from dpmodels.plural import counted
from dpmodels.statistics.dependence import dependence
from dpmodels.statistics.normal import HALF_NORMAL

Facts = Mapping[str, Any]
CLOSE, FAR = 0.05, 0.2
"""Within what a figure is for it to be of use, and beyond what it is of none."""
MOST_NAMED = 8
"""Names in a sentence."""
MOST_PAIRS = 3
"""Pairs that are named."""
MOST_ABSENT = 4
"""Categories of a column that are named."""
NORMAL_95 = 1.645
"""Standard deviations above its mean that a normal exceeds in one of twenty."""
WEAKENED = 0.8
"""Part of the released dependence, without its noise, below which two columns depend on each other too little."""


@dataclass(frozen=True)
class Uses:
    """Sentences on what rows are good for, what they show with care alone, and what they must not be used for."""

    good: tuple[str, ...]
    care: tuple[str, ...]
    never: tuple[str, ...]


def uses(report: Facts) -> Uses | None:
    """Sort columns and pairs of a report by what they are within; None where it states no such figure."""
    columns = worst_first(report.get("columns", ()))
    if not columns or "drowned" in report:
        return None
    errors = {one["name"]: _error(one) for one in reversed(columns) if not unresolved(one)}
    pairs = _pairs(report)
    return Uses(
        tuple(_close(errors, pairs, report)),
        tuple(_with_care(errors, pairs, report)),
        tuple(_never(errors, pairs, columns, [one["name"] for one in report["columns"]])),
    )


def _error(column: Facts) -> float:
    """Return what a column is within: the larger of its quantiles and its shares."""
    return max(likely_error(column), rank_error(column) if column["ordered"] else 0.0)


def _pairs(report: Facts) -> dict[tuple[int, int], float]:
    listed = (report.get("pairs") or {}).get("distances", ())
    return {(first, second): likely_of_pair(figures) for first, second, *figures in listed}


def _close(errors: Mapping[str, float], pairs: Mapping[tuple[int, int], float], report: Facts) -> Iterator[str]:
    if names := [name for name, error in errors.items() if error <= CLOSE]:
        yield f"shares and quantiles of {listed(names)} (within {percent(CLOSE)})"
    close = [places for places, error in pairs.items() if error <= CLOSE]
    if close:
        said = f"tables of two columns in broad groups, in {len(close):,} of {counted(len(pairs), 'pair')}"
        target = (report["pairs"] or {}).get("target")
        if target is not None and (of_target := [places for places in pairs if target in places]):
            among = sum(target in places for places in close)
            said += f", {among} of {len(of_target)} of these with {report['columns'][target]['name']}, the target"
        yield f"{said} (within {percent(CLOSE)})"
    yield "writing and testing programs, and models that are then held against the real rows, inside"


def _with_care(errors: Mapping[str, float], pairs: Mapping[tuple[int, int], float], report: Facts) -> Iterator[str]:
    if names := [name for name, error in errors.items() if CLOSE < error <= FAR]:
        yield f"shares and quantiles of {listed(names)} (within {percent(FAR)})"
    if number := sum(CLOSE < error <= FAR for error in pairs.values()):
        yield f"two columns together in {counted(number, 'more pair')} (within {percent(FAR)})"
    if names := [weak for one in (report.get("pairs") or {}).get("tables", ()) if (weak := _weak(one, report))]:
        yield f"relations that are weaker in these rows than as released: {listed(names)}"
    if names := farther(report):
        yield f"{listed(names)}: farther from the release than its noise explains, as where rules move values"


def _never(
    errors: Mapping[str, float],
    pairs: Mapping[tuple[int, int], float],
    columns: Sequence[Facts],
    names: Sequence[str],
) -> Iterator[str]:
    lost = [one["name"] for one in columns if unresolved(one)]
    if far := [*lost, *(name for name, error in errors.items() if error > FAR)]:
        yield f"questions about {listed(far)}" + " by itself" * (len(far) == 1)
    for figure, words in (("mean", "means and totals"), ("p99", "99 % quantiles")):
        if avoided := [one["name"] for one in columns if figure in one.get("avoid", ()) and one["name"] not in lost]:
            yield f"{words} of {listed(avoided)}"
    farthest = sorted((places for places, error in pairs.items() if error > FAR), key=lambda places: -pairs[places])
    if farthest:
        pairs_far = [f"{names[first]} with {names[second]}" for first, second in farthest]
        number = counted(len(farthest), "pair")
        yield f"two columns together in {number} (beyond {percent(FAR)}): {listed(pairs_far, MOST_PAIRS)}"
    for one in columns:
        if gone := absent(one):
            yield f"whether {one['name']} is ever {listed(gone, MOST_ABSENT)}: no row has it, which noise may do"
    yield "what only three or more columns show together, rare combinations, and anything about a single person"


def _weak(table: Facts, report: Facts) -> str:
    first, second = (report["columns"][place]["name"] for place in table["columns"])
    return f"{first} with {second}" if weakened(table, report["pairs"]["distances"]) else ""


def dependence_by_noise(table: Facts) -> float:
    """Return the dependence that noise alone shows of two columns of which sums are known: a part of its distance."""
    return min(1.0, math.sqrt(_left(table)) * HALF_NORMAL * float(np.sum(table["stddev"])) / 2)


def _left(table: Facts) -> float:
    """Return the part of the degrees of freedom of two columns in groups that their sums leave."""
    rows, columns = np.shape(table["stddev"])
    return (rows - 1) * (columns - 1) / (rows * columns)


def most_by_noise(table: Facts, distances: Sequence[Sequence[float]]) -> float:
    """Return what noise alone makes of the dependence of two columns in one report of twenty, over all of its pairs.

    Those that are drawn are the largest of all, so each pair may exceed it in .05 by their number. How much noise
    varies beside its mean is what the listed mean and 95 % quantile of a pair say, as of a gamma distribution, with as
    many fewer degrees of freedom as the sums of the table take. Reports up to layout 8 list no such quantile; there it
    is twice the mean.

    Args:
        table: one of the pairs that are drawn.
        distances: of all pairs, as a report lists them.
    """
    mean = dependence_by_noise(table)
    expected, likely = next(
        (one[2], one[4] if one[4:] else 2 * one[2]) for one in distances if one[:2] == table["columns"]
    )
    if not likely > expected > 0:
        return mean
    shape = (NORMAL_95 * expected / (likely - expected)) ** 2 * _left(table)
    return min(1.0, mean * float(gammaincinv(shape, 1 - 0.05 / len(distances))) / shape)


def weakened(table: Facts, distances: Sequence[Sequence[float]]) -> bool:
    """Tell whether two columns that clearly depend on each other as released do so less in the synthetic rows."""
    released, synthetic = (dependence(np.array(table[name])) for name in ("released", "synthetic"))
    left = math.sqrt(max(released**2 - dependence_by_noise(table) ** 2, 0.0))
    return released > most_by_noise(table, distances) and synthetic < WEAKENED * left


def farther(report: Facts) -> list[str]:
    """Name the columns that are farther from the release than twice what its noise is from the real rows."""
    measured = [one for one in report.get("columns", ()) if "released" in one and not unresolved(one)]
    return [one["name"] for one in measured if one["distance_to_release"] > max(2 * one["expected_distance"], 0.005)]


def absent(column: Facts) -> list[str]:
    """Name the categories of a column that no synthetic row has."""
    if column["ordered"]:
        return []
    shares = zip(column["labels"], column["synthetic"], strict=True)
    return [label for label, share in shares if share == 0 and label != "null"]


def listed(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Name some, and say how many more there are."""
    few = list(names[:most])
    if more := len(names) - len(few):
        return f"{', '.join(few)} and {more:,} more"
    return " and ".join(filter(None, [", ".join(few[:-1]), few[-1]]))
