"""Types that a person gives for columns, as ``age=integer:0:120? ward=categorical:north|south``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa

from dpmodels.authoring.facts import Bound, Facts, bound, joined, listed, scalars
from dpmodels.authoring.file_types import inner_type, of_type
from dpmodels.authoring.marks import Marks, two_numbers
from dpmodels.codec.names import nearest
from dpmodels.contract.base import described
from dpmodels.errors import InvalidArgument

QUOTED = r"'[^']*'|\"[^\"]*\""
PAIR = re.compile(rf"\s*(?P<name>[^=]+?)\s*=\s*(?P<kind>(?:[^\s,'\"]|{QUOTED})+)(?:[\s,]+|$)")
KIND = re.compile(r"(?P<type>\w+)(?::(?P<rest>.*?))?(?P<nullable>\?)?", re.DOTALL)
KINDS = {
    "categorical": "category",
    "boolean": "boolean",
    "integer": "integer",
    "number": "number",
    "datetime": "date",
    "identifier": "identifier",
}
"""The types that may be given, and the kinds of column that they stand for; a datetime is cut to the day."""
BOUNDED = ("integer", "number", "datetime")
FORM = (
    'be pairs such as "age=integer:0:120 ward=categorical:north|south income=number?": the name of a column, a type, '
    "bounds or values if known (in quotes if they have spaces), and a ? where values may be missing"
)
BY_NAME = (
    'be words by the names of columns, such as {"age": "integer:0:120", "ward": "categorical:north|south"}, with a ? '
    "behind them where values may be missing, or the same in one text"
)
UNKNOWN = "name columns as the data does; {} is none of them"
MEANT = "; did you mean {}?"
NO_TYPE = f"have one of these types: {', '.join(KINDS)}; that of {{}} is none"
TEXT = ("categorical", "boolean", "datetime", "identifier")
READABLE = {
    "categorical": TEXT,
    "integer": ("integer", "number", "categorical", "boolean", "identifier"),
    "number": ("number", "integer", "categorical", "identifier"),
    "boolean": ("boolean", "categorical", "identifier"),
    "datetime": ("datetime", "identifier"),
}
"""The types that a run reads of a column that a file has as one of these; of text it reads dates, but no numbers."""
UNREADABLE = "give {} another type: of {}, which its column holds, a run reads {}; or convert the column to {} first"
NO_BOUNDS = "leave {} without bounds: only an integer, a number and a datetime have some, and a categorical has values"
BOUNDS = "have bounds as in age=integer:0:120 or day=datetime:2020-01-01:2029-12-31, the smaller first; {} has not"


def read_types(given: str | Mapping[str, str], names: Mapping[str, pa.DataType | None]) -> dict[str, Facts]:
    """Read the types, and bounds, that a person gives for columns: in a line, or by name.

    Args:
        given: the types, as they are written.
        names: of the columns, with the type of each in the data, or None where the data says none.

    Raises:
        InvalidArgument: it is no such list, names a column or a type that there is not, or a type that a run does not
            read of the column.
    """
    facts: dict[str, Facts] = {}
    for name, text in by_name(given).items():
        if name not in names:
            near = nearest(name, names)
            raise InvalidArgument("types", given, UNKNOWN.format(name) + (MEANT.format(near[1]) if near else ""))
        kind = KIND.fullmatch(text)
        if kind is None:
            raise InvalidArgument("types", f"{name}={text}", FORM)
        if kind["type"] not in KINDS:
            raise InvalidArgument("types", given, NO_TYPE.format(name))
        if (dtype := names[name]) is not None and kind["type"] not in (types := _readable(dtype)):
            rule = UNREADABLE.format(name, described(dtype), ", ".join(types), kind["type"])
            raise InvalidArgument("types", f"{name}={text}", rule)
        facts[name] = _facts(name, text, kind, given)
    return facts


def _readable(dtype: pa.DataType) -> Sequence[str]:
    """Return the types that a run reads of a type of the data; a column of nothing but nulls has any."""
    inner = inner_type(dtype)
    if pa.types.is_time(inner) or pa.types.is_duration(inner):
        return "integer", "identifier"
    return tuple(KINDS) if pa.types.is_null(inner) else READABLE.get(of_type(inner)["type"], ("identifier",))


def by_name(given: str | Mapping[str, str]) -> Mapping[str, str]:
    """Return the types by the names of their columns, as they are written.

    Raises:
        InvalidArgument: it is no list of pairs.
    """
    if isinstance(given, Mapping):
        if unread := next((f"{name}={kind!r}" for name, kind in given.items() if not _are_texts(name, kind)), ""):
            raise InvalidArgument("types", unread, BY_NAME)
        return given
    if not isinstance(given, str):
        raise InvalidArgument("types", given, BY_NAME)
    text, pairs, position = given, dict[str, str](), 0
    while position < len(text.rstrip()):
        pair = PAIR.match(text, position)
        if pair is None:
            raise InvalidArgument("types", text[position:].split(maxsplit=1)[0], FORM)
        pairs[pair["name"]], position = re.sub("['\"]", "", pair["kind"]), pair.end()
    return pairs


def _are_texts(*words: object) -> bool:
    return all(isinstance(word, str) for word in words)


def _facts(name: str, text: str, kind: re.Match[str], given: object) -> Facts:
    facts = Facts(kind=KINDS[kind["type"]], from_person=True, nullable=True if kind["nullable"] else None)
    if kind["rest"] is None:
        return facts
    if kind["type"] == "categorical":
        values = [value.strip() for value in kind["rest"].split("|")]
        if not all(values):
            raise InvalidArgument("types", f"{name}={text}", FORM)
        return replace(facts, values=listed(scalars(values, facts.kind)).values)
    if kind["type"] not in BOUNDED:
        raise InvalidArgument("types", given, NO_BOUNDS.format(name))
    ends = kind["rest"].split(":")
    if len(ends) != len(("low", "high")):
        raise InvalidArgument("types", f"{name}={text}", FORM)
    if doubtful := [end for end in ends if Marks().is_doubtful(end, kind["type"])]:
        raise InvalidArgument("types", f"{name}={text}", f"name bounds in one way: {two_numbers(doubtful[0])}")
    low, high = (_bound(end, kind["type"]) for end in ends)
    if low is None or high is None or low > high:
        raise InvalidArgument("types", given, BOUNDS.format(name))
    return replace(facts, low=Bound(low), high=Bound(high))


def _bound(text: str, kind: str) -> Any:
    """Read a number, or a day of a datetime; None of any other text."""
    limit = bound(text)
    return limit if limit is None or isinstance(limit, date) == (kind == "datetime") else None


def with_types(facts: Mapping[str, Facts], given: Mapping[str, Facts]) -> dict[str, Facts]:
    """Return what is documented of columns, with the types that a person gives, which go before it."""
    return {**facts, **{name: joined([one, _beside(one, facts.get(name, Facts()))]) for name, one in given.items()}}


def _beside(given: Facts, documented: Facts) -> Facts:
    """Return what is documented of a column but for what a person says otherwise."""
    is_bounded = given.low is not None
    return replace(
        documented,
        low=None if is_bounded else documented.low,
        high=None if is_bounded else documented.high,
        values=documented.values if given.values is None and given.kind == "category" else None,
        nullable=documented.nullable if given.nullable is None else None,
        derived=None,
    )
