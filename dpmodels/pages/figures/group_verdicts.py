"""Which means by groups a report states, and on what terms they hold.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.pages.figures.grades import BAD, CARE, GOOD
from dpmodels.pages.figures.means import FAR
from dpmodels.pages.figures.open_means import DOUBTED, supposes_thinning_out
from dpmodels.pages.notes import not_handed_over

Facts = Mapping[str, Any]
HOLD, ON_TERMS, IN_SOME = "hold", "if values thin out", "in some groups"
PALE = " (but for the pale groups)"
"""What stands behind means that hold on terms, and not in all groups."""
MOST, FEW = 0.5, 0.05
"""Part of the rows beyond which one group tells something by itself; and part that groups may hold whose means are not
to be relied on, for those of a pair to be good."""


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
        on_terms = one["column"] in thinning
        sound = sound_groups(groups, on_terms)
        if says_something(sound, groups) and dropped.isdisjoint((one["column"], one["by"])):
            is_whole = len(sound) == len(groups)
            terms = ON_TERMS if on_terms else HOLD if is_whole else IN_SOME
            every.setdefault(terms, []).append(name + PALE * (on_terms and not is_whole))
    return every


def is_pale(group: Facts, on_terms: bool) -> bool:
    """Tell whether something speaks against the mean of a group, beside the terms that are said of all of them."""
    reason = reason_of(group)
    return bool(reason) and not (on_terms and reason == DOUBTED)


def reason_of(group: Facts) -> str:
    """Return what speaks against the mean of a group: nothing where it is 0 within 0, which a rule says."""
    return "" if group["released"] == 0 == group["within"] else str(group["reason"])


def sound_groups(groups: Sequence[Facts], on_terms: bool = False) -> list[Facts]:
    """Return the groups whose means are known, and that nothing speaks against beside the terms."""
    return [one for one in groups if one["released"] is not None and not is_pale(one, on_terms)]


def says_something(sound: Sequence[Facts], groups: Sequence[Facts]) -> bool:
    """Tell whether means that nothing speaks against are of two groups at least, or of one that has most rows."""
    rows = sum(group["share"] for group in groups)
    return len(sound) > 1 or (len(sound) == 1 and sound[0]["share"] > MOST * rows)


def grade_of(groups: Sequence[Facts], on_terms: bool) -> str:
    """Return whether the means of groups are good, to be used with care, or of no use.

    They are good in two groups at least, which hold all but ``FEW`` of the rows, if none is rough, and on no terms;
    of no use where they say nothing even if values thin out.
    """
    sound = sound_groups(groups, on_terms)
    if not says_something(sound, groups):
        return BAD
    return CARE if on_terms or len(sound) < 2 or doubted_groups(groups) or rough_groups(groups) else GOOD


def rough_groups(groups: Sequence[Facts]) -> list[Facts]:
    """Return those whose mean is off by more than a fifth of itself, and of what the means of all differ by."""
    known = [one for one in groups if one["released"] is not None]
    means = [one["released"] for one in known]
    return [one for one in known if one["within"] > FAR * max(abs(one["released"]), max(means) - min(means))]


def doubted_groups(groups: Sequence[Facts], on_terms: bool = False) -> list[Facts]:
    """Return the groups that something speaks against, where these hold more than ``FEW`` of the rows."""
    doubted = [one for one in groups if is_pale(one, on_terms) or one["released"] is None]
    few = FEW * sum(one["share"] for one in groups)
    return doubted if sum(one["share"] for one in doubted) > few else []


def stated_means(report: Facts) -> tuple[frozenset[str], dict[str, list[str]]]:
    """Name the columns of which means by group are stated, and by what those that are handed over are of use."""
    columns = (*report.get("columns", ()), *report.get("derived", ()))
    dropped, thinning = not_handed_over(report), {one["name"] for one in columns if supposes_thinning_out(one)}
    known, of_use = set[str](), dict[str, list[str]]()
    for one in report.get("groups", ()):
        known.add(one["column"])
        is_received = dropped.isdisjoint((one["column"], one["by"]))
        if is_received and grade_of(one["groups"], one["column"] in thinning) != BAD:
            of_use.setdefault(one["column"], []).append(one["by"])
    return frozenset(known), of_use
