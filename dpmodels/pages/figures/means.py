"""Within what the means, and the large quantiles, of the columns of a report are, as parts of themselves."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmodels.pages.figures.named import has_first_rows
from dpmodels.pages.figures.open_means import IF_THIN, THIN_OUT, error_on_terms, is_open, supposes_thinning_out
from dpmodels.pages.glance import (
    Yardstick,
    error_of,
    has_few_values,
    relative_error,
    unresolved,
    with_figures,
    yardstick,
)
from dpmodels.pages.notes import not_handed_over
from dpmodels.pages.page import percent, percent_up
from dpmodels.statistics.normal import NORMAL_95

Facts = Mapping[str, Any]
CLOSE, FAR = 0.05, 0.2
"""Within what a figure is for it to be of use, and beyond what it is of none."""
ON_TERMS_FAR = {"mean": 1.0, "p99": FAR}
"""Beyond what a figure that is known on terms is of no use: of a mean where its error exceeds the mean itself."""
ON_TERMS = "on terms"
"""What figures that are known only if values thin out are grouped by."""
FIGURES = {"mean": ("means", "totals"), "p99": ("99 % quantiles",)}
MOST_RELATIVE = 10.0
"""Times a mean or a quantile beyond which no number is written of what it is within."""
LEAST = 0.0001
"""What a mean or a quantile is said to be within at least: nobody needs more decimals."""
UNKNOWN = "not known"
"""What is written of a figure that noise leaves open, and of one of which no error can be derived."""


@dataclass(frozen=True)
class PartOff:
    """Within what a mean or a quantile is, as a part of ``of``: as its values thin out, and with what noise may hide.

    It is good for what it is within at the ``farthest``, and to be used with care for the other, which is less.
    """

    within: float
    farthest: float
    of: str = ""
    """What these are parts of, as ``yardstick`` names it; nothing where it is the figure itself."""
    is_cut: bool = False
    """Whether values were set to a discovered bound, so that it says what was left, and is to be used with care."""
    most: float = FAR
    """Beyond what it is of no use if it is known on terms alone."""
    is_warned: bool = False
    """Whether a report warns that it is within that only if values thin out, as it does of means by group too."""

    @property
    def is_on_terms(self) -> bool:
        """Tell whether it is known only if values thin out: noise leaves it open, or puts it beyond all use."""
        return self.within < math.inf and (self.farthest == math.inf or (self.is_warned and self.farthest > FAR))

    @property
    def counted(self) -> float:
        """Return what it counts as: on terms, to be used with care as long as it says anything."""
        is_close = self.farthest <= CLOSE and not self.is_cut
        counted = self.farthest if is_close else max(self.within, math.nextafter(CLOSE, 1))
        return min(counted, FAR) if self.is_on_terms and self.within <= self.most else counted

    @property
    def stated(self) -> float:
        """Return what is written of it: that it is within, or the farthest where even that is good."""
        return self.farthest if self.counted == self.farthest and not self.is_on_terms else self.within


def errors_of(report: Facts, figure: str) -> dict[str, PartOff]:
    """Return by column within what its mean, or its large quantile, is, where an error of it is known."""
    judged = (one for one in with_figures(report) if figure == "mean" or not has_few_values(one))
    stated = [one for one in judged if _is_known(one, figure)]
    return {one["name"]: _part_off(one, figure) for one in stated}


def doubted_figures(column: Facts) -> tuple[list[str], list[str]]:
    """Name the figures of a column that are of no use, and those that are known only if its values thin out.

    They are judged as the table of all columns judges them; ``mean``, ``total`` and ``p99``. Totals go with means, but
    of times of day, which have none.
    """
    of_no_use, on_terms = list[str](), list[str]()
    for figure in FIGURES:
        if figure not in column or (figure == "p99" and has_few_values(column)):
            continue
        error = errors_of({"columns": [column]}, figure).get(column["name"])
        names = [figure, *(["total"] if figure == "mean" and not column.get("clock") else [])]
        if error is None or error.counted > FAR:
            of_no_use += names
        elif error.is_on_terms:
            on_terms += names
    avoid = [one for one in column.get("avoid", ()) if one not in (*of_no_use, *on_terms)]
    return [*of_no_use, *avoid], on_terms


def far_figures(report: Facts) -> dict[str, dict[str, str]]:
    """Say by figure and column within what it is, where it is handed over, and farther off than it is of any use."""
    dropped, far = not_handed_over(report), dict[str, dict[str, str]]()
    for figure in FIGURES:
        for name, error in errors_of(report, figure).items():
            if error.counted > FAR and name not in dropped:
                far.setdefault(figure, {})[name] = (
                    f"{in_words(error)}{f' of its {error.of}' * bool(error.of)}{terms(error)}"
                )
    return far


def in_words(error: PartOff) -> str:
    """Write the one limit that a figure is judged by; of what is next to no limit, no number."""
    if error.counted > MOST_RELATIVE:
        return UNKNOWN
    return "at least " * error.is_cut + percent_up(max(error.stated, LEAST), MOST_RELATIVE)


def terms(error: PartOff) -> str:
    """Say on what terms that limit holds, where noise leaves a figure open; else how far off it is at the farthest.

    Whoever does not know that values thin out may use no figure with the first words, by which pages know it.
    """
    if error.farthest <= error.stated or error.counted > MOST_RELATIVE:
        return ""
    if error.is_on_terms:
        return f", {IF_THIN}"
    if error.farthest > MOST_RELATIVE:
        return ", farther off if noise hides large values"
    return f", or {percent_up(error.farthest, MOST_RELATIVE)} at the farthest"


def bound_of_figures(errors: Sequence[PartOff], measure: str, above: float, most: float, is_one: bool) -> str:
    """Say within what, or beyond what, some figures are, and of what that is a part."""
    if measure == UNKNOWN:
        return measure
    of = f" of {'its' if is_one else 'their'} {measure}" if measure else ""
    if most == math.inf:
        return f"beyond {percent(above)}{of}"
    least = "at least " * any(error.is_cut for error in errors)
    may_hide = any(error.farthest > error.stated for error in errors)
    worst = percent_up(max(error.stated for error in errors), 10.0)
    if measure == ON_TERMS:
        return f"only if {THIN_OUT}, and then within {worst}"
    return f"within {least}{worst}{of}{', and farther off if noise hides large values' * may_hide}"


def words_by_kind(report: Facts, figure: str, names: Sequence[str]) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """Yield names with what is said of their figure: of times of day, and of the first rows of users, no total."""
    times = {one["name"] for one in report["columns"] if one.get("clock")}
    for is_time in (False, True):
        words = FIGURES[figure][: 1 if is_time or has_first_rows(report) else None]
        yield [name for name in names if (name in times) is is_time], words


def _part_off(column: Facts, figure: str) -> PartOff:
    measure, error = yardstick(column, figure), error_on_terms(column, figure)
    if error is not None:
        within = NORMAL_95 * error / measure.size if measure.size else math.inf
        return PartOff(within, math.inf, measure.name, bool(column.get("discovered_bounds")), ON_TERMS_FAR[figure])
    within = NORMAL_95 * relative_error(column, figure)
    farthest, is_warned = (
        max(within, _hidden(column, figure, measure)),
        figure == "mean" and supposes_thinning_out(column),
    )
    return PartOff(within, farthest, measure.name, bool(column.get("discovered_bounds")), FAR, is_warned)


def _hidden(column: Facts, figure: str, measure: Yardstick) -> float:
    """Return how far values that noise may hide can put a mean off, as a part; 0 where a report warns of none."""
    unseen, mean = column.get("unseen", {}), float(column["mean"]["estimate"])
    if figure != "mean" or "means" not in unseen or not measure.size:
        return 0.0
    return float(max(abs(end - mean) for end in unseen["means"]) / measure.size)


def _is_known(column: Facts, figure: str) -> bool:
    """Tell whether the error of a mean or a quantile is known, if only on terms."""
    if figure not in column or unresolved(column):
        return False
    known = not is_open(column, figure) and error_of(column, figure) is not None
    return known or error_on_terms(column, figure) is not None
