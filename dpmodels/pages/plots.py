"""Small plots for the reports, as inline SVG: title and description inside, their numbers beneath as a table.

Colors come from the page's style sheet, so that a plot follows light, dark and print. A drawing is as wide as a card
(320 units), so that its text stays readable on a phone.
"""

import base64
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dpmodels.escapes import escaped
from dpmodels.pages.page import percent

WIDTH, HEIGHT = 320, 150
LEFT, TOP, FLOOR = 46, 10, 130
LINE = 20
TEXT = 17
"""Characters of a label that fit beside a bar."""
NAMED = 20
"""Columns of a square whose names fit beside it."""
MOST_ROWS = 20
"""Places of a map that its table lists."""
MOST_BARS = 100
"""Bars of an axis, and values that begin or end one."""
LETTER = 7.0
"""Width of a letter beneath an axis, at most."""
MOST_TICK = 21
"""Letters of a label beneath an axis."""
GAP = 2
"""Pixels between the images of a sheet."""


@dataclass(frozen=True)
class Shares:
    """One series of shares, and how far each may be off (one standard deviation), if that is known."""

    name: str
    values: Sequence[float]
    stddev: Sequence[float] | None = None


@dataclass(frozen=True)
class Figure:
    """A drawing, and the table of its numbers."""

    title: str
    note: str
    svg: Markup
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def histogram(
    title: str,
    note: str,
    labels: Sequence[str],
    bars: Shares,
    marks: Shares | None = None,
    axis: Mapping[str, Any] | None = None,
) -> Figure:
    """Draw upright bars over an ordered axis; ``marks`` are a second series, as whiskers of two deviations or as steps.

    A series whose deviations nobody knows is drawn as steps. With an axis the drawing is a density: its ``edges`` say
    where each share begins and ends, from 0 to 1, and ``bars`` of equal width get the parts that lie in them; ``ticks``
    are what is written beneath, and where.
    """
    first, second = bars, marks
    ends = [(0.0, labels[0].split(" to ")[0]), (1.0, labels[-1].split(" to ")[-1])][: len(labels)]
    if axis:
        bars, marks = _evened(axis, bars), _evened(axis, marks) if marks else None
    top = _top(bars, marks)
    step = (WIDTH - LEFT) / len(bars.values)

    def y(share: float) -> float:
        return FLOOR - (FLOOR - TOP) * min(max(share, 0), top) / top

    parts = [_axis(top)]
    gap = 0.06 if step > 8 else 0.0
    for index, share in enumerate(bars.values):
        parts.append(_rect(LEFT + (index + gap) * step, y(share), step * (1 - 2 * gap), FLOOR - y(share)))
    if marks is not None and marks.stddev is None:
        parts.append(_steps([(LEFT + index * step, y(share)) for index, share in enumerate(marks.values)], step))
    elif marks is not None:
        for index, (share, deviation) in enumerate(zip(marks.values, marks.stddev or (), strict=True)):
            x = LEFT + (index + 0.5) * step
            parts.append(_whisker(x, y(share - 2 * deviation), x, y(share + 2 * deviation), x, y(share)))
    parts += _ticks(axis["ticks"] if axis else ends)
    return _figure(title, note, labels, first, second, HEIGHT, parts)


def _evened(axis: Mapping[str, Any], shares: Shares) -> Shares:
    """Spread every share evenly from where it begins to where it ends, and cut that into bars of equal width."""
    if max(axis["bars"], len(axis["edges"])) > MOST_BARS:
        raise ValueError("no axis that nacre draws has so many bars")  # the facts may be anybody's
    edges, cuts = np.array(axis["edges"]), np.linspace(0, 1, axis["bars"] + 1)
    inside = np.minimum(edges[1:], cuts[1:, None]) - np.maximum(edges[:-1], cuts[:-1, None])
    part = np.maximum(inside, 0) / np.maximum(np.diff(edges), 1e-12)
    stddev = None if shares.stddev is None else np.sqrt(part**2 @ np.square(shares.stddev)).tolist()
    return Shares(shares.name, (part @ np.array(shares.values)).tolist(), stddev)


def _ticks(ticks: Sequence[tuple[float, str]]) -> list[Markup]:
    """Write what stands beneath an axis, but for what would run into what stands before it."""
    parts, free = [], 0.0
    for position, label in ticks:
        label, middle = _cut(label, MOST_TICK), LEFT + position * (WIDTH - LEFT)
        wide = LETTER * len(label)
        left = min(max(middle - wide / 2, 0.0), WIDTH - wide)
        if left >= free:
            parts.append(
                Markup('<line class="axis" x1="{0}" y1="{1}" x2="{0}" y2="{2}"/>').format(_n(middle), FLOOR, FLOOR + 3)
            )
            parts.append(_text(left + wide / 2, FLOOR + 15, label, "middle"))
            free = left + wide + LETTER
    return parts


def curve(title: str, note: str, labels: Sequence[str], shares: Shares) -> Figure:
    """Draw shares between 0 and 1 along an ordered axis as one line with a dot at each."""
    step = (WIDTH - LEFT - 4) / max(1, len(labels) - 1)
    points = [(LEFT + index * step, FLOOR - (FLOOR - TOP) * share) for index, share in enumerate(shares.values)]
    path = "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
    parts = [_axis(1.0), Markup('<path class="mark" fill="none" d="{}"/>').format(path)]
    parts += [Markup('<circle class="dot" cx="{}" cy="{}" r="1.8"/>').format(_n(x), _n(y)) for x, y in points]
    ends = ((LEFT, "start", labels[0]), (WIDTH, "end", labels[-1]))
    parts += [_text(x, FLOOR + 15, label, anchor) for x, anchor, label in ends[: len(labels)]]
    return _figure(title, note, labels, shares, None, HEIGHT, parts)


def bars(title: str, note: str, labels: Sequence[str], shares: Shares, marks: Shares | None = None) -> Figure:
    """Draw one lying bar a category, its label and its percentage in the same line; ``marks`` as in ``histogram``.

    Marks whose deviations nobody knows are drawn as lines across their bars.
    """
    top = _top(shares, marks)
    begin, end = 122.0, 262.0

    def x(share: float) -> float:
        return begin + (end - begin) * min(max(share, 0), top) / top

    parts = []
    deviations = marks.stddev if marks else None
    for index, (label, share) in enumerate(zip(labels, shares.values, strict=True)):
        line = 4 + index * LINE
        parts.append(_text(0, line + 12, _cut(label, TEXT), "start", "label"))
        parts.append(_rect(begin, line + 2, end - begin, LINE - 7, "track"))
        parts.append(_rect(begin, line + 2, x(share) - begin, LINE - 7))
        if marks is not None and deviations is None:
            position = _n(x(marks.values[index]))
            parts.append(Markup('<path class="mark" d="M{} {}V{}"/>').format(position, line, line + LINE - 3))
        elif marks is not None and deviations is not None:
            value, middle = marks.values[index], line + 2 + (LINE - 7) / 2
            low, high = value - 2 * deviations[index], value + 2 * deviations[index]
            parts.append(_whisker(x(low), middle, x(high), middle, x(value), middle))
        parts.append(_text(WIDTH, line + 12, percent(share), "end"))
    return _figure(title, note, labels, shares, marks, 8 + len(labels) * LINE, parts)


def scatter(
    title: str, note: str, points: Sequence[tuple[float, float, int]], middles: Sequence[tuple[float, float, str]]
) -> Figure:
    """Draw a map of circles whose areas are counts, with names on it. Units: places from -1 to 1."""

    def at(x: float, y: float) -> tuple[float, float]:
        return WIDTH / 2 * (1 + 0.95 * x), WIDTH / 2 * (1 - 0.95 * y)

    top = max((count for _, _, count in points), default=1)
    circle = Markup('<circle class="point" cx="{}" cy="{}" r="{}"/>')
    parts = [circle.format(*map(_n, (*at(x, y), 1 + 6 * math.sqrt(count / top)))) for x, y, count in points]
    parts += [_text(*at(x, y), name, "middle", "label") for x, y, name in middles]
    description = f"{title}: {len(points)} places on a map; the largest stands for {top}"
    svg = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, WIDTH, description, Markup("").join(parts)
    )
    rows = tuple((f"{x:g}, {y:g}", str(count)) for x, y, count in points[:MOST_ROWS])
    return Figure(title, note, svg, ("place", "count"), rows)


def heat(title: str, note: str, names: Sequence[str], values: Sequence[Sequence[float]], full: float) -> Figure:
    """Draw a square of values between two columns each, darker the larger; below 0 in the second color."""
    left, top, labelled = (92, 16, True) if len(names) <= NAMED else (0, 0, False)
    side = (WIDTH - left) / len(names)
    parts, box = [], Markup('<rect class="heat{}" x="{}" y="{}" width="{}" height="{}" fill-opacity="{:.2g}"/>')
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if depth := min(1.0, round(abs(value) / full, 2)):
                x, y = left + column * side, top + row * side
                parts.append(box.format(" less" if value < 0 else "", _n(x), _n(y), _n(side), _n(side), depth))
    for index, name in enumerate(names if labelled else ()):
        middle = (index + 0.5) * side
        parts.append(_text(left - 4, top + middle + 4, f"{index + 1} {_cut(name, TEXT - 6)}", "end", "label"))
        parts.append(_text(left + middle, top - 4, str(index + 1), "middle"))
    parts.append(_frame(left, top, WIDTH - left))
    svg = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, _n(top + WIDTH - left), f"{title}, of {len(names)} columns: {note}", Markup("").join(parts)
    )
    header = ("", *(str(index + 1) for index in range(len(names))))
    rows = tuple(
        (f"{index + 1} {name}", *(f"{value:.2f}" for value in line))
        for index, (name, line) in enumerate(zip(names, values, strict=True))
    )
    return Figure(title, note, svg, header, rows)


def standalone(figure: Figure) -> str:
    """Return a drawing as a picture of its own, in a data URI: with its colors inside, on white, whatever is around."""
    style = "text{font:11px sans-serif;fill:#444}.label{fill:#111}.bar,.heat,.point{fill:#4a929d}.track{fill:#f3f1ec}"
    style += ".axis{stroke:#bbb}.mark{stroke:#b4552d;stroke-width:1.4;fill:none}.dot{fill:#b4552d}"
    begin, end = str(figure.svg).split(">", 1)
    begin = begin.replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" ')
    whole = f'{begin}><style>{style}</style><rect width="100%" height="100%" fill="#fff"/>{end}'
    return "data:image/svg+xml;base64," + base64.b64encode(escaped(whole).encode()).decode()


def meter(value: float, top: float) -> Markup:
    """Draw one bar for a table's cell; the number stands in the cell beside it, so screen readers skip the bar."""
    width = 100 * min(max(value / top, 0), 1) if top > 0 else 0
    return Markup(
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="8"/><rect class="bar" width="{}" height="8"/></svg>'
    ).format(_n(width))


def sheet(lines: Sequence[Iterable[NDArray[np.uint8]]], columns: int, shape: tuple[int, ...]) -> str:
    """Lay lines of at most ``columns`` images out as a PNG in a data URI.

    Shapes: every image has the numbers of ``shape``: height, width, and 3 if in color.
    """
    from PIL import Image

    height, width = shape[:2]
    size = len(lines) * (height + GAP) - GAP, columns * (width + GAP) - GAP
    canvas = np.full((*size, *shape[2:]), 255, dtype=np.uint8)
    for row, line in enumerate(lines):
        for column, pixels in enumerate(line):
            top, left = row * (height + GAP), column * (width + GAP)
            canvas[top : top + height, left : left + width] = pixels.reshape(shape)
    file = io.BytesIO()
    Image.fromarray(canvas).save(file, format="PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _top(first: Shares, second: Shares | None) -> float:
    """Return what the axis ends at: the largest share of either series, never 0."""
    return max(*first.values, *(second.values if second else ()), 1e-9)


def _cut(label: str, most: int) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


def _frame(x: float, y: float, side: float) -> Markup:
    return Markup('<rect class="frame" x="{}" y="{}" width="{}" height="{}"/>').format(*map(_n, (x, y, side, side)))


def _axis(top: float) -> Markup:
    line = Markup('<line class="axis" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(LEFT, FLOOR, WIDTH, FLOOR)
    return line + _text(LEFT - 5, TOP + 8, percent(top), "end") + _text(LEFT - 5, FLOOR, "0", "end")


def _rect(x: float, y: float, width: float, height: float, kind: str = "bar") -> Markup:
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        kind, _n(x), _n(y), _n(width), _n(height)
    )


def _whisker(x1: float, y1: float, x2: float, y2: float, x: float, y: float) -> Markup:
    line = Markup('<path class="mark" d="M{} {}L{} {}"/>').format(_n(x1), _n(y1), _n(x2), _n(y2))
    return line + Markup('<circle class="dot" cx="{}" cy="{}" r="1.8"/>').format(_n(x), _n(y))


def _steps(corners: Sequence[tuple[float, float]], width: float) -> Markup:
    """Draw the outline of upright bars, given the upper left corner of each."""
    path = f"M{_n(corners[0][0])} {FLOOR}" + "".join(f"V{_n(y)}H{_n(x + width)}" for x, y in corners) + f"V{FLOOR}"
    return Markup('<path class="mark" d="{}"/>').format(path)


def _text(x: float, y: float, words: str, anchor: str, kind: str = "") -> Markup:
    css_class = Markup(' class="{}"').format(kind) if kind else ""
    return Markup('<text x="{}" y="{}" text-anchor="{}"{}>{}</text>').format(_n(x), _n(y), anchor, css_class, words)


def _n(number: float) -> str:
    """Write a coordinate with one decimal at most."""
    return f"{number:.1f}".removesuffix(".0")


def _figure(
    title: str,
    note: str,
    labels: Sequence[str],
    first: Shares,
    second: Shares | None,
    height: float,
    parts: Sequence[Markup],
) -> Figure:
    series = [first, second] if second else [first]
    header = ["value"]
    for one in series:
        header += [one.name] + (["± 1 standard deviation"] if one.stddev else [])
    rows = []
    for index, label in enumerate(labels):
        row = [label]
        for one in series:
            row += [percent(one.values[index])] + ([percent(one.stddev[index])] if one.stddev else [])
        rows.append(tuple(row))
    svg = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, _n(height), _describe(title, labels, first), Markup("").join(parts)
    )
    return Figure(title, note, svg, tuple(header), tuple(rows))


def _describe(title: str, labels: Sequence[str], first: Shares) -> str:
    """Say in one sentence what a plot shows."""
    most = max(range(len(labels)), key=lambda index: first.values[index])
    return (
        f"{title}: {first.name} of {len(labels)} values; the largest is {percent(first.values[most])} at {labels[most]}"
    )
