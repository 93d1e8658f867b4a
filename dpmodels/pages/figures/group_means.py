"""Pictures of means by groups: each with what it is within, and that of the synthetic rows beside it.

Privacy: post-processing of a publishable report.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import NormalDist
from typing import Any

from dpmodels.pages.drawing import WIDTH, Figure, box, fitted, number, path, svg, words
from dpmodels.pages.figures.amounts import amount, error
from dpmodels.pages.figures.named import listed
from dpmodels.pages.figures.open_means import DOUBTED, supposes_thinning_out
from dpmodels.pages.glance import IF_THIN
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
FAR = 1.0
"""Times the span of all means that an axis goes on beyond them at most; a whisker that is longer is cut."""
FEW, MOST_DOUBTED = 0.05, 3
"""Part of the rows that groups may hold whose means are not to be relied on, for those of a pair to be good; and so
many of these that are named."""
SPECK = 3
"""Times that an axis of several pictures is as long as one picture needs, from which on that has one of its own."""
FINE = 1000
"""Parts of an axis of which a figure that is less than one is written as 0."""
NONE_APART = "; no two groups differ for certain"
"""What is said of a picture in which noise alone may make all that groups differ by."""
FIGURES = ("released", "within", "synthetic")
HEADER = ("rows with", "mean, released", "within", "synthetic", "of these rows", "but")


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
    apart = [one for one in groups if are_apart(one["groups"], len(groups))]
    received = [one for one in apart if dropped.isdisjoint((one["column"], one["by"]))]
    asked = [one for one in received if (one["column"] in thinning) is on_terms]
    return [
        f"{one['column']} by {one['by']}{but}"
        for one in asked
        if bool(but := but_some_groups(one["groups"])) is but_some
    ]


def but_some_groups(groups: Sequence[Facts]) -> str:
    """Name the groups that something speaks against, where these hold more than ``FEW`` of the rows."""
    doubted = [one for one in groups if one["reason"] or one["released"] is None]
    if sum(one["share"] for one in doubted) <= FEW * sum(one["share"] for one in groups):
        return ""
    return f" (not {listed([called(one['labels']) for one in doubted], MOST_DOUBTED)})"


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
    """Tell whether the intervals of two means do not meet, widened as so many ``pairs`` of columns need (Bonferroni).

    It is looked at groups of which nothing speaks against the mean, or nothing but that it holds ``on_terms``.
    """
    relied = [one for one in groups if not _is_pale(one, on_terms) and one["released"] is not None]
    compared = max(len(relied) * (len(relied) - 1) // 2 * pairs, 1)
    wider = NormalDist().inv_cdf(1 - 0.025 / compared) / NormalDist().inv_cdf(0.975)
    highest = max((one["released"] - wider * one["within"] for one in relied), default=0.0)
    return bool(highest > min((one["released"] + wider * one["within"] for one in relied), default=0.0))


def _is_pale(group: Facts, on_terms: bool) -> bool:
    """Tell whether something speaks against the mean of a group, beside the terms that a picture says."""
    return bool(group["reason"]) and not (on_terms and group["reason"] == DOUBTED)


def mean_figures(report: Facts, asked: Sequence[tuple[str, str]] = ()) -> dict[tuple[str, str], Figure]:
    """Draw the means by groups that a report states, by their columns: first those that are ``asked`` for, in order.

    Of the others those that are seen at once, and the rest, stand in the order of the schema: by what makes the groups,
    so that cards beside each other are about as high, and then by column. Pictures of a column that are seen at once
    have one scale, and so have the others.
    """
    columns = {one["name"]: one for one in (*report.get("columns", ()), *report.get("derived", ()))}
    every = {(one["column"], one["by"]): one for one in report.get("groups", ()) if one["column"] in columns}
    places = {name: place for place, name in enumerate(columns)}
    others = [one for pair, one in every.items() if pair not in asked]
    in_order = [
        sorted(some, key=lambda one: (places.get(one["by"], len(places)), places[one["column"]]))
        for some in (others[:TABLES], others[TABLES:])
    ]
    return {
        (one["column"], one["by"]): _drawn(one, columns[one["column"]], _scale(one, some))
        for some in ([every[pair] for pair in asked if pair in every], *in_order)
        for one in some
    }


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


def _shown(means: Facts) -> list[Facts]:
    """Return the groups of which a mean is drawn: the largest."""
    order = sorted(means["groups"], key=lambda one: (one["released"] is None, -one["share"]))[:DRAWN]
    return [one for one in means["groups"] if one in order]


def _scale(means: Facts, some: Sequence[Facts]) -> tuple[float, float]:
    """Return the axis of all means of a column, or that of these alone where they would be a speck on it."""
    low, high = _axis([one for one in some if one["column"] == means["column"]])
    least, most = _axis([means])
    return (low, high) if high - low <= SPECK * (most - least) else (least, most)


def _axis(of_column: Sequence[Facts]) -> tuple[float, float]:
    """Return between what the axis of means lies: with what they are within, up to so far beyond all of them."""
    groups = [group for means in of_column for group in _shown(means)]
    known = [one for one in groups if one["released"] is not None]
    values = [one[key] for one in groups for key in ("released", "synthetic") if one[key] is not None]
    reach = (max(values) - min(values)) * FAR or 1.0
    least = 0.0 if min(values) >= 0 else -math.inf  # of amounts, whatever their means are within
    low = max(min(one["released"] - one["within"] for one in known), min(values) - reach, least)
    high = min(max(one["released"] + one["within"] for one in known), max(values) + reach)
    return min(low, min(values)), max(high, max(values))


def _drawn(means: Facts, column: Facts, axis: tuple[float, float]) -> Figure:
    """Draw the means of a column in each group of another."""
    title, groups = f"{means['column']} by {means['by']}", means["groups"]
    shown = _shown(means)
    known = [one for one in shown if one["released"] is not None]
    on_terms = supposes_thinning_out(column)
    relied = [one for one in known if not _is_pale(one, on_terms)] or known
    least, most = (error(column, end(one["within"] for one in relied)) for end in (min, max))
    note = f"within {least}" if least == most else f"within {least} to {most}"
    note += f", {IF_THIN}" * on_terms
    note += NONE_APART * (len(relied) > 1 and not are_apart(groups, on_terms=on_terms))
    rows = tuple(_row(one, column) for one in means["groups"])
    pale = [place for place, one in enumerate(shown) if _is_pale(one, on_terms)]
    drawn = _picture(title, shown, column, axis, pale)
    more = f"the {DRAWN} largest of {len(groups)} groups are drawn" if len(groups) > DRAWN else ""
    return Figure(title, note, drawn, HEADER, rows, more)


def called(labels: Sequence[str]) -> str:
    """Name a group by all that is in it."""
    return values_in_words(labels) if ZERO in labels[1:] else OF_CATEGORIES.join(labels)


def _row(group: Facts, column: Facts) -> tuple[str, ...]:
    """Return a line of the table of means: a group, its means, and why not to rely on them."""
    return (
        called(group["labels"]),
        *_written(group, column),
        percent(group["share"]),
        group["reason"],
    )


def _written(group: Facts, column: Facts) -> tuple[str, str, str]:
    """Write the released mean, what it is within, and the synthetic mean; nothing of what is not known."""
    off = group["within"]
    released, within = (
        ("", "") if None in (off, group["released"]) else (amount(column, group["released"], off), error(column, off))
    )
    return released, within, "" if group["synthetic"] is None else amount(column, group["synthetic"], off)


def _picture(
    title: str, groups: Sequence[Facts], column: Facts, axis: tuple[float, float], pale: Collection[int]
) -> Any:
    """Draw a line for each group: a mark at the released mean, its whisker, and a line at the synthetic mean."""
    known = [one for one in groups if one["released"] is not None]
    low, high = axis
    span = high - low or 1.0

    def x(value: float) -> float:
        return float(HALF + (WIDTH - 2 * HALF) * min(max((value - low) / span, 0.0), 1.0))

    whole = sum(one["share"] for one in known) or 1.0
    middle = sum(one["share"] * one["released"] for one in known) / whole
    room = int((WIDTH - 2.6 * FIGURE) / LETTER)
    parts = [words(WIDTH - FIGURE, NAME, "released", "end"), words(WIDTH, NAME, "synthetic", "end", "second")]
    lines = [18.0 + LINE * index + NAME + ABOVE for index in range(len(groups))]
    parts.append(path("axis", (f"M{number(x(middle))} {number(y - 2)}v{number(THICK + 4)}" for y in lines)))
    for place, (one, y) in enumerate(zip(groups, lines, strict=True)):
        shown = {**one, **{key: 0.0 for key in FIGURES if one[key] is not None and abs(one[key]) < span / FINE}}
        released, within, synthetic = _written(shown, column)
        label = called(one["labels"])
        parts += [
            fitted(0, y - ABOVE, label, room, "start", "label"),
            words(WIDTH - FIGURE, y - ABOVE, _with_error(released, within), "end"),
            words(WIDTH, y - ABOVE, synthetic, "end", "second" if one in known else "second rest"),
            box(0, y + THICK / 2 - 0.5, WIDTH, 1, "track"),
        ]
        if one in known:
            kind = "bar rest" if place in pale else "bar"
            parts += [box(x(one["released"]) - HALF, y, 2 * HALF, THICK, kind), _whisker(one, y + THICK / 2, x)]
        if one["synthetic"] is not None:
            parts.append(path("mark", (f"M{number(x(one['synthetic']))} {number(y - 2)}v{number(THICK + 4)}",)))
    floor = 18.0 + LINE * len(groups)
    ends = [amount(column, 0.0 if abs(end) < span / FINE else end, span / 10) for end in (low, high)]
    parts += [words(0, floor + NAME, ends[0], "start"), words(WIDTH, floor + NAME, ends[1], "end")]
    return svg(floor + BENEATH, title, _described(known, column), parts)


def _with_error(released: str, within: str) -> str:
    """Write a mean with what it is within, or that there is none."""
    if not released:
        return "not known"
    return released if within.strip("0.") == "" else f"{released} \N{PLUS-MINUS SIGN} {within}"


def _whisker(group: Facts, y: float, x: Any) -> Any:
    """Draw within what a mean is; an end that the axis cuts has none."""
    low, high = (group["released"] + sign * group["within"] for sign in (-1, 1))
    first, last = x(low), x(high)
    ends = [f"M{number(at)} {number(y - HALF)}v{number(2 * HALF)}" for at in (first, last) if HALF < at < WIDTH - HALF]
    return path("whisker", (f"M{number(first)} {number(y)}H{number(last)}", *ends))


def _described(groups: Sequence[Facts], column: Facts) -> str:
    """Say in one sentence what a picture shows."""
    largest = max(groups, key=lambda one: float(one["released"]))
    released, within, _ = _written(largest, column)
    label = called(largest["labels"])
    return f"Means of {len(groups)} groups; the largest: {released} within {within} at {label}"
