"""What the drawings of the reports share: inline SVG with a title and a description inside, and a table beneath.

Colors come from the page's style sheet, so that a drawing follows light, dark and print. It is as wide as a card (320
units), so that its text stays readable on a phone.
"""

import base64
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dpmodels.escapes import escaped

WIDTH = 320
GAP = 2
HYPHEN = re.compile(r"(?<=[^\W\d_])[-/](?=[^\W\d_])")
"""A hyphen or a slash between letters, behind which a label may be broken; that of a number or a day is none."""
SMALL_LINE = 9.0
"""Height of a line of small letters."""
"""Pixels between the images of a sheet."""


@dataclass(frozen=True)
class Figure:
    """A drawing, and the table of its numbers; ``foot`` stands beneath it, ``more`` beneath the table, ``above`` above.

    ``grade``: whether it is good, to be used with care, or of no use (figures/grades.py); empty where nobody judged it.
    A small picture of it shows a ``part`` of the drawing, or ``small``, and says ``brief`` beneath.
    """

    title: str
    note: str
    svg: Markup
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    foot: str = ""
    small: Markup = field(default_factory=Markup)
    part: tuple[float, ...] = ()
    brief: str = ""
    more: str = ""
    above: str = ""
    grade: str = ""


def svg(height: float, title: str, description: str, parts: Sequence[Markup]) -> Markup:
    """Put the parts of a drawing together; whoever does not see it hears its title and its description."""
    head = Markup('<svg viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>{}</svg>')
    return head.format(WIDTH, number(height), title, description, Markup("").join(parts))


def standalone(figure: Figure) -> str:
    """Return a drawing as a picture of its own, in a data URI: with its colors inside, on white, whatever is around."""
    style = "text{font:11px sans-serif;fill:#444}.narrow{font-size:8px}"
    style += ".label{fill:#111}.bar{fill:#8ac0c8}.rest{fill-opacity:.5}"
    style += ".heat,.point{fill:#4a929d}.track{fill:#f3f1ec}.grid{stroke:#e2ded6}.axis{stroke:#bbb}"
    style += ".mark{stroke:#a8481f;stroke-width:2}.dot,.second{fill:#a8481f}.whisker{stroke:#111}"
    style += ".under{fill:#a8481f;fill-opacity:.2}.mark,.whisker,.axis,.grid{fill:none}"
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
    ).format(number(width))


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


def box(x: float, y: float, width: float, height: float, kind: str = "bar") -> Markup:
    """Draw a rectangle."""
    rect = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>')
    return rect.format(kind, *map(number, (x, y, width, height)))


def path(kind: str, pieces: Iterable[str]) -> Markup:
    """Draw lines, or whatever else a path is made of, as one element."""
    return Markup('<path class="{}" d="{}"/>').format(kind, "".join(pieces))


def words(x: float, y: float, text: str, anchor: str, kind: str = "", upright: bool = False) -> Markup:
    """Write text at a place, or from there upwards."""
    more = Markup(' class="{}"').format(kind) if kind else Markup("")
    if upright:
        more += Markup(' transform="rotate(-90 {} {})"').format(number(x), number(y))
    return Markup('<text x="{}" y="{}" text-anchor="{}"{}>{}</text>').format(number(x), number(y), anchor, more, text)


def fitted(x: float, y: float, text: str, most: int, anchor: str, kind: str = "", lines: int = 1) -> Markup:
    """Write a name for which there is room of ``most`` letters: a longer one small, then on several lines, then cut.

    What is cut has its whole name as a title.
    """
    if len(text) <= most:
        return words(x, y, text, anchor, kind)
    narrow = in_small(most)
    shown = two_lines(text, narrow) if lines > 1 else [cut(text, narrow)]
    parts = [
        words(x, y + (n - (len(shown) - 1) / 2) * SMALL_LINE, line, anchor, f"{kind} narrow".strip())
        for n, line in enumerate(shown)
    ]
    is_cut = any(line.endswith("…") for line in shown)
    return titled(text, Markup("").join(parts)) if is_cut else Markup("").join(parts)


def titled(name: str, written: Markup) -> Markup:
    """Give what is written in short the whole name as a title."""
    return Markup("<g><title>{}</title>{}</g>").format(name, written)


def in_small(most: int) -> int:
    """Return for how many small letters there is room where there is for so many others: these are wider by a third."""
    return most * 4 // 3


def two_lines(text: str, most: int) -> list[str]:
    """Break a label that is longer than ``most`` letters in two: behind the last separator that is early enough, or
    else behind the first one. No word is broken: one that is too long is cut.
    """
    if len(text) <= most:
        return [text]
    marks, hyphens = (" to ", " or ", ", ", "\N{EN DASH}", " ", "_"), [one.end() for one in HYPHEN.finditer(text)]
    ends = {mark: most + mark.endswith(" ") for mark in marks}  # a space at the end of a line needs no room
    early = [text.rfind(mark, 0, end) + len(mark.rstrip()) for mark, end in ends.items() if mark in text[:end]]
    early += [end for end in hyphens if end <= most][-1:]
    late = [text.find(mark) + len(mark.rstrip()) for mark in marks if mark in text] + hyphens[:1]
    begin = early[0] if early else min(late, default=len(text))
    return [cut(line, most) for line in (text[:begin], text[begin:].strip()) if line]


@dataclass(frozen=True)
class Label:
    """A label on two lines at most, in letters of the usual size or, where a line were cut else, in small ones."""

    lines: list[str]
    is_small: bool

    @classmethod
    def of(cls, text: str, most: int, lines: int = 2) -> "Label":
        """Break a label for which there is room of so many letters on each of so many lines."""
        broken = [two_lines(text, size) if lines > 1 else [cut(text, size)] for size in (most, in_small(most))]
        is_small = any(line.endswith("…") for line in broken[0]) and not text.endswith("…")
        return cls(broken[is_small], is_small)

    @property
    def kind(self) -> str:
        """How it is drawn."""
        return "label narrow" if self.is_small else "label"

    @property
    def letters(self) -> float:
        """The letters of the longest line, as many as of the usual size are as wide."""
        return max(map(len, self.lines), default=0) * (0.75 if self.is_small else 1.0)


def cut(label: str, most: int) -> str:
    """Shorten a label to so many letters."""
    return label if len(label) <= most else label[: most - 1] + "…"


def number(value: float) -> str:
    """Write a coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")
