"""What a notebook shows of a result: small tables of HTML, in which everything that was given is escaped."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, time
from html import escape
from itertools import zip_longest
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_ROWS, MOST_COLUMNS, LONGEST_VALUE = 5, 20, 50
LINE, UNKNOWN, SHORT, GAP = 80, 120, 24, "  "
"""Letters of a line at least, those where no terminal says how many it has, those of a short cell, and a gap."""
LEFT = "text-align:left;color:inherit"
TABLE = "border-collapse:collapse;color:inherit;background:none;margin:.5em 0"
CELL = (
    "text-align:left;vertical-align:top;padding:.25em .75em;border:0;border-bottom:1px solid #8884;"
    "color:inherit;background:none"
)
"""Styles that stand in each table and cell: a notebook's own colors, light or dark, and lines that both show."""
SCOPES = {"col": ' scope="col"', "row": ' scope="row"'}


def table(caption: str, body: Iterable[str], head: str = "") -> str:
    """Return a table of rows of cells, below a row of headings if there is one."""
    named = f'<caption style="{LEFT}">{escape(caption)}</caption>' + (f"<thead>{head}</thead>" if head else "")
    return f'<table style="{TABLE}">{named}<tbody>{"".join(body)}</tbody></table>'


def cell(content: str, heads: str = "", style: str = "") -> str:
    """Return a cell of HTML, which may head its ``col`` or its ``row``."""
    tag = "th" if heads else "td"
    return f'<{tag}{SCOPES.get(heads, "")} style="{CELL}{style}">{content}</{tag}>'


def line(cells: Iterable[str]) -> str:
    """Return a row of cells."""
    return f"<tr>{''.join(cells)}</tr>"


def facts_as_html(caption: str, facts: Mapping[str, str], links: Mapping[str, str] = MappingProxyType({})) -> str:
    """Lay named sentences out, a row each; a line break within one is kept, and what has a link leads to it."""
    rows = (
        line((cell(escape(name), "row"), cell(_marked(text, links.get(name, "")), style=";white-space:pre-line")))
        for name, text in facts.items()
    )
    return table(caption, rows)


def _marked(text: str, link: str) -> str:
    """Escape a text, with what stands between backticks as code; ``link`` is where all of it leads."""
    marked = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))
    return f'<a href="{escape(link)}">{marked}</a>' if link else marked


def rows_as_html(caption: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay rows out below their headings."""
    body = (line(cell(escape(str(value))) for value in row) for row in rows)
    return table(caption, body, line(cell(escape(heading), "col") for heading in headings))


def rows_as_text(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lay rows out below their headings as wide as is shown: in long cells, words that lead further go below.

    No word is cut, and no short cell, so a table of many columns is wider.
    """
    most = _letters_of_a_line()
    cells = [list(map(str, row)) for row in (headings, *rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    words = (max(len(word) for cell in column for word in cell.split() or [""]) for column in columns)
    least = [max(longest, min(width, SHORT)) for longest, width in zip(words, widths, strict=True)]
    while sum(widths) + len(GAP) * (len(widths) - 1) > most and widths != least:
        widest = max(range(len(widths)), key=lambda at: (widths[at] > least[at], widths[at]))
        widths[widest] -= 1
    return [line for row in cells for line in _lines(row, widths)]


def _letters_of_a_line() -> int:
    """Return how many letters a line has: as many as the terminal, where there is one, or as pandas is told."""
    pandas = sys.modules.get("pandas")
    of_pandas = pandas.get_option("display.width") if pandas else None
    return max(LINE, get_terminal_size((UNKNOWN, 24)).columns, of_pandas or 0)


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Write one row of a table as the lines that its longest cell takes."""
    wrapped = [wrap(text, width, break_on_hyphens=False) for text, width in zip(row, widths, strict=True)]
    for line in zip_longest(*wrapped, fillvalue="") if any(wrapped) else [row]:
        yield GAP.join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()


def first_rows_as_html(caption: str, folder: Path) -> str:
    """Show the first rows of a table of Parquet files, of which no more is read; nothing if there are none."""
    import pyarrow as pa

    try:
        first = _first_rows(folder)
    except (OSError, pa.ArrowException):
        return ""
    names, more = first.column_names[:MOST_COLUMNS], first.num_columns - MOST_COLUMNS
    hidden = f"; {more} more columns are not shown" if more > 0 else ""
    return rows_as_html(
        caption + hidden, names, zip(*(_values(first[name].to_pylist()) for name in names), strict=True)
    )


def _values(column: Sequence[object]) -> list[str]:
    """Write the values of a column; moments that are all midnights are days."""
    if all(value is None or (isinstance(value, datetime) and value.time() == time()) for value in column):
        column = [value.date() if isinstance(value, datetime) else value for value in column]
    return [_value(value) for value in column]


def _value(value: object) -> str:
    """Write a value of a table in no more letters than one looks at; what is missing is left empty."""
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _first_rows(folder: Path) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in sorted(folder.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(FIRST_ROWS):
            return pa.Table.from_batches([batch])
    raise FileNotFoundError(folder)
