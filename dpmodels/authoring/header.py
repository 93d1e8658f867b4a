"""The names of a text file's columns, and whether they are names: a draft must not print values."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from dpmodels.codec.encode import NAMELESS
from dpmodels.codec.names import RULE, looks_like_a_name
from dpmodels.errors import DataError
from dpmodels.limits import LONGEST_DOCUMENT, LONGEST_LINE
from dpmodels.reading.data_files import FAILURES, DataFile
from dpmodels.reading.text_files import NO_TEXT, csv_form, first_line
from dpmodels.reading.workbook import sheet_names

NESTED = pa.struct([])
"""Stands for the type of a key of JSON lines whose value is an object or a list."""


class DoubtfulNames(DataError):
    """What stands where names should be may be values; nothing of it was printed."""


def check_names(path: str, names: Sequence[str], least: int = 1) -> None:
    """Stop where names may be values, by a rule about the names alone, since values must not be looked at.

    It knows a name by ``RULE``. Words that are values, as in ``north,yes,Anna``, it does not tell from names.

    Raises:
        DoubtfulNames: a name breaks the rule, or there are fewer than ``least``.
    """
    few = ", and a text file have two columns" if len(names) < least else ""
    if few or not all(map(looks_like_a_name, names)):
        said = f"a name should {RULE}{few}; if you have seen that they are names, say so with --header"
        raise DoubtfulNames("", f"the names of the columns of {path} may be values: {said}")


def names_in(file: DataFile) -> Mapping[str, pa.DataType | None]:
    """Read the names in the first line of a CSV file or a sheet, or the keys of the first JSON object, and no more.

    No type is known of them; but of an object or a list in JSON that it is none of a column.

    Raises:
        DataError: the line is no text, or no list of names that are all there and all different.
    """
    if file.format == "excel":
        return dict.fromkeys(sheet_names(file))
    text, longest = None, LONGEST_DOCUMENT if file.format == "json" else LONGEST_LINE
    with suppress(*FAILURES):
        text = _text(first_line(file, longest))
    if text is None:
        raise DataError("", NO_TEXT.format(file.uri, longest // 2**20))
    if file.format == "json":
        return _keys(text, file.uri)
    names = csv_form(file).names
    if not all(name.strip() for name in names) or len(set(names)) < max(len(names), 1):
        why = f"; one is empty: {NAMELESS}" if "" in map(str.strip, names) else ""
        raise DataError(
            "", f"{file.uri} must begin with a line of column names, none of them empty and none there twice{why}"
        )
    return dict.fromkeys(names)


def _keys(text: str, uri: str) -> dict[str, pa.DataType | None]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise DataError("", f"{uri} must hold one JSON object in each line, whose keys are the columns")
    return {name: NESTED if isinstance(value, dict | list) else None for name, value in row.items()}


def _text(line: bytes) -> str | None:
    """Decode a line, unless it holds what text does not: other bytes than UTF-8, or control characters."""
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return text if text.replace("\t", " ").isprintable() else None
