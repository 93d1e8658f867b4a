"""Pictures of rates: how often a column has a class, by the groups of another, and whether that is of use.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpmodels.pages.drawing import Figure
from dpmodels.pages.figures.apart import Interval, apart_in_words
from dpmodels.pages.figures.grades import grade
from dpmodels.pages.figures.labels import brief, group_name, joined_groups
from dpmodels.pages.figures.rate_groups import counting, why_pale
from dpmodels.pages.figures.rates import (
    MIDDLE,
    NEAR,
    class_share,
    part_off,
    parts_of_rates,
    released_rate,
    whole_rate,
    why_not_good,
    with_rows,
)
from dpmodels.pages.figures.reasons import pale_in_words, with_reasons
from dpmodels.pages.figures.relations import chance_of_rates, likely_relations, relations
from dpmodels.pages.figures.ruled import ruled_pairs
from dpmodels.pages.page import percent, percent_up
from dpmodels.pages.plots import DEVIATIONS, TWO, Shares, bars, round_end

Facts = Mapping[str, Any]
LONG = 1.5
"""Times that the whiskers of pale groups may go beyond all else that is drawn for an axis to reach to their ends."""
RATES = 6
"""Columns whose rates are drawn at once."""
BY_A_RULE = ", by a rule"
"""What stands behind a group whose rate a rule of the schema fixes."""
HEADER = ("rows with", "rate, released", TWO, "synthetic", "of all rows")


@dataclass(frozen=True)
class Rates:
    """Whose rates are stated, and these by each other column, drawn, the clearest first."""

    of: str
    figures: Sequence[Figure]


def rate_figures(facts: Facts) -> Rates | None:
    """Draw the rates of the target by each other column, whether that is handed over or not; None without any."""
    rates = facts.get("rates")
    if not rates:
        return None
    columns, whole = facts["columns"], released_rate(rates)
    records, every = float(facts.get("released_records") or 0), relations(facts)
    related = {pair for pair, one in every.items() if one.by_rule and rates["target"] in pair}
    ruled = {place for pair in related for place in pair}
    parts, _, hidden = parts_of_rates(facts, every, likely_relations(facts))
    clearest = sorted(rates["columns"], key=lambda one: (one["column"] in ruled, *_clearness(one, records)))
    drawn = list[Figure]()
    for one in clearest:
        column, is_ruled = columns[one["column"]], one["column"] in ruled
        relation = every.get((min(one["column"], rates["target"]), max(one["column"], rates["target"])))
        apart = relation.standout.labels if relation and relation.standout else ()
        figure = _rate(column, one, (whole, _end(one, whole)), is_ruled, apart)
        why = why_not_good(one, whole_rate(facts), column["name"] not in hidden)
        drawn.append(_judged(figure, parts[column["name"]], why))
    return Rates(f"{columns[rates['target']]['name']} = {rates['class']}", drawn)


def asked_rate_figures(facts: Facts) -> dict[tuple[int, int], Figure]:
    """Draw the rates of columns that are not the target by those that a workload names with them, by their places."""
    columns, figures, ruled = facts["columns"], dict[tuple[int, int], Figure](), ruled_pairs(facts)
    every, likely = relations(facts), likely_relations(facts)
    for rates in facts.get("asked_rates", ()):
        name, line = columns[rates["target"]]["name"], released_rate(rates)
        whole = class_share(facts, rates, of_values=True)
        for one in rates["columns"]:
            two = min(rates["target"], one["column"]), max(rates["target"], one["column"])
            drawn = _rate(columns[one["column"]], one, (line, _end(one, line)), two in ruled)
            is_seen = (relation := every.get(two)) is None or relation.is_seen or two in likely
            drawn = replace(drawn, title=f"{name} = {rates['class']}, by {drawn.title}")
            judged = _judged(drawn, part_off(one, whole, is_seen), why_not_good(one, whole, is_seen))
            figures[rates["target"], one["column"]] = judged
    return figures


def _judged(figure: Figure, part: float, why: str) -> Figure:
    """Grade rates by what they are off by, as a part of what there is, and say why they are not good."""
    note = "; ".join(filter(None, [figure.note, why]))
    return replace(figure, note=note, grade=grade(part, NEAR, MIDDLE))


def _end(rates: Facts, whole: float) -> float:
    """Return where the scale of rates by a column ends: no bar goes further, and no whisker but long pale ones.

    ``whole``: the rate of all rows, which is drawn as well.
    """
    pale, places = why_pale(rates), with_rows(rates)
    ends = {at: rates["released"][at] + DEVIATIONS * rates["stddev"][at] for at in places}
    bars_end = (rates[key][at] for at in places for key in ("released", "synthetic"))
    most = max(1e-9, whole, *bars_end, *(end for at, end in ends.items() if at not in pale))
    return round_end(max(end for end in (most, *ends.values()) if end <= LONG * most))


def _clearness(rates: Facts, records: float) -> tuple[float, float]:
    """Return what columns are sorted by: how probable their differences are by noise, then how large these are."""
    released = [rates["released"][index] for index in counting(rates)]
    return chance_of_rates(rates, records), min(released, default=0.0) - max(released, default=0.0)


def _rate(
    column: Facts, rates: Facts, scale: tuple[float, float], is_ruled: bool = False, standout: Sequence[str] = ()
) -> Figure:
    """Draw the rate of the target in each group of a column, as released and in the synthetic rows.

    ``is_ruled``: a rule relates the column and the target, so where there is no noise it fixes the rate;
    ``standout``: the values of the group whose rate differs from that of all other rows for certain.
    """
    rates = {key: [one[at] for at in with_rows(rates)] if isinstance(one, list) else one for key, one in rates.items()}
    labels = [group_name(column, group) for group in rates["labels"]]
    both = zip(rates["released"], rates["stddev"], strict=True)
    fixed = [BY_A_RULE * (is_ruled and stddev == 0 and rate in (0, 1)) for rate, stddev in both]
    released = Shares("released", rates["released"], rates["stddev"])
    pale = why_pale(rates)
    said = note_of(rates, pale, group_name(column, standout) if standout else "")
    synthetic, doubled = Shares("synthetic", rates["synthetic"]), [DEVIATIONS * one for one in rates["stddev"]]
    named = [one + more for one, more in zip(brief(labels), fixed, strict=True)]
    drawn = bars(column["name"], said, named, released, synthetic, scale, [*pale])
    rows = [
        (label + more, *(percent(one[index]) for one in (released.values, doubled, synthetic.values, rates["share"])))
        for index, (label, more) in enumerate(zip(labels, fixed, strict=True))
    ]
    header, lines, above = with_reasons(HEADER, rows, [pale.get(index, "") for index in range(len(labels))])
    return replace(drawn, header=header, rows=lines, above=above, foot=joined_groups(column, rates["labels"]))


def note_of(rates: Facts, pale: Mapping[int, str], standout: str = "") -> str:
    """Say within what rates are, whether groups differ, and how many are pale, and why.

    ``standout``: the name of the group that differs from all other rows for certain, though no two groups may.
    """
    figures = zip(rates["released"], rates["stddev"], strict=True)
    intervals = [Interval(rate, DEVIATIONS * stddev, at in pale) for at, (rate, stddev) in enumerate(figures)]
    apart = apart_in_words(intervals)
    if standout and apart:
        apart = f"{standout} differs from all other rows for certain, no two groups from each other"
    said = apart, pale_in_words([*pale.values()], len(intervals))
    return "; ".join(filter(None, [points_in_words([one.within for one in intervals]), *said]))


def points_in_words(offs: Sequence[float]) -> str:
    """Say within how many points rates are: from the least to the most of all that are drawn."""
    least, most = (percent_up(end(offs, default=0.0))[:-1].strip() for end in (min, max))
    return f"within {most} points" if least == most else f"within {least} to {most} points"
