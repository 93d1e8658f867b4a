"""The rows of a data dictionary as cells by what their headings mean, none of which is lost in silence."""

import re
from collections.abc import Collection, Iterator, Sequence
from textwrap import shorten

from dpmodels.authoring.headings import IGNORED, SECOND, folded

LONGEST_CELL = 100
"""Letters of a cell that a comment has."""
UNREAD = "unread"
"""Means what stands beneath headings that are not read."""
OF_CELLS = ";\n"
"""Parts the words of several cells, each of which may be a list by itself."""
BARS = ("values",)
"""What further rows of a column go on with behind a bar, and not behind a semicolon."""


def cells_of(headings: Sequence[str], meanings: Sequence[str], row: Sequence[str], number: int = 0) -> dict[str, str]:
    """Return the cells of a row by what their headings mean: of several headings of one meaning, the first filled.

    Words beneath other headings are joined to the description, which is read with care and stands in the comment; what
    else is not read is kept for it. ``number`` is that of the row, which some count in a cell.
    """
    cells, words, unread = dict[str, str](), list[str](), list[str]()
    for heading, meaning, cell in zip(headings, meanings, row, strict=False):
        text = cell.strip()
        is_used = folded(heading) in IGNORED or text in ("", str(number), cells.get(meaning, "").strip())
        if meaning and not cells.get(meaning, "").strip():
            cells[meaning] = cell
        elif is_used or text in cells.get("description", "").split("; "):
            continue
        elif meaning == "description":
            cells[meaning] += f"; {text}"
        elif meaning or folded(heading) in SECOND or re.fullmatch(r"[\d.,\s]+", text):
            unread.append(f"{heading.strip()} {shorten(text, LONGEST_CELL, placeholder='…')}".strip())
        else:
            words.append(text)
    if words:
        cells["description"] = OF_CELLS.join(
            filter(None, (cells.get("description", "").strip(), *dict.fromkeys(words)))
        )
    return {**cells, UNREAD: "\n".join(unread)} if unread else cells


def joined_rows(rows: Collection[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Yield the rows of columns, of which one may go on in further rows that name none, as a list of values does."""
    above: dict[str, str] | None = None
    for row in rows:
        if row.get("name", "").strip() or above is None:
            if above is not None:
                yield above
            above = dict(row)
            continue
        for meaning, cell in row.items():
            first = above.get(meaning, "").strip()
            if words := cell.strip():
                mark = " | " if meaning in BARS else "\n" if meaning == UNREAD else "; "
                above[meaning] = first if words == first else mark.join(filter(None, (first, words)))
    if above is not None:
        yield above
