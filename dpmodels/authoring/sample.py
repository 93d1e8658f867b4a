"""A sample that is public: its types, its extremes and its categories are read off it, as from a document."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv
import pyarrow.json as pc_json
import pyarrow.parquet as pq

from dpmodels.authoring.facts import Bound, Facts, Tables, joined, listed
from dpmodels.codec.plain_text import MISSING, plain_text
from dpmodels.contract.base import is_text
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.errors import Unsuitable
from dpmodels.limits import LONGEST_RECORD
from dpmodels.reading.data_files import find_files
from dpmodels.reading.text_files import csv_form, guarded, read_csv
from dpmodels.reading.text_records import Malformed
from dpmodels.reading.workbook import Damaged, read_sheet, sheet_names

MOST_CATEGORIES = 1_000
"""A column of text with more values than this, or with almost as many as rows, is no column of categories."""
MOST_DECIMALS = 6
BATCH_ROWS = 65_536


def read_sample(path: Path, form: TextForm | None = None) -> Tables:
    """Read the columns of a public sample; of a CSV file by its form, if it has one, whatever its delimiter is.

    Raises:
        Unsuitable: it is no file of these kinds, or has no rows.
        NacreError: it is a workbook, and openpyxl is not installed, or the sheet has no names or a formula.
    """
    kind = path.suffix.lower().partition("#")[0]
    try:
        read_text = pc_csv.read_csv if form is None else partial(_of_text, form=form)
        table = READERS.get(kind, read_text)(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError, Damaged):
        table = pa.table({})
    if not table.num_rows:
        kinds = "CSV or Parquet file, nor one of JSON lines or Excel,"
        raise Unsuitable(f"{path} is no {kinds} with rows, which a public sample must be")
    return {"": {name: _facts(table[name]) for name in table.column_names}}


def _of_text(path: Path, form: TextForm) -> pa.Table:
    """Read CSV in which numbers and dates are written in a form: what is of none of its kinds of value stays text.

    Raises:
        DataError: it is no CSV.
    """
    (file,) = find_files(str(path))
    names = csv_form(file)
    batches = list(guarded(read_csv(file, names, names.names, LONGEST_RECORD), file))
    text = pa.Table.from_batches(batches) if batches else pa.table({})
    plain = {name: _plain(text[name].combine_chunks(), form) for name in text.column_names}
    columns = {name: text[name] if one is None else one for name, one in plain.items()}
    pc_csv.write_csv(pa.table(columns), written := pa.BufferOutputStream())
    types = {name: pa.string() for name, one in plain.items() if one is None and not _are_truths(text[name])}
    nulls = pc_csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, column_types=types)
    breaks = pc_csv.ParseOptions(newlines_in_values=True)
    return pc_csv.read_csv(written.getvalue(), parse_options=breaks, convert_options=nulls)


def _plain(texts: pa.Array, form: TextForm) -> pa.Array | None:
    """Return a column with points and ISO dates; None where it holds something else."""
    trimmed = pc.utf8_trim_whitespace(texts)
    trimmed = pc.if_else(pc.is_in(trimmed, MISSING), pa.scalar(None, pa.string()), trimmed)
    for kind in (pa.float64(), pa.timestamp("us")):
        plain = plain_text(trimmed, kind, form)
        with suppress(pa.ArrowException):
            plain.cast(kind)
            return plain
    return None


def _are_truths(texts: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.is_in(pc.utf8_lower(texts), pa.array(["true", "false", None]))).as_py())


def _of_lines(path: Path) -> pa.Table:
    """Read JSON lines, in which a day is text that Arrow takes for a moment."""
    table = pc_json.read_json(path)
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            days = table.column(index).cast(pa.date32(), safe=False)
            if days.cast(field.type).equals(table.column(index)):
                table = table.set_column(index, field.name, days)
    return table


def _of_sheet(path: Path) -> pa.Table:
    """Read a sheet as text, whose types are told as those of a CSV file are."""
    nulls = pc_csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    breaks = pc_csv.ParseOptions(newlines_in_values=True)
    return pc_csv.read_csv(pa.BufferReader(sheet_as_csv(path)), parse_options=breaks, convert_options=nulls)


def sheet_as_csv(path: Path) -> bytes:
    """Write a sheet as the text of a CSV file.

    Raises:
        Unsuitable: it holds a formula or a span of time.
        Damaged: it is no workbook.
        NacreError: openpyxl is not installed, or the sheet has no names.
    """
    (file,) = find_files(str(path))
    try:
        text = pa.Table.from_batches(read_sheet(file, sheet_names(file), BATCH_ROWS))
    except Malformed as fault:
        raise Unsuitable(f"{path} {fault}") from None
    pc_csv.write_csv(text, written := pa.BufferOutputStream())
    return bytes(written.getvalue())


READERS: dict[str, Callable[[Path], pa.Table]] = {
    ".parquet": pq.read_table,
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _of_lines),
    ".xlsx": _of_sheet,
}
"""What reads a sample, by its ending; any other file is read as CSV."""


def _facts(column: pa.ChunkedArray) -> Facts:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    nullable = Facts(nullable=column.null_count > 0)
    present, kind = pc.drop_null(column), column.type
    if not len(present):
        return nullable
    if is_text(kind):
        return joined([Facts(kind="text"), _categories(present), nullable])
    if pa.types.is_boolean(kind):
        return joined([Facts(kind="boolean"), nullable])
    names = {pa.types.is_integer: "integer", pa.types.is_floating: "number", pa.types.is_decimal: "number"}
    names |= {pa.types.is_date: "date", pa.types.is_timestamp: "moment"}
    name = next((name for belongs, name in names.items() if belongs(kind)), None)
    if name is None:
        return joined([Facts(unread=("type",)), nullable])
    if pa.types.is_timestamp(kind):  # no bound is finer than a second
        present = present.cast(pa.timestamp("us", kind.tz))
    if name == "number":
        present = present.cast(pa.float64())
        present = present.filter(pc.is_finite(present))
    low, high = (pc.min_max(present)[end].as_py() for end in ("min", "max")) if len(present) else (None, None)
    bounds = [None if end is None else Bound(end) for end in (low, high)]
    decimals = _decimals(present) if name == "number" else None
    return joined([Facts(kind=name, low=bounds[0], high=bounds[1], decimals=decimals), nullable])


def _categories(present: pa.ChunkedArray) -> Facts:
    values = pc.unique(present)
    if len(values) > min(MOST_CATEGORIES, max(2, len(present) // 2)):
        return Facts(unread=("values, of which the sample has too many",))
    return listed(sorted(values.to_pylist()))


def _decimals(present: pa.ChunkedArray) -> int | None:
    """Return the decimals that all numbers of a sample keep to, if they are few."""
    for decimals in range(MOST_DECIMALS + 1):
        if pc.all(pc.equal(pc.round(present, decimals), present)).as_py():
            return decimals
    return None
