"""What derived columns are warned of whose means noise leaves open, or may put far off, as measured ones are.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dpmodels.pages.figures.amounts import amount, both_ends, error
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
UNLESS = "not known, unless their values thin out, and then as the report states"
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
    if not (unseen.get("far") or reached > FAR * expected):
        return ""
    within = NORMAL_95 * expected
    mean_in_words = amount(column, estimate, within)
    return FAR_MEAN.format(mean=mean_in_words, within=error(column, within), low=low, high=high) + remedy


def supposes_thinning_out(column: Facts) -> bool:
    """Tell whether a report says that the mean of a column is within what it states if its values thin out."""
    return bool({"open", "far"} & column.get("unseen", {}).keys() or ("follows" in column and _doubt(column)))


def open_figures(columns: Sequence[Facts], derived: Sequence[Facts], figure: str) -> tuple[list[str], list[str]]:
    """Name the columns of whose means, or large quantiles, nobody is to use any: without terms, and with these.

    Noise leaves them open; some have a stated error if their values thin out towards the bounds.
    """
    avoided = [one for one in columns if figure in one.get("avoid", ())]
    avoided += [one for one in derived if "open" in one.get("unseen", {}) and figure != "p99"]
    has_terms = ["expected_error_if_thinning_out" in one.get(figure, {}) for one in avoided]
    named = [
        [one["name"] for one, has in zip(avoided, has_terms, strict=True) if has is asked] for asked in (False, True)
    ]
    return named[0], named[1]
