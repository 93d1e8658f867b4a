"""Days between two dates that a description says, such as `at most 330 days before departure`, as two columns."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from dpmodels.authoring.facts import TODO, Columns, Facts

NIGHTS = re.compile(r"nights?|days?|nächten?|tagen?|nuits?|jours?|noches?|días?", re.IGNORECASE)
"""What the days between two dates are called in words, where no column is called so."""
CLAUSE = re.compile(r"[;,()\n]|[.!](?:\s|$)|\s[–—]\s")
BEFORE, AFTER = (
    "before|prior to|ahead of|vor|avant|antes de|antes del",
    "after|following|nach|après|después de|después del",
)
SPAN = re.compile(
    r"(?:(?:at most|at the most|up to|no more than|not more than|maximum|max\.?|within|höchstens|maximal|bis zu|"
    r"au plus|au maximum|jusqu['’]à|como máximo|máximo|hasta)\s+|"
    r"(?:(?:between|from|zwischen|vo[nm]|entre|d[eu]|desde)\s+)?(?P<least>\d{1,5})"
    r"(?:\s*[-–]\s*|\s+(?:to|and|bis|und|à|et|a|y)\s+))(?P<days>\d{1,5})\s+"
    r"(?:calendar )?(?:days?|tage?n?|jours?|días?)\s+"
    rf"(?:(?P<before>{BEFORE})|(?P<after>{AFTER}))\s+"
    r"(?:(?:the|its|der|die|das|dem|den|le|la|el)\s+|l['’])?(?P<other>\w+)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Span:
    """How a date depends on another one: the column of days between them, and the two columns as a schema has them."""

    name: str
    days: Mapping[str, Any]
    date: Mapping[str, Any]
    clause: str


def span_in(date: str, words: str, keys: Mapping[str, Mapping[str, Any]]) -> Span | None:
    """Return the days that one clause says between a date and another column of dates; None where none does."""
    for clause in (" ".join(part.split()) for part in CLAUSE.split(words)):
        match = SPAN.fullmatch(clause)
        other = _date(match["other"], date, keys) if match else ""
        is_date = _is_of_days(keys[date]) or is_open(keys[date])
        if match is None or not other or not is_date or not date.isidentifier():
            continue
        side = "before" if match["before"] else "after"
        name = f"days_{side}_{other}"
        pair = f"{date}, {other}" if match["before"] else f"{other}, {date}"
        nullable = {"nullable": True} if keys[date].get("nullable") or keys[other].get("nullable") else {}
        least, most = int(match["least"] or 0), int(match["days"])
        days = {"type": "integer", "min": least, "max": most, "computed": f"days_between({pair})", **nullable}
        moved = f"-{name}" if match["before"] else name
        if name not in keys and least <= most:
            return Span(name, days, {"type": "derived", "formula": f"add_days({other}, {moved})"}, clause)
    return None


def nights_in(columns: Columns) -> str:
    """Return the column of days that a draft makes where one date is said to follow another; empty of none or several.

    Such a column is meant by nights or days in the formulas of a table that has no column of these names.
    """
    keys = {name: _known_keys(one) for name, one in columns.items()}
    spans = [span_in(name, one.description, keys) for name, one in columns.items() if one.keys is None]
    names = [span.name for span in spans if span and span.name.startswith("days_after_")]
    return names[0] if len(names) == 1 else ""


def _known_keys(facts: Facts) -> Mapping[str, Any]:
    """Return as much of a column's keys as tells whether it holds dates."""
    ends = [end.value for end in (facts.low, facts.high) if end]
    if facts.keys is not None:
        return facts.keys
    if facts.kind == "date" or (ends and all(type(end) is date for end in ends)):
        return {"type": "datetime"}
    return {"type": TODO if facts.kind is None and not ends and facts.values is None else facts.kind}


def _date(word: str, date: str, keys: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the other column of dates of a name, or the only one that has it as a part of its name."""
    others = [name for name, one in keys.items() if name != date and _is_of_days(one) and name.isidentifier()]
    same = [name for name in others if name.casefold() == word.casefold()]
    matching = same or [name for name in others if word.casefold() in re.split(r"[_\W]+", name.casefold())]
    return matching[0] if len(matching) == 1 else ""


def is_open(keys: Mapping[str, Any]) -> bool:
    """Tell whether nobody said what a column holds: its type is open, or it is text of which no values are listed."""
    return keys.get("type") == TODO or (keys.get("type") == "categorical" and keys.get("values") == TODO)


def _is_of_days(keys: Mapping[str, Any]) -> bool:
    return keys.get("type") == "datetime" and keys.get("resolution", "day") == "day"
