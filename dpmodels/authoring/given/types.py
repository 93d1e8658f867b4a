"""Types that a person gives for columns, as ``age=integer:0:120? ward=categorical:north|south``, or as their keys."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa

from dpmodels.authoring.facts import Bound, Facts, bound, joined, listed, scalars, typed
from dpmodels.authoring.file_types import NUMBERS, TYPES, Types, inner_type, of_type
from dpmodels.authoring.given.keys import KIND_OF, facts_of_keys, is_made
from dpmodels.authoring.marks import Marks, two_numbers
from dpmodels.authoring.type_words import KIND_OF as MEANINGS
from dpmodels.codec.names import nearest
from dpmodels.contract.base import described, is_text
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.errors import InvalidArgument
from dpmodels.similar import close_match

QUOTED = r"'[^']*'|\"[^\"]*\""
PAIR = re.compile(rf"\s*(?P<name>[^=]+?)\s*=\s*(?P<kind>(?:[^\s,'\"]|{QUOTED})+)(?:[\s,]+|$)")
WORDS = r"[^\W\d]\w*(?:[ -][^\W\d]\w*)*(?:\[[^\]]*\]|\([^)]*\))?"
"""A word for a type, as data frames and documents have it: ``int64``, ``datetime64[ns]``, ``double precision``."""
KIND = re.compile(rf"(?P<type>{WORDS})(?::(?P<rest>.*?))?(?P<nullable>\?)?", re.DOTALL)
BOUNDED = ("integer", "number", "datetime")
Given = str | Mapping[str, Any]
"""The type of a column in words, or the keys that a schema has of it."""
FORM = (
    'be pairs such as "age=integer:0:120 ward=categorical:north|south income=number?": the name of a column, a type, '
    "bounds or values if known (in quotes if they have spaces), and a ? where values may be missing"
)
BY_NAME = (
    'be words by the names of columns, such as {"age": "integer:0:120", "ward": "categorical:north|south", "day": '
    '"date:2000-01-01:2020-12-31"}, with a ? behind them where values may be missing, or the same in one text; or keys '
    'of a schema, such as {"dose": {"type": "number", "min": 0, "max": 9, "round": 1}}'
)
UNKNOWN = "name columns as the data does; {} is none of them"
MEANT = "; did you mean {}?"
NO_TYPE = (
    f"have one of these types: {', '.join(KIND_OF)}, or date, which is a datetime of whole days; that of {{}} is "
    "none{}"
)
BARRED = "have a bar between values: {} is one value; write {}"
LABELED = "list values without what they stand for: write {}"
LABEL = re.compile(r"\s*(\w+)\s*=\s*[^=|]+")
"""A value with what it stands for, and not one such as ``<=50K``."""
TEXT = ("categorical", "boolean", "datetime", "identifier")
READABLE = {
    "categorical": TEXT,
    "integer": ("integer", "number", "categorical", "boolean", "identifier"),
    "number": ("number", "integer", "categorical", "identifier"),
    "boolean": ("boolean", "categorical", "identifier"),
    "datetime": ("datetime", "identifier"),
}
"""The types that a run reads of a column that a file has as one of these; of text dates, and numbers of a said form."""
OF_TEXT = """say how it is written by --text '{decimal: ",", thousands: "."}', or '{decimal: "."}' for 1234.5"""
UNREADABLE = "give {} another type: of {}, which its column holds, a run reads {}; or convert the column to {} first"
NO_BOUNDS = "leave {} without bounds: only an integer, a number and a datetime have some, and a categorical has values"
COLON = "have a colon between the smaller and the larger bound{}"
END = r"\d{4}-\d\d-\d\d|-?\d+(?:\.\d+)?"
ENDS = re.compile(rf"\s*[\[(]?\s*(?P<low>{END})\s*(?:-|–|to|\.\.\.?|;|,|/)\s*(?P<high>{END})\s*[\])]?\s*")
"""Two bounds as people write them: 100-7000, 0..10, [0, 10]."""
BOUNDS = "have bounds as in age=integer:0:120 or day=datetime:2020-01-01:2029-12-31, the smaller first; {} has not"


def read_types(given: str | Mapping[str, Given], names: Types, form: TextForm | None = None) -> dict[str, Facts]:
    """Read the types, and bounds, that a person gives for columns: in a line, or by name.

    Args:
        given: the types, as they are written.
        names: of the columns, with the type of each in the data, or None where the data says none.
        form: how the text of the data writes numbers, if that is said.

    Raises:
        InvalidArgument: it is no such list, names a column or a type that there is not, or a type that a run does not
            read of the column.
        Unsuitable: the keys of a column are none of a schema.
    """
    facts: dict[str, Facts] = {}
    for name, written in by_name(given).items():
        if name not in names and not is_made(written):
            slip = nearest(name, names)
            rule = UNKNOWN.format(name) + (MEANT.format(slip[1]) if slip else "")
            raise InvalidArgument("types", _pair(name, written), rule)
        facts[name] = one = facts_of_keys(name, written) if isinstance(written, Mapping) else _of_words(name, written)
        type_name = one.keys["type"] if one.keys else TYPES[one.kind or ""]
        if (dtype := names.get(name)) is None or is_made(written):
            continue
        if type_name in KIND_OF and type_name not in (types := _readable(dtype, form)):
            way = _way_out(name, type_name, dtype)
            rule = UNREADABLE.format(name, described(dtype), ", ".join(types), type_name) + way
            raise InvalidArgument("types", _pair(name, written), rule)
        if one.kind == "date" and _is_plain(written) and pa.types.is_timestamp(inner_type(dtype)):
            facts[name] = replace(one, kind="moment")
    return facts


def _is_plain(written: Given) -> bool:
    """Tell whether a type is a datetime of which nobody says that it is cut to the day, as the word date does."""
    word = written["type"] if isinstance(written, Mapping) else re.split("[:?]", written)[0]
    return str(word) == "datetime"


def _pair(name: str, written: Given) -> str:
    return f"{name}={written}"


def _of_words(name: str, text: str) -> Facts:
    """Read a type, and perhaps bounds or values, that is written in words."""
    kind = KIND.fullmatch(text)
    if kind is None:
        raise InvalidArgument("types", _pair(name, text), FORM)
    word = kind["type"]
    facts = Facts(kind=KIND_OF[word]) if word in KIND_OF else typed(word)
    if facts.kind is None:
        raise InvalidArgument("types", _pair(name, text), NO_TYPE.format(name, _near_type(word)))
    facts = replace(facts, from_person=True, nullable=True if kind["nullable"] else None)
    return facts if kind["rest"] is None else _with_rest(name, text, kind["rest"], facts)


def _way_out(name: str, type_name: str, dtype: pa.DataType) -> str:
    """Say what converts a column of text to numbers, or has it read as such."""
    if type_name not in NUMBERS or not is_text(inner_type(dtype)):
        return ""
    return f", as `frame[{name!r}] = pandas.to_numeric(frame[{name!r}])` does, or {OF_TEXT}"


def _readable(dtype: pa.DataType, form: TextForm | None = None) -> Sequence[str]:
    """Return the types that a run reads of a type of the data; a column of nothing but nulls has any."""
    inner = inner_type(dtype)
    if is_text(inner) and form is not None and form.is_of_numbers:
        return (*NUMBERS, *TEXT)
    if pa.types.is_time(inner) or pa.types.is_duration(inner):
        return "integer", "identifier"
    return tuple(KIND_OF) if pa.types.is_null(inner) else READABLE.get(of_type(inner)["type"], ("identifier",))


def by_name(given: str | Mapping[str, Given]) -> Mapping[str, Given]:
    """Return the types by the names of their columns, as they are written.

    Raises:
        InvalidArgument: it is no list of pairs.
    """
    if isinstance(given, Mapping):
        if unread := next((f"{name}={kind!r}" for name, kind in given.items() if not _is_read(name, kind)), ""):
            raise InvalidArgument("types", unread, BY_NAME)
        return given
    if not isinstance(given, str):
        raise InvalidArgument("types", given, BY_NAME)
    text, pairs, position, last = given, dict[str, str](), 0, ""
    while position < len(text.rstrip()):
        pair = PAIR.match(text, position)
        word = text[position:].split(maxsplit=1)[0]
        if text[:position].endswith(",") and (pair is None or word not in pair[0].split("=")[0].split()[-1:]):
            _check_bars(last, f"{pairs[last]},{word}")
        if pair is None:
            raise InvalidArgument("types", word, FORM)
        last, position = pair["name"], pair.end()
        pairs[last] = re.sub("['\"]", "", pair["kind"])
    return pairs


def _is_read(name: object, written: object) -> bool:
    return isinstance(name, str) and isinstance(written, str | Mapping)


def _check_bars(name: str, text: str) -> None:
    """Refuse values between commas, or with what they stand for, and say how they are listed."""
    kind = KIND.fullmatch(text)
    rest = (kind and kind["rest"]) or ""
    if kind is None or not rest or TYPES[_of_words(name, kind["type"]).kind or ""] != "categorical":
        return
    values = [LABEL.fullmatch(value) for value in rest.split("|")]
    if all(values):
        bare = "|".join(value[1] for value in values if value)
        raise InvalidArgument("types", _pair(name, text), LABELED.format(f"{name}={kind['type']}:{bare}"))
    if "," in rest and "|" not in rest:
        bars = "|".join(value.strip() for value in rest.split(",") if value.strip())
        raise InvalidArgument("types", _pair(name, text), BARRED.format(rest, f"{name}={kind['type']}:{bars}"))


def _near_type(word: str) -> str:
    """Suggest the type that a word was probably meant for, which may be a slip in a word for it."""
    meant = close_match(word, KIND_OF) or TYPES.get(MEANINGS.get(close_match(word.lower(), MEANINGS), ""), "")
    return MEANT.format(meant) if meant else ""


def _with_rest(name: str, text: str, rest: str, facts: Facts) -> Facts:
    """Return a type with what is written behind it: values of a category, or bounds."""
    type_name = TYPES[facts.kind or ""]
    if type_name == "categorical":
        _check_bars(name, text)
        values = [value.strip() for value in rest.split("|")]
        if not all(values):
            raise InvalidArgument("types", _pair(name, text), FORM)
        return replace(facts, values=listed(scalars(values, facts.kind)).values)
    if type_name not in BOUNDED:
        raise InvalidArgument("types", _pair(name, text), NO_BOUNDS.format(name))
    ends = rest.split(":")
    if len(ends) != len(("low", "high")):
        raise InvalidArgument("types", _pair(name, text), COLON.format(_with_colon(text, rest, type_name)))
    if doubtful := [end for end in ends if Marks().is_doubtful(end, type_name)]:
        raise InvalidArgument("types", _pair(name, text), f"name bounds in one way: {two_numbers(doubtful[0])}")
    low, high = (_bound(end, type_name) for end in ends)
    if low is None or high is None or low > high:
        raise InvalidArgument("types", _pair(name, text), BOUNDS.format(name))
    return replace(facts, low=Bound(low), high=Bound(high))


def _with_colon(text: str, rest: str, type_name: str) -> str:
    """Say how a type with what were meant for two bounds is written, or give an example where none are told."""
    word, ends = text.partition(":")[0], ENDS.fullmatch(rest)
    if ends is None:
        return f", as in {word}:{'2000-01-01:2020-12-31' if type_name == 'datetime' else '0:120'}"
    return f": write {word}:{ends['low']}:{ends['high']}" + "?" * text.endswith("?")


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
    is_settled = is_bounded or given.values is not None
    return replace(
        documented,
        unsure="" if is_settled else documented.unsure,
        low=None if is_bounded else documented.low,
        high=None if is_bounded else documented.high,
        values=documented.values if given.values is None and given.kind == "category" else None,
        nullable=documented.nullable if given.nullable is None else None,
        derived=None,
    )
