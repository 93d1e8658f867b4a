"""The rows of a data dictionary as cells by what their headings mean, none of which is lost in silence."""

from collections.abc import Collection, Iterator, Sequence
from textwrap import shorten

from dpmodels.authoring.headings import IGNORED, folded

LONGEST_CELL = 100
"""Letters of a cell that a comment has."""
UNREAD = "unread"
"""Means what stands beneath headings that are not read."""
BARS = ("values",)
"""What further rows of a column go on with behind a bar, and not behind a semicolon."""


def cells_of(headings: Sequence[str], meanings: Sequence[str], row: Sequence[str]) -> dict[str, str]:
    """Return the cells of a row by what their headings mean: of several headings of one meaning, the first filled.

    Descriptions are joined, and what else is not read is kept, for what was not understood is to stand in the comment.
    """
    cells, unread = dict[str, str](), list[str]()
    for heading, meaning, cell in zip(headings, meanings, row, strict=False):
        words = cell.strip()
        if meaning and not cells.get(meaning, "").strip():
            cells[meaning] = cell
        elif meaning == "description" and words not in ("", *cells[meaning].split("; ")):
            cells[meaning] += f"; {words}"
        elif words and folded(heading) not in IGNORED and words != cells.get(meaning, "").strip():
            unread.append(f"{heading.strip()} {shorten(words, LONGEST_CELL, placeholder='…')}".strip())
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
