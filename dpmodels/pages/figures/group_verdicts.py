"""Which means by groups a report states, and on what terms they hold.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.pages.figures.open_means import supposes_thinning_out
from dpmodels.pages.notes import not_handed_over

Facts = Mapping[str, Any]
HOLD, ON_TERMS, IN_SOME = "hold", "if values thin out", "in some groups"
PALE = " (but for the pale groups)"
"""What stands behind means that hold on terms, and not in all groups."""
MOST = 0.5
"""Part of the rows beyond which one group tells something by itself."""


def group_means(report: Facts) -> dict[str, list[str]]:
    """Name the means by group that are stated, of columns that are handed over, by whether they hold.

    They hold in all groups; or in those that are not pale; or, of a column whose values noise leaves open, only if
    these thin out. Of no other mean by group is anything known.
    """
    columns = (*report.get("columns", ()), *report.get("derived", ()))
    dropped, thinning = not_handed_over(report), {one["name"] for one in columns if supposes_thinning_out(one)}
    every = dict[str, list[str]]()
    for one in report.get("groups", ()):
        groups, name = one["groups"], f"{one['column']} by {one['by']}"
        sound = [group for group in groups if group["released"] is not None and not group["reason"]]
        if says_something(sound, groups) and dropped.isdisjoint((one["column"], one["by"])):
            is_whole, on_terms = len(sound) == len(groups), one["column"] in thinning
            terms = ON_TERMS if on_terms else HOLD if is_whole else IN_SOME
            every.setdefault(terms, []).append(name + PALE * (on_terms and not is_whole))
    return every


def says_something(sound: Sequence[Facts], groups: Sequence[Facts]) -> bool:
    """Tell whether means that nothing speaks against are of two groups at least, or of one that has most rows."""
    rows = sum(group["share"] for group in groups)
    return len(sound) > 1 or (len(sound) == 1 and sound[0]["share"] > MOST * rows)
