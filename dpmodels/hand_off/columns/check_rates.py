"""Check the rates of a report: they make up one rate of all rows, of the groups' own sizes, and keep the rules."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpmodels.contract.schema import Schema
from dpmodels.hand_off.columns.fixed import cells_of, fixed_rate, may_be_fixed, rules_of
from dpmodels.pages.figures.rates import by_class, not_null
from dpmodels.plural import ZERO
from dpmodels.report.within import MOST_RATES, rate_within

Facts = Mapping[str, Any]
DRAWN_APART = 0.02
"""By how much the first rows, of which rates are, and all rows may differ in a share."""
ROUNDED_SHARE = 2e-6
"""By how much a share of a pair may be off by its rounding."""
MOST_OFF = 8
"""Standard deviations by which noise may put a sum off."""
LEAST_NOISE = 0.1
"""Part of the least noise that a report names which a count of what a rate is of has at least: 0.6 in what was made."""
SHARE_OFF = 6
"""Standard deviations of its noise by which the share of a group may be off what the column alone says of it."""


def are_rates(rates: Facts, report: Facts, table: Schema, of_values: bool = False) -> bool:
    """Tell whether rates are shares, within what their noise says, and add up to what the target's column says.

    ``of_values``: they are parts of the rows in which that is not null.
    """
    columns, places = report["columns"], [one["column"] for one in rates["columns"]]
    if not places:
        return not rates.get("target")
    target = columns[rates["target"]]
    return (
        len(set(places)) == len(places)
        and rates["target"] not in places
        and all(
            _is_rated(one, target, target["labels"].index(of_class["class"]), of_values)
            for of_class in by_class(rates)
            for one in of_class["columns"]
        )
        and ("table" in target or _agree(rates, report, table, of_values))
    )


def _is_rated(rates: Facts, target: Facts, taken: int, of_values: bool) -> bool:
    """Tell whether the rates by one column can be of a release, and of rows with so many of the class."""
    figures = list(zip(rates["released"], rates["stddev"], rates["synthetic"], strict=True))
    if not (_are_shares(rates["share"]) and all(map(_are_shares, figures))):
        return False
    whole = sum(share * one[0] for share, one in zip(rates["share"], figures, strict=True))
    noise = sum(abs(share) * one[1] for share, one in zip(rates["share"], figures, strict=True))
    noise += target["released_stddev"][taken]
    released, drawn = (not_null(target, key) if of_values else 1.0 for key in ("released", "synthetic"))
    synthetic, drawn_rates = target["synthetic"][taken] / drawn, rates["synthetic"]
    return (
        rates["within"] == [rate_within(*one) for one in figures]
        and abs(sum(rates["share"]) - any(rates["share"])) <= len(figures) * ROUNDED_SHARE  # none: of earlier versions
        and abs(whole - target["released"][taken] / released)
        <= ROUNDED_SHARE + MOST_OFF * (noise + target["released_stddev"][taken]) / released
        and min(drawn_rates) - DRAWN_APART <= synthetic <= max(drawn_rates) + DRAWN_APART
    )


def _are_shares(figures: Iterable[float]) -> bool:
    return all(0 <= one <= 1 for one in figures)


def _agree(rates: Facts, report: Facts, table: Schema, of_values: bool) -> bool:
    """Tell whether the rates of a table whose rows are all alike agree with each other, with columns and with rules."""
    names, columns = list(table.modelled), report["columns"]
    target = columns[rates["target"]]
    are_all = "null" not in target["labels"] or not of_values
    return all(
        _have_one_sum(of_class["columns"])
        and all(_keep_rules(one, names, target, of_class["class"], table, of_values) for one in of_class["columns"])
        and all(_have_noise(one, report) for one in of_class["columns"])
        for of_class in by_class(rates)
    ) and all(
        (not are_all or are_of_size(zip(one["labels"], one["share"], strict=True), columns[one["column"]]))
        and (len(columns[one["column"]]["labels"]) > MOST_RATES or are_in_order(one["labels"], columns[one["column"]]))
        for one in rates["columns"]
    )


def _have_one_sum(columns: Sequence[Facts]) -> bool:
    """Tell whether the rates by all columns make up one rate of all rows, but for those that noise has no part in."""
    sums = [
        (sum(share * rate for share, rate in zip(one["share"], one["released"], strict=True)), len(one["share"]))
        for one in columns
        if any(0 < rate < 1 and off > 0 for rate, off in zip(one["released"], one["stddev"], strict=True))
    ]
    middle = float(np.median([one for one, _ in sums])) if sums else 0.0
    return all(abs(one - middle) <= (groups + 1) * ROUNDED_SHARE for one, groups in sums)


def _have_noise(rates: Facts, report: Facts) -> bool:
    lines = zip(*(rates[key] for key in ("share", "released", "stddev")), strict=True)
    return all(off == 0 or has_noise(share, rate, off, report) for share, rate, off in lines)


def has_noise(share: float, rate: float, off: float, report: Facts) -> bool:
    """Tell whether a rate is off by what the least noise makes of the counts that it is of, at least."""
    noises = [one for name, one in report["noise_stddev"].items() if name.startswith("records")]
    least = LEAST_NOISE * min(noises, default=0.0) * math.hypot(1 - rate, rate)
    records: float = share * report["released_records"]
    return records * off >= min(least, records)


def are_of_size(groups: Iterable[tuple[Sequence[str], float]], column: Facts) -> bool:
    """Tell whether groups of values of a column are as large as it says by itself, but for its noise."""
    if "released" not in column:
        return True
    of_label = dict(zip(column["labels"], zip(column["released"], column["released_stddev"], strict=True), strict=True))
    return all(
        abs(share - sum(of_label[one][0] for one in labels))
        <= ROUNDED_SHARE + SHARE_OFF * math.hypot(*(of_label[one][1] for one in labels))
        for labels, share in groups
        if {*labels} <= of_label.keys()
    )


def are_in_order(labels: Sequence[Sequence[str]], column: Facts) -> bool:
    """Tell whether groups of categories stand as a schema lists the first of each; ranges are held elsewhere.

    What is called as zeros are may stand first.
    """
    if column["ordered"] or not all(one[0] in column["labels"] for one in labels):
        return True
    firsts = [column["labels"].index(one[0]) for one in labels[[*labels[:1]] == [[ZERO]] :]]
    return firsts == sorted(firsts)


def _keep_rules(
    rates: Facts, names: Sequence[str], target: Facts, of_class: str, table: Schema, of_values: bool
) -> bool:
    """Tell whether a rate that rules fix is that, without noise, and no other has no noise."""
    by, labels = names[rates["column"]], target["labels"]
    classes = [label for label in labels if not (of_values and label == "null")]
    others = [labels.index(label) for label in classes if label != of_class]
    rules, taken, one = rules_of(table), labels.index(of_class), target["name"]
    inside = cells_of(table.columns[by], rates["labels"])
    lines = zip(inside, *(rates[key] for key in ("released", "stddev", "synthetic", "share")), strict=True)
    return all(
        cells is None
        or is_fixed_so(
            (released, off, synthetic),
            fixed_rate(rules, one, by, cells, taken, others),
            off > 0 or share == 0 or may_be_fixed(rules, one, by, cells, taken, others),
        )
        for cells, released, off, synthetic, share in lines
    )


def is_fixed_so(figures: tuple[float | None, float | None, float | None], fixed: float | None, may_be: bool) -> bool:
    """Tell whether a rate, its noise and that of synthetic rows are as rules fix them; none is known of no rows."""
    released, off, synthetic = figures
    if fixed is None:
        return may_be
    return off in (0, None) and released in (fixed, 0, None) and synthetic in (fixed, 0, None)
