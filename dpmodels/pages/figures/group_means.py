"""Pictures of means by groups: each with what it is within, and that of the synthetic rows beside it.

Privacy: post-processing of a publishable report.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from dpmodels.pages.drawing import WIDTH, Figure, box, fitted, number, path, svg, words
from dpmodels.pages.figures.amounts import amount, error
from dpmodels.pages.figures.apart import Interval, apart_in_words, are_certain
from dpmodels.pages.figures.grades import BAD
from dpmodels.pages.figures.group_verdicts import (
    doubted_groups,
    grade_of,
    is_pale,
    reason_of,
    rough_groups,
    sound_groups,
)
from dpmodels.pages.figures.mean_axis import (
    FINE,
    Axis,
    Ends,
    axis_of,
    ends_of,
    reach,
    with_interval,
    within_in_words,
)
from dpmodels.pages.figures.named import listed
from dpmodels.pages.figures.open_means import IF_THIN, supposes_thinning_out
from dpmodels.pages.figures.reasons import pale_in_words, with_reasons
from dpmodels.pages.notes import not_handed_over
from dpmodels.pages.page import percent
from dpmodels.plural import OF_CATEGORIES, ZERO, values_in_words

Facts = Mapping[str, Any]
TABLES, DRAWN = 9, 16
"""Pictures of means that are seen at once, and groups of a column that are drawn; the numbers have all."""
LINE, NAME, ABOVE, THICK, HALF, BENEATH = 38.0, 11.0, 8.0, 10.0, 3.0, 15.0
"""Height of a group, and of the words over it; how far these stand above its mark, and how high that is; half the width
of that; and height of the axis."""
FIGURE = 66.0
"""Room for the synthetic mean over a group, and behind the released one."""
LETTER = 7.0
"""Width of a letter, at most."""
MOST_DOUBTED = 3
"""Groups whose means are not to be relied on that are named."""
LOGARITHMIC_AXIS = "the axis is logarithmic"
ALIKE = "its error exceeds what groups surely differ by"
"""Why a mean is pale where no two groups differ, which is said already."""
BY_ITSELF = "each mean by itself, not to compare: "
"""For what means are good of groups that do not differ for certain."""
ROUGH = "off by more than a fifth of itself and of what groups differ by"
"""Why means that nothing else speaks against are to be used with care."""
FIGURES = ("released", "within", "synthetic")
HEADER = ("rows with", "mean, released", "within", "synthetic", "of these rows")


def told_apart(report: Facts, on_terms: bool = False, but_some: bool = False) -> list[str]:
    """Name the pairs of which the intervals of two means do not meet, of those that nothing speaks against.

    Args:
        report: the facts.
        on_terms: those that hold if the values of a column thin out; else those that hold anyway.
        but_some: those of which something speaks against the means of groups that hold more than ``FEW`` of the rows,
            with these; else those of which nothing does.
    """
    groups, columns = report.get("groups", ()), (*report.get("columns", ()), *report.get("derived", ()))
    dropped, thinning = not_handed_over(report), {one["name"] for one in columns if supposes_thinning_out(one)}
    asked = [one for one in groups if (one["column"] in thinning) is on_terms]
    received = [one for one in asked if dropped.isdisjoint((one["column"], one["by"]))]
    apart = [one for one in received if are_apart(one["groups"], len(groups), on_terms)]
    return [
        f"{one['column']} by {one['by']}{but}"
        for one in apart
        if bool(but := but_some_groups(one["groups"], on_terms)) is but_some
    ]


def but_some_groups(groups: Sequence[Facts], on_terms: bool = False) -> str:
    """Name the groups that something speaks against, where these hold more than ``FEW`` of the rows."""
    doubted = doubted_groups(groups, on_terms)
    return f" (not {listed([called(one['labels']) for one in doubted], MOST_DOUBTED)})" if doubted else ""


def means_with_care(report: Facts, named: Callable[[list[str]], str]) -> Iterator[str]:
    """Say which means of groups are of use on terms, or but for some groups."""
    for on_terms, but_some in ((True, False), (False, True), (True, True)):
        yield from means_told_apart(report, named, on_terms, but_some)


def means_told_apart(
    report: Facts, named: Callable[[list[str]], str], on_terms: bool = False, but_some: bool = False
) -> Iterator[str]:
    """Say which means of groups are of use, whether on terms or not, and in all groups or but for some."""
    if apart := told_apart(report, on_terms, but_some):
        terms = ", if values thin out" * on_terms + ", but for some groups" * but_some
        yield f"means of groups as the report states them, not those of the rows{terms}: {named(apart)}"


def are_apart(groups: Sequence[Facts], pairs: int = 1, on_terms: bool = False) -> bool:
    """Tell whether means of groups differ for certain, of so many ``pairs`` of columns.

    It is looked at groups of which nothing speaks against the mean, or nothing but that it holds ``on_terms``.
    """
    return are_certain([one for one in intervals_of(groups, on_terms) if not one.is_pale], pairs)


def intervals_of(groups: Sequence[Facts], on_terms: bool = False) -> list[Interval]:
    """Return the means of groups that are known, with what they are within."""
    known = [one for one in groups if one["released"] is not None]
    return [Interval(one["released"], one["within"], is_pale(one, on_terms)) for one in known]


def mean_figures(report: Facts, asked: Sequence[tuple[str, str]] = ()) -> dict[tuple[str, str], Figure]:
    """Draw the means by groups that a report states, by their columns: first those that are ``asked`` for, in order.

    Of the others those that are seen at once, and the rest, stand in the order of the schema: by what makes the groups,
    so that cards beside each other are about as high, and then by column. Pictures of a column that are seen at once
    have one scale, and so have the others; what was asked for has each one of its own.
    """
    columns = {one["name"]: one for one in (*report.get("columns", ()), *report.get("derived", ()))}
    every = {(one["column"], one["by"]): one for one in report.get("groups", ()) if one["column"] in columns}
    places = {name: place for place, name in enumerate(columns)}
    others = [one for pair, one in every.items() if pair not in asked]
    in_order = [
        sorted(some, key=lambda one: (places.get(one["by"], len(places)), places[one["column"]]))
        for some in (others[:TABLES], others[TABLES:])
    ]
    alone = list[Facts]()
    drawn = [
        *((alone, every[pair]) for pair in asked if pair in every),
        *(([*map(_shown, some)], one) for some in in_order for one in some),
    ]
    return {
        (one["column"], one["by"]): _drawn(one, column, axis_of(_shown(one), column, shared))
        for shared, one in drawn
        for column in [columns[one["column"]]]
    }


def farthest_in_rows(report: Facts, asked: Collection[tuple[str, str]]) -> str:
    """Say which mean of the rows differs most from the released one, in what that is within; empty if none by more.

    ``asked``: the pairs that are looked at, of columns that are handed over.
    """
    columns = {one["name"]: one for one in (*report.get("columns", ()), *report.get("derived", ()))}
    dropped, far = not_handed_over(report), list[tuple[float, str]]()
    for means in report.get("groups", ()):
        names = means["column"], means["by"]
        column = columns.get(means["column"])
        if column is None or names not in asked or not dropped.isdisjoint(names):
            continue
        for one in sound_groups(means["groups"], supposes_thinning_out(column)):
            off = 0.0 if one["synthetic"] is None else abs(one["synthetic"] - one["released"])
            if off > one["within"] > 0:
                released, synthetic = written(one, column)
                where = f"{' by '.join(names)}, {called(one['labels'])}"
                far.append((off / one["within"], f"{where}: {synthetic} in the rows, {released} released"))
    return max(far, default=(0.0, ""))[1]


def clearest_means(report: Facts, pairs: Collection[tuple[str, str]]) -> str:
    """Name the pair whose groups have means that are farthest apart, in what these are within; empty of none."""
    every = {(one["column"], one["by"]): one["groups"] for one in report.get("groups", ())}
    apart = {pair: _apart(every[pair]) for pair in pairs if pair in every}
    column, by = max(apart, key=apart.__getitem__, default=("", ""))
    return f"{column} by {by}" if column else ""


def _apart(groups: Sequence[Facts]) -> float:
    """Return how far the means of two groups that nothing speaks against are apart, as a part of what both are within.

    None is taken to be known better than to ``FINE`` parts of the largest, since a rule may leave a single value.
    """
    relied = [one for one in groups if not one["reason"] and one["released"] is not None]
    least = max((abs(one["released"]) for one in relied), default=0.0) / FINE or 1.0
    return max(
        (
            abs(one["released"] - other["released"]) / max(math.hypot(one["within"], other["within"]), least)
            for one, other in combinations(relied, 2)
        ),
        default=0.0,
    )


def _shown(means: Facts) -> Facts:
    """Return means with the groups of which one is drawn: the largest."""
    order = sorted(means["groups"], key=lambda one: (one["released"] is None, -one["share"]))[:DRAWN]
    return {**means, "groups": [one for one in means["groups"] if one in order]}


def _drawn(means: Facts, column: Facts, axis: Axis) -> Figure:
    """Draw the means of a column in each group of another."""
    title, groups = f"{means['column']} by {means['by']}", means["groups"]
    on_terms, ends = supposes_thinning_out(column), ends_of(means)
    rows = [_row(one, column, ends) for one in groups]
    header, lines, above = with_reasons(HEADER, rows, [reason_of(one) for one in groups])
    more = f"the {DRAWN} largest of {len(groups)} groups are drawn" if len(groups) > DRAWN else ""
    foot = LOGARITHMIC_AXIS * axis.is_logarithmic
    drawn = _picture(title, _shown(means), column, axis)
    said = note_of(groups, column, on_terms)
    return Figure(title, said, drawn, header, lines, foot, more=more, above=above, grade=grade_of(groups, on_terms))


def note_of(groups: Sequence[Facts], column: Facts, on_terms: bool) -> str:
    """Say within what means are, pale ones too, whether groups differ, and how many are pale, and why."""
    known = [one for one in groups if one["released"] is not None]
    least, most = (error(column, end((one["within"] for one in known), default=0.0)) for end in (min, max))
    note = f"within {least}" if least == most else f"within {least} to {most}"
    apart = apart_in_words(intervals_of(groups, on_terms))
    pale = pale_in_words([one["reason"] for one in groups if is_pale(one, on_terms)], len(groups))
    by_itself = BY_ITSELF * (bool(apart) and grade_of(groups, on_terms) != BAD)
    rough = [] if on_terms else [called(one["labels"]) for one in rough_groups(groups) if not is_pale(one, on_terms)]
    far = [f"{ROUGH}: {listed(rough, MOST_DOUBTED)}"] if rough else []
    return "; ".join(filter(None, [note + f", {IF_THIN}" * on_terms, by_itself + apart, pale, *far]))


def called(labels: Sequence[str]) -> str:
    """Name a group by all that is in it."""
    return values_in_words(labels) if ZERO in labels[1:] else OF_CATEGORIES.join(labels)


def _row(group: Facts, column: Facts, ends: Ends) -> tuple[str, ...]:
    """Return a line of the table of means: a group and its means."""
    released, synthetic = written(group, column)
    within = within_in_words(group, column, ends) if released else ""
    return called(group["labels"]), released, within, synthetic, percent(group["share"])


def written(group: Facts, column: Facts) -> tuple[str, str]:
    """Write the released and the synthetic mean; nothing of what is not known."""
    off = group["within"]
    released, synthetic = (
        "" if one is None else amount(column, one, off) for one in (group["released"], group["synthetic"])
    )
    return released, synthetic


def _picture(title: str, means: Facts, column: Facts, axis: Axis) -> Any:
    """Draw a line for each group: a mark at the released mean, its whisker, and a line at the synthetic mean."""
    groups, on_terms, ends = means["groups"], supposes_thinning_out(column), ends_of(means)
    known = [one for one in groups if one["released"] is not None]

    def x(value: float) -> float:
        return float(HALF + (WIDTH - 2 * HALF) * axis.part(value))

    whole = sum(one["share"] for one in known) or 1.0
    middle = sum(one["share"] * one["released"] for one in known) / whole
    room = int((WIDTH - 2.6 * FIGURE) / LETTER)
    parts = [words(WIDTH - FIGURE, NAME, "released", "end"), words(WIDTH, NAME, "synthetic", "end", "second")]
    lines = [18.0 + LINE * index + NAME + ABOVE for index in range(len(groups))]
    parts.append(path("axis", (f"M{number(x(middle))} {number(y - 2)}v{number(THICK + 4)}" for y in lines)))
    for one, y in zip(groups, lines, strict=True):
        nothing = {key: 0.0 for key in FIGURES if one[key] is not None and axis.is_nothing(one[key])}
        released, synthetic = written({**one, **nothing}, column)
        parts += [
            fitted(0, y - ABOVE, called(one["labels"]), room, "start", "label"),
            words(WIDTH - FIGURE, y - ABOVE, with_interval(released, {**one, **nothing}, column, ends), "end"),
            words(WIDTH, y - ABOVE, synthetic, "end", "second" if one in known else "second rest"),
            box(0, y + THICK / 2 - 0.5, WIDTH, 1, "track"),
        ]
        if one in known:
            kind = "bar rest" if is_pale(one, on_terms) else "bar"
            bar = box(x(one["released"]) - HALF, y, 2 * HALF, THICK, kind)
            parts += [bar, _whisker(reach(one, ends), y + THICK / 2, x)]
        if one["synthetic"] is not None:
            parts.append(path("mark", (f"M{number(x(one['synthetic']))} {number(y - 2)}v{number(THICK + 4)}",)))
    floor = 18.0 + LINE * len(groups)
    parts += [_tick(x(at), floor + NAME, text) for at, text in axis.ticks(column)]
    return svg(floor + BENEATH, title, described(known, column), parts)


def _tick(x: float, y: float, text: str) -> Any:
    """Write what stands beneath an axis, within the picture."""
    half = LETTER * len(text) / 2
    anchor = "start" if x < half else "end" if x + half > WIDTH else "middle"
    return words(0 if anchor == "start" else WIDTH if anchor == "end" else x, y, text, anchor)


def _whisker(ends: Ends, y: float, x: Any) -> Any:
    """Draw between what a mean lies; an end at that of the axis has no mark."""
    first, last = map(x, ends)
    marks = [f"M{number(at)} {number(y - HALF)}v{number(2 * HALF)}" for at in (first, last) if HALF < at < WIDTH - HALF]
    return path("whisker", (f"M{number(first)} {number(y)}H{number(last)}", *marks))


def described(groups: Sequence[Facts], column: Facts) -> str:
    """Say in one sentence what a picture shows: the largest mean, and the one that is known worst beside itself."""
    largest = max(groups, key=lambda one: float(one["released"]))
    worst = max(groups, key=lambda one: one["within"] / (abs(one["released"]) or one["within"] or 1.0))
    said = f"Means of {len(groups)} groups; the largest: {_with_within(largest, column)}"
    return said + f", and the least sure: {_with_within(worst, column)}" * (worst is not largest)


def _with_within(group: Facts, column: Facts) -> str:
    """Write a mean with what it is within and the name of its group."""
    return f"{written(group, column)[0]} within {error(column, group['within'])} at {called(group['labels'])}"
