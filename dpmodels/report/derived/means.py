"""What the mean of a derived column is, where it follows from means that are stated, or from counts.

The mean of a sum of multiples of columns is that sum of their means, and is off by no more than the sum of what they
are off by. That of any other formula follows from the counts of its columns together (counted.py), and so does that of
a sum of several columns of which one may be null: its rows are not those of each of them.

Privacy: post-processing of what a report says of other columns, and of the public schema.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.columns import Discrete
from dpmodels.contract.continuous import Continuous
from dpmodels.contract.derivation.affine import affine_of
from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.derivation.reach import reach
from dpmodels.contract.derivation.tariff import is_placed
from dpmodels.contract.derivation.unstated import CHANGED
from dpmodels.contract.formula import is_whole, moment_of, names_in, reckon
from dpmodels.pages.glance import unresolved
from dpmodels.report.numbers import FAR, NOTABLE, OPEN
from dpmodels.statistics.digits import beside
from dpmodels.statistics.normal import NORMAL_95

STEPS, MOST_COMBINATIONS = 17, 100_000
"""Values between the bounds of a column at which a formula is looked at, and combinations of all columns' values."""
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
    rounding = _rounding(column)
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


def counted_mean(
    column: Derived,
    columns: Mapping[str, Any],
    reported: Sequence[Mapping[str, Any]],
    mean: tuple[float, float],
    synthetic: Sequence[float] | Floats,
    copy: str = "",
) -> dict[str, Any]:
    """Return what a report says of the mean of a formula, which follows from counts; nothing where it may be far off.

    Args:
        column: what it follows from.
        columns: those of the schema.
        reported: what the report says of those that were measured.
        mean: as the counts have it, and the standard deviation that it is off by.
        synthetic: the values of synthetic rows that are not null.
        copy: the column that is counted in place of it; empty where none is.
    """
    if not has_counted_mean(column, columns, reported, copy) or not len(synthetic):
        return {}
    operands = [one for one in reported if one["name"] in ((copy,) if copy else column.operands)]
    made, stddev = float(np.mean(synthetic)), float(np.std(synthetic))
    least, most = reach(str(column.formula), columns)
    estimate = min(max(mean[0], least), most)
    low, high = ends_of(str(column.formula), columns, estimate)
    error, rounding = math.hypot(mean[1], made - estimate), 0.0 if _is_exact(column, columns) else _rounding(column)
    if not rounding <= error < math.inf:
        return {}
    hidden = max((one.get("unseen", {}).get("share", 0.0) for one in operands), default=0.0)
    ends = [estimate + hidden * (end - estimate) for end in (low, high)]
    reached = max(estimate - ends[0], ends[1] - estimate)
    known: dict[str, Any] = {"mean": {"estimate": beside(estimate, error), "expected_error": _in_three(error)}}
    known["mean"] |= {"synthetic": beside(made, error), "synthetic_stddev": _in_three(stddev)}
    on_terms = {"expected_error": None, "expected_error_if_thinning_out": _in_three(error)}
    are_open = any(map(is_open, operands))
    if copy:
        known["mean"] |= on_terms if are_open else {}
        return known | of_copy(operands[0])
    if reached <= NOTABLE * error and not are_open:
        return known
    widened = [beside(max(ends[0] - error, low), error), beside(min(ends[1] + error, high), error)]
    if are_open or reached > max(OPEN * error, abs(estimate)):
        known["mean"] |= on_terms
        return known | {"unseen": {"means": widened, "open": True}}
    return known | {"unseen": {"means": widened} | ({"far": True} if reached > FAR * error else {})}


def of_copy(copy: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is hidden of the mean, and the 99 % quantile, of a column that is counted in place of a derived one.

    They have the same values in every row, so what a report says of the one holds for the other.
    """
    unseen = {key: copy["unseen"][key] for key in ("means", "far", "open") if key in copy.get("unseen", {})}
    of_quantile = {key: copy["p99"][key] for key in ("estimate", "expected_error")} if _is_known(copy, "p99") else {}
    return ({"unseen": unseen} if "means" in unseen else {}) | ({"p99": of_quantile} if of_quantile else {})


def is_open(one: Mapping[str, Any]) -> bool:
    """Tell whether noise leaves a mean open, which is stated for values that thin out."""
    is_cut = "clipped" in one or "discovered_bounds" in one
    return "expected_error_if_thinning_out" in one.get("mean", {}) and "open" in one.get("unseen", {}) and not is_cut


def _is_known(one: Mapping[str, Any], figure: str) -> bool:
    return _is_stated(one, figure) and one[figure]["expected_error"] is not None


def _is_exact(column: Derived, columns: Mapping[str, Any]) -> bool:
    """Tell whether rounding changes nothing of a formula of whole numbers, or of listed values such as prices."""
    operands = [columns[name] for name in column.operands]
    if column.dtype == "int64" and is_whole(str(column.formula), columns):
        return True
    if column.round is None or not all(isinstance(one, Discrete) for one in operands):
        return False
    if math.prod(len(one.keys) for one in operands) > MOST_COMBINATIONS:
        return False
    places = [
        np.arange(float(len(one.keys))) if is_placed(one) else np.array(one.keys, dtype=np.float64) for one in operands
    ]
    grid = [one.ravel() for one in np.meshgrid(*places)]
    given = reckon(str(column.formula), dict(zip(column.operands, grid, strict=True)), columns)
    return bool(np.allclose(given, np.round(given, column.round), rtol=0, atol=1e-9, equal_nan=True))


def ends_of(formula: str, columns: Mapping[str, Any], estimate: float) -> tuple[float, float]:
    """Return between what a formula lies, which is bounded, and which an estimate of it lies between too.

    It is looked at on a grid of its columns' values, on which a column that it names twice has one value at a time,
    other than in ``reach``; of too many combinations it is that.
    """
    values = list[Floats]()
    for name in (names := names_in(formula)):
        column = columns[name]
        keys = getattr(column, "keys", ())
        listed = np.arange(float(len(keys))) if is_placed(column) else np.sort(np.array(keys, dtype=np.float64))
        values.append(np.linspace(column.low, column.high, STEPS) if isinstance(column, Continuous) else listed)
    if math.prod(map(len, values)) > MOST_COMBINATIONS:
        return reach(formula, columns)
    grid = [one.ravel() for one in np.meshgrid(*values)]
    given = reckon(formula, dict(zip(names, grid, strict=True)), columns)
    return min(estimate, float(np.nanmin(given, initial=np.inf))), max(
        estimate, float(np.nanmax(given, initial=-np.inf))
    )


def has_counted_mean(
    column: Derived, columns: Mapping[str, Any], reported: Sequence[Mapping[str, Any]], copy: str = ""
) -> bool:
    """Tell whether a report may state a mean of a formula by counts, if there are any of its columns together.

    Args:
        column: what it follows from.
        columns: those of the schema.
        reported: what the report says of the columns that were measured.
        copy: the column that is counted in place of it; empty where none is.
    """
    names = {copy} if copy else {*column.operands}
    counted = [one for one in reported if one["name"] in names]
    return (
        column.formula is not None
        and column.dtype in EXACT
        and (bool(copy) or affine_of(column.formula) is None or _is_sum_with_nulls(column.formula, columns))
        and moment_of(column.formula, columns) is None
        and math.isfinite(sum(map(abs, reach(column.formula, columns))))
        and {one["name"] for one in counted} == names
        and not any(getattr(columns[name], "outside", "") in CHANGED for name in names)
        and all(_is_stated(one, "mean") or is_open(one) for one in counted if "mean" in one)
        and all("released" in one and not unresolved(one) and "discovered_bounds" not in one for one in counted)
    )


def _is_sum_with_nulls(formula: str, columns: Mapping[str, Any]) -> bool:
    """Tell whether a formula is of several columns of which one may be null, so that their means are of other rows."""
    names = names_in(formula)
    return len(names) > 1 and any(getattr(columns[name], "nullable", False) for name in names)


def _rounding(column: Derived) -> float:
    """Return what rounding adds to the standard deviation of a mean at most."""
    decimals = 0 if column.dtype == "int64" else column.round
    return 0.0 if decimals is None else 0.5 / 10**decimals / NORMAL_95


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
