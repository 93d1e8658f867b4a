"""What came of a run in a few lines, made of its publishable report: for a terminal, a notebook and Prefect's pages.

Privacy: post-processing of a publishable report, so every line may be shown to whoever may have the report.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmodels.contract.remarks import is_declared
from dpmodels.pages.figures.amounts import amount, error
from dpmodels.pages.figures.categories import has_rules, moved
from dpmodels.pages.figures.open_means import with_doubts
from dpmodels.pages.notes import not_handed_over
from dpmodels.pages.page import percent, short
from dpmodels.pages.words import is_of_years, look_in_words
from dpmodels.statistics.normal import NORMAL_95

Facts = Mapping[str, Any]
IN_SHORT = "in short"
"""What the headline of a report is called."""
SENTENCE = re.compile(r"(?<=\.) (?=[A-Za-z0-9])")
"""Between two sentences of a headline."""
CLAUSE = re.compile(r"; (?!with )")
"""Between two clauses of one."""
TOLERANCE = 1.1
"""A fit is called close up to this multiple of what noise and drawing explain."""
WORST = 3
"""Columns that are named."""
ONE_VALUE = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?|exactly 0|null")
"""What a cell of one value, or of none, is called."""
FEW_VALUES = 10
"""Values of a column of numbers up to which nobody asks for its 99 % quantile."""
WEAKEST = 5
"""Columns that a data sheet names."""
SKEWED = 20.0
"""Times the mean that the 99 % quantile may be for an error to be written in percent of the mean: else it is near 0."""
SPREAD, OF_LARGE = "spread", "99 % quantile / 20"
"""What errors are parts of where the figure itself is larger, or near 0 beside large values."""
MOST_RELATIVE = 10.0
"""Errors of a mean or a quantile, by itself, beyond which it is called unknown."""
NOT_KNOWN = "not known"
"""What a terminal says of a mean or a quantile that noise leaves open."""
EXPECTED = "in nineteen releases of twenty, where values thin out towards the bounds as their counts do"
AS_A_RULE = "as a rule a fifth to six tenths of what is stated"
"""What errors are beside those that are stated, at the median of tables whose truth is known: benchmarks.coverage."""
DISTANCE = f"distance from the real table, by noise and fit; farther in one release of twenty, {AS_A_RULE}"
MOST_CLIPPED = 5
"""Columns whose bounds are named where there is little room; a report names all of them."""
MOST_WARNINGS = 10
"""Columns whose warnings are printed; the report shows all of them."""


def glance(report: Facts) -> dict[str, str]:
    """Say in a line each what was spent, what was checked, how close the fit is, and which columns are worst."""
    privacy = report["privacy"]
    lines = {"WARNING": report["drowned"]} if "drowned" in report else {}
    if words := in_short(report):
        lines[IN_SHORT] = words
    epsilon = short(privacy.get("total_epsilon", privacy["spent_epsilon"]))
    delta = short(privacy.get("total_delta", privacy["delta"]))
    both = ", with what its schema was discovered with" if "discoveries" in privacy else ""
    lines["spent"] = f"epsilon {epsilon} at delta {delta}, unit {privacy['unit']}{both}"
    if "gate" in report:
        lines["checks"] = f"all {len(report['gate'])} expectations of the schema hold"
    if report.get("fit"):
        lines["fit"] = _fit(report["fit"])
    if report.get("columns"):
        lines["worst columns"] = _worst(report)
        worst = worst_means(report)
        for words, figure, errors in (("means", "mean", EXPECTED), ("99 % quantiles", "p99", "in as many")):
            if of := [one for one in worst if figure in one and (figure == "mean" or not has_few_values(one))]:
                off = [f"{one['name']} {_off(one, figure)}" for one in of]
                lines[words] = ", ".join(off) + f" ({errors})" * any(not one.endswith(NOT_KNOWN) for one in off)
        if cut := clipped(received(report), MOST_CLIPPED):
            lines["at the bounds"] = cut
    return lines


def received(report: Facts) -> list[Facts]:
    """Return the columns of a report that are handed over."""
    dropped = not_handed_over(report)
    return [one for one in report.get("columns", ()) if one["name"] not in dropped]


def in_short(report: Facts) -> str:
    """Return what a terminal, a notebook and a page say of a report first; empty where it has no such words."""
    return str(report.get("headline") or report.get("compared", {}).get("words") or "")


def sentences_in_short(report: Facts) -> list[str]:
    """Return the same words, a sentence or a clause in each; a clause that only goes on stays where it is."""
    return SENTENCE.split(CLAUSE.sub(". ", in_short(report)))


def example(report: Facts) -> str:
    """Say of the column whose quantiles are farthest off what that means of its median; empty where there is none."""
    columns = [one for one in received(report) if "released" in one]
    numbers = [
        one
        for one in columns
        if not unresolved(one) and one["ordered"] and rank_error(one) < 0.5 and "null" not in one.get("labels", ())
    ]
    if not numbers:
        return ""
    worst = max(numbers, key=rank_error)
    low, high = (percent(0.5 + sign * rank_error(worst)) for sign in (-1, 1))
    median = f"what these rows call the median of {worst['name']}"
    return f"{median} lies between the {low} and the {high} quantile of the real values"


def clipped(columns: Sequence[Facts], most: int | None = None) -> str:
    """Say of which columns values may have been set to a bound: no error is of those values."""
    cut = [f"{_range(one)} of {one['name']}" for one in columns if "clipped" in one]
    more = [f"those of {len(cut[most:]):,} more columns"] if most and len(cut) > most else []
    names = ", ".join([*cut[:most], *more])
    said = f"values beyond {names}, if there were any, were set to the bound before anything was measured"
    return f"{said}; the figures of these columns are of what was left" if cut else ""


def _range(column: Facts) -> str:
    """Write the bounds that values of a column were set to."""
    if column.get("clock"):
        return " to ".join(amount(column, one) for one in column["clipped"])
    low, high = (f"{one:.10g}" if is_of_years(column) else f"{one:,.10g}" for one in column["clipped"])
    return f"{low} to {high}"


def has_few_values(column: Facts) -> bool:
    """Tell whether a number column has so few values, each a label, that its 99 % quantile says next to nothing."""
    labels = column.get("labels", ())
    return bool(column.get("ordered")) and 0 < len(labels) <= FEW_VALUES and all(map(ONE_VALUE.fullmatch, labels))


def with_figures(report: Facts) -> list[Facts]:
    """Return the columns of a report, and the derived ones that it states a mean of."""
    return [*report.get("columns", ()), *(one for one in report.get("derived", ()) if "mean" in one)]


def worst_means(report: Facts) -> list[Facts]:
    """Return the number columns whose mean is known worst, relatively, the worst first; others are warned of."""
    dropped = not_handed_over(report)
    stated = (one for one in with_figures(report) if one.get("mean") and one["name"] not in dropped)
    with_mean = [one for one in stated if one["mean"]["estimate"]]
    doubted = [one for one in with_mean if "mean" in one.get("avoid", ()) or "far" in one.get("unseen", {})]
    known = [one for one in with_mean if error_of(one, "mean") is not None and one not in doubted]
    return sorted(known, key=lambda one: -relative_error(one, "mean"))[:WORST]


def error_of(column: Facts, figure: str) -> float | None:
    """Return the expected error of a number column's mean or quantile; None where noise leaves it open.

    Reports of page layouts up to 5 state one there all the same.
    """
    is_open = column.get("unseen", {}).get({"mean": "open", "p99": "quantile"}[figure])
    return None if is_open else column[figure]["expected_error"]


def within_of(column: Facts, figure: str) -> float | None:
    """Return what a number column's mean or quantile is within in nineteen releases of twenty; None where it is open.

    Errors are taken to be normal: 1.96 times the one to expect.
    """
    error = error_of(column, figure)
    return None if error is None else NORMAL_95 * error


def _off(column: Facts, figure: str) -> str:
    """Write a figure and what it is within, in its unit; a terminal has no other place for the figure itself."""
    least, within = "at least " if column.get("discovered_bounds") else "", within_of(column, figure)
    if within is None or relative_error(column, figure) > MOST_RELATIVE:
        return NOT_KNOWN
    estimate = column[figure].get("synthetic", column[figure]["estimate"])
    return f"{amount(column, estimate, within)} within {least}{error(column, within)}"


def relative_error(column: Facts, figure: str) -> float:
    """Return the expected error of a number column's mean or quantile, as a part of it; infinite where it is open."""
    error, estimate = error_of(column, figure), column[figure]["estimate"]
    return math.inf if error is None or not estimate else float(error / yardstick(column, figure).size)


@dataclass(frozen=True)
class Yardstick:
    """What an error is a part of: how large that is, and what it is called; nothing where it is the figure itself."""

    size: float
    name: str = ""


def yardstick(column: Facts, figure: str) -> Yardstick:
    """Return what an error is large or small beside: the figure itself, or how far values lie apart where that is less.

    A mean near 0 is held against a part of large values, and a quantile of years against how far it is from the mean.
    Reports of page layouts up to 18 do not say how far values lie apart.
    """
    mean, quantile = (float(column.get(key, {}).get("estimate", 0.0)) for key in ("mean", "p99"))
    apart = float(column["mean"].get("synthetic_stddev") or math.inf)
    if figure == "mean":
        part = abs(quantile) / SKEWED
        of_values = Yardstick(abs(mean)) if abs(mean) >= part else Yardstick(part, OF_LARGE)
        return of_values if of_values.size <= apart else Yardstick(apart, SPREAD)
    spread = max(apart, abs(quantile - mean))
    return Yardstick(abs(quantile)) if abs(quantile) <= spread else Yardstick(spread, SPREAD)


def fits(look: Facts) -> bool:
    """Tell whether noise and drawing explain what a generator leaves of a released sum."""
    return bool(look["left"] <= TOLERANCE * look["explained"])


def weakest(report: Facts) -> dict[str, float]:
    """Return some columns of which an error is known, worst first, and what it is within (``likely_error``)."""
    measured = [one for one in worst_first(received(report)) if not unresolved(one)]
    return {one["name"]: likely_error(one) for one in measured[:WEAKEST]}


MOVED_SHARE = (
    "column {name}: {label} is {synthetic} of the synthetic rows, and was released as {released}{in_all}; rules of the "
    "schema, or the fit, moved it. docs/weak-fit.md says what to write for the next release"
)
IN_ALL = " (in all, {share} of the rows lie elsewhere than as released)"
"""What is said of a category, or a range, whose rows a rule took away; and of all rows that rules moved."""
MOVED = 0.02
"""Part of the rows that rules have moved from which on it is said."""


def warned_columns(report: Facts) -> list[Facts]:
    """Return the columns that have a warning and are handed over, the worst first, and last those that follow."""
    warned, doubted = [one for one in received(report) if "warning" in one], with_doubts(report)
    return [*worst_first(warned), *(column for column in warned if "released" not in column), *doubted]


def warnings_of(report: Facts) -> list[str]:
    """Return the warnings of the worst columns, how many more columns have one, and the warnings of the whole."""
    warned = warned_columns(report)
    lines = [f"column {column['name']}: {column['warning']}" for column in warned[:MOST_WARNINGS]]
    if left := len(warned[MOST_WARNINGS:]):
        have = "column has" if left == 1 else "columns have"
        lines.append(f"{left:,} more {have} a warning, which the report shows beside each")
    return [*lines, *cautions_of_whole(report)]


def cautions_of_whole(report: Facts) -> list[str]:
    """Return what is to be kept in mind of all rows, and is no mere note on what the schema declares."""
    return [*moved_shares(report), *(one for one in report.get("cautions", ()) if not is_declared(one))]


def moved_shares(report: Facts) -> list[str]:
    """Say of which columns rules of the schema, or the fit, moved rows from what was released, where, and how many."""
    columns = {one["name"]: one for one in received(report)}
    of_labels = {name: one for name, one in moved(report).items() if name in columns}
    ruled = {
        name: one["distance_to_release"]
        for name, one in columns.items()
        if has_rules(report) and "released_stddev" in one and not unresolved(one) and is_farther(one, MOVED)
    }
    said = list[str]()
    worst = sorted(ruled, key=lambda one: -ruled[one])[:MOST_WARNINGS]
    for name in [*worst, *(one for one in of_labels if one not in ruled)]:
        figures = zip(*(columns[name][key] for key in ("labels", "released", "synthetic")), strict=True)
        label, *shares = of_labels.get(name) or max(figures, key=lambda one: abs(one[1] - one[2]))
        released, synthetic = map(percent, shares)
        in_all = IN_ALL.format(share=percent(ruled[name])) if name in ruled else ""
        said.append(MOVED_SHARE.format(name=name, label=label, synthetic=synthetic, released=released, in_all=in_all))
    return said


def is_farther(column: Facts, least: float = 0.005) -> bool:
    """Tell whether a column is farther from the release than twice what its noise is from the real rows."""
    return bool(column["distance_to_release"] > max(2 * column["expected_distance"], least))


def unresolved(column: Facts) -> bool:
    """Tell whether a column's counts say too little of it for its distances to count."""
    return "warning" in column and not column.get("resolved", False)


def worst_first(columns: Sequence[Facts]) -> list[Facts]:
    """Order the columns whose counts were released: those that are not resolved, then the worst."""
    released = [column for column in columns if "released" in column]
    return sorted(released, key=lambda column: (not unresolved(column), -likely_error(column)))


def likely_error(column: Facts) -> float:
    """Return the total variation between synthetic and real rows that is not exceeded in nineteen releases of twenty.

    Reports up to layout 10 add noise and fit up, with the noise among all cells that are counted together; those up
    to layout 8 state the mean of the noise alone.
    """
    if "shares_within" in column:
        return float(column["shares_within"])
    within = column.get("counted_together", {"distance_within": 0.0})["distance_within"]
    noise = column.get("noise_distance_95", column["expected_distance"])
    return min(1.0, float(noise + column["distance_to_release"] + within))


def rank_error(column: Facts) -> float:
    """Return by how much of the rows a synthetic quantile is off at most in nineteen releases of twenty.

    Reports up to layout 10 add the distances up, and those up to layout 8 state the mean of the noise alone.
    """
    if "quantiles_within" in column:
        return float(column["quantiles_within"])
    noise = column.get("noise_rank_distance_95", column["expected_rank_distance"])
    return min(1.0, float(noise + column["rank_distance_to_release"]))


def likely_of_pair(figures: Sequence[float]) -> float:
    """Return the same of two columns; ``figures``: as a report lists them.

    These are the mean of the noise, the distance to the release, the 95 % quantile of the noise (from layout 9), what
    both come to (from layout 11), and four of how the columns depend on each other (from layout 13).
    """
    noise, distance, *likely = figures
    return likely[1] if likely[1:] else min(1.0, (likely[0] if likely else noise) + distance)


def _fit(looks: Sequence[Facts]) -> str:
    missed = [look for look in looks if not fits(look)]
    if not missed:
        return "as close to the release as its noise allows"
    worst = max(missed, key=lambda look: float(look["left"] / look["explained"]))
    names = dict.fromkeys(look_in_words(look["look"], numbered=False) for look in missed)
    return (
        f"further from the released {', '.join(names)} than noise explains ({short(worst['left'])} times its size, "
        f"where {short(worst['explained'])} is expected); every percentage here counts that in"
    )


def _worst(report: Facts) -> str:
    charged, columns = report.get("charged"), received(report)
    if charged and charged["status"] == "measured" and charged["columns"]:
        dropped = not_handed_over(report)
        known = {one["name"]: likely_error(one) for one in worst_first(columns) if not unresolved(one)}
        scored = [one for one in charged["columns"] if one["name"] not in dropped]
        columns = sorted(scored, key=lambda one: (-one["low"], -one["high"]))[:WORST]
        ends = [(one["name"], one["low"], min(one["high"], known.get(one["name"], 1.0))) for one in columns]
        phrases = [f"{name} {percent(min(low, high))} to {percent(high)}" for name, low, high in ends]
        return (
            f"{', '.join(phrases)} (distance from the real rows, by the scores that were paid for, or by noise and fit)"
        )
    measured = worst_first(columns)
    if not measured:
        return f"unknown, since {report['method']} releases no counts of single columns"
    phrases = [
        f"{one['name']} {'(not resolved)' if unresolved(one) else percent(likely_error(one))}"
        for one in measured[:WORST]
    ]
    silent = len(columns) - len(measured)
    return f"{', '.join(phrases)} ({DISTANCE})" + (f"; of {silent} more nothing is known" if silent else "")
