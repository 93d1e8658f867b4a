"""What derived columns are warned of whose means noise leaves open, or may put far off, as measured ones are.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Collection, Mapping
from typing import Any

from dpmodels.pages.figures.amounts import amount, both_ends, error
from dpmodels.pages.notes import COUNTED_AS
from dpmodels.pages.page import capital
from dpmodels.plural import listed
from dpmodels.statistics.normal import NORMAL_95

Facts = Mapping[str, Any]
FAR = 15.0
"""Times the error to expect by which a few values that noise hides may move a mean before a report warns of it."""
OPEN_MEAN = (
    "use no mean and no total of it, not by group either, unless you know that its values thin out towards the ends of "
    "what they can be: by noise alone its mean lies anywhere from {low} to {high}; where they do thin out, it is "
    "{mean}, with an expected error of {error}. "
)
FAR_MEAN = (
    "its mean is about {mean}, within {within}, where its values thin out towards the ends of what they can be; where "
    "a few lie far away from the others, which noise would hide, it may be anywhere from {low} to {high}. "
)
THIN_OUT = "values thin out, becoming rarer towards the largest possible one as wages do"
"""On what terms figures that noise leaves open hold, as whoever knows the values may judge."""
DOUBTED = "what the report warns of the column's mean of all rows holds for it too"
"""Why a mean of a group is not to be taken at face value that holds on these terms."""
IF_THIN = "if its values thin out"
"""On what terms a figure is within something that noise leaves open."""
AS_STATED = "means by group as the report states them"
"""What is of use of a column whose mean of all rows is too far off."""
REMEDY = "For the next release, declare narrower public bounds for {columns}, which it follows from, or spend more."
SPEND = "For the next release, spend more."


def with_doubts(report: Facts) -> list[Facts]:
    """Return the derived columns of whose means a report is not sure, each with its warning."""
    numbers = {one["name"] for one in report.get("columns", ()) if one.get("ordered")}
    return [{**one, "warning": capital(said)} for one in report.get("derived", ()) if (said := _doubt(one, numbers))]


def _doubt(column: Facts, numbers: Collection[str] = ()) -> str:
    """Say how far off a mean may be; empty where nothing of it is hidden, or little; ``numbers`` have bounds."""
    mean, unseen = column.get("mean"), column.get("unseen", {})
    if not mean or "means" not in unseen:
        return ""
    low, high = both_ends(column, *unseen["means"])
    estimate, expected = mean["estimate"], mean["expected_error"]
    bounded = [name for name in column["follows"] if name in numbers]
    remedy = REMEDY.format(columns=listed(bounded, "and")) if bounded else SPEND
    if unseen.get("open"):
        off = mean["expected_error_if_thinning_out"]
        said = OPEN_MEAN.format(low=low, high=high, mean=amount(column, estimate, off), error=error(column, off))
        return said + remedy
    reached = max(abs(end - estimate) for end in unseen["means"])
    is_far = unseen.get("far") or (COUNTED_AS not in column and reached > FAR * expected)
    if not is_far:  # where a column is counted in its place, that says it
        return ""
    within = NORMAL_95 * expected
    mean_in_words = amount(column, estimate, within)
    return FAR_MEAN.format(mean=mean_in_words, within=error(column, within), low=low, high=high) + remedy


def supposes_thinning_out(column: Facts) -> bool:
    """Tell whether a report says that the mean of a column is within what it states if its values thin out."""
    return bool({"open", "far"} & column.get("unseen", {}).keys() or ("follows" in column and _doubt(column)))


def is_open(column: Facts, figure: str) -> bool:
    """Tell whether noise leaves a column's mean, or its large quantile, open, so that nobody is to use it as it is."""
    is_derived = "follows" in column and "open" in column.get("unseen", {}) and figure != "p99"
    return figure in column.get("avoid", ()) or is_derived


def error_on_terms(column: Facts, figure: str) -> float | None:
    """Return the expected error of a figure that noise leaves open, if values thin out; None where none is stated."""
    if not is_open(column, figure) or figure not in column:
        return None
    error: float | None = column[figure].get("expected_error_if_thinning_out")
    return error
