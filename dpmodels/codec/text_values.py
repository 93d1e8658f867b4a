"""Text as the values that it writes: those of a CSV file, and moments and numbers that a typed table has as text."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.codec.convert import plain
from dpmodels.codec.faults import all_faults
from dpmodels.codec.plain_text import plain_text, without_missing
from dpmodels.contract.base import is_text
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.errors import DataError

TRUTH = {
    **dict.fromkeys(("yes", "y", "t", "ja", "j", "wahr", "oui", "o", "vrai", "sí", "si", "s", "verdadero"), "true"),
    **dict.fromkeys(("no", "n", "f", "nein", "falsch", "non", "faux", "falso"), "false"),
}
"""Words for true and false, besides these and 1 and 0; in any case of letters."""
NUMBERS = '`text: {decimal: ",", thousands: "."}`'
OF_MONEY = '`text: {decimal: ".", thousands: ",", currency: "£"}`'
DAYS = '`text: {date_format: "%d.%m.%Y"}`'
"""What a schema says of numbers such as 1.204,50, or £1,204.50, and of dates such as 31.12.2026."""
MORE = "; of words among numbers see docs/errors.md#numbers-that-are-none"
DECIMAL_COMMAS = f": 1.204,50 is read with {NUMBERS} in the schema, and £1,204.50 with {OF_MONEY}{MORE}"
"""What is said of numbers in a file whose fields a semicolon parts, as where a comma stands before decimals."""
WRITTEN = {
    pa.float64(): ("numbers", f": £1,204.50 is read with {OF_MONEY} in the schema, and 1.204,50 with {NUMBERS}{MORE}"),
    pa.bool_(): (
        "true or false",
        ", in these words, as yes and no, y and n, t and f, ja and nein, oui and non, sí and no, or as 1 and 0 (of "
        "other words make it `{type: categorical, values: [...]}`, also of these if they are to come back)",
    ),
}
DATES = (
    "dates",
    ", written as 2026-12-31 or 2026-12-31 23:59:59 (not 25.12.2026 or 12/25/2026), unless the schema says how they "
    f"are written, as {DAYS}",
)
CLOCK = ("times of day", ", written as 16:05 or 16:05:30, not 4:05 pm")
"""What values of a type are called, and how they are written, which a person may have written otherwise."""
LINES = (
    "; no message names a row, so find it where the file lies: python3 -c \"import csv; rows = csv.reader(open('{0}', "
    "newline=''), delimiter='{1}'{2}); names = len(next(rows)); print([rows.line_num for row in rows if len(row) "
    'not in (0, names)])"'
)
"""Has whoever may see a file find the rows that have another number of fields: which these are is private."""


def which_lines(path: str, delimiter: str, quoted: bool) -> str:
    """Return the command for a file; nothing where a shell would read more in its name than letters."""
    marks = "" if quoted else ", quoting=csv.QUOTE_NONE"
    return "" if set(path) & set("\"'$`!\\\n") else LINES.format(path, delimiter.replace("\t", "\\t"), marks)


def cast_text(text: pa.Array, kind: pa.DataType, name: str, form: TextForm | None = None) -> pa.Array:
    """Turn text into values of a type.

    Raises:
        DataError: a row holds no such value.
    """
    if (values := _values(text, kind, form)) is None:
        raise _fault([name], kind, form=form)
    return values


def _values(text: pa.Array, kind: pa.DataType, form: TextForm | None) -> pa.Array | None:
    """Return the values of a type that a text writes; None where a row holds no such value."""
    if kind == pa.string():
        return text
    texts = without_missing(pc.utf8_trim_whitespace(text))
    if kind == pa.bool_():
        place = pc.index_in(pc.utf8_lower(texts), pa.array(list(TRUTH)))
        texts = pc.coalesce(pa.array(list(TRUTH.values())).take(place), texts)
    texts = plain_text(texts, kind, form)
    try:
        if not pa.types.is_time(kind):
            return texts.cast(kind)
        moments = pc.binary_join_element_wise("1970-01-01 ", texts, "").cast(pa.timestamp("ns"))
        return moments.cast(pa.time64("ns")).cast(kind, safe=False)
    except pa.ArrowException:
        return None  # its message quotes the value


def _fault(names: Sequence[str], kind: pa.DataType, delimiter: str = "", form: TextForm | None = None) -> DataError:
    """Say what columns of a type must hold, and how that is written: once, with the likeliest cause first.

    Privacy: that a value is none of its type, and of the file how its first line parts the names; of no value more.
    """
    dated = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    worded = CLOCK if pa.types.is_time(kind) else (f"values of type {kind}", "")
    called, written = DATES if dated else WRITTEN.get(kind, worded)
    written = DECIMAL_COMMAS if delimiter == ";" and kind == pa.float64() else written
    if form is not None and kind == pa.float64() and form.is_of_numbers:
        signs = "" if form.currency else '; where a sign such as £ stands beside them, add `currency: "£"` to it'
        written = f", written {form.numbers_in_words}, as its `text` says{signs}{MORE}"
    elif form is not None and dated and form.is_of_dates:
        written = f", written {form.dates_in_words}, as its `text` says"
    others = f", and so must {', '.join(names[1:])}" if names[1:] else ""
    rule = f"must hold {called} in every row, as the schema says{others}{written}"
    return DataError(names[0], rule, also=names[1:])


def written_as_text(
    types: pa.Schema, kinds: Mapping[str, pa.DataType], form: TextForm | None = None
) -> dict[str, pa.DataType]:
    """Return the columns of text that a schema declares as dates, times of day or booleans, and what they are read as.

    A typed table often has its dates and times, and yes and no, as text, as pandas reads them from a CSV file. These
    can be read in one way alone. Numbers as text are read where the ``form`` says how they are written; otherwise they
    stay text, since a table that has types says which columns are numbers.
    """
    return {field.name: kinds[field.name] for field in types if _is_written(field, kinds, form)}


def _is_written(field: pa.Field, kinds: Mapping[str, pa.DataType], form: TextForm | None) -> bool:
    inner = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    kind = kinds.get(field.name, pa.null())
    is_number = pa.types.is_floating(kind) and form is not None and form.is_of_numbers
    is_moment = pa.types.is_timestamp(kind) or pa.types.is_time(kind)
    return is_text(inner) and (is_moment or pa.types.is_boolean(kind) or is_number)


def with_text_read(
    batch: pa.RecordBatch, kinds: Mapping[str, pa.DataType], form: TextForm | None = None
) -> pa.RecordBatch:
    """Read dates, times, booleans and, where a form says how, numbers that are written as text, as text files are read.

    Privacy: each value is read by itself, and the declared type alone decides how.

    Raises:
        DataError: a row holds no such value.
    """
    if not (written := written_as_text(batch.schema, kinds, form)):
        return batch
    return cast_columns(batch, written, form=form)


def cast_columns(
    batch: pa.RecordBatch, kinds: Mapping[str, pa.DataType], delimiter: str = "", form: TextForm | None = None
) -> pa.RecordBatch:
    """Turn columns of text of a batch, of a file of some ``delimiter``, into values of types that a form writes.

    Raises:
        DataError: a column holds text that is no such value; all such columns of the batch are named.
    """
    arrays, names, unread = list(batch.columns), batch.schema.names, dict[pa.DataType, list[str]]()
    for index, name in enumerate(names):
        if name in kinds:
            arrays[index] = _values(plain(arrays[index]).cast(pa.string()), kinds[name], form)
            if arrays[index] is None:
                unread.setdefault(kinds[name], []).append(name)
    with all_faults() as each:
        for kind, columns in unread.items():
            with each:
                raise _fault(columns, kind, delimiter, form)
    return pa.RecordBatch.from_arrays(arrays, names)
