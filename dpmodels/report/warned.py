"""What a column is warned of: terminal, report, data sheet and Python show this, and warn of no other column.

Privacy: post-processing of released counts and of the public schema.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmodels.clock import clock_of, duration, time_of_day
from dpmodels.contract.columns import Datetime, Integer, Modelled, Number
from dpmodels.generators.refinements.tails import SIGNIFICANT, Pooled
from dpmodels.methods.parts.marginals import Marginal
from dpmodels.pages.page import ends, percent, short
from dpmodels.releases.contract import Contract
from dpmodels.releases.discoveries import discovered_keys
from dpmodels.report.axis import is_year
from dpmodels.report.bins import written
from dpmodels.report.largest import MOST_ASSUMED, NARROWER, ZEROS_APART, crowd_of, warning
from dpmodels.statistics.normal import NORMAL_95

Facts = Mapping[str, Any]
FIGURES = ("mean", "total", "p99")
OPEN_QUANTILE = "its 99 % quantile is not known: by noise alone it lies anywhere from {low} to {high}."
UNUSABLE = ("no mean and no total", "no mean, total or 99 % quantile")
OPEN = (
    "use {figures} of it, not by group either, unless you know that its values thin out towards the bounds and within "
    "their cells: by noise alone its mean lies anywhere from {low} to {high}; where they do thin out, it is {mean}, "
    "with an expected error of {error}."
)
EXCEEDED = "the expected error of its mean, {error}, exceeds it, {mean}: use no sum and no mean of it."
CUT = (
    "its {ends} {were} discovered, as the schema's `sources` say, and values beyond were set to the bound before "
    "anything was measured; the discovery said of what share of the rows that may be so. Mean, total and the quantiles "
    "near the bound may be {off} by more than is stated here. For the next release, write a bound that is public, and "
    "leave its key out of the column's words in `sources`, as of any bound that you wrote yourself."
)
ALSO = "Also, "
FAR_AWAY = (
    "its mean is about {mean}, within {within}, where its values thin out towards the bounds; where a few lie far away "
    "from the others, which noise would hide, it may be anywhere from {low} to {high}."
)
ONE_CELL = "how its values lie in one wide cell decides its mean and its total: use neither."
MOST_OF_MEAN = 0.25
"""Part of a mean by which values may be moved within the one cell that holds most before this is said."""
LOST_VALUES = "its values do not stand out of their noise, so no error of a mean or a quantile is stated: use neither."
REMEDY = "For the next release, {advice} or spend more."
CROWD = 2.0
"""Records in the cell at a bound, as a multiple of those beside it, from which on they may be there by clipping."""
NARROW = 0.001
"""Width of a cell, as a part of the bound that it lies at, up to which all of it is at the bound."""
LEAST_CROWD = 0.005
"""Share of the records that they must be."""
SIDES = {"min": "too high", "max": "too low"}


def warned(
    column: Modelled, noisy: Marginal, largest: Facts, together: Facts | None, measurement: Facts, errors: Facts
) -> dict[str, Any]:
    """Return the warning of a column that the release counted, and its consequences.

    ``resolved``: whether its counts are resolved all the same; ``avoid``: the figures of it that nobody is to use.
    """
    unresolved, doubted = warning(column, noisy, largest, together, measurement), doubt(column, errors)
    if unresolved and errors and "open" not in errors.get("unseen", {}) and in_one_cell(column, noisy, errors):
        doubted = Doubt(FIGURES[:2], ONE_CELL)
    crowd = None if unresolved else crowded(column, noisy)
    remedy = REMEDY.format(advice=thinner(column, noisy)) if doubted and errors and not (unresolved or crowd) else None
    said = joined(doubted.sentence if doubted else None, unresolved, remedy, crowd)
    if said and isinstance(column, Integer | Number) and crowd_of(column, noisy)[1] > ALL_ALIKE:
        said = joined(said["warning"], FEW_AMOUNTS)
    avoid = {"avoid": list(doubted.figures)} if doubted and doubted.figures else {}
    return said | avoid | ({"resolved": True} if said and not unresolved and errors else {})


def thinner(column: Modelled, noisy: Marginal) -> str:
    """Advise what makes the noise of a column's values matter less: zeros of their own kind, or narrower bounds."""
    cell, share = crowd_of(column, noisy)
    if share > MOST_ASSUMED and isinstance(column, Integer | Number) and not column.zero_inflated:
        low, high = (bounds[cell] for bounds in column.grid.bounds)
        if low <= 0 <= high:
            return f"{ZEROS_APART}, {NARROWER}"
    return NARROWER


ALL_ALIKE = 0.9
"""Share of a column's values in one cell from which on they may be one amount."""
FEW_AMOUNTS = (
    "If its values are a few amounts that are public, as a fee that is paid or not, declare "
    "type: categorical and list them in values."
)
CROWDED = (
    "{share} of its values lie in the cell at its {key}, {at}, and far fewer beside it. If values beyond the bound "
    "were set to it, its mean, its total and the quantiles near it are {off} by more than is stated here. For the next "
    "release, write a {wider} {key}, unless {at} is the {most} value that there can be."
)
MOST, WIDER = {"min": "smallest", "max": "largest"}, {"min": "smaller", "max": "larger"}
LEAST_CELLS = 4
"""Cells below which none lies beside two others."""


def joined(*sentences: str | None) -> dict[str, str]:
    """Return sentences as one warning, if there are any."""
    text = " ".join(one[0].upper() + one[1:] for one in sentences if one)
    return {"warning": text} if text else {}


def in_one_cell(column: Modelled, noisy: Marginal, errors: Facts) -> bool:
    """Tell whether most values lie in one cell so wide that the mean is what is assumed of it."""
    if not isinstance(column, Integer | Number):
        return False
    cell, share = crowd_of(column, noisy)
    width = float(np.ptp([bounds[cell] for bounds in column.grid.bounds]))
    return bool(share * width > MOST_OF_MEAN * abs(errors["mean"]["estimate"]))


@dataclass(frozen=True)
class Doubt:
    """Which figures of a column nobody is to use, and a sentence that says why."""

    figures: Sequence[str]
    sentence: str


@dataclass(frozen=True)
class _Writer:
    """Writes values of a column and how far they are off: as years, as times of day, or as numbers."""

    years: bool
    clock: int

    def value(self, number: float) -> str:
        return time_of_day(number, self.clock) if self.clock else short(number, self.years)

    def error(self, number: float) -> str:
        return duration(number, self.clock) if self.clock else short(number)

    def ends(self, low: float, high: float) -> tuple[str, str]:
        return (self.value(low), self.value(high)) if self.clock else ends(low, high, of_years=self.years)


def doubt(column: Modelled, errors: Facts) -> Doubt | None:
    """Say that no mean is known, that its error exceeds it, or that noise leaves it open; None where none is so."""
    if not isinstance(column, Integer | Number) or _is_constant(column):
        return None
    if not errors:
        return Doubt(FIGURES, LOST_VALUES)
    mean, unseen = errors["mean"], errors.get("unseen", {})
    write = _Writer(is_year(column), clock_of(column))
    stated, quantile = write.value(mean["estimate"]), _open_quantile(unseen, write)
    if unseen.get("open"):
        (low, high), error = write.ends(*unseen["means"]), write.error(mean["expected_error_if_thinning_out"])
        return Doubt(
            FIGURES if quantile else FIGURES[:2],
            OPEN.format(figures=UNUSABLE[bool(quantile)], low=low, high=high, mean=stated, error=error),
        )
    if not column.low < 0 < column.high and mean["expected_error"] > abs(mean["estimate"]):  # else it may well be 0
        sentence = EXCEEDED.format(error=write.error(mean["expected_error"]), mean=stated)
        if quantile:
            return Doubt(FIGURES, f"{sentence} {ALSO}{quantile}")
        return Doubt(FIGURES[:2], sentence)
    if unseen.get("far"):
        (low, high), within = write.ends(*unseen["means"]), write.error(NORMAL_95 * mean["expected_error"])
        sentence = FAR_AWAY.format(mean=stated, within=within, low=low, high=high)
        return Doubt(FIGURES[2:], f"{sentence} {ALSO}{quantile}") if quantile else Doubt((), sentence)
    return Doubt(FIGURES[2:], quantile) if quantile else None


def _is_constant(column: Integer | Number) -> bool:
    """Tell whether all values of a column are one, whatever was counted."""
    return column.low == column.high and column.zero_state is None


def _open_quantile(unseen: Facts, write: "_Writer") -> str | None:
    """Say between what the 99 % quantile lies, where it is not known."""
    if not unseen.get("quantile"):
        return None
    low, high = map(write.value, unseen["quantiles"])
    return OPEN_QUANTILE.format(low=low, high=high)


def crowded(column: Modelled, noisy: Marginal) -> str | None:
    """Say that many more lie in the cell at a bound than beside it, as they do where values were set to the bound.

    A bound of zero is left out, and one nearer to zero than the other where the counts fall away from it: amounts that
    are never negative crowd there by themselves.
    """
    if not isinstance(column, Integer | Number) or column.outside != "clip" or column.cells < LEAST_CELLS:
        return None
    pooled = (
        noisy.ends.pooled
        if noisy.ends
        else Pooled(noisy.counts[: column.cells], noisy.stddev**2 * np.eye(column.cells))
    )
    total, stddevs = max(float(pooled.counts.sum()), 1.0), np.sqrt(np.diag(pooled.covariance))
    said = []
    for key, bound, step in (("min", column.low, 1), ("max", column.high, -1)):
        counts, stddev = pooled.counts[::step], stddevs[::step]
        margin = SIGNIFICANT * math.hypot(float(stddev[0]), float(stddev[1]))
        spike = counts[0] > max(CROWD * counts[1], LEAST_CROWD * total) and counts[0] - counts[1] > margin
        inner = abs(bound) < max(abs(column.low), abs(column.high)) and not column.low < 0 < column.high
        first, last = (bounds[0 if step > 0 else column.cells - 1] for bounds in column.grid.bounds)
        piled = counts[0] > total / 2 and abs(last - first) <= NARROW * abs(bound)  # no amounts thin out like that
        if spike and bound != 0 and (piled or not (inner and counts[1] + margin > counts[2:].max())):
            at, share = written(column, bound), percent(min(counts[0] / total, 1.0))
            said.append(CROWDED.format(share=share, key=key, at=at, off=SIDES[key], most=MOST[key], wider=WIDER[key]))
    return " ".join(said) or None


def discovered_bounds(column: Modelled, name: str, contract: Contract) -> list[str]:
    """Return the bounds of a column that were discovered and to which values beyond were set."""
    if not isinstance(column, Integer | Number | Datetime) or column.outside != "clip":
        return []
    return [key for key in SIDES if key in discovered_keys(contract, name)]


def cut(column: Modelled, bounds: Sequence[str]) -> str | None:
    """Say that bounds were discovered and values beyond were set to them; None where there are no such bounds."""
    if not isinstance(column, Integer | Number | Datetime) or not bounds:
        return None
    ends = " and ".join(f"{key} {written(column, {'min': column.low, 'max': column.high}[key])}" for key in bounds)
    off = " or ".join(SIDES[key] for key in bounds)
    return CUT.format(ends=ends, were="were" if bounds[1:] else "was", off=off)
