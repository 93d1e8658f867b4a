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


def _days(first: date, last: date, resolution: str = "day") -> dict[str, Any]:
    return {"type": "datetime", "min": first, "max": last, "resolution": resolution}


IDENTIFIER: Mapping[str, Any] = {"type": "identifier"}
CATEGORICAL: Mapping[str, Any] = {"type": "categorical", "values": TODO}
FIRST_DAY, LAST_DAY = date(1970, 1, 1), date(2099, 12, 31)
OPEN_INTEGER: Mapping[str, Any] = {"type": "integer", "min": TODO, "max": TODO}
OPEN_NUMBER: Mapping[str, Any] = {"type": "number", "min": TODO, "max": TODO}
PERSON = (
    r"(patient|customer|client|user|person|employee|participant|respondent)( (no|nr|num|number|code|key|ref))?"
    r"|(.* )?(patient|customer|client|user|person|member|employee|student|subject|participant|respondent)"
    r" (id|uuid|guid|key)"
)
"""Names of what tells persons apart, of whom one may have several rows."""
PAID = r"amount|amt|price|cost|fee|fare|salary|income|revenue|wage|payment|bill|tip|debt|balance|savings"
COUNTED = r"(.* )?(count|cnt|quantity|qty|visits)|(num|number) of .+|n .+|children|siblings|(household|family) size"
BY_NAME: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    (
        r"(is|has|was|had) .*|.* flag|defaulted|churned|readmitted|deceased|smoker|active|married",
        {"type": "boolean"},
        "a yes or no",
    ),
    (
        rf"{PERSON}|(.* )?(uuid|guid|ssn|iban|e ?mail|phone|mobile|passport)( (address|number|no|nr))?|.* id|id"
        r"|((first|last|full|sur|given|family|user|customer|patient) ?)?name",
        IDENTIFIER,
        "what names one person",
    ),
    (r"(.* )?(remarks?|comments?|notes?|free text|address|street|url)", IDENTIFIER, "text to be left out"),
    (
        r"(.* )?(sex|gender|type|category|kind|status|country|state|region|province|ward|department|race|ethnicity"
        r"|religion|nationality|language|currency|education|occupation|profession|channel|segment|city)"
        r"( code| level)?|product|plan|grade|level",
        CATEGORICAL,
        "one of a list",
    ),
    (r"(.* )?(birth ?date|date of birth|dob|born)", _days(date(1900, 1, 1), date(2030, 12, 31)), "a day of birth"),
    (
        r"(.* )?date|date (of )?.*|admitted|discharged|(.* )?(admission|discharge) day|opened|joined|hired|sign ?up"
        r"|last (contact|login|seen|visit)|(opened|closed|joined|hired|registered|signed up|start(ed)?|end(ed)?) on",
        _days(FIRST_DAY, LAST_DAY),
        "a day of these years, generously",
    ),
    (
        r".* at|(.* )?(date ?time|time ?stamp)",
        _days(FIRST_DAY, LAST_DAY, "second"),
        "a moment of these years, generously",
    ),
    (r"(.* )?age( years)?", _integer(0, 120), "an age in years"),
    (r"(.* )?year( .*)?", _integer(1900, 2100), "a year"),
    (r"(.* )?quarter", _integer(1, 4), "a quarter of a year"),
    (r"(.* )?(day of month|mday)|day", _integer(1, 31), "a day of a month"),
    (r"(.* )?month", _integer(1, 12), "a month"),
    (r"(.* )?(week ?day|day of week|dow)", _integer(0, 7), "a day of the week"),
    (r"(.* )?hour", _integer(0, 23), "an hour of the day"),
    (r"(.* )?minute", _integer(0, 59), "a minute of the hour"),
    (r"(.* )?(lat|latitude)", _number(-90, 90, round=6), "a latitude in degrees"),
    (r"(.* )?(lon|lng|long|longitude)", _number(-180, 180, round=6), "a longitude in degrees"),
    (r"(.* )?(percent|percentage|pct|perc)( .*)?", _number(0, 100), "a percentage"),
    (r"(.* )?(share|ratio|fraction|probability|prob)", _number(0, 1), "a share of one"),
    (r"(body )?weight kg", _number(0, 700), "a person's weight in kilograms"),
    (r"(body )?height cm", _number(0, 300), "a person's height in centimeters"),
    (r"(.* )?score", OPEN_NUMBER, "a score"),
    (r"bmi|body mass index", _number(0, 300), "a body mass index"),
    (COUNTED, OPEN_INTEGER, "a count"),
    (rf"(.* )?({PAID})s?( (eur|usd|gbp|chf|euros?|dollars?))?", OPEN_NUMBER, "an amount"),
)
MEASURED = (
    rf"(.* )?({PAID}|total|charge|charges)( .*)?|{COUNTED}|(num|number|no) .+"
    r"|(.* )?(distance|dist|duration|length)( .*)?"
)
"""Names of what is paid, counted or measured: no name says how large that can be."""
ADVICE = (
    "no bound is suggested: take the largest value that a public document allows, such as a tariff or a contract, "
    "with `outside: clip`"
)
SIZES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1)}
ALIKE = {("integer", "number"), ("number", "integer")}


def suggestion(name: str, keys: Mapping[str, Any]) -> Suggestion | None:
    """Suggest what may stand where a column has a TODO; nothing that goes against what is known of it."""
    words, kind, size = _words(name), keys["type"], SIZES.get(keys.get("dtype", ""))
    for pattern, offer, because in BY_NAME:
        if re.fullmatch(pattern, words) and (fitted := _fitted(dict(offer), kind, keys)):
            return Suggestion(fitted, because)
    numeric = kind in ("integer", "number") and TODO in (keys.get("min"), keys.get("max"))
    if re.fullmatch(MEASURED, words) and (numeric or kind == TODO):
        return Suggestion({}, ADVICE if numeric else f"if it holds numbers, {ADVICE}")
    if kind == "datetime":
        moment = _days(FIRST_DAY, LAST_DAY, "second")
        return Suggestion(_open(keys, moment), "a moment of these years, generously")
    if kind == "integer" and size and TODO in (keys.get("min"), keys.get("max")):
        offer = {"min": size[0], "max": size[1]}
        return Suggestion(_open(keys, offer), f"all that a file's {keys['dtype']} can hold")
    return None


def names_a_person(name: str) -> bool:
    """Tell whether a column is called as what tells persons apart, so that its values may be the privacy unit."""
    return re.fullmatch(PERSON, _words(name)) is not None


def _words(name: str) -> str:
    """Return a name as words in lowercase letters: ``birthDate``, ``Birth_Date`` and ``BIRTH DATE`` are the same."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return " ".join(re.findall(r"[^\W\d_]+|\d+", apart.lower()))


def _fitted(offer: dict[str, Any], kind: Any, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the suggested keys that are still open, if the suggestion is for such a column."""
    if kind == TODO:
        return offer
    if offer["type"] == "identifier":
        return offer if kind in ("categorical", "integer") and TODO in keys.values() else {}
    if kind != offer["type"] and (kind, offer["type"]) not in ALIKE:
        return {}
    if (kind, offer["type"]) == ("integer", "number"):
        offer = {
            key: int(value) if isinstance(value, float) else value for key, value in offer.items() if key != "round"
        }
    return _open(keys, offer)


def _open(keys: Mapping[str, Any], offer: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of a suggestion what fills a TODO; its scale and rounding only if both of its bounds are taken."""
    both = keys.get("min") == keys.get("max") == TODO
    filled = {key: value for key, value in offer.items() if keys.get(key) == TODO != value}
    more = {key: offer[key] for key in ("scale", "round") if key in offer and key not in keys and both}
    return filled | more if filled else {}
