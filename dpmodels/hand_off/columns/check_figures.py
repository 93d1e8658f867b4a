"""Name figures of a report that no release has: shares above 1, errors below 0, a mean beyond the public bounds.

What a figure is rests on whoever signed; what it cannot be is held here.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from typing import Any

import numpy as np

from dpmodels.contract.columns import Integer, Modelled, Number
from dpmodels.contract.schema import Schema
from dpmodels.contract.workload import named_pairs, weighed
from dpmodels.hand_off.columns.check_ends import apart_from_rows
from dpmodels.hand_off.columns.check_groups import are_means
from dpmodels.hand_off.columns.check_joint import are_joint_figures
from dpmodels.hand_off.columns.check_parts import left_out
from dpmodels.hand_off.columns.check_rates import LEAST_NOISE, MOST_OFF, ROUNDED_SHARE, are_of_size, are_rates
from dpmodels.hand_off.columns.check_sums import add_up
from dpmodels.pages.figures.ruled import ruled_pairs
from dpmodels.report.derived.places import helper_places
from dpmodels.report.within import asked_first, drawn, pair_within, quantiles_within, shares_within
from dpmodels.statistics.dependence import dependence
from dpmodels.statistics.normal import HALF_NORMAL

Facts = Mapping[str, Any]
SHARES_OF_A_PAIR = ("released", "synthetic", "stddev")
"""What a report says of each group of one column with each of another."""
LISTED = 10
"""What is listed of two columns: their places, four distances, and four figures of how they depend on each other."""
MOST_DEPENDENT = 1 - 1 / 6
"""Dependence of two columns of six groups that are one, the most that there is."""
LEAST_ERROR = 0.15
"""Part of the noise of a bar which the error of a counted share is at least: 0.3 in what was made."""
ROUNDED = 1e-5
"""By how much a figure may be off by its rounding, relatively."""
ERRORS = ("expected_error_of_a_share", "expected_distance", "distance_to_release", "cells", "released_stddev")
SHARES = (
    "synthetic",
    "expected_distance",
    "noise_distance_95",
    "distance_to_release",
    "expected_rank_distance",
    "noise_rank_distance_95",
    "rank_distance_to_release",
    "rank_distance_in_a_cell",
    "quantiles_within",
    "shares_within",
)


WITHIN = {"quantiles_within": quantiles_within, "shares_within": shares_within}
"""What is reckoned from other figures of a column."""

NO_SUM = "means by group that do not add up, to formulas or to the means of all rows"


def impossible(report: Facts, table: Schema) -> Iterator[str]:
    """Name the facts of a report on synthetic rows that hold figures which cannot be."""
    for facts, column in zip(report["columns"], table.modelled.values(), strict=True):
        yield from (f"columns.{facts['name']}.{key}" for key in _of_column(facts, column))
        yield from (f"columns.{facts['name']}.{key}" for key in _without_noise(facts, report))
    checks = {
        "synthetic_rows": _are_between([report["synthetic_rows"]], 0),
        "released_records": _are_between([report["released_records"]], 0),
        "noise_stddev": _are_between(report["noise_stddev"].values(), 0),
        "pairs": _are_pairs(report["pairs"] or {}, table, ruled_pairs(report)),
        "rates": are_rates(report.get("rates") or {"columns": []}, report, table),
        "asked_rates": all(are_rates(one, report, table, of_values=True) for one in report.get("asked_rates", ())),
        "joint": are_joint_figures(report, table),
        "fit": all(_are_between([one[key] for key in one if key != "look"], 0) for one in report["fit"]),
        "charged": _are_scores(report["charged"]),
    }
    checks["groups"] = not checks["pairs"] or are_means(report, table)  # which are of the pairs that were counted
    checks[NO_SUM] = not (checks["pairs"] and checks["groups"]) or add_up(report, table)
    yield from (name for name, sound in checks.items() if not sound)
    yield from (f"{name}, of which a part is missing" for name in left_out(report, table) if checks["pairs"])


def _are_pairs(pairs: Facts, table: Schema, ruled: Collection[tuple[int, int]]) -> bool:
    """Tell whether distances are shares of two columns each, each two once, and those drawn that are to be."""
    distances = pairs.get("distances", [])
    listed, names = [tuple(one[:2]) for one in distances], list(table.modelled)
    asked = named_pairs(weighed(table), names)
    return (
        _are_between((pairs[key] for key in pairs.keys() - {"distances", "tables"}), 0)
        and all(_is_pair(one) for one in distances)
        and all(0 <= first < second < len(names) for first, second in listed)
        and len(set(listed)) == len(listed)
        and _are_drawn(pairs, drawn(distances, asked, pairs.get("target"), ruled, helper_places(table)), asked)
        and all(_is_table(one, dict(zip(listed, distances, strict=True))) for one in pairs.get("tables", ()))
    )


def _are_drawn(pairs: Facts, places: Sequence[tuple[int, int]], asked: Collection[tuple[int, int]]) -> bool:
    """Tell whether the pairs that are drawn are those that are to be, and are said to be asked for if they are."""
    shown = [tuple(one["columns"]) for one in pairs.get("tables", ())]
    return shown == places and pairs.get("asked_for", 0) == asked_first(places, asked)


def _is_pair(listed: Sequence[Any]) -> bool:
    """Tell whether figures of two columns are shares, are within what they say, and noise is seldom below its mean."""
    if len(listed) != LISTED or any(isinstance(one, bool) for one in listed):
        return False
    *_, expected, _, likely, within, _, synthetic, chance, most = listed
    return (
        _are_between(listed[2:], 0, 1)
        and within == pair_within(listed[2:5])
        and expected <= likely
        and chance <= most
        and synthetic <= MOST_DEPENDENT + ROUNDED_SHARE
    )


def _is_table(table: Facts, listed: Mapping[tuple[int, ...], Sequence[float]]) -> bool:
    """Tell whether the shares of two columns are as many as their groups, and as far off as is listed.

    Each is rounded, and what is synthetic adds up to all rows; so does what was released, but for its noise.
    """
    shape, places = [len(groups) for groups in table["labels"]], tuple(table["columns"])
    shares = [table[key] for key in SHARES_OF_A_PAIR]
    if places not in listed or not all(len(one) == shape[0] and {*map(len, one)} == {shape[1]} for one in shares):
        return False
    dependences = [dependence(np.array(one)) for one in shares[:2]]
    coarse, finer = listed[places], table.get("distances")  # of groups, and of single categories where these are shown
    expected, distance, *_ = finer or coarse[2:]
    released, synthetic, stddev = (list(chain.from_iterable(one)) for one in shares)
    apart = sum(abs(one - other) for one, other in zip(released, synthetic, strict=True)) / 2
    slack = len(released) * ROUNDED_SHARE
    joined = finer or any(one[1:] for groups in table["labels"] for one in groups)  # judged by other groups
    most = 1.0 if joined else 2 * slack
    return (
        _are_between(stddev, 0)
        and _are_between(synthetic, 0, 1 + ROUNDED)
        and abs(sum(synthetic) - 1) <= slack
        and abs(sum(released) - 1) <= slack + MOST_OFF * sum(stddev)
        and (finer is None or _is_finer(finer, coarse[2:6], slack))
        and _is_rounded(min(1.0, apart), distance, slack)
        and _is_rounded(min(1.0, HALF_NORMAL * sum(stddev) / 2), expected, slack)
        and all(
            -(most if finer else 2 * slack) <= x - one <= most for one, x in zip(dependences, coarse[6:8], strict=True)
        )
    )


def _is_finer(finer: Sequence[float], coarse: Sequence[float], slack: float) -> bool:
    """Tell whether distances of single categories are within what they say, and no less than those of their groups."""
    return (
        len(finer) == len(coarse)
        and _are_between(finer, 0, 1)
        and finer[3] == pair_within(finer[:3])
        and all(one >= other - slack for one, other in zip(finer[:2], coarse[:2], strict=True))
    )


def _is_rounded(reckoned: float, stated: float, slack: float) -> bool:
    return abs(reckoned - stated) <= slack


def _of_column(facts: Facts, column: Modelled) -> Iterator[str]:
    yield from (key for key in ERRORS if not _are_between(_listed(facts.get(key)), 0))
    yield from (key for key in SHARES if not _are_between(_listed(facts.get(key)), 0, 1 + ROUNDED))
    largest, together = facts.get("largest_cell", {}), facts.get("counted_together", {})
    part = largest.get("part_of_range")
    if not (_are_between([largest.get("share")], -inf, 1 + ROUNDED) and _are_between([part], 0, 1 + ROUNDED)):
        yield "largest_cell"  # noise can make the largest count of a lost column as low as it likes
    if not _are_between([together.get("share"), together.get("distance_within")], 0, 1 + ROUNDED):
        yield "counted_together"
    unseen = facts.get("unseen", {})
    ranges = [unseen.get(key, ()) for key in ("means", "quantiles")]
    if not _are_between([unseen.get("records"), unseen.get("share")], 0) or any(map(_descends, ranges)):
        yield "unseen"
    yield from (key for key, reckoned in WITHIN.items() if key in facts and facts[key] != reckoned(facts))
    strange = {key for key in ("mean", "p99") if key in facts and not _is_figure(facts[key], column)}
    yield from (key for key in ("mean", "p99") if key in strange | {*apart_from_rows(facts, column)})


def _without_noise(facts: Facts, report: Facts) -> Iterator[str]:
    """Name the figures of a column that are less off than its counts, or than the least noise that a report names."""
    stddev, cells = facts.get("released_stddev", ()), facts.get("cells", 0)
    noises = [one for name, one in report["noise_stddev"].items() if name.startswith("records")]
    if not stddev or not noises:
        return
    if min(stddev) * report["released_records"] < LEAST_NOISE * min(noises):
        yield "released_stddev"
    error, distance = facts["expected_error_of_a_share"], facts["expected_distance"]
    if cells > 1 and error < LEAST_ERROR * sum(stddev) / len(stddev):
        yield "expected_error_of_a_share"
    if distance < min(1.0, cells * error / 2) * (1 - ROUNDED) - ROUNDED_SHARE:
        yield "expected_distance"
    for key in ("distance", "rank_distance"):
        if facts.get(f"noise_{key}_95", 1.0) < facts.get(f"expected_{key}", 0.0):
            yield f"noise_{key}_95"
    largest = facts.get("largest_cell", {})
    if not facts["ordered"] and largest and not are_of_size([([largest["label"]], largest["share"])], facts):
        yield "largest_cell"


def _is_figure(fact: Facts, column: Modelled) -> bool:
    """Tell whether an estimate lies within the public bounds, and its error is none below 0."""
    if not isinstance(column, Integer | Number):
        return False
    low, high = float(min(column.low, 0)), float(max(column.high, 0))
    slack = ROUNDED * max(abs(low), abs(high))
    errors = (fact.get(key) for key in ("expected_error", "expected_error_if_thinning_out"))
    values, stddev = (fact["estimate"], fact.get("synthetic")), fact.get("synthetic_stddev")
    is_spread = type(stddev) is not bool and _are_between([stddev], 0, 0.51 * (high - low) + slack)
    return _are_between(errors, 0) and _are_between(values, low - slack, high + slack) and is_spread


def _are_scores(charged: Facts | None) -> bool:
    """Tell whether charged scores are shares, and lie in their intervals' order."""
    if charged is None or charged["status"] == "lost":
        return True
    scores = [one for model in charged["classifiers"] for one in model["scores"]]
    distances = [*charged["columns"], *charged["columns_with_target"]]
    keys = ("value", "low", "high", "on_synthetic_rows", "measured", "noise_alone")
    return all(
        _are_between((one.get(key) for key in keys), 0, 1) and not _descends([one["low"], one["high"]])
        for one in (*scores, *distances)
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _descends(values: Iterable[float]) -> bool:
    values = list(values)
    return values != sorted(values)


def _are_between(values: Iterable[Any], low: float, high: float = inf) -> bool:
    """Tell whether all numbers that are there lie between two."""
    return all(one is None or low <= one <= high for one in values)
