"""What a report draws first since its schema asks for it: a card for each pair of a workload, and the target's rates.

Privacy: post-processing of a publishable report.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpmodels.pages.drawing import Figure
from dpmodels.pages.figures.grades import BAD
from dpmodels.pages.figures.group_means import clearest_means, farthest_in_rows, mean_figures
from dpmodels.pages.figures.joint import answered_pairs, joint_cards
from dpmodels.pages.figures.named import counted_places
from dpmodels.pages.figures.rate_pictures import RATES, Rates, asked_rate_figures, rate_figures
from dpmodels.pages.figures.rates import hidden_rates
from dpmodels.pages.figures.relations import relations
from dpmodels.pages.multiples import pair_tables
from dpmodels.pages.notes import not_handed_over

Facts = Mapping[str, Any]
Names = tuple[str, str]
NO_MEANS = "no means by group: noise leaves fewer than two of them known"
OF_SHARES = "shares in broad ranges; a mean is of the amounts within these"
"""What a table says that stands beside means."""
NO_RATES = "noise hides by which columns it differs"
NO_OTHERS = "those by which it differs clearly are above"
BEFORE = "nobody is handed {}: of the rows before it was left out of them"
NUMBERS = ("integer", "number")
"""Types of columns that have means, where they lie on an axis."""


@dataclass(frozen=True)
class Unanswered:
    """A pair that was asked for and has no figure: why, and the command that answers."""

    pair: str
    why: str
    command: str


@dataclass(frozen=True)
class Asked:
    """What a schema asks for.

    Attributes:
        cards: one figure for each pair and joint table of the workload, in its order; of a joint table that has its
            figures no pair.
        others: further figures of the same pairs: a mean beside the rate that was asked for, a rate or a table beside
            means, and the pairs of a joint table.
        unanswered: the pairs that have no figure.
        rates: those of the target by the columns by which it differs most clearly.
        of_target: the target and its class; empty without one.
        no_rates: why there are none of these.
        with_target: the columns whose rates of the target are among the cards, since a workload names it.
        has_means: whether means are among the cards.
        farthest: which of them differs most in the rows, where one does by more than it is within.
    """

    cards: Sequence[Figure]
    others: Sequence[Figure]
    unanswered: Sequence[Unanswered]
    rates: Sequence[Figure] = ()
    of_target: str = ""
    no_rates: str = ""
    with_target: Sequence[str] = ()
    has_means: bool = False
    farthest: str = ""

    @property
    def grades(self) -> list[str]:
        """Return whether each card is good, to be used with care, or of no use, as what has none is."""
        return [*(one.grade for one in self.cards), *(BAD for _ in self.unanswered)]


@dataclass(frozen=True)
class Together:
    """All figures of two columns: those that were asked for, and the others with the clearest of each sort."""

    asked: Asked | None
    tables: Sequence[Figure]
    means: Sequence[Figure]
    rates: Rates | None
    clearest: Mapping[str, str]

    @property
    def rated(self) -> list[str]:
        """Name the columns by which the target has rates, in the order in which these stand."""
        asked = [*self.asked.with_target, *(one.title for one in self.asked.rates)] if self.asked else []
        return [*asked, *(one.title for one in (self.rates.figures if self.rates else ()))]


def figures_together(report: Facts) -> Together:
    """Draw tables, means and rates of two columns; those that a workload or a target asks for stand by themselves."""
    names, rates = asked_names(report), rate_figures(report)
    tables, of_two = pair_tables(report), asked_rate_figures(report) | (of_target := _of_target(report, names, rates))
    means = mean_figures(report, [*names, *((second, first) for first, second in names)])
    places = counted_places(report)
    cards, others, unanswered, joint = list[Figure](), list[Figure](), list[Unanswered](), joint_cards(report)
    of_joint = answered_pairs(report, names)
    for at, pair in enumerate(names):
        cards += joint.get(at, ())
        two, both = [places.get(name, -1) for name in pair], (pair, pair[::-1])
        by_group = [means.pop(each) for each in both if each in means]
        of_class = {each: of_two.pop(each) for each in ((two[0], two[1]), (two[1], two[0])) if each in of_two}
        is_rate_first = (two[0], two[1]) in of_class and (bool(by_group) or (two[0], two[1]) in of_target)
        drawn = [*of_class.values(), *by_group] if is_rate_first else [*by_group, *of_class.values()]
        at_once = 0 if at in of_joint else 1
        table = tables.pop((min(two), max(two)), None)
        if table and _has_mean(report, pair) and (by_group or not drawn):
            foot = OF_SHARES if by_group else NO_MEANS
            table = replace(table, foot=" · ".join(filter(None, [table.foot, foot])))
        drawn += [table] if table else []
        drawn = [_said_of_dropped(report, pair, one) for one in drawn]
        cards += drawn[:at_once]
        others += drawn[at_once:]
        unanswered += [] if drawn or at in of_joint else [_unanswered(report, pair)]
    cards += joint.get(len(names), ())
    asked = Asked(cards, [*others, *of_two.values()], unanswered, **_means_of_rows(report, names))
    if rates := _received(report, rates):
        with_target = [report["columns"][column]["name"] for _, column in of_target]
        asked, rates = _with_clear(report, replace(asked, with_target=with_target), rates)
    clearest = {"tables": _clearest_table(report, tables), "means": clearest_means(report, means)}
    return Together(asked if names or rates else None, [*tables.values()], [*means.values()], rates, clearest)


def _means_of_rows(report: Facts, names: Sequence[Names]) -> dict[str, Any]:
    """Return whether what was asked for has means, and which of these differs most in the rows."""
    both = {*names, *((second, first) for first, second in names)}
    has_means = any((one["column"], one["by"]) in both for one in report.get("groups", ()))
    return {"has_means": has_means, "farthest": farthest_in_rows(report, both)}


def asked_names(report: Facts) -> list[Names]:
    """Return the pairs that a workload names, in its order; reports of earlier versions have those that are drawn."""
    if "asked" in report:
        return [(first, second) for first, second in report["asked"]]
    pairs, columns = report.get("pairs") or {}, report["columns"]
    drawn = [one["columns"] for one in pairs.get("tables", ())[: pairs.get("asked_for", 0)]]
    return [(columns[first]["name"], columns[second]["name"]) for first, second in drawn]


def _of_target(report: Facts, names: Iterable[Names], rates: Rates | None) -> dict[tuple[int, int], Figure]:
    """Return the rates of the target by the columns that a workload names with it, by their places, in its order."""
    if not rates:
        return {}
    place, by_title = report["rates"]["target"], {one.title: one for one in rates.figures}
    columns, places = report["columns"], counted_places(report)
    target = columns[place]["name"]
    with_it = [second if first == target else first for first, second in names if target in (first, second)]
    counted = {one: columns[places[one]]["name"] for one in with_it if one in places}
    return {
        (place, places[one]): replace(by_title[title], title=f"{rates.of}, by {one}")
        for one, title in counted.items()
        if title in by_title
    }


def _received(report: Facts, rates: Rates | None) -> Rates | None:
    """Leave out the rates by columns that nobody is handed: they are for whoever asks for them."""
    dropped = not_handed_over(report)
    return rates and replace(rates, figures=[one for one in rates.figures if one.title not in dropped])


def _with_clear(report: Facts, asked: Asked, rates: Rates) -> tuple[Asked, Rates]:
    """Put the clearest rates of the target to what was asked for; those of columns that a workload names are there."""
    clear = _clear_rates(report, rates.figures)
    others = [one for one in clear if one.title not in asked.with_target][:RATES]
    why = "" if others else NO_OTHERS if clear else NO_RATES
    shown = {*asked.with_target, *(one.title for one in others)}
    asked = replace(asked, rates=others, of_target=rates.of, no_rates=why)
    return asked, replace(rates, figures=[one for one in rates.figures if one.title not in shown])


def _said_of_dropped(report: Facts, pair: Names, figure: Figure) -> Figure:
    """Say of a figure that a column of it is counted for figures alone, where it is."""
    dropped = [BEFORE.format(name) for name in pair if name in not_handed_over(report)]
    return replace(figure, foot=" · ".join(filter(None, [figure.foot, *dropped]))) if dropped else figure


def _has_mean(report: Facts, pair: Names) -> bool:
    """Tell whether one of two columns has numbers, so that means of it are what was asked for."""
    return any(one["name"] in pair and one["ordered"] and one["type"] in NUMBERS for one in report["columns"])


def _unanswered(report: Facts, pair: Names) -> Unanswered:
    """Say why a pair has no figure, and what command answers."""
    columns, derived = (
        {one["name"]: place for place, one in enumerate(report.get(kind, ()))} for kind in ("columns", "derived")
    )
    first, second = pair
    counts = shlex.join(["nacre", "marginals", "RUN", *pair])
    if dropped := [name for name in pair if name in not_handed_over(report)]:
        why, command = f"nobody is handed {' or '.join(dropped)}", counts
    elif number := next((name for name in pair if name in derived), ""):
        other = second if number == first else first
        why, command = NO_MEANS, shlex.join(["nacre", "means", "RUN", number, "--by", other])
    elif {*pair} <= columns.keys() and _is_counted(report, [columns[name] for name in pair]):
        why, command = "counted, and not among the pairs that a page has room for", counts
    else:
        why, command = "the release counts them in no table together, or one of them in a single cell", counts
    return Unanswered(f"{first} with {second}", why, command)


def _is_counted(report: Facts, places: Sequence[int]) -> bool:
    """Tell whether two columns were counted together."""
    return any(sorted(places) == [*one[:2]] for one in (report.get("pairs") or {}).get("distances", ()))


def _clear_rates(report: Facts, figures: Iterable[Figure]) -> list[Figure]:
    """Return the rates of the target that differ by a column for certain or likely, by no rule, clearest first.

    A figure has the name of its column.
    """
    target = report["rates"]["target"]
    ruled = {
        report["columns"][place]["name"]
        for pair, one in relations(report).items()
        if one.by_rule and target in pair
        for place in pair
    }
    hidden = hidden_rates(report) | ruled
    return [one for one in figures if one.title not in hidden]


def _clearest_table(report: Facts, tables: Mapping[tuple[int, int], Figure]) -> str:
    """Name the pair, of some that are drawn, that depends on each other by the most beyond noise."""
    every = relations(report)
    strength = {pair: every[pair].released - every[pair].most for pair in tables if pair in every}
    return tables[max(strength, key=strength.__getitem__)].title if strength else ""
