"""What rows are not for besides what a report marks beside a column: in a clause each, so that a list is complete.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpmodels.pages.figures.categories import absent
from dpmodels.pages.uses import MOST_PAIRS, TOGETHER, known_of, never_for

MARKED = "shares of "
"""How a clause begins on columns that a report marks too."""


def not_for(report: Mapping[str, Any]) -> list[str]:
    """Return what a report lists as not to be used and marks nowhere, with a few names or numbers, and without why."""
    if not (known := known_of(report)):
        return []
    known = replace(known.received, is_tabled=True, has_means_apart=True, most=MOST_PAIRS)
    *clauses, _ = (one.rpartition(": ")[0] or one for one in never_for(known, ()) if not one.startswith(MARKED))
    gone = [one["name"] for one in known.columns if absent(one)]
    clauses += [f"whether categories that no row has are ever there, of {known.named(gone)}"] if gone else []
    return [*clauses, TOGETHER]
