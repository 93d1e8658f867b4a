"""Days between two dates that a description says, such as `at most 330 days before departure`, as two columns."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpmodels.authoring.facts import TODO

CLAUSE = re.compile(r"[;,()\n]|[.!](?:\s|$)|\s[–—]\s")
BEFORE, AFTER = (
    "before|prior to|ahead of|vor|avant|antes de|antes del",
    "after|following|nach|après|después de|después del",
)
SPAN = re.compile(
    r"(?:at most|at the most|up to|no more than|not more than|maximum|max\.?|within|höchstens|maximal|bis zu|au plus|"
    r"au maximum|jusqu['’]à|como máximo|máximo|hasta)\s+(?P<days>\d{1,5})\s+"
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


def span_in(own: str, words: str, keys: Mapping[str, Mapping[str, Any]]) -> Span | None:
    """Return the days that one clause says between a date and another column of dates; None where none does."""
    for clause in (" ".join(part.split()) for part in CLAUSE.split(words)):
        match = SPAN.fullmatch(clause)
        other = _date(match["other"], own, keys) if match else ""
        is_date = _is_of_days(keys[own]) or keys[own].get("type") == TODO
        if match is None or not other or not is_date or not own.isidentifier():
            continue
        side = "before" if match["before"] else "after"
        name = f"days_{side}_{other}"
        pair = f"{own}, {other}" if match["before"] else f"{other}, {own}"
        nullable = {"nullable": True} if keys[own].get("nullable") or keys[other].get("nullable") else {}
        days = {"type": "integer", "min": 0, "max": int(match["days"]), "computed": f"days_between({pair})", **nullable}
        moved = f"-{name}" if match["before"] else name
        if name not in keys:
            return Span(name, days, {"type": "derived", "formula": f"add_days({other}, {moved})"}, clause)
    return None


def _date(word: str, own: str, keys: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the other column of dates of a name, or the only one that has it as a part of its name."""
    others = [name for name, one in keys.items() if name != own and _is_of_days(one) and name.isidentifier()]
    same = [name for name in others if name.casefold() == word.casefold()]
    found = same or [name for name in others if word.casefold() in re.split(r"[_\W]+", name.casefold())]
    return found[0] if len(found) == 1 else ""


def _is_of_days(keys: Mapping[str, Any]) -> bool:
    return keys.get("type") == "datetime" and keys.get("resolution", "day") == "day"
