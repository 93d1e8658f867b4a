"""What a public document says of one column: the one object that every kind of documentation is read into."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, NamedTuple

from dpmodels.authoring.type_words import is_money, kind_of

Moment = date | datetime
TODO = "TODO"
"""Stands in a draft for what a person must write; the lint refuses it."""
SCALES = {"log": "log", "logarithmic": "log", "linear": "linear"}
"""The scales of numbers, by the words for them."""
DATE = re.compile(r"(\d\d?)([./])(\d\d?)\2(\d{4})")
"""A date whose first number is a day or a month."""
DECIMAL_COMMA = re.compile(r"[-+]?(\d+,(\d\d?|\d{4,})|0,\d+|\d{1,3}(\.\d{3})+,\d+|[1-9]\d{0,2}(\.\d{3}){2,})")
"""A number that can have no other meaning than that a comma stands before its decimals, a point between thousands."""
LAST_MONTH = 12
RESOLUTIONS = ("day", "hour", "minute", "second")
SIZED = re.compile(r"\s*([^\W\d]+\d*)[^(]*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")

LARGEST = 1e300
"""A number beyond this, as infinity is, bounds nothing."""


class Bound(NamedTuple):
    """A bound of an interval, which the interval has unless it is open there."""

    value: int | float | Moment
    open: bool = False


@dataclass(frozen=True)
class Facts:
    """What is known of a column; None, or nothing, where the document is silent.

    Attributes:
        kind: one of ``TYPE_WORDS``.
        from_person: whether a person gave the kind, which goes before the type that a file has.
        low, high: what its numbers or moments lie between.
        values: all the values that it may have, null aside.
        decimals: that its numbers have at most.
        money: whether its type is a word for money, which has cents unless other decimals are known.
        zeros: whether zero is a value of its own kind; scale: of its numbers, one of ``SCALES``.
        resolution: that its moments have, one of ``RESOLUTIONS``.
        unique: whether it is said to have each value in one row; nobody concludes it from values.
        derived: what it follows from, as the keys of a schema; nothing else counts then.
        unread: in words, what the document says of it and was not understood.
        keys: those of a schema, which a person wrote; they go before all of it.
        unsure: words that its bounds or values were read of, and that may be meant otherwise.
        offered: keys that its words seem to say, of a formula or of times of day; a person confirms them.
        place: in words, the line of the document that describes it, where it has lines of prose.
    """

    kind: str | None = None
    low: Bound | None = None
    high: Bound | None = None
    values: tuple[bool | int | float | str, ...] | None = None
    nullable: bool | None = None
    decimals: int | None = None
    zeros: bool | None = None
    scale: str | None = None
    resolution: str | None = None
    unique: bool = False
    derived: Mapping[str, Any] | None = None
    description: str = ""
    unread: tuple[str, ...] = ()
    from_person: bool = False
    money: bool = False
    keys: Mapping[str, Any] | None = None
    unsure: str = ""
    offered: Mapping[str, Any] | None = None
    place: str = ""


Columns = Mapping[str, Facts]
Tables = Mapping[str, Columns]
"""The tables that a document describes, by their names; a document of one table may leave its name empty."""


def joined(facts: Iterable[Facts]) -> Facts:
    """Return what holds if every one of several facts does."""
    several = list(facts)
    lists = [one.values for one in several if one.values is not None]
    nullable = {one.nullable for one in several} - {None}
    return Facts(
        kind=next((one.kind for one in several if one.kind), None),
        low=_tightest(max, [one.low for one in several if one.low]),
        high=_tightest(min, [one.high for one in several if one.high]),
        values=tuple(value for value in lists[0] if all(value in other for other in lists)) if lists else None,
        nullable=False not in nullable if nullable else None,
        decimals=min((one.decimals for one in several if one.decimals is not None), default=None),
        zeros=next((one.zeros for one in several if one.zeros is not None), None),
        scale=next((one.scale for one in several if one.scale), None),
        resolution=next((one.resolution for one in several if one.resolution), None),
        unique=any(one.unique for one in several),
        derived=next((one.derived for one in several if one.derived), None),
        description=next((one.description for one in several if one.description), ""),
        unread=tuple(words for one in several for words in one.unread),
        from_person=any(one.from_person for one in several),
        money=any(one.money for one in several),
        keys=next((one.keys for one in several if one.keys is not None), None),
        unsure=next((one.unsure for one in several if one.unsure), ""),
        offered=next((one.offered for one in several if one.offered), None),
        place=next((one.place for one in several if one.place), ""),
    )


def keyed(facts: Facts) -> Facts:
    """Take for an identifier what is unique, of whole numbers or text, and has no list of values."""
    names_rows = facts.unique and facts.values is None and facts.kind in (None, "integer", "text")
    return replace(facts, kind="identifier") if names_rows else facts


def _tightest(choose: Any, bounds: list[Bound]) -> Bound | None:
    """Return the largest lower or the smallest upper bound, open if one of those is."""
    try:
        value = choose((bound.value for bound in bounds), default=None)
    except TypeError:  # a number and a date
        value = bounds[0].value
    return None if value is None else Bound(value, any(bound == (value, True) for bound in bounds))


def typed(words: Any) -> Facts:
    """Read the name of a type, such as ``varchar(20)``, ``decimal(10, 2)``, ``datetime64[ns]``."""
    match = SIZED.match(words) if isinstance(words, str) else None
    if match is None:
        return Facts(unread=(f"type {words}",)) if isinstance(words, str) and words.strip() else Facts()
    word, size, scale = match[1].lower(), match[2], match[3]
    kind = kind_of(words) or kind_of(word)
    if kind is None:
        return Facts(unread=(f"type {words}",))
    if kind != "number" or not size or word in ("float", "double", "real"):
        return Facts(kind=kind, money=kind == "number" and is_money(words))
    return Facts(kind="number", decimals=int(scale)) if int(scale or 0) else Facts(kind="integer")


def between(low: Any, high: Any, low_open: bool = False, high_open: bool = False) -> Facts:
    """Return the fact that values lie between two bounds, either of which may be None."""
    low, high = _in_one_order(low, high)
    least, most = bound(low), bound(high)
    return Facts(
        low=None if least is None else Bound(least, low_open),
        high=None if most is None else Bound(most, high_open),
        unread=tuple(
            f"bound {limit}{_meant(limit)}"
            for limit, read in ((low, least), (high, most))
            if (limit is None) < (read is None)
        ),
    )


def _in_one_order(low: Any, high: Any) -> tuple[Any, Any]:
    """Read both of two dates in the order of day and month that one of them can have alone, as 31.12.2023 has."""
    ends = [DATE.fullmatch(end.strip()) if isinstance(end, str) else None for end in (low, high)]
    pairs = [(int(end[1]), int(end[3]), int(end[4])) for end in ends if end]
    orders = {first > LAST_MONTH for first, second, _ in pairs if (first > LAST_MONTH) != (second > LAST_MONTH)}
    if len(pairs) < len(ends) or len(orders) != 1 or len({end[2] for end in ends if end}) > 1:
        return low, high
    try:
        days = [date(year, *((second, first) if True in orders else (first, second))) for first, second, year in pairs]
    except ValueError:
        return low, high
    return days[0], days[1]


def _meant(limit: Any) -> str:
    """Say how the days are written that a date may mean; nothing of what is no date."""
    days = _days(limit.strip()) if isinstance(limit, str) else []
    return f", which may be two days: write {' or '.join(map(str, days))}, or say --text" if days else ""


def _days(text: str) -> list[date]:
    """Return the days that such a date as 31.12.2023 or 12/31/2023 may mean, of which there are two at most."""
    match = DATE.fullmatch(text)
    first, second, year = (int(match[group]) for group in (1, 3, 4)) if match else (0, 0, 0)
    days = []
    for month, day in ((second, first), (first, second)):
        with suppress(ValueError):
            days.append(date(year, month, day))
    return list(dict.fromkeys(days))


def stepping(step: Any) -> Facts:
    """Return the fact that numbers are multiples of a step, where it is a power of ten and so says their decimals."""
    if not isinstance(step, float) or not 0 < step < 1 or math.log10(step) != round(math.log10(step)):
        return Facts()
    return Facts(decimals=-round(math.log10(step)))


def bound(limit: Any) -> int | float | Moment | None:
    """Read a bound that was written as a number, as text, or as a moment; None for what is no finite bound."""
    if isinstance(limit, bool):
        return None
    if isinstance(limit, str):
        return _of_text(limit.strip())
    if isinstance(limit, int | float) and not -LARGEST < limit < LARGEST:
        return None
    return limit if isinstance(limit, int | float | date) else None


def _of_text(text: str) -> int | float | Moment | None:
    plain = text.replace(",", "") if re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", text) else text
    if re.fullmatch(DECIMAL_COMMA, text):
        plain = text.replace(".", "").replace(",", ".")
    if re.fullmatch(r"[-+]?\d+", plain):
        return bound(int(plain)) if len(plain) < 300 else None
    if re.fullmatch(r"[-+]?(\d+\.\d*|\.\d+|\d+(?=e))(e[-+]?\d+)?", plain, re.IGNORECASE):
        return bound(float(plain))
    if len(days := _days(text)) == 1:
        return days[0]
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def listed(content: Any) -> Facts:
    """Return the fact that a column has no other values than those of a list, of which one may be null."""
    values = content if isinstance(content, list | tuple) else []
    distinct_values = tuple(dict.fromkeys(value for value in values if value is not None))
    if not distinct_values or not all(isinstance(value, bool | int | float | str) for value in distinct_values):
        return Facts(unread=("a list of values",))
    return Facts(values=distinct_values, nullable=True if None in values else None)


def scalars(tokens: Sequence[str], kind: str | None) -> Sequence[Any]:
    """Take values for numbers if the column may hold numbers, and all are written as such."""
    numbers = [bound(token) if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", token) else None for token in tokens]
    return numbers if kind in (None, "category", "integer", "number") and None not in numbers else tokens
