"""What rows are not for besides what a report marks beside a column: in a clause each, so that a list is complete.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpmodels.pages.figures.categories import absent
from dpmodels.pages.uses import MOST_PAIRS, TOGETHER, Known, known_of, never_for

DEPENDENCE = "whether two columns depend"
"""How the clause begins on pairs of which noise hides whether they depend."""
MARKED = "shares of "
"""How a clause begins on columns that a report marks too."""
MOST_HOLD = 6
"""So many pairs that hold are named where the others are more."""


def not_for(report: Mapping[str, Any]) -> list[str]:
    """Return what a report lists as not to be used and marks nowhere, with a few names or numbers, and without why."""
    if not (known := known_of(report)):
        return []
    known = replace(known.received, is_tabled=True, has_means_apart=True, most=MOST_PAIRS)
    *clauses, _ = (one.rpartition(": ")[0] or one for one in never_for(known, ()) if not one.startswith(MARKED))
    clauses = [f"{one}{_but_in(known)}" if one.startswith(DEPENDENCE) else one for one in clauses]
    gone = [one["name"] for one in known.columns if absent(one)]
    clauses += [f"whether categories that no row has are ever there, of {known.named(gone)}"] if gone else []
    return [*clauses, TOGETHER]


def _but_in(known: Known) -> str:
    """Name the pairs that depend on each other for certain or likely, where these are fewer than the others."""
    every = {pair: one for pair, one in known.relations.items() if not one.by_rule}
    hold = [one for pair, one in every.items() if one.is_certain or pair in known.likely]
    if not hold or len(hold) > MOST_HOLD or 2 * len(hold) >= len(every):
        return ""
    others = f"the {len(hold)} others are" if len(hold) > 1 else "the other one is"
    return f" ({others} {replace(known, names_all=True).strongest(hold)})"
