"""What the mean of a derived column is, where its formula adds multiples of columns whose means are stated.

The mean of such a sum is the sum of their means, and is off by no more than the sum of what they are off by.

Privacy: post-processing of what a report says of other columns, and of the public schema.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.contract.derivation.affine import affine_of
from dpmodels.contract.derivation.derived import Derived
from dpmodels.statistics.digits import beside
from dpmodels.statistics.normal import NORMAL_95

EXACT = (None, "int64", "float64")
"""Types that keep what a formula gives, but for its rounding."""
FIGURES = ("mean", "p99", "unseen")
"""What is stated here of a derived column, as of others."""


def known_means(column: Derived, reported: Sequence[Mapping[str, Any]], prefix: str = "") -> dict[str, Any]:
    """Return the mean of a derived column, and its 99 % quantile if it rises with one column; nothing if not known.

    Args:
        column: what it follows from.
        reported: what a report says of the columns that were measured.
        prefix: what the names of the table's columns begin with in the report.
    """
    sum_of = affine_of(column.formula) if column.formula is not None else None
    every = {one["name"].removeprefix(prefix): one for one in reported if one["name"].startswith(prefix)}
    if sum_of is None or not {*sum_of.slopes} <= {*every} or not all(sum_of.slopes.values()):
        return {}
    parts = [(slope, every[name]) for name, slope in sum_of.slopes.items()]
    have_nulls = any("null" in one["labels"] for _, one in parts)
    if not parts or not all(_is_stated(one, "mean") for _, one in parts) or (have_nulls and len(parts) > 1):
        return {}
    decimals = 0 if column.dtype == "int64" else column.round
    rounding = 0.0 if decimals is None else 0.5 / 10**decimals / NORMAL_95
    error = sum(abs(slope) * one["mean"]["expected_error"] for slope, one in parts)
    if not rounding <= error < math.inf or column.dtype not in EXACT:
        return {}  # what a type or its rounding makes of the values may be more than the error

    def total(key: str) -> float:
        return beside(sum_of.constant + sum(slope * float(one["mean"][key]) for slope, one in parts), error)

    known: dict[str, Any] = {"mean": {"estimate": total("estimate"), "expected_error": _in_three(error + rounding)}}
    known["mean"]["synthetic"] = total("synthetic")
    if any("means" in one.get("unseen", {}) for _, one in parts):
        ends = [sorted(slope * end for end in _ends(one)) for slope, one in parts]
        means = [beside(sum_of.constant + sum(one[place] for one in ends), error) for place in (0, 1)]
        known["unseen"] = {"means": means}
    slope, one = parts[0]
    if len(parts) == 1 and "synthetic_stddev" in one["mean"]:
        known["mean"]["synthetic_stddev"] = _in_three(abs(slope) * one["mean"]["synthetic_stddev"])
    if len(parts) == 1 and slope > 0 and _is_stated(one, "p99"):
        error = slope * one["p99"]["expected_error"] + rounding
        quantile = beside(sum_of.constant + slope * one["p99"]["estimate"], error)
        known["p99"] = {"estimate": quantile, "expected_error": _in_three(error)}
    return known


def _is_stated(one: Mapping[str, Any], figure: str) -> bool:
    """Tell whether a column's figure is stated with an error, and of values that nobody changed or cut."""
    is_cut = "clipped" in one or "discovered_bounds" in one
    return "expected_error" in one.get(figure, {}) and not is_cut and figure not in one.get("avoid", ())


def _ends(one: Mapping[str, Any]) -> Sequence[float]:
    """Return between what a mean lies, whatever noise hides."""
    ends: Sequence[float] = one.get("unseen", {}).get("means", [one["mean"]["estimate"]] * 2)
    return ends


def _in_three(number: float) -> float:
    return float(f"{number:.3g}")
