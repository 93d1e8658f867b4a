"""What a value of a schema is to be written as that is none of its key."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from dpmodels.authoring.file_types import TYPES
from dpmodels.authoring.type_words import kind_of
from dpmodels.contract.base import OF_WORDS
from dpmodels.contract.text_forms.days import days_meant
from dpmodels.errors import without_commas
from dpmodels.similar import close_match, near

OF_TABLES = {
    "tuple_type": ": each of its lines begins with a dash, as `- {by: COLUMN}` or `- {columns: [COLUMN, COLUMN]}`",
    "model_type": ", as `{by: COLUMN}` or `{columns: [COLUMN, COLUMN]}`",
}
"""How a workload is written, by what pydantic finds wrong with it."""
OF_CONDITION = (
    ": integers and numbers alone are computed, and a condition is 1 where it holds; write "
    '`{name}: {{type: integer, min: 0, max: 1, computed: "{formula}"}}`'
)
"""What a computed column of another type is to be."""
OF_ANSWERS = (
    ": a list is `{{type: categorical, values: [{values}]}}`, of which the same words come back; `{{type: boolean}}` "
    "alone reads yes and no, ja and nein or oui and non as true and false"
)
"""What a column with values is that is said to be a boolean, or a number."""
OF_HUNDREDS = (
    ": for values in whole hundreds write `{name}: {{type: derived, formula: 100 * hundreds}}`, and beside it "
    '`hundreds: {{type: integer, min: 0, max: MAX / 100, computed: "floor({name} / 100)", keep: drop}}`'
)

OF_TEXT = {
    **dict.fromkeys(("format", "date_format", "dateformat"), 'date_format: "%d/%m/%Y"'),
    **dict.fromkeys(("decimal", "thousands"), 'decimal: ",", thousands: "."'),
    "currency": 'decimal: ".", currency: "£"',
    "datetime_format": 'datetime_format: "%d/%m/%Y %H:%M"',
}
"""What says of the whole table how its text is written, by the key that a person may write for a column."""
WITH_UNIT = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*[^\W\d_%]*[€$£%°]?[^\W\d_]*")
"""A number with the word or the sign of its unit behind it."""
OPTION = re.compile(r"'([^']+)'|\b([a-z]+\d+(?:\[\w+\])?|[a-z]+\[\w+\]|(?:(?<=be )|(?<=, ))[a-z]+(?=,))")
"""A word that a sentence offers: in quotes, between commas, or the name of a type of Arrow."""
STEPS = tuple(f"{10.0**-decimals:g}" for decimals in range(7))
"""The last decimals that a person writes for their number."""


def not_of_type(key_path: tuple[str, ...], value: Any, meant: str) -> str:
    """Say what to write for a key that columns of another type have, as the tail of a sentence; else what is meant."""
    if key_path[0] == "columns" and key_path[2:] == ("values",) and isinstance(value, list):
        return OF_ANSWERS.format(values=", ".join(json.dumps(one, ensure_ascii=False, default=str) for one in value))
    if key_path[0] == "columns" and key_path[2:] == ("round",):
        return "; decimals are of `type: number`"
    if key_path[0] == "columns" and len(key_path) > 2 and (form := OF_TEXT.get(key_path[-1])):
        return f"; how text is written stands beside `columns`, as `text: {{{form}}}`"
    if key_path[0] != "columns" or key_path[2:] != ("computed",):
        return meant
    return OF_CONDITION.format(name=key_path[1], formula=value if isinstance(value, str) else "FORMULA")


def type_meant(word: str, types: Collection[str]) -> str:
    """Say that a word is none of the types of a schema, and for which it stands elsewhere, or which is nearly it."""
    kind = kind_of(word)
    meant = f"; write `type: {TYPES[kind]}`" if kind else near(word, types)
    meant = f"; {OF_WORDS}" if kind in ("text", "category") else meant
    return f"has no type `{word}`; the types are {', '.join(types)}{meant}"


def one_of_meant(options: str, value: Any) -> str:
    """Suggest the word that was probably meant of those that a sentence says there are; empty where none is near."""
    words = [quoted or bare for quoted, bare in OPTION.findall(options)]
    return near(value, words) if isinstance(value, str) and value not in words else ""


def meant_by(kind: str, key_path: tuple[str, ...], value: Any) -> str:
    """Say what to write for a value, as the tail of a sentence; empty where that is not known.

    Args:
        kind: what pydantic calls the fault.
        key_path: where the value stands.
        value: what stands there, which is of a schema and so public.
    """
    if key_path[0] == "workload" and len(key_path) < 3:
        return OF_TABLES.get(kind, "")
    if written := _written(kind, key_path, value):
        return f"; write {written}"
    if kind == "union_tag_not_found" and isinstance(value, Mapping):
        key = close_match("type", [str(one) for one in value])
        of_words = f"; {OF_WORDS}" * ({*value} <= {"nullable", "max_null_share", "outside"})
        return f"; did you mean `type` by `{key}`?" if key else of_words
    if kind == "greater_than_equal" and key_path[-1] == "round":
        return OF_HUNDREDS.format(name=key_path[1])
    if kind in ("int_type", "float_type"):
        meant = without_commas(str(value), kind == "int_type")
        meant += " (a point stands before decimals)" * bool(meant)
    else:
        meant = " or ".join(days_meant(str(value))) if kind == "date_type" else ""
    return f"; write {meant}" if meant else ""


def _written(kind: str, key_path: tuple[str, ...], value: Any) -> str:
    """Say how a part of a schema is written that stands there in another form; empty of a form that is not known."""
    key = key_path[-1]
    if kind == "string_pattern_mismatch" and key_path == ("name",) and isinstance(value, str):
        return re.sub(r"[^a-z0-9_-]+", "_", value.lower()).strip("_")
    if key_path[0] == "workload" and key == "by" and isinstance(value, list):
        return f"`{{columns: [{', '.join(map(str, value))}]}}`, tables of these columns together"
    if key_path == ("constraints",) and isinstance(value, str):
        return f"a list of rules, `[{value}]`"
    if key_path == ("rows",) and isinstance(value, int):
        return f"`{{min: {value}, max: {value}}}`, the fewest and the most rows"
    if kind == "model_attributes_type" and key_path[0] == "columns" and isinstance(value, str | list):
        listed = isinstance(value, list)
        keys = f"categorical, values: [{', '.join(map(str, value))}]" if listed else f"{value}, …"
        return f"`{{type: {keys}}}`"
    if key == "values" and isinstance(value, str) and len(parts := re.split(r"\s*[|;,/]\s*", value)) > 1:
        return f"[{', '.join(map(json.dumps, parts))}]"
    if key == "round" and isinstance(value, float) and f"{value:g}" in STEPS:
        return f"{STEPS.index(f'{value:g}')}, the number of decimals"
    if kind in ("int_type", "float_type") and isinstance(value, str) and (number := WITH_UNIT.fullmatch(value)):
        return f"{number[1]}, without its unit"
    return ""
