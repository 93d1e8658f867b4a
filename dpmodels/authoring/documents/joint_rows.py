"""Rows of a code book that describe several columns at once, as `maths, english, science` and `q1 to q5` do."""

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches

from dpmodels.authoring.documents.intervals import TO

MARK = re.compile(r"\s*[,;/|&+\n]\s*|\s+(?:and|und|et|y|e)\s+", re.IGNORECASE)
SPAN = re.compile(
    rf"(?P<stem>.*?\D)(?P<first>\d{{1,4}})\s*(?:-|–|—|\.\.+|…|\s(?:{TO})\s)\s*(?P<other>.*?)(?P<last>\d{{1,4}})",
    re.IGNORECASE,
)
"""Columns that a number tells apart, by the first and the last of them."""
MOST = 200
"""Columns that a span may be of."""


def columns_of(name: str, names: Collection[str]) -> list[str]:
    """Return the columns that a row is about: its name, unless the data has none so called, but most that it lists.

    ``names`` are those of the data; where these are not known, a row is about the column that it names.
    """
    columns = {one.casefold() for one in names}
    if not columns or name.casefold() in columns:
        return [name]
    parts = [part.strip("`*\"' ") for part in MARK.split(name)]
    several = [one for part in parts if part for one in _spanned(part, columns)]
    known = [one for one in several if one.casefold() in columns]
    is_joint = len(several) > 1 and 2 * len(known) > len(several) - 1 and known
    return list(dict.fromkeys(several)) if is_joint else [name]


def _spanned(part: str, columns: Collection[str]) -> list[str]:
    """Return the columns of the data from a first to a last number; what is no span of these stays as it is."""
    span = SPAN.fullmatch(part)
    if part.casefold() in columns or span is None or span["other"].casefold() not in ("", span["stem"].casefold()):
        return [part]
    first, last = int(span["first"]), int(span["last"])
    numbers = [f"{span['stem']}{number:0{len(span['first'])}d}" for number in range(first, min(last, first + MOST) + 1)]
    return [one for one in numbers if one.casefold() in columns] or [part]


def is_like(name: str, names: Collection[str]) -> bool:
    """Tell whether a name is nearly one of the data's, by all of its letters."""
    return bool(get_close_matches(name.casefold(), [one.casefold() for one in names], n=1))


def place_of_names(rows: Sequence[Sequence[str]], names: Collection[str]) -> int | None:
    """Return which cell of each row names columns of the data, by most of the rows; None where none does."""
    columns = {one.casefold() for one in names}
    for place in range(max(map(len, rows), default=0)):
        cells = [row[place].strip() for row in rows if len(row) > place and row[place].strip()]
        named = sum(any(one.casefold() in columns for one in columns_of(cell, names)) for cell in cells)
        if columns and named and 2 * named >= len(cells):
            return place
    return None
