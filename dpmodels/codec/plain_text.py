"""Text in the form that a schema declares, written again as it is read everywhere: with points, and days in ISO.

Privacy: a field is written again by itself alone, by the public form; one that is not of the form becomes a text that
    is no number and no date, so that it is refused, or counted by a discovery, as any other word is.
"""

import re
from collections.abc import Mapping
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.codec.convert import is_whole, plain
from dpmodels.contract.base import is_text
from dpmodels.contract.columns import Column
from dpmodels.contract.text_forms.plain_columns import PlainColumn
from dpmodels.contract.text_forms.text_form import DIGITS, TextForm, pieces

MISSING = pa.array(["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"])
"""What text writes for no value."""
UNREAD = "?"
"""Stands for what is not of the declared form: no value of any type but text is written so."""
ISO_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
ISO_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T].+$"
EXPONENT = r"(?:[eE][-+]?[0-9]+)?"


def plain_text(texts: pa.Array, kind: pa.DataType, form: TextForm | None) -> pa.Array:
    """Write trimmed text again that a form writes for values of a type; null stays null."""
    if form is None:
        return texts
    if pa.types.is_floating(kind) and form.is_of_numbers:
        return _numbers(texts, form)
    return _moments(texts, form) if pa.types.is_timestamp(kind) and form.is_of_dates else texts


def with_plain_text(batch: pa.RecordBatch, columns: Mapping[str, Column], form: TextForm | None) -> pa.RecordBatch:
    """Write text again of the columns of numbers and moments that a discovery reads."""
    if form is None:
        return batch
    arrays = list(batch.columns)
    for index, field in enumerate(batch.schema):
        column = columns.get(field.name)
        if isinstance(column, PlainColumn) and is_text((array := plain(arrays[index])).type):
            kind = pa.float64() if column.holds == "numbers" else pa.timestamp("us")
            text = pc.utf8_trim_whitespace(whole_text(array).cast(pa.string()))
            arrays[index] = plain_text(without_missing(text), kind, form)
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def without_missing(texts: pa.Array) -> pa.Array:
    """Return trimmed text with null for what writes no value. Shapes: string."""
    return pc.if_else(pc.is_in(texts, MISSING), pa.scalar(None, pa.string()), texts)


def whole_text(array: pa.Array) -> pa.Array:
    """Put what nothing can be read as in the place of text that is no UTF-8, as a damaged file may hold it."""
    if not is_text(array.type) or is_whole(array):
        return array
    return pa.array([None if raw is None else _decoded(raw) for raw in array.cast(pa.large_binary()).to_pylist()])


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "\0"


def _numbers(texts: pa.Array, form: TextForm) -> pa.Array:
    """Take a currency and the marks between thousands away, which must part three digits each, and write a point."""
    texts = texts if form.currency is None else _without_currency(texts, re.escape(form.currency))
    mark = f"[{re.escape(form.marks)}]"
    grouped = f"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|" if form.marks else ""
    point = re.escape(form.point)
    number = f"^[-+]?(?:(?:{grouped}[0-9]+)(?:{point}[0-9]*)?|{point}[0-9]+){EXPONENT}$"
    bare = texts
    for one in form.marks:
        bare = pc.replace_substring(bare, one, "")
    bare = bare if form.point == "." else pc.replace_substring(bare, form.point, ".")
    return pc.if_else(pc.match_substring_regex(texts, number), bare, pa.scalar(UNREAD, texts.type))


def _without_currency(texts: pa.Array, sign: str) -> pa.Array:
    """Take the sign of a currency away that stands before a number, perhaps behind a minus, or else behind it."""
    before = f"^([-+]?){sign}[ \u00a0\u202f]?"
    ahead = pc.replace_substring_regex(texts, before, r"\1", max_replacements=1)
    behind = pc.replace_substring_regex(texts, f"[ \u00a0\u202f]?{sign}$", "")
    return pc.if_else(pc.match_substring_regex(texts, before), ahead, behind)


def _moments(texts: pa.Array, form: TextForm) -> pa.Array:
    """Write days and moments in ISO; of a kind without a format those that are in ISO stay."""
    read = pa.nulls(len(texts), texts.type)
    for written, usual in ((form.date_format, ISO_DAY), (form.datetime_format, ISO_MOMENT)):
        if read.null_count == texts.null_count:
            break
        if written is None:
            here = pc.if_else(pc.match_substring_regex(texts, usual), texts, pa.scalar(None, texts.type))
        else:
            here = _in_iso(texts, written)
        read = pc.coalesce(read, here)
    return pc.if_else(pc.is_valid(texts), pc.fill_null(read, UNREAD), pa.scalar(None, texts.type))


def _in_iso(texts: pa.Array, written: str) -> pa.Array:
    """Write moments of one format in ISO; null where a text is not of it from its first letter to its last."""
    fields = pc.extract_regex(texts, pattern(written))
    names = {field.name for field in fields.type}
    part = {name: pc.struct_field(fields, name) for name in names}
    padded = {name: pc.ascii_lpad(array, 2, "0") if DIGITS.get(name) == 2 else array for name, array in part.items()}
    day = pc.binary_join_element_wise(padded["Y"], padded["m"], padded["d"], "-")
    if "H" not in names:
        return day
    clock = [padded[name] for name in ("H", "M", "S") if name in names]
    moment = pc.binary_join_element_wise(day, pc.binary_join_element_wise(*clock, ":"), " ")
    moment = pc.binary_join_element_wise(moment, padded["f"], ".") if "f" in names else moment
    return pc.binary_join_element_wise(moment, padded["z"], "") if "z" in names else moment


@cache
def pattern(written: str) -> str:
    """Return the expression of a format: a day may have one digit, but where nothing parts it from what is next."""
    parts, expression = pieces(written), ""
    for index, (directive, text) in enumerate(parts):
        beside = [one[0] for one in (*parts[max(index - 1, 0) : index], *parts[index + 1 : index + 2])]
        fewest = DIGITS.get(directive, 0) if directive == "Y" or any(one in DIGITS for one in beside) else 1
        digits = {"f": "[0-9]{1,6}", "z": "Z|[-+][0-9]{2}:?[0-9]{2}"}
        one = digits.get(directive, f"[0-9]{{{fewest},{DIGITS.get(directive, 0)}}}")
        expression += f"(?P<{directive}>{one})" if directive else re.escape(text)
    return f"^{expression}$"
