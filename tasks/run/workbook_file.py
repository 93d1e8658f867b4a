"""Write one table to an Excel workbook: its rows on one sheet, and on another what they cost.

Privacy: post-processing.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpmodels.errors import DataError, Unsuitable
from dpmodels.late import check_installed
from dpmodels.reading.workbook import COLUMNS, ROWS

LONGEST_CELL, LONGEST_TITLE = 32_767, 31
FIRST_YEAR = 1900
"""Before it Excel has no days."""
DIGITS = 15
"""Of a number, which Excel holds as a 64-bit float."""
UNWRITTEN = re.compile("[\r\ud800-\udfff\ufffe\uffff]")
"""Letters that XML has not, or changes."""
UNFIT = (
    f"a value does not fit a cell of Excel: a text that is longer than a cell ({LONGEST_CELL:,} letters), a letter "
    f"that XML has not, or a whole or decimal number of more than {DIGITS} digits; export to .parquet instead"
)
ABOUT = "about"


def check_size(rows: int, columns: int) -> None:
    """Refuse a table that no sheet holds; its first row has the names.

    Raises:
        Unsuitable: see above.
    """
    if rows >= ROWS or columns > COLUMNS:
        raise Unsuitable(
            f"an Excel sheet has at most {ROWS - 1:,} rows and {COLUMNS:,} columns; export to .parquet instead"
        )


def sheet_title(name: str) -> str:
    """Return a name as a sheet may have it, beside the other one."""
    return "table" if name.lower() == ABOUT else name[:LONGEST_TITLE]


def write_workbook(name: str, batches: Iterator[pa.RecordBatch], path: Path, about: Mapping[str, str]) -> None:
    """Write the rows, and ``about`` them; text stays text, whatever it begins with.

    Raises:
        NacreError: openpyxl is not installed.
        DataError: a text is longer than a cell or holds a letter that XML has not, or a number has too many digits.
    """
    check_installed(["openpyxl"])
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils.exceptions import IllegalCharacterError

    book = Workbook(write_only=True)
    sheet = book.create_sheet(sheet_title(name))

    def cell(value: Any) -> Any:
        value = _plain(value)
        if isinstance(value, int | Decimal) and len(Decimal(value).normalize().as_tuple().digits) > DIGITS:
            raise IllegalCharacterError
        if not isinstance(value, str):
            return value
        if len(value) > LONGEST_CELL or UNWRITTEN.search(value):
            raise IllegalCharacterError
        text_cell = WriteOnlyCell(sheet, value=re.sub("_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", value))
        text_cell.data_type = "s"  # which openpyxl would take for a formula or an error, by how the text begins
        return text_cell

    fault = False
    try:
        for number, batch in enumerate(batches):
            if not number:
                sheet.append([cell(column) for column in batch.schema.names])
            for row in zip(*(_values(column) for column in batch.columns), strict=True):
                sheet.append([cell(value) for value in row])
        notes = book.create_sheet(ABOUT)
        for key, value in about.items():
            notes.append([cell(key), cell(value)])
    except IllegalCharacterError:
        fault = True
    book.save(path)  # in any case, as openpyxl keeps files open until then
    if fault:
        raise DataError("", UNFIT)


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column; a span of time as the number that it is in its unit."""
    spans: list[Any] = column.cast(pa.int64()).to_pylist() if pa.types.is_duration(column.type) else column.to_pylist()
    return spans


def _plain(value: Any) -> Any:
    """Return what a cell can hold: no zone, no day before 1900, and no number that is none."""
    if isinstance(value, float) and not (value == value and abs(value) < float("inf")):
        return None
    if isinstance(value, date) and (value.year < FIRST_YEAR or (isinstance(value, datetime) and value.tzinfo)):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    return value
