"""What the type of a column in a file tells of it, beside a type that a person gives."""

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from dpmodels.authoring.facts import TODO, Facts
from dpmodels.contract.base import is_text
from dpmodels.contract.text_forms.text_form import TextForm

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
