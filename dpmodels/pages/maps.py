"""Maps and squares for the reports: places with names on them, and a value for every two columns."""

import math
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from dpmodels.pages.drawing import WIDTH, Figure, Label, cut, fitted, number, path, svg, titled, words

NAMED = 20
"""Columns of a square whose names fit beside it."""
WIDE = 36
"""The same of a square that is as wide as a page."""
ROOM = 11
"""Side of a cell from which on names of the usual size stand beneath one another."""
NUMBERED = 16
"""Columns of a square in whose cells a number fits."""
TEXT = 11
"""Characters of a name that fit beside a square."""
MOST_ROWS = 20
"""Places of a map that its table lists."""
BESIDE, GUTTER = 90.0, 10.0
"""Room for labels beside squares, and between two of these."""
GROUPS = 4
"""Rows of a square that stands beside another."""
MOST_ROWS_HIGH, LOW = 6, 20.0
"""Rows of it that are as high as those of a square, and how high more rows are."""
TWO_LINES, LINE, LETTER = 11, 12.0, 7.4
"""Letters of such a label in a line, the height of a line, and the width of a letter."""
SMALL_LETTER = 5.6
"""Width of a letter of the names on a diagonal, at most."""
ROUNDED = 1e-7
"""Part of a percentage that is no reason to round it up."""
SHADES = 8
"""Steps of a color between nothing and full."""


def scatter(
    title: str, note: str, points: Sequence[tuple[float, float, int]], middles: Sequence[tuple[float, float, str]]
) -> Figure:
    """Draw a map of circles whose areas are counts, with names on it. Units: places from -1 to 1."""

    def at(x: float, y: float) -> tuple[float, float]:
        return WIDTH / 2 * (1 + 0.95 * x), WIDTH / 2 * (1 - 0.95 * y)

    top = max((count for _, _, count in points), default=1)
    circle = Markup('<circle class="point" cx="{}" cy="{}" r="{}"/>')
    parts = [circle.format(*map(number, (*at(x, y), 1 + 6 * math.sqrt(count / top)))) for x, y, count in points]
    parts += [words(*at(x, y), name, "middle", "label") for x, y, name in middles]
    description = f"{len(points)} places on a map; the largest stands for {top}"
    rows = tuple((f"{x:g}, {y:g}", str(count)) for x, y, count in points[:MOST_ROWS])
    return Figure(title, note, svg(WIDTH, title, description, parts), ("place", "count"), rows)


def heat(title: str, note: str, names: Sequence[str], values: Sequence[Sequence[float]], full: float) -> Figure:
    """Draw a square of values between two columns each, darker the larger; below 0 in the second color."""
    rows = tuple(
        (f"{index + 1} {name}", *(f"{value:.2f}" for value in line))
        for index, (name, line) in enumerate(zip(names, values, strict=True))
    )
    cells = [(row, column, value) for row, line in enumerate(values) for column, value in enumerate(line)]
    drawn = square(title, f"Of {len(names)} columns: {note}", names, cells, full)
    return Figure(title, note, drawn, ("", *(str(index + 1) for index in range(len(names)))), rows)


def square(
    title: str, description: str, names: Sequence[str], cells: Iterable[tuple[int, int, float]], full: float
) -> Markup:
    """Draw values by row and column, darker the larger up to ``full``; below 0 in the second color."""
    left, top = (92, 16) if len(names) <= NAMED else (0, 0)
    side = (WIDTH - left) / len(names)
    shades = dict[int, list[str]]()
    for row, column, value in cells:
        shade = round(min(abs(value) / full, 1.0) * SHADES) * (-1 if value < 0 else 1)
        shades.setdefault(shade, []).append(_cell(left + column * side, top + row * side, side, side))
    parts = _shaded(shades)
    small, most = ("", TEXT) if side >= ROOM else ("tiny", 2 * TEXT)
    for index, name in enumerate(names if left else ()):
        middle, named = (index + 0.5) * side, f"{index + 1} {cut(name, most)}"
        written = words(left - 4, top + middle + side / 6, named, "end", small or "label")
        parts.append(titled(name, written) if len(name) > most else written)
        if not small or index % 5 == 4:
            parts.append(words(left + middle, top - 4, str(index + 1), "middle", small))
    parts.append(_frame(left, top, WIDTH - left, WIDTH - left))
    return svg(top + WIDTH - left, title, description, parts)


def stairs(
    title: str,
    description: str,
    names: Sequence[str],
    cells: Iterable[tuple[int, int, float]],
    full: float,
    scale: tuple[str, str, str],
) -> Markup:
    """Draw a share for every two columns below the names of both, which stand on the diagonal; darker the larger.

    A name is at the end of its row and on top of its column. Cells have a row that is beneath their column; ``scale``
    says what no color, half color and full color stand for: shades grow as the root of a share, so that small ones are
    told apart. Shares are written where they fit, in percent.
    """
    _, top, width, _ = steps(len(names))
    side, shades, parts = width / max(1, len(names) - 1), dict[int, list[str]](), list[Markup]()
    for row, column, value in cells:
        x, y = column * side, top + (row - 1) * side
        shades.setdefault(math.ceil(math.sqrt(min(max(value, 0.0) / full, 1.0)) * SHADES - ROUNDED), []).append(
            _cell(x, y, side, side)
        )
        if len(names) <= NUMBERED:
            percentage = str(math.ceil(100 * value - ROUNDED))
            parts.append(words(x + side / 2, y + side / 2 + 3, percentage, "middle", "cell"))
    parts = _shaded(shades) + parts
    small, most = ("cell", TEXT + 6) if side >= ROOM else ("tiny", 2 * TEXT)
    for index, name in enumerate(names if len(names) <= WIDE else ()):
        left = index * side + 3
        room = max(most, int((WIDTH - left) / SMALL_LETTER)) if side >= ROOM else most
        written = words(left, top + (index - 0.4) * side, cut(name, room), "start", small)
        parts.append(titled(name, written) if len(name) > room else written)
    bottom = top + side * (len(names) - 1)
    parts += [path(_kind(shade), (_cell(8 + 12 * shade, bottom + 8, 12, 12),)) for shade in range(1, SHADES + 1)]
    for x, y, anchor, text in ((14, 18, "end", scale[0]), (68, 34, "middle", scale[1]), (122, 18, "start", scale[2])):
        parts.append(words(x, bottom + y, text, anchor, small))
    return svg(bottom + 40, title, description, parts)


def steps(number: int) -> tuple[float, float, float, float]:
    """Return which part of a drawing of stairs has the values of so many columns: left, top, width and height."""
    side = (WIDTH - BESIDE) / number
    return 0.0, LINE + 0.4 * side, side * (number - 1), side * (number - 1)


def _shaded(shades: Mapping[int, Sequence[str]]) -> list[Markup]:
    """Draw cells by their shades; those of none are left out."""
    return [path(_kind(shade), corners) for shade, corners in sorted(shades.items()) if shade]


def beside(
    title: str,
    description: str,
    names: tuple[str, str],
    labels: tuple[Sequence[str], Sequence[str]],
    tables: Mapping[str, Sequence[Sequence[float]]],
) -> Markup:
    """Draw the shares of two columns in groups as squares beside each other, in one scale, with percentages in them.

    Shapes: each of ``tables``, by what is written above it, [groups of the first column, groups of the second].
    """
    if len(labels[1]) > max(MOST_ROWS_HIGH, len(labels[0])):  # many groups have room beneath one another
        names, labels = names[::-1], labels[::-1]
        tables = {name: [list(line) for line in zip(*table, strict=True)] for name, table in tables.items()}
    width = (WIDTH - BESIDE - GUTTER * (len(tables) - 1)) / len(tables)
    rows, columns = len(labels[0]), len(labels[1])
    high, wide, top = width / GROUPS if rows <= MOST_ROWS_HIGH else LOW, width / columns, 18.0
    bottom = top + high * rows
    beneath = [Label.of(label, *((TWO_LINES, 2) if wide >= 2 * LINE else (NAMED, 1))) for label in labels[1]]
    number_size = "label" if wide >= 2 * LETTER + 2 else "cell"
    is_level = all(LETTER * label.letters <= wide for label in beneath)
    full = max((share for table in tables.values() for line in table for share in line), default=0) or 1.0
    shades, parts = dict[int, list[str]](), [fitted(0, 12, names[0], TWO_LINES, "start", lines=2)]
    for row, label in enumerate(labels[0]):
        in_room = Label.of(label, TWO_LINES, 2 if high >= 2 * LINE else 1)
        parts += _lines(BESIDE - 5, top + high * (row + 0.5) + 4, in_room, upright=False)
    for index, (name, table) in enumerate(tables.items()):
        left = BESIDE + index * (width + GUTTER)
        parts.append(words(left + width / 2, 12, name, "middle", "label"))
        parts += [_frame(left, top, width, bottom - top)]
        for column, written in enumerate(beneath):
            parts += _beneath(left + wide * (column + 0.5), bottom, written, is_level)
        for row, line in enumerate(table):
            for column, share in enumerate(line):
                x, y = left + column * wide, top + row * high
                shade = round(min(abs(share) / full, 1.0) * SHADES) * (-1 if share < 0 else 1)
                shades.setdefault(shade, []).append(_cell(x, y, wide, high))
                parts.append(words(x + wide / 2, y + high / 2 + 4, str(round(100 * share)), "middle", number_size))
    deep = [len(label.lines) * LINE if is_level else LETTER * label.letters for label in beneath]
    end = bottom + 10 + max(deep, default=0)
    parts.append(fitted((BESIDE + WIDTH) / 2, end + 12, names[1], NAMED, "middle", lines=2))
    return svg(end + 20, title, description, _shaded(shades) + parts)


def _beneath(x: float, bottom: float, label: Label, is_level: bool) -> list[Markup]:
    """Write a label beneath a column, upright where it has no room."""
    if not is_level:
        return _lines(x + 4, bottom + 5, label, upright=True)
    return [words(x, bottom + LINE * (n + 1), line, "middle", label.kind) for n, line in enumerate(label.lines)]


def _lines(x: float, y: float, label: Label, upright: bool) -> list[Markup]:
    """Write a label that ends at a place on its lines."""
    shifts = [LINE * (index - (len(label.lines) - 1) / 2) for index in range(len(label.lines))]
    return [
        words(x + shift * upright, y + shift * (not upright), line, "end", label.kind, upright)
        for shift, line in zip(shifts, label.lines, strict=True)
    ]


def _frame(x: float, y: float, width: float, height: float) -> Markup:
    frame = Markup('<rect class="frame" x="{}" y="{}" width="{}" height="{}"/>')
    return frame.format(*map(number, (x, y, width, height)))


def _cell(x: float, y: float, width: float, height: float) -> str:
    return f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h-{number(width)}z"


def _kind(shade: int) -> str:
    return f"heat s{abs(shade)}" + (" less" if shade < 0 else "")
