"""What a notebook shows of a result: small tables of HTML, in which everything that was given is escaped."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_ROWS, MOST_COLUMNS = 5, 12
LINE, SHORT, GAP = 80, 24, "  "
LEFT = "text-align:left"


def facts_as_html(caption: str, facts: Mapping[str, str], links: Mapping[str, str] = MappingProxyType({})) -> str:
    """Lay named sentences out, a row each; a line break within one is kept, and what has a link leads to it."""
    rows = (
        f'<tr><th scope="row" style="{LEFT}">{escape(name)}</th>'
        f'<td style="{LEFT};white-space:pre-line">{_marked(text, links.get(name, ""))}</td></tr>'
        for name, text in facts.items()
    )
    return f"<table><caption>{escape(caption)}</caption><tbody>{''.join(rows)}</tbody></table>"


def _marked(text: str, link: str) -> str:
    """Escape a text, with what stands between backticks as code; ``link`` is where all of it leads."""
    marked = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))
    return f'<a href="{escape(link)}">{marked}</a>' if link else marked


def rows_as_html(caption: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay rows out below their headings."""
    head = "".join(f'<th scope="col" style="{LEFT}">{escape(heading)}</th>' for heading in headings)
    body = "".join(
        f"<tr>{''.join(f'<td style={LEFT!r}>{escape(str(value))}</td>' for value in row)}</tr>" for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def rows_as_text(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lay rows out below their headings for a terminal of 80 columns: in long cells, words that lead further go below.

    No word is cut, and no short cell, so a table of many columns is wider.
    """
    cells = [list(map(str, row)) for row in (headings, *rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    words = (max(len(word) for cell in column for word in cell.split() or [""]) for column in columns)
    least = [max(longest, min(width, SHORT)) for longest, width in zip(words, widths, strict=True)]
    while sum(widths) + len(GAP) * (len(widths) - 1) > LINE and widths != least:
        widest = max(range(len(widths)), key=lambda at: (widths[at] > least[at], widths[at]))
        widths[widest] -= 1
    return [line for row in cells for line in _lines(row, widths)]


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Write one row of a table as the lines that its longest cell takes."""
    wrapped = [wrap(text, width, break_on_hyphens=False) for text, width in zip(row, widths, strict=True)]
    for line in zip_longest(*wrapped, fillvalue="") if any(wrapped) else [row]:
        yield GAP.join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()


def first_rows_as_html(caption: str, folder: Path) -> str:
    """Show the first rows of a table of Parquet files, of which no more is read; nothing if there are none."""
    import pyarrow as pa

    try:
        frame = _first_rows(folder).to_pandas()
    except (OSError, pa.ArrowException, ImportError, ValueError):
        return ""
    page: str = frame.to_html(index=False, border=0, max_cols=MOST_COLUMNS)
    return f"<p>{escape(caption)}</p>{page}"


def _first_rows(folder: Path) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in sorted(folder.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(FIRST_ROWS):
            return pa.Table.from_batches([batch])
    raise FileNotFoundError(folder)
