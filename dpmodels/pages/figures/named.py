"""Names in the sentences of a report: of columns that are far off, that follow from others, and how many are left out.

Privacy: post-processing of a publishable report.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dpmodels.contract.remarks import FIRST_ROWS
from dpmodels.pages.figures.categories import has_rules
from dpmodels.pages.glance import MOVED, is_farther, unresolved
from dpmodels.pages.notes import COUNTED_AS, not_handed_over
from dpmodels.pages.page import percent

Facts = Mapping[str, Any]
DAY = re.compile(r"\d{4}-\d\d-\d\d")
MOST_NAMED = 8
"""Names in a sentence."""


def amounts_of(report: Facts) -> list[Facts]:
    """Return the derived columns that are numbers, and of whose means no error is known."""
    numbers = (one for one in report.get("derived", ()) if one["ordered"] and "mean" not in one)
    return [one for one in numbers if not DAY.match(one["labels"][0])]


def counted_places(report: Facts) -> dict[str, int]:
    """Return by name the place of each column that was counted; of a derived one, that of what is counted for it."""
    places = {one["name"]: place for place, one in enumerate(report["columns"])}
    counted = {one["name"]: one[COUNTED_AS] for one in report.get("derived", ()) if COUNTED_AS in one}
    return places | {name: places[copy] for name, copy in counted.items() if copy in places}


def has_first_rows(report: Facts) -> bool:
    """Tell whether a report is of the first rows of each user alone, so that nothing adds up to what there is."""
    return any(one.startswith(FIRST_ROWS.split("row")[0]) for one in report.get("cautions", ()))


def farther(report: Facts, least: float = 0.005) -> list[str]:
    """Name the columns that are farther from the release than twice what its noise is from the real rows.

    Those that nobody receives are left out.
    """
    dropped = not_handed_over(report)
    received = [one for one in report.get("columns", ()) if one["name"] not in dropped]
    measured = [one for one in received if "released" in one and not unresolved(one)]
    return [one["name"] for one in measured if is_farther(one, least)]


def moved_apart(report: Facts, named: Callable[[list[str]], str]) -> Iterator[str]:
    """Say of which columns rules, or the fit, have moved shares from what was released, and by how much."""
    off = {one["name"]: one.get("distance_to_release", 0.0) for one in report["columns"]}
    if apart := [f"{name} ({percent(off[name])} of all rows)" for name in farther(report, MOVED)]:
        by = "rules of the schema have" if has_rules(report) else "the fit has"
        yield f"shares of {named(apart)}, which {by} moved from what was released"


def listed(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Name some, and say how many more there are."""
    few = list(names[:most])
    if more := len(names) - len(few):
        return f"{', '.join(few)} and {more:,} more"
    return " and ".join(filter(None, [", ".join(few[:-1]), few[-1]]))
