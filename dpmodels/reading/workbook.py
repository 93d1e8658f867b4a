"""One sheet of an Excel workbook as text, which is typed as that of a CSV file is.

No formula is evaluated and no link is followed. A formula is refused: what it shows may come of other rows, so that one
record would change others, and the noise would hide it less well.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import date, datetime, time, timedelta
from typing import Any

import pyarrow as pa

from dpmodels.errors import DataError, NacreError
from dpmodels.late import check_installed
from dpmodels.limits import LONGEST_RECORD
from dpmodels.reading.data_files import DataFile
from dpmodels.reading.text_records import Malformed

ROWS, COLUMNS = 1_048_576, 16_384
"""The most that a sheet has."""
FORMULA = "holds a formula, which may read other rows; paste the values instead (Paste Special, Values)"
SPAN = (
    "holds a span of time in Excel's own format, which says no unit; format the column as a number in the schema's unit"
)
LONGER = "holds a row with more cells than there are names in the first row"
SHEETS = "{} holds several sheets: name one, as in FILE.xlsx#SHEET"
NO_NAMES = (
    "{} must have the names of its columns in the first row of the sheet, none of them empty and none there twice"
)
DAMAGED = "{} cannot be read: it is damaged, locked by a password, or no Excel workbook (.xlsx)"


class Damaged(ValueError):
    """The file is no workbook that can be read."""


def sheet_names(file: DataFile) -> tuple[str, ...]:
    """Read the names in the first row of a sheet; nothing below it is looked at.

    Raises:
        NacreError: openpyxl is not installed, the file is no workbook, or the first row holds no names.
    """
    names: tuple[str, ...] | None = None
    try:
        with _rows(file) as rows:
            names = tuple(text or "" for text in _texts(next(rows, ())))
    except Malformed:
        names = ()
    except Damaged:
        pass
    if names is None:
        raise DataError("", DAMAGED.format(file.uri))
    if not names or not all(name.strip() for name in names) or len(set(names)) < len(names):
        raise DataError("", NO_NAMES.format(file.uri))
    return names


def read_sheet(file: DataFile, columns: Sequence[str], batch_rows: int, null: bool = True) -> Iterator[pa.RecordBatch]:
    """Read some columns of a sheet as text; rows without any value are left out at its end alone.

    An empty cell is null, or else an empty text.

    Memory: all texts that the workbook holds, each once, and a batch.

    Raises:
        Malformed: while reading: there is a formula, a span of time, or a row with more cells than names.
    """
    names, empty = sheet_names(file), None if null else ""
    indices = [names.index(column) for column in columns]
    types = pa.schema([(column, pa.string()) for column in columns])
    with _rows(file) as rows:
        next(rows)
        batch: list[list[str | None]] = []
        for texts in _without_last_empty(rows, len(names)):
            batch.append([texts[index] or empty for index in indices])
            if len(batch) >= batch_rows:
                yield _batch(batch, types)
                batch = []
        yield _batch(batch, types)


def _without_last_empty(rows: Iterator[Sequence[Any]], width: int) -> Iterator[list[str | None]]:
    """Yield the rows as text, each as wide as the names; empty ones only where a row with a value follows."""
    empty_rows = 0
    for row in rows:
        texts = _texts(row)
        if len(texts) > width:
            raise Malformed(LONGER)
        if not texts:
            empty_rows += 1
            continue
        for _ in range(empty_rows):
            yield [None] * width
        empty_rows = 0
        yield texts + [None] * (width - len(texts))


def _batch(rows: list[list[str | None]], types: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array([row[index] for row in rows], pa.string()) for index in range(len(types))]
    return pa.RecordBatch.from_arrays(columns, schema=types)


@contextmanager
def _rows(file: DataFile) -> Iterator[Iterator[Sequence[Any]]]:
    """Lend the rows of the sheet that is named, or of the only one."""
    check_installed(["openpyxl"])
    from openpyxl import load_workbook

    warnings.filterwarnings("ignore", module=r"openpyxl\.")  # they may quote a value
    try:
        with file.open() as source, closing(load_workbook(source, read_only=True, keep_links=False)) as book:
            sheet = _sheet(file, {sheet.title: sheet for sheet in book.worksheets})
            sheet.reset_dimensions()  # what the file says of its size may be anything
            yield _short(sheet.iter_rows(max_row=ROWS))
        return
    except (NacreError, Malformed):
        raise
    except Exception:  # of any kind that zip, XML and openpyxl have, and it may quote the file
        pass
    raise Damaged


def _short(rows: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Yield rows, each as wide as its last cell: filled up to all columns of a sheet, they take an hour.

    Raises:
        Malformed: while reading: a row has more cells than a sheet has columns.
    """
    for row in rows:
        if len(row) > COLUMNS:
            raise Malformed(LONGER)
        yield row


def _sheet(file: DataFile, sheets: Mapping[str, Any]) -> Any:
    """Return the sheet that is named, or the only one."""
    if file.table and file.table not in sheets:
        raise DataError("", f"{file.uri} has no such sheet")
    if not file.table and len(sheets) != 1:
        raise DataError("", SHEETS.format(file.uri))
    return sheets[file.table] if file.table else next(iter(sheets.values()))


def _texts(cells: Sequence[Any]) -> list[str | None]:
    """Return the cells of a row as text, without the empty ones at its end.

    Raises:
        Malformed: one is a formula, or the row is longer than a record may be.
    """
    texts = [_text(cell) for cell in cells]
    while texts and texts[-1] is None:
        texts.pop()
    if sum(len(text or "") for text in texts) > LONGEST_RECORD:
        raise Malformed("holds a row that is longer than a record may be")
    return texts


def _text(cell: Any) -> str | None:
    value = cell.value
    if value is None or value == "":
        return None
    if cell.data_type == "f":
        raise Malformed(FORMULA)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        return str(value.date() if value.time() == time() else value)
    if isinstance(value, timedelta):
        raise Malformed(SPAN)
    if isinstance(value, date | time):
        return value.isoformat()
    return unescaped(value) if isinstance(value, str) else str(value)


def unescaped(text: str) -> str:
    """Return the letters that a workbook writes by their numbers, as ``_x0041_``."""
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda number: chr(int(number[1], 16)), text)
