"""What the type of a column in a file tells of it, beside a type that a person gives."""

import re
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from dpmodels.authoring.documents.spoken import is_paid
from dpmodels.authoring.facts import TODO, Facts
from dpmodels.contract.base import is_text
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.plural import listed

TYPES = {
    "integer": "integer",
    "number": "number",
    "text": "categorical",
    "category": "categorical",
    "boolean": "boolean",
    "date": "datetime",
    "moment": "datetime",
    "identifier": "identifier",
}
"""The kinds of column that documents tell apart, and a schema's types for them."""
NUMBERS = ("integer", "number")
Keys = dict[str, Any]
Types = Mapping[str, pa.DataType | None]
"""Columns with their types in the data; None where it says none."""
OF_ALL_TEXT = (
    "all columns are text, of which a run reads dates such as 2024-12-31, and no numbers, unless a line above columns "
    'says how they are written, as text: {decimal: ",", thousands: ".", date_format: "%d.%m.%Y"}, or text: {decimal: '
    '"."} for 1234.5; draft again with it in --text, or with types from pandas.to_numeric'
)
AMOUNTS_AS_TEXT = (
    "{names} {are} text in the data, and {amounts}: a run reads numbers there if a line above "
    "columns says how they are written, as text: {{decimal: '.', thousands: ',', currency: {sign}}}; draft again with "
    "it in --text"
)
SIGNS = {"£": r"£|\b(?:pounds?|gbp)\b", "$": r"\$|\b(?:dollars?|usd)\b", "€": r"€|\b(?:euros?|eur)\b"}
"""How descriptions name the currency of each sign."""


def of_type(kind: pa.DataType | None) -> Keys:
    """Return what a type tells of a column; its values stay unknown."""
    if kind is None:
        return {"type": TODO}
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_integer(kind):
        dtype = {} if kind in (pa.int64(), pa.uint64()) else {"dtype": str(kind)}
        return {"type": "integer", "min": TODO, "max": TODO, **dtype}
    if pa.types.is_floating(kind):
        dtype = {"dtype": "float32"} if kind == pa.float32() else {}
        return {"type": "number", "min": TODO, "max": TODO, **dtype}
    if pa.types.is_dictionary(kind):
        return {"type": "categorical", "values": TODO, "dtype": "dictionary"}
    if is_text(kind):
        return {"type": "categorical", "values": TODO}
    if pa.types.is_fixed_size_list(kind) and kind.value_type == pa.uint8():
        return {"type": "image", "height": TODO, "width": TODO}
    if pa.types.is_date(kind):
        return {"type": "datetime", "min": TODO, "max": TODO, "resolution": "day"}
    if pa.types.is_timestamp(kind):
        return {"type": "datetime", "min": TODO, "max": TODO, "resolution": TODO, "dtype": str(kind)}
    if pa.types.is_decimal(kind):
        dtype = {"dtype": f"decimal({kind.precision}, {kind.scale})"}
        return {"type": "number", "min": TODO, "max": TODO, "round": kind.scale, **dtype}
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return {"type": "integer", "min": TODO, "max": TODO, "dtype": str(kind)}
    return {"type": TODO}


def inner_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of the values of a column, which a dictionary may hold."""
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def opened(
    types: Mapping[str, pa.DataType | None], form: TextForm | None, given: Mapping[str, Facts]
) -> tuple[dict[str, pa.DataType | None], list[str]]:
    """Leave open the types of text that may hold numbers, and say how a run reads these."""
    remarks = [OF_ALL_TEXT] if form is None and is_all_text(types) else []
    paid = [name for name, dtype in types.items() if form is None and name in given and _is_paid(given[name], dtype)]
    remarks += [_amounts_as_text({name: given[name].description for name in paid})] if paid and not remarks else []
    return dict(without_text(types, form)) | dict.fromkeys(paid), remarks


def _amounts_as_text(paid: Mapping[str, str]) -> str:
    """Say how a run reads amounts that are text, with the sign that descriptions name; a pound's where none is."""
    names, words = list(paid), " ".join(paid.values())
    are, amounts = ("are", "amounts by their descriptions") if names[1:] else ("is", "an amount by its description")
    signs = [sign for sign, called in SIGNS.items() if re.search(called, words, re.IGNORECASE)]
    sign = signs[0] if len(signs) == 1 else "£"
    return AMOUNTS_AS_TEXT.format(names=listed(names, "and"), are=are, amounts=amounts, sign=sign)


def _is_paid(facts: Facts, dtype: pa.DataType | None) -> bool:
    """Tell whether a column of text is described as one of money, and not as words."""
    is_open = facts.values is None and facts.kind in (None, "number", "integer") and facts.keys is None
    return dtype is not None and is_text(dtype) and is_open and is_paid(facts)


def is_all_text(types: Types) -> bool:
    """Tell whether a table has several columns with types, all of text, as ``pandas.read_csv(dtype=str)`` reads any."""
    return len(types) > 1 and all(dtype is not None and is_text(inner_type(dtype)) for dtype in types.values())


def without_text(types: Types, form: TextForm | None) -> Types:
    """Leave the types of text open, as of a text file, where all is text or a form says how it writes values.

    Privacy: of the types of columns and the declared form alone.
    """
    if form is None and not is_all_text(types):
        return types
    return {name: None if dtype is None or is_text(inner_type(dtype)) else dtype for name, dtype in types.items()}


def dates_opened(types: Types, dates: Collection[str]) -> Types:
    """Leave the types of dates that are text open: a document may say how they are written, whatever others are."""
    return {
        name: None if dtype is not None and name in dates and is_text(inner_type(dtype)) else dtype
        for name, dtype in types.items()
    }


def beside_given(dtype: pa.DataType, facts: Facts) -> Keys:
    """Return what a type in the file tells of a column that a person gives a type, which goes before it."""
    inner, type_name = inner_type(dtype), TYPES[facts.kind or ""]
    stated = of_type(dtype if is_text(inner) else inner)
    pair = (stated["type"], type_name)
    is_alike = type_name == stated["type"] or pair in (("boolean", "categorical"), ("integer", "boolean"))
    return stated if is_alike or (type_name == "categorical" and facts.values is not None) else {"type": TODO}
