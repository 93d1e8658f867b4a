"""Plots of shares for the reports: densities over an axis, lying bars of categories, and curves of rounds."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dpmodels.pages.drawing import WIDTH, Figure, box, cut, fitted, number, path, svg, words
from dpmodels.pages.page import PERCENT, percent

HEIGHT = 132
LEFT, TOP, FLOOR = 44, 10, 112
LINE, NAME, THICK = 31.0, 11.0, 10.0
"""Height of a category, of the words over its bar, and of its bar."""
LEAST_HEIGHT = 93.0
"""Height of all categories together, at least: that of a drawing of numbers, so that cards side by side are alike."""
FIGURE = 66.0
"""Room for a percentage over a bar."""
BENEATH = 15
"""Height of a line beneath an axis."""
ROUND = 5.2
"""Ticks of an axis of shares, at most."""
MOST_BARS = 100
"""Bars of an axis, and values that begin or end one."""
LETTER = 7.0
"""Width of a letter beneath an axis, at most."""
MOST_TICK = 21
"""Letters of a label beneath an axis."""
END = 3
"""Half the height of a whisker's end."""
ROOM = 9.0
"""Pixels behind the end of a scale of lying bars: so wide a bar or a whisker that goes on is drawn longer."""
DEVIATIONS = 2
"""Standard deviations that a whisker reaches either way."""
TWO = "± 2 standard deviations"
"""What they are called in a table of the same figures."""
SPIKE = 4.0
"""Times the next bar that the highest one must be for the axis to end beneath it."""
HALF = 0.5
"""Share of a category beyond which the scale of its column ends at all rows."""
ROUNDED = 1e-5
"""By how much an edge of an axis may be off."""


@dataclass(frozen=True)
class Shares:
    """One series of shares, and how far each may be off (one standard deviation), if that is known."""

    name: str
    values: Sequence[float]
    stddev: Sequence[float] | None = None

    @property
    def reach(self) -> list[tuple[float, float]]:
        """From where to where each share's whisker reaches; none where nobody knows its deviation."""
        deviations = self.stddev or ()
        return [
            (share - DEVIATIONS * one, share + DEVIATIONS * one)
            for share, one in zip(self.values, deviations, strict=False)
        ]


def histogram(
    title: str,
    note: str,
    labels: Sequence[str],
    bars: Shares | None,
    line: Shares | None = None,
    axis: Mapping[str, Any] | None = None,
    beyond: tuple[str, str] = ("", ""),
) -> Figure:
    """Draw a density over an ordered axis: one series as upright bars with whiskers, the other as a line of steps.

    An axis says by ``edges`` where each share begins and ends, from 0 to 1. The area of a bar is its share, and a bar
    as wide as one of ``bars`` equal parts of the axis is as high as it. ``ticks`` are what is written beneath, and
    ``beyond`` says what lies to the left and to the right of what is drawn, if anything does.
    """
    ends = [(0.0, labels[0].split(" to ")[0]), (1.0, labels[-1].split(" to ")[-1])][: len(labels)]
    axis = axis or {"edges": np.linspace(0, 1, len(labels) + 1).tolist(), "bars": len(labels), "ticks": ends}
    cuts = _cuts(axis)
    drawn, over = (_density(axis, cuts, each) if each else None for each in (bars, line))
    series = [each for each in (bars, line) if each]
    top, spike = _top_beneath_spike(drawn, over)
    x = (LEFT + cuts * (WIDTH - LEFT)).tolist()

    def y(share: float) -> float:
        return FLOOR - (FLOOR - TOP) * min(max(share, 0), top) / top

    parts = [_axis(top), *(_upright(x, drawn, y) if drawn else ())]
    if over:
        steps = [f"V{number(y(share))}H{number(right)}" for share, right in zip(over.values, x[1:], strict=True)]
        outline = [f"M{LEFT} {FLOOR}", *steps, f"V{FLOOR}"]
        parts += [path("under", [*outline, "z"])] * (drawn is None)  # few values alone would be lines between nothing
        parts.append(path("mark", outline))
    if spike is not None:
        dense = (drawn or over).values[spike]  # type: ignore[union-attr]  # one of them is there
        share = dense * axis["bars"] * float(np.diff(cuts)[spike])  # of all rows that the bar stands for
        place = min(max((x[spike] + x[spike + 1]) / 2, LEFT + 16.0), WIDTH - 16.0)
        parts.append(words(place, TOP - 2, f"\N{UPWARDS ARROW} {percent(share)}", "middle", "label"))
    edges = [edge for edge in zip((LEFT, WIDTH), ("start", "end"), beyond, strict=True) if edge[2]]
    parts += [words(at, FLOOR + BENEATH * (2 + n), text, anchor) for n, (at, anchor, text) in enumerate(edges)]
    parts += [path("axis", (_broken(at) for at, _, _ in edges))] * bool(edges)
    figure = _figure(title, note, labels, series, HEIGHT + BENEATH * len(edges), [*parts, *_ticks(axis["ticks"])])
    return replace(figure, part=(LEFT, 0, WIDTH - LEFT, FLOOR + 2))


def _upright(x: Sequence[float], shares: Shares, y: Callable[[float], float]) -> list[Markup]:
    """Draw upright bars between places, and their whiskers."""
    boxes = zip(pairwise(x), shares.values, strict=True)
    drawn = (f"M{number(a)} {FLOOR}V{number(y(share))}H{number(b)}V{FLOOR}" for (a, b), share in boxes)
    reach = zip(pairwise(x), shares.reach, strict=False)
    lines = (_upright_whisker((a + b) / 2, ends, y) for (a, b), ends in reach)
    return [path("bar", drawn), path("whisker", lines)]


def _upright_whisker(x: float, reach: tuple[float, float], y: Callable[[float], float]) -> str:
    """Draw how far a bar may be off, with an arrow's head where the axis cuts it."""
    low, high = map(y, reach)
    is_cut = high < low and y(reach[1] * (1 - ROUNDED)) == high
    head = f"M{number(x - END)} {number(high + END)}L{number(x)} {number(high)}L{number(x + END)} {number(high + END)}"
    return f"M{number(x)} {number(low)}V{number(high)}" + head * is_cut


def _broken(x: float) -> str:
    """Draw two strokes across an axis near an end of it beyond which there is more."""
    begin = min(max(x, LEFT + 3.0), WIDTH - 9.0)
    return "".join(f"M{number(begin + at)} {FLOOR + 4}l4 -8" for at in (0, 4))


def _top_beneath_spike(first: Shares | None, second: Shares | None) -> tuple[float, int | None]:
    """Return what the axis ends at, and which bar is cut there: one that is many times as high as any other."""
    heights = np.max([each.values for each in (first, second) if each], axis=0)
    at, others = int(np.argmax(heights)), np.delete(heights, np.argmax(heights))
    if len(others) and heights[at] > SPIKE * others.max() > 0:
        return float(1.5 * others.max()), at
    return _top(first, second), None


def _cuts(axis: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return where bars begin and end: at the edges, but that no bar is narrower than one of ``bars`` equal parts.

    Shares that are narrower have a bar together, which takes its part of the share that follows where it has to.
    """
    if not 1 <= axis["bars"] <= MOST_BARS or len(axis["edges"]) > MOST_BARS:
        raise ValueError("no axis that nacre draws has so many bars, or so few")  # the facts may be anybody's
    narrowest, cuts = 1 / axis["bars"], [0.0]
    while 1 - cuts[-1] > 2 * narrowest - ROUNDED:
        edge = next((edge for edge in axis["edges"] if edge > cuts[-1] + ROUNDED), 1.0)
        cuts.append(min(max(edge, cuts[-1] + narrowest), 1.0))
        if ROUNDED < 1 - cuts[-1] < narrowest - ROUNDED:
            cuts[-1] = 1 - narrowest
    return np.array(cuts if cuts[-1] > 1 - ROUNDED else [*cuts, 1.0])


def _density(axis: Mapping[str, Any], cuts: NDArray[np.float64], shares: Shares) -> Shares:
    """Spread every share evenly from where it begins to where it ends, and return how dense the bars are."""
    edges = np.array(axis["edges"])
    inside = np.minimum(edges[1:], cuts[1:, None]) - np.maximum(edges[:-1], cuts[:-1, None])
    part = np.maximum(inside, 0) / np.maximum(np.diff(edges), 1e-12)
    scale = 1 / (axis["bars"] * np.diff(cuts))
    stddev = None if shares.stddev is None else (np.sqrt(part**2 @ np.square(shares.stddev)) * scale).tolist()
    return Shares(shares.name, (part @ np.array(shares.values) * scale).tolist(), stddev)


def _ticks(ticks: Sequence[tuple[float, str]]) -> list[Markup]:
    """Write what stands beneath an axis, but for what would run into what stands before it."""
    parts, places, free = [], [], 0.0
    for position, label in ticks:
        label, middle = cut(label, MOST_TICK), LEFT + position * (WIDTH - LEFT)
        wide = LETTER * len(label)
        left = min(max(middle - wide / 2, 0.0), WIDTH - wide)
        if left >= free:
            places.append(f"M{number(middle)} {FLOOR}v3")
            parts.append(words(left + wide / 2, FLOOR + 15, label, "middle"))
            free = left + wide + LETTER
    return [path("axis", places), *parts]


def curve(title: str, note: str, labels: Sequence[str], shares: Shares) -> Figure:
    """Draw shares between 0 and 1 along an ordered axis as one line with a dot at each."""
    step = (WIDTH - LEFT - 4) / max(1, len(labels) - 1)
    points = [(LEFT + index * step, FLOOR - (FLOOR - TOP) * share) for index, share in enumerate(shares.values)]
    parts = [_axis(1.0), path("mark", ("M" + "L".join(f"{number(x)} {number(y)}" for x, y in points),))]
    parts += [Markup('<circle class="dot" cx="{}" cy="{}" r="1.8"/>').format(number(x), number(y)) for x, y in points]
    ends = ((LEFT, "start", labels[0]), (WIDTH, "end", labels[-1]))
    parts += [words(x, FLOOR + 15, label, anchor) for x, anchor, label in ends[: len(labels)]]
    return _figure(title, note, labels, [shares], HEIGHT, parts)


def bars(
    title: str,
    note: str,
    labels: Sequence[str],
    shares: Shares | None,
    marks: Shares | None = None,
    scale: tuple[float, float] | None = None,
    pale: Collection[int] = (),
) -> Figure:
    """Draw one lying bar a category, its label and its percentages over it; marks are lines across the bars.

    Whose deviations are known has whiskers as well, with an arrow's head where the axis cuts them; marks have them in
    the place of lines. A ``scale`` is what a line over all bars stands at, and where the axis ends: else it ends at the
    largest share, or at all rows, which a track stands for; and each share is written with what its whisker reaches.
    Bars at the places of ``pale`` are set back: of all others together, or of what is hardly known.
    """
    series = [each for each in (shares, marks) if each]
    top, kinds = scale[1] if scale else _end_of_bars(shares, marks), ["second" * (each is marks) for each in series]
    places = [WIDTH - FIGURE * after for after in reversed(range(len(series)))]
    most = int((places[0] - _room(shares, bool(scale)) * FIGURE) / LETTER)

    def x(share: float) -> float:
        return min((WIDTH - ROOM) * max(share, 0) / top, WIDTH)

    columns = list(zip(places, series, kinds, strict=True))
    parts = [words(place, NAME, each.name, "end", sort) for place, each, sort in columns if series[1:]]
    begin, high = 18.0 * bool(parts), max(LINE, LEAST_HEIGHT / max(len(labels), 1))
    lines = [begin + high * index + NAME + 5 for index in range(len(labels))]
    parts += [box(0, line, x(1.0), THICK, "track") for line in lines if top == 1]
    parts.append(path("grid", (f"M{number(x(at))} {number(y)}v{THICK:g}" for y in lines for at in _rounds(top))))
    for index, (label, line) in enumerate(zip(labels, lines, strict=True)):
        parts.append(fitted(0, line - 5, label, most, "start", "label"))
        kind = "under" if not shares else "bar rest" if index in pale else "bar"
        parts += [box(0, line, x(each.values[index]), THICK, kind) for each in series[:1]]
        parts += [_whisker(line + THICK / 2, each.reach[index], x) for each in series if each.stddev]
        if marks and not marks.stddev:
            parts.append(path("mark", (f"M{number(x(marks.values[index]))} {number(line - 2)}v{number(THICK + 4)}",)))
        said = [(at, _said(each, index, top, bool(scale)), sort) for at, each, sort in columns]
        parts += [words(at, line - 5, one, "end", sort) for at, one, sort in said]
    if scale:
        parts.append(path("axis", (f"M{number(x(scale[0]))} {number(line - 2)}v{number(THICK + 4)}" for line in lines)))
    floor = begin + high * len(labels)
    parts += [_within(x(at), floor + NAME, text) for at, text in [(0.0, "0"), *_written(_rounds(top))]]
    figure = _figure(title, note, labels, series, floor + BENEATH, parts, _least_sure(labels, shares) if scale else "")
    return replace(figure, small=_small(shares, marks, x, pale), part=(0, 0, WIDTH, FLOOR))


def _said(shares: Shares, index: int, top: float, with_error: bool) -> str:
    """Write a share with as many decimals as all of an axis that ends at ``top``, behind an arrow if it is cut; and
    what its whisker reaches, where that is asked for and known: between what it lies where 0 or all rows cut that.
    """
    share, off = shares.values[index], DEVIATIONS * shares.stddev[index] if with_error and shares.stddev else 0.0
    decimals = 1 if top >= 0.1 else 2 if top >= 0.01 else 3
    within = f" \N{PLUS-MINUS SIGN} {max(100 * off, 10.0**-decimals):.{decimals}f}" if off else ""
    if off and _is_cut(ends := (share - off, share + off)):
        within = f" ({' to '.join(f'{100 * min(max(one, 0.0), 1.0):.{decimals}f}' for one in ends)})"
    written = f"{round(100 * share, decimals) + 0.0:.{decimals}f}{within}{PERCENT}"  # and no -0
    return "\N{RIGHTWARDS ARROW} " * (share > top * (1 + ROUNDED)) + written


def _room(shares: Shares | None, with_error: bool) -> float:
    """Return how much room a share has with what its whisker reaches: most where between what it lies is written."""
    if not with_error:
        return 1.0
    return 1.8 if shares and any(map(_is_cut, shares.reach)) else 1.3


def _is_cut(reach: tuple[float, float]) -> bool:
    """Tell whether an interval of a share goes beyond what shares are."""
    return reach[0] < 0 or reach[1] > 1


def _whisker(y: float, reach: tuple[float, float], x: Callable[[float], float]) -> Markup:
    """Draw how far a share may be off, with an end, or an arrow's head where the axis cuts it."""
    low, high = map(x, reach)
    left = f"M{END} {number(y - END)}L0 {number(y)}L{END} {number(y + END)}" if reach[0] < 0 else _end(low, y)
    head = f"M{WIDTH - END} {number(y - END)}L{WIDTH} {number(y)}L{WIDTH - END} {number(y + END)}"
    return path(
        "whisker", (f"M{number(low)} {number(y)}H{number(high)}", left, head if high >= WIDTH else _end(high, y))
    )


def _end(x: float, y: float) -> str:
    return f"M{number(x)} {number(y - END)}v{2 * END}"


def _small(shares: Shares | None, marks: Shares | None, x: Callable[[float], float], pale: Collection[int]) -> Markup:
    """Draw the bars again without words, as high as a histogram together."""
    high = FLOOR / max(len(one.values) for one in (shares, marks) if one)
    down, parts = f"v{number(0.75 * high)}", list[Markup]()
    if shares:
        ends = [f"M0 {number(high * n)}H{number(x(share))}{down}H0z" for n, share in enumerate(shares.values)]
        for kind, of_rest in (("bar", False), ("bar rest", True)):
            parts.append(path(kind, [end for n, end in enumerate(ends) if (n in pale) == of_rest]))
    if marks and not shares:
        parts.append(
            path("under", (f"M0 {number(high * n)}H{number(x(one))}{down}H0z" for n, one in enumerate(marks.values)))
        )
    if marks:
        parts.append(
            path("mark", (f"M{number(x(one))} {number(high * n)}{down}" for n, one in enumerate(marks.values)))
        )
    return Markup("").join(parts)


def _rounds(top: float) -> list[float]:
    """List the round shares above 0 and up to where an axis ends."""
    power = 10.0 ** math.floor(math.log10(top / ROUND))
    step = next(times * power for times in (1, 2, 5, 10) if top / (times * power) <= ROUND)
    return [float(f"{step * one:.6g}") for one in range(1, int(top / step * (1 + ROUNDED)) + 1)]


def round_end(top: float) -> float:
    """Return the first round share at which an axis may end that reaches to ``top``, with a tick; at most all rows."""
    end = top
    for _ in range(2):  # so far an axis may have fewer ticks, farther apart
        first = _rounds(end)[0]
        end = min(math.ceil(top / first * (1 - ROUNDED)) * first, 1.0)
    return end


def _written(shares: Sequence[float]) -> list[tuple[float, str]]:
    """Write the ticks of an axis of shares, the last one with its unit."""
    return [(share, percent(share)[: None if share == shares[-1] else -2]) for share in shares]


def _within(x: float, y: float, text: str) -> Markup:
    """Write a tick's words beneath it, or as near to it as the drawing reaches."""
    anchor = "start" if x < LETTER else "end" if x + LETTER * len(text) / 2 > WIDTH else "middle"
    return words(x, y, text, anchor)


def _top(first: Shares | None, second: Shares | None) -> float:
    """Return what the axis ends at: the largest share of either series, or its whisker if that is not twice as far."""
    series = [each for each in (first, second) if each]
    most = max((*(share for each in series for share in each.values), 1e-9))
    return max(most, min(2 * most, max((high for each in series for _, high in each.reach), default=0.0)))


def _end_of_bars(first: Shares | None, second: Shares | None) -> float:
    """Return what the axis of categories ends at: at all rows where one has more than half."""
    return 1.0 if (top := _top(first, second)) > HALF else top


def _axis(top: float) -> Markup:
    """Draw the floor of upright bars, and a light line with its share at each round one."""
    places = [(FLOOR - (FLOOR - TOP) * share / top, text) for share, text in _written(_rounds(top))]
    lines = path("grid", (f"M{LEFT} {number(y)}H{WIDTH}" for y, _ in places)) + path(
        "axis", (f"M{LEFT} {FLOOR}H{WIDTH}",)
    )
    texts = [words(LEFT - 5, y + 4, text, "end") for y, text in [(FLOOR - 2.0, "0"), *places]]
    return Markup("").join([lines, *texts])


def _least_sure(labels: Sequence[str], shares: Shares | None) -> str:
    """Say which share is known worst; empty where nobody knows how far off they are."""
    if not shares or not shares.stddev:
        return ""
    at, ends = max(enumerate(shares.reach), key=lambda one: one[1][1] - one[1][0])
    whisker = percent((ends[1] - ends[0]) / 2)
    return f"; the least sure: {shares.name} {percent(shares.values[at])} within {whisker} at {labels[at]}"


def _figure(
    title: str,
    note: str,
    labels: Sequence[str],
    series: Sequence[Shares],
    height: float,
    parts: Sequence[Markup],
    worst: str = "",
) -> Figure:
    header = ["value"]
    for one in series:
        header += [one.name] + ([TWO] if one.stddev else [])
    rows = []
    for index, label in enumerate(labels):
        row = [label]
        for one in series:
            row += [percent(one.values[index])] + ([percent(DEVIATIONS * one.stddev[index])] if one.stddev else [])
        rows.append(tuple(row))
    return Figure(title, note, svg(height, title, _describe(labels, series) + worst, parts), tuple(header), tuple(rows))


def _describe(labels: Sequence[str], series: Sequence[Shares]) -> str:
    """Say in one sentence what a plot shows."""
    largest = [max(range(len(labels)), key=lambda index: one.values[index]) for one in series]
    said = [f"{one.name} {percent(one.values[at])} at {labels[at]}" for one, at in zip(series, largest, strict=True)]
    return f"Shares of {len(labels)} values; the largest: {', '.join(said)}"
