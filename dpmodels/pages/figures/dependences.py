"""Two pictures side by side of how much every two columns depend on each other: as released, and in synthetic rows.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Mapping
from typing import Any

from dpmodels.pages.drawing import Figure
from dpmodels.pages.figures.relations import Relation, likely_relations, relations
from dpmodels.pages.maps import stairs
from dpmodels.pages.notes import not_handed_over
from dpmodels.pages.page import percent

Facts = Mapping[str, Any]
LISTED = 200
"""Pairs that the table of numbers has."""
LEAST = 0.1
"""Dependence that full color stands for, at least."""
HEADER = ("columns", "released", "synthetic", "by noise alone, up to", "")


def dependence_figures(report: Facts) -> list[Figure]:
    """Draw the dependence of all pairs of which noise does not hide it; none of fewer than two such pairs."""
    every = relations(report)
    likely = likely_relations(report)
    names, dropped = [one["name"] for one in report["columns"]], not_handed_over(report)
    every = {pair: one for pair, one in every.items() if not dropped & {names[place] for place in pair}}
    shown = {pair: one for pair, one in every.items() if one.is_certain or one.by_rule or pair in likely}
    if len(shown) < 2:
        return []
    order = sorted({place for pair in every for place in pair})
    places = {place: index for index, place in enumerate(order)}
    full = max(LEAST, *(max(one.released, one.synthetic) for one in shown.values()))
    scale = ("0", percent(full / 4), percent(full))
    clearest = sorted(shown.values(), key=lambda one: -one.released)
    rows = tuple(_row(one, names, one.columns in likely) for one in clearest[:LISTED])
    figures = []
    for title, strength in (("Released", "released"), ("Synthetic rows", "synthetic")):
        cells = [(places[max(pair)], places[min(pair)], getattr(one, strength)) for pair, one in shown.items()]
        said = f"{len(shown)} pairs; most: {' with '.join(names[at] for at in clearest[0].columns)}"
        drawn = stairs(f"Dependence, {strength}", said, [names[place] for place in order], cells, full, scale)
        figures.append(Figure(title, "", drawn, HEADER, rows))
    return figures


def _row(one: Relation, names: list[str], is_likely: bool) -> tuple[str, ...]:
    """Return a line of the table: two columns, how much they depend on each other, and what is to be said of it."""
    said = {
        "by a rule of the schema": one.by_rule,
        "weaker": one.is_weakened,
        "stronger": one.is_stronger,
        "likely, and not certain": is_likely,
    }
    first, second = (names[place] for place in one.columns)
    figures = map(percent, (one.released, one.synthetic, one.most))
    return (f"{first} with {second}", *figures, next((why for why, holds in said.items() if holds), ""))
