"""Bounds and types that are safe for most columns of a name, wherever nothing is documented: to be confirmed.

A suggestion is made of a column's name and of the type that the file states, never of a value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from dpmodels.authoring.facts import TODO


@dataclass(frozen=True)
class Suggestion:
    """The keys that a column might have, and why; without keys, how to choose them."""

    keys: Mapping[str, Any]
    because: str


def _number(low: float, high: float, **more: Any) -> dict[str, Any]:
    return {"type": "number", "min": float(low), "max": float(high), **more}


def _integer(low: int, high: int, **more: Any) -> dict[str, Any]:
    return {"type": "integer", "min": low, "max": high, **more}


BY_NAME: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    (
        r"uuid|guid|ssn|email|e mail|phone|.* id|id|(first|last|full|sur)? ?name",
        {"type": "identifier"},
        "what names one person",
    ),
    (r"(.* )?(remarks?|comments?|notes?|free text|address|street|url)", {"type": "identifier"}, "text to be left out"),
    (r"(is|has|was) .*|.* flag", {"type": "boolean"}, "a yes or no"),
    (r"(.* )?age( years)?", _integer(0, 120), "an age in years"),
    (r"(.* )?year( .*)?", _integer(1900, 2100), "a year"),
    (r"(.* )?(day of month|mday)|day", _integer(1, 31), "a day of a month"),
    (r"(.* )?month", _integer(1, 12), "a month"),
    (r"(.* )?(week ?day|day of week|dow)", _integer(0, 7), "a day of the week"),
    (r"(.* )?hour", _integer(0, 23), "an hour of the day"),
    (r"(.* )?minute", _integer(0, 59), "a minute of the hour"),
    (r"(.* )?(lat|latitude)", _number(-90, 90, round=6), "a latitude in degrees"),
    (r"(.* )?(lon|lng|long|longitude)", _number(-180, 180, round=6), "a longitude in degrees"),
    (r"(.* )?(percent|percentage|pct|perc)( .*)?", _number(0, 100), "a percentage"),
    (r"(.* )?(share|ratio|fraction|probability|prob)", _number(0, 1), "a share of one"),
    (
        r"(.* )?(birth date|date of birth|dob|born)",
        {"min": date(1900, 1, 1), "max": date(2030, 12, 31)},
        "a day of birth",
    ),
)
MEASURED = (
    r"(.* )?(amount|amt|price|cost|fee|fare|salary|income|revenue|wage|payment|bill|total|tip|charge|charges)( .*)?"
    r"|(.* )?(count|cnt|quantity|qty)|(num|number|n|no)( of)? .+"
    r"|(.* )?(distance|dist|duration|length)( .*)?"
)
"""Names of what is paid, counted or measured: no name says how large that can be."""
ADVICE = (
    "no bound is suggested: take the largest value that a tariff, a contract or a form allows, from public "
    "documents and never from these rows, with `outside: clip` for what lies beyond and `scale: log` where most "
    "are small. Wider bounds make a larger error of the largest values"
)
DAYS = {"min": date(1970, 1, 1), "max": date(2099, 12, 31)}
SIZES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1)}
ALIKE = {("integer", "number"), ("number", "integer")}


def suggestion(name: str, keys: Mapping[str, Any]) -> Suggestion | None:
    """Suggest what may stand where a column has a TODO; nothing that goes against what is known of it."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    words = " ".join(re.findall(r"[a-z]+|\d+", words.lower()))
    kind, size = keys["type"], SIZES.get(keys.get("dtype", ""))
    for pattern, suggested, because in BY_NAME:
        offer = {"type": "datetime", "resolution": "day", **suggested} if "type" not in suggested else dict(suggested)
        if re.fullmatch(pattern, words) and (fitted := _fitted(offer, kind, keys)):
            return Suggestion(fitted, because)
    numeric = kind in ("integer", "number") and TODO in (keys.get("min"), keys.get("max"))
    if re.fullmatch(MEASURED, words) and (numeric or kind == TODO):
        return Suggestion({}, ADVICE if numeric else f"if it holds numbers, {ADVICE}")
    if kind == "datetime":
        return Suggestion(_open(keys, {**DAYS, "resolution": "second"}), "a moment of these years, generously")
    if kind == "integer" and size and TODO in (keys.get("min"), keys.get("max")):
        offer = {"min": size[0], "max": size[1]}
        return Suggestion(_open(keys, offer), f"all that a file's {keys['dtype']} can hold")
    return None


def _fitted(offer: dict[str, Any], kind: Any, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the suggested keys that are still open, if the suggestion is for such a column."""
    if kind == TODO:
        return offer
    if offer["type"] == "identifier":
        return offer if kind in ("categorical", "integer") and TODO in keys.values() else {}
    if kind != offer["type"] and (kind, offer["type"]) not in ALIKE:
        return {}
    if (kind, offer["type"]) == ("integer", "number"):
        offer = {key: int(value) if key in ("min", "max") else value for key, value in offer.items() if key != "round"}
    return _open(keys, offer)


def _open(keys: Mapping[str, Any], offer: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of a suggestion what fills a TODO; its scale and rounding only if both of its bounds are taken."""
    both = keys.get("min") == keys.get("max") == TODO
    filled = {key: value for key, value in offer.items() if keys.get(key) == TODO}
    more = {key: offer[key] for key in ("scale", "round") if key in offer and key not in keys and both}
    return filled | more if filled else {}
