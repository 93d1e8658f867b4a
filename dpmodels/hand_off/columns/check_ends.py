"""Check that means and 99 % quantiles are as far from the synthetic rows as their errors say, which are part of them.

An error holds by how much the synthetic column is off what the counts tell: whoever moves an estimate away from the
rows makes its error larger as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmodels.contract.columns import Integer, Modelled, Number

Facts = Mapping[str, Any]
LEVEL = 0.99
ROUNDED, ROUNDED_SHARE = 1e-2, 1e-6
"""Part of an error that its three digits leave open, and by how much a sum of rounded shares may be off."""
FOUR_DIGITS = 1e-3
"""Part of a value by which the end of a range may be off that is written with four digits."""


def apart_from_rows(facts: Facts, column: Modelled) -> Iterator[str]:
    """Name the figures of a column that lie farther from the synthetic rows than their errors say."""
    if not isinstance(column, Integer | Number):
        return
    mean, quantile = facts.get("mean", {}), facts.get("p99", {})
    if mean.get("synthetic") is not None and (error := _error(mean)) is not None:
        slack = FOUR_DIGITS * ROUNDED * max(abs(mean["synthetic"]), abs(mean["estimate"]))
        if abs(mean["estimate"] - mean["synthetic"]) > error * (1 + ROUNDED) + slack:
            yield "mean"
    if quantile and (error := _error(quantile)) is not None:
        low, high = _bin_of_rows(facts, column)
        off = error * (1 + ROUNDED) + FOUR_DIGITS * max(abs(low), abs(high))
        if not low - off <= quantile["estimate"] <= high + off:
            yield "p99"


def _error(figure: Facts) -> float | None:
    """Return the error of a figure, on whatever terms."""
    error = figure.get("expected_error")
    return figure.get("expected_error_if_thinning_out") if error is None else error


def _bin_of_rows(facts: Facts, column: Integer | Number) -> tuple[float, float]:
    """Return between what the synthetic 99 % quantile of a column's values lies, by the bins that it is drawn in."""
    bins = [(*_ends(label, column), share) for label, share in zip(facts["labels"], facts["synthetic"], strict=True)]
    values = sorted((low, high, share) for low, high, share in bins if low is not None and high is not None)
    below, in_all = 0.0, sum(share for *_, share in values)
    ends = [(low, high) for low, high, _ in values]
    for place, (*_, share) in enumerate(values):
        below += share
        if below >= LEVEL * in_all - ROUNDED_SHARE:
            return ends[place][0], _next(ends, place, below - LEVEL * in_all)
    return float(column.low), float(column.high)


def _next(ends: Sequence[tuple[float, float]], place: int, beyond: float) -> float:
    """Return the end of a bin, or of the next one where rounding may decide in which of both a quantile is."""
    return ends[min(place + (beyond <= 2 * ROUNDED_SHARE), len(ends) - 1)][1]


def _ends(label: str, column: Integer | Number) -> tuple[float | None, float | None]:
    """Return between what the values of a bin lie; exactly 0 is a value, and null is none."""
    from dpmodels.report.groups.ranges import ends_of_range

    if label == "null":
        return None, None
    return (0.0, 0.0) if label == "exactly 0" else ends_of_range(label, column) or (column.low, column.high)
