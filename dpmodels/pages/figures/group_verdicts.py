"""Which means by groups a report states, and on what terms they hold.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Mapping
from typing import Any

from dpmodels.pages.figures.group_means import but_some_groups
from dpmodels.pages.figures.open_means import supposes_thinning_out
from dpmodels.pages.notes import not_handed_over

Facts = Mapping[str, Any]
HOLD, ON_TERMS, IN_SOME = "hold", "if values thin out", "in some groups"


def group_means(report: Facts) -> dict[str, list[str]]:
    """Name the means by group that are stated, of columns that are handed over, by whether they hold.

    They hold in all groups, but for those of few rows; or in those that are not pale; or, of a column whose values
    noise leaves open, only if these thin out. Of no other mean by group is anything known.
    """
    columns = (*report.get("columns", ()), *report.get("derived", ()))
    dropped, thinning = not_handed_over(report), {one["name"] for one in columns if supposes_thinning_out(one)}
    every = dict[str, list[str]]()
    for one in report.get("groups", ()):
        stated = [group for group in one["groups"] if group["released"] is not None]
        if stated and dropped.isdisjoint((one["column"], one["by"])):
            is_whole = not but_some_groups(one["groups"])
            terms = ON_TERMS if one["column"] in thinning else HOLD if is_whole else IN_SOME
            every.setdefault(terms, []).append(f"{one['column']} by {one['by']}")
    return every
