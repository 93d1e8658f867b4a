"""Write a synthetic table as CSV whose numbers and dates are written as a schema's `text` says those of raw rows are.

Privacy: post-processing.
"""

import codecs
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.authoring.asked import form_of
from dpmodels.contract.columns import Column, Datetime, Identifier, Integer
from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.formula import moment_of
from dpmodels.contract.text_forms.text_form import TextForm, pieces
from dpmodels.errors import InvalidArgument

SIGN = (
    "have no `currency`: a sign is left out where rows are read, and nothing says which numbers it stood beside, so "
    "none is written"
)
Fields: TypeAlias = pa.Array | pa.Scalar
MOST_DIGITS = 38  # of a decimal


def form_to_write(text: str | Mapping[str, Any]) -> TextForm | None:
    """Read how a CSV file is to be written; None of an empty text.

    Raises:
        InvalidArgument: it is no such form, or has a sign of a currency.
    """
    form = form_of(text)
    if form is not None and form.currency:
        raise InvalidArgument("text", text, SIGN)
    return form


def in_days(tables: Iterable[pa.Table], contract: Any, ending: str) -> Iterator[pa.Table]:
    """Yield tables whose moments that a schema cuts to days are dates, where the file is to be CSV.

    Their type is that of the raw table, which may hold days as moments: only text would show the midnights. Likewise
    times of day that are cut to minutes are written without seconds.
    """
    columns = getattr(contract, "columns", {})
    for table in tables:
        for place, field in enumerate(table.schema):
            if ending == ".csv" and _is_of_days(field.type, field.name, columns):
                table = table.set_column(place, field.name, table[field.name].cast(pa.date32()))
            elif ending == ".csv" and _is_of_minutes(field.type, field.name, columns):
                table = table.set_column(place, field.name, _minutes(table[field.name]))
        yield table


def _is_of_days(kind: Any, name: str, columns: Mapping[str, Column]) -> bool:
    """Tell whether a column of moments without a zone, which a date could not name, is cut to days.

    A derived one is cut as the column is that its formula adds to.
    """
    if not (pa.types.is_timestamp(kind) and kind.tz is None):
        return False
    column: Any = columns.get(name)
    if isinstance(column, Derived):
        column = moment_of(str(column.formula), columns)
    return isinstance(column, Datetime) and column.resolution == "day"


def _is_of_minutes(kind: Any, name: str, columns: Mapping[str, Column]) -> bool:
    """Tell whether a column of times of day is cut to minutes or hours."""
    column = columns.get(name)
    return pa.types.is_time(kind) and isinstance(column, Integer) and column.resolution is not None


def _minutes(times: Any) -> Any:
    """Write times of day as 08:03."""
    return pc.utf8_slice_codeunits(times.cast(pa.large_string()), 0, len("08:03"))


def write_form(batches: Iterable[pa.RecordBatch], columns: Mapping[str, Column], form: TextForm, path: Path) -> None:
    """Write rows one batch after another; semicolons part the fields where a comma stands before decimals.

    The file begins with the mark of UTF-8, without which Excel takes another encoding.

    Raises:
        InvalidArgument: the format of moments says less than a column holds.
    """
    delimiter = ";" if form.point == "," else ","
    with path.open("wb") as file:
        file.write(codecs.BOM_UTF8)
        for number, batch in enumerate(batches):
            if not number:
                names = _quoted(pa.array(batch.schema.names), delimiter).to_pylist()
                file.write(f"{delimiter.join(names)}\n".encode())
            each = zip(batch.schema.names, batch.columns, strict=True)
            fields = [_quoted(_written(name, array, columns, form), delimiter) for name, array in each]
            empty = "" if len(fields) > 1 else '""'  # a line of nothing would be no row
            lines = pc.binary_join_element_wise(
                *(pc.fill_null(field, empty) for field in fields), pa.scalar(delimiter, pa.large_string())
            )
            if len(lines):
                file.write(("\n".join(lines.to_pylist()) + "\n").encode())


def _written(name: str, array: pa.Array, columns: Mapping[str, Column], form: TextForm) -> pa.Array:
    """Return a column as text; identifiers are names, which no mark is set in."""
    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    kind: Any = array.type
    if pa.types.is_timestamp(kind) and form.datetime_format:
        return _moments(name, array, form.datetime_format)
    if _is_of_days(kind, name, columns):
        array, kind = array.cast(pa.date32()), pa.date32()
    if pa.types.is_date(kind) and form.date_format:
        return pc.strftime(array.cast(pa.timestamp("s")), format=form.date_format, locale="C").cast(pa.large_string())
    if _is_of_minutes(kind, name, columns):
        return _minutes(array)
    array = array.cast(pa.int64()) if pa.types.is_duration(kind) else array
    array = _to_decimals(array, getattr(columns.get(name), "round", None))
    texts = array.cast(pa.large_string())
    is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    return _numbers(texts, form) if is_number and not isinstance(columns.get(name), Identifier) else texts


def _to_decimals(array: pa.Array, decimals: int | None) -> pa.Array:
    """Return floats that a schema rounds as decimals of so many places, so that 17.2 is written 17.20."""
    if not decimals or not pa.types.is_floating(array.type):
        return array
    try:
        return array.cast(pa.float64()).cast(pa.decimal128(MOST_DIGITS, decimals))
    except pa.ArrowInvalid:  # a number beyond so many digits, or none
        return array


def _numbers(texts: pa.Array, form: TextForm) -> pa.Array:
    """Write a number's marks as the form has them."""
    if form.thousands is None:
        return texts if form.point == "." else pc.replace_substring(texts, ".", form.point)
    parts = pc.extract_regex(texts, r"^(?P<sign>-?)(?P<whole>\d+)(?P<rest>.*)$")
    sign, whole, rest = (pc.struct_field(parts, index) for index in range(3))
    backwards = pc.replace_substring_regex(pc.utf8_reverse(whole), r"(\d{3})", rf"\1{form.thousands}")
    grouped = pc.utf8_ltrim(pc.utf8_reverse(backwards), characters=form.thousands)
    rest = pc.replace_substring(rest, ".", form.point)
    return pc.binary_join_element_wise(sign, grouped, rest, pa.scalar("", pa.large_string()))


def _moments(name: str, array: pa.Array, written: str) -> pa.Array:
    """Write moments by a format; one that leaves out what a column holds is refused.

    Raises:
        InvalidArgument: see above.
    """
    directives = {directive for directive, _ in pieces(written)}
    if (array.type.tz is None) == ("z" in directives):
        rule = "have %z, since {} holds times with a zone" if array.type.tz else "have no %z, since {} has no zone"
        raise InvalidArgument("text", written, rule.format(name))
    finest = next((one for one in "fS" if one in directives), "M")
    unit, lacked = {"f": ("microsecond", "%f"), "S": ("second", "%S.%f"), "M": ("minute", "%S")}[finest]
    if not pc.all(pc.equal(pc.floor_temporal(array, unit=unit), array)).as_py():
        raise InvalidArgument("text", written, f"have {lacked}, since {name} holds finer times")
    whole = pc.floor_temporal(array, unit="second").cast(pa.timestamp("s", array.type.tz))
    texts: list[Fields] = []
    for directive, text in pieces(written):
        if directive == "f":
            micro = pc.add(pc.multiply(pc.millisecond(array), 1000), pc.microsecond(array))
            texts.append(pc.utf8_lpad(micro.cast(pa.large_string()), width=6, padding="0"))
        elif directive:
            texts.append(pc.strftime(whole, format=f"%{directive}", locale="C").cast(pa.large_string()))
        else:
            texts.append(pa.scalar(text, pa.large_string()))
    return pc.binary_join_element_wise(*texts, pa.scalar("", pa.large_string()))


def _quoted(texts: pa.Array, delimiter: str) -> pa.Array:
    """Put fields between quotation marks where a mark of CSV is in them, or nothing, which is not null."""
    texts = texts.cast(pa.large_string())
    needs = pc.or_(pc.match_substring_regex(texts, f'[{delimiter}"\r\n]'), pc.equal(texts, ""))
    mark = pa.scalar('"', pa.large_string())
    inner = pc.replace_substring(texts, '"', '""')
    between = pc.binary_join_element_wise(mark, inner, mark, pa.scalar("", pa.large_string()))
    return pc.if_else(needs, between, texts)
