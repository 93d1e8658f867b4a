"""Rules that descriptions say in words: `empty if cancelled`, `0 sans ordonnance`, `included unless economy`.

What is read is a whole clause of which every word is understood: a value of the column itself, and one value of another
column, or a number that this is compared with. All are offered as comments, for a person to take; a clause that looks
like a rule and is not read is named.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dpmodels.authoring.documents.compared import BEFORE
from dpmodels.authoring.documents.phrases import EMPTY, OF_LIMIT, SEPARATE
from dpmodels.authoring.documents.states import SHORT, Keys, State, States, yes_of
from dpmodels.authoring.facts import TODO
from dpmodels.authoring.file_types import NUMBERS
from dpmodels.contract.columns import Column
from dpmodels.contract.implications import Implication
from dpmodels.errors import Unsuitable

ELIDED = re.compile(r"\b([dl])['’](?=\w)", re.IGNORECASE)
COLUMN: TypeAdapter[Any] = TypeAdapter(Column)
IF = (
    r"if|when|where|for|in|with|on|bei|wenn|falls|für|mit|im|si|pour|en cas d[eu]|en|sur|avec|cuando|"
    r"para|con|als|indien|bij|voor"
)
UNLESS = (
    r"unless|without|except(?: for| in| when| if)?|outside|sauf(?: si| pour| en| sur)?|sans|hors|ohne|"
    r"außer(?: bei| wenn| mit)?|salvo(?: si| en)?|sin|excepto|tenzij|behalve(?: als| bij)?|zonder"
)
COMPARED = rf"(?={BEFORE})"  # which needs no word before it, as in `empty below grade 4`
SIDES = rf"(?:(?:(?P<if>{IF})|(?P<unless>{UNLESS}))\s+|{COMPARED})(?P<state>.+)"
IS = r"(?:(?:is|are|left|stays|ist|bleibt|blijft|est|reste|laissée?|está)\s+)*"
OF_NULL = re.compile(rf"{IS}(?:{EMPTY}),?\s+{SIDES}", re.IGNORECASE)
OF_VALUE = re.compile(
    rf"(?:{IS}|always |toujours |immer )?(?P<value>[-+]?[\w.,]+)\s+(?P<both>exactly |genau dann,? )?{SIDES}",
    re.IGNORECASE,
)
OF_YES = re.compile(
    rf"(?:only|seulement|uniquement|nur|solo|sólo|alleen)\s+(?:(?:{IF})\s+|{COMPARED})(?P<state>.+)", re.IGNORECASE
)
NEVER = r"never|not|nie|niemals|nicht|nooit|niet|jamais|nunca"
OF_NO = re.compile(rf"(?:{NEVER})\s+(?:(?:{IF})\s+|{COMPARED})(?P<state>.+)", re.IGNORECASE)
OF_NONE = re.compile(
    r"(?P<state>.+?)\s+(?:(?:have|has|get|gets|receive|receives) none|(?:haben|hat|bekommen|erhalten) keine[nrs]?|"
    r"n['’]en (?:ont|a) pas|no (?:tienen|tiene) ningun[oa])",
    re.IGNORECASE,
)
"""A group that has none of what the column says: no, or null where 0 is none of its numbers."""
ELSE = re.compile(r"(?:else|otherwise|sinon|sonst|anders|si no)\s*:?\s+(?P<values>.+)", re.IGNORECASE)
OR = re.compile(r"\s*(?:,|/|\bor\b|\boder\b|\bof\b|\bou\b|\bo\b)\s*")
CLAUSE = re.compile(r"[;\n]|[.!](?:\s|$)|\s:\s|:\s|,\s|\s[–—]\s")
LOOKS_LIKE_ONE = re.compile(
    rf"\b(?:unless|otherwise|else|sinon|sauf|sonst|außer|salvo|tenzij|behalve)\b|\b(?:only|seulement|uniquement|nur|solo)\s+(?:{IF}|{BEFORE})\b|"
    rf"\b(?:{EMPTY}|\d+)\s+(?:if|when|unless|without|sans|wenn|ohne|si|sin)\b|"
    rf"\b(?:{EMPTY})\s+(?:in|for|im|für|bei|{BEFORE})\b|^(?:never|nie|jamais|nunca)\s+(?:{IF}|{BEFORE})\b|"
    rf"^{OF_NONE.pattern.replace('?P<state>', '')}$|"
    r"^(?:half|a third|a quarter|twice|double|la moitié|die hälfte|la mitad) (?:of|de|der|des|du)\b",
    re.IGNORECASE,
)
OF_SUM = re.compile(r"(?P<first>[^\W\d]\w*)\s+[-+*×−/]\s+(?P<second>[^\W\d]\w*)")
"""Two columns, or what they are called, of which another one is reckoned."""
MOST_CLAUSES = 100
"""Clauses of a description that are read."""
OPEN = {"min": TODO, "max": TODO, "zero_inflated": True}
WIDE = {"integer": (-(10**9), 10**9), "number": (-1e9, 1e9), "datetime": ("1900-01-01", "2200-12-31")}


@dataclass(frozen=True)
class Rule:
    """A rule that a clause says: the column that it describes, the rule as a schema writes it, and the clause.

    Attributes:
        is_converse: whether the clause may mean it besides, as `unless` may.
    """

    column: str
    text: str
    clause: str
    is_converse: bool = False


def rules_in(keys: Keys, descriptions: Mapping[str, str]) -> tuple[list[Rule], dict[str, list[str]]]:
    """Return the rules that descriptions say, and by column the clauses that look like rules and are not read."""
    rules, unread = list[Rule](), dict[str, list[str]]()
    states, columns = States(keys, descriptions), readable_columns(keys)
    for name, words in descriptions.items():
        if keys[name].get("type") == "derived":
            continue
        before = list[State]()
        for clause in islice(_clauses(words), MOST_CLAUSES):
            readings = _read(name, keys[name], clause, states, before) if name in columns else ()
            read = [one for one in readings if _is_sound(one, columns)]
            rules += [one for one in read if one.text not in {each.text for each in rules}]
            is_own = ELSE.fullmatch(clause) is not None and _is_answered(name, keys[name], words)
            looks = LOOKS_LIKE_ONE.search(clause) or _names_others(clause, name, keys)
            if not read and looks and not is_own:
                unread.setdefault(name, []).append(clause)
    return rules, unread


def _names_others(clause: str, name: str, names: Collection[str]) -> bool:
    """Tell whether a clause bounds a column by another one, or reckons it from two of which one is named as it is."""
    match = OF_LIMIT.fullmatch(clause) or OF_SUM.fullmatch(clause)
    others = {one.casefold() for one in names if one != name}
    return match is not None and any(word.casefold() in others for word in match.groupdict().values())


def zero_clauses(keys: Keys, descriptions: Mapping[str, str]) -> dict[str, str]:
    """Return by column the clause that says in which rows its number is 0, where its type or a bound of it is open."""
    states, said = States(keys, descriptions), dict[str, str]()
    for name, words in descriptions.items():
        low, high = (keys[name].get(bound, TODO) for bound in ("min", "max"))
        is_open = keys[name].get("type") in ("number", TODO) and TODO in (low, high)
        for clause in islice(_clauses(words), MOST_CLAUSES) if is_open else ():
            match = OF_VALUE.fullmatch(clause)
            if match and _value_of(keys[name], match["value"]) == 0 and states.named(match["state"], name):
                said.setdefault(name, clause)
    return said


def _clauses(words: str) -> Iterator[str]:
    """Cut a description into clauses; what brackets hold is one by itself where it begins as one, else a part."""
    words = ELIDED.sub(r"\1e ", SEPARATE.sub(r"\1 ", words))
    inner = [one for one in re.findall(r"\(([^()]+)\)", words) if LOOKS_LIKE_ONE.search(one)]
    for one in inner:
        words = words.replace(f"({one})", ";")
    for part in (*CLAUSE.split(words), *inner):
        if clause := " ".join(part.split()).strip(" ."):
            yield clause


def _read(name: str, keys: Mapping[str, Any], clause: str, states: States, before: list[State]) -> Iterator[Rule]:
    """Read one clause; ``before`` are the states of the clauses before it, which an `else` leaves over."""
    if (match := ELSE.fullmatch(clause)) and before:
        yield from _otherwise(name, keys, clause, match["values"], before)
        return
    if match := OF_YES.fullmatch(clause):
        yes, state = yes_of(keys), states.named(match["state"], name)
        if yes is not None and state:
            yield Rule(name, f"when {State(name, yes)} then {state}", clause)
        return
    if (match := OF_NO.fullmatch(clause)) and (yes := yes_of(keys)) is not None:
        if state := states.named(match["state"], name):
            yield Rule(name, f"when {state} then {State(name, yes).opposite}", clause)
        return
    if match := OF_NONE.fullmatch(clause):
        state, value = states.named(match["state"], name), _none_of(name, keys)
        if state and value is not None:
            yield Rule(name, f"when {state} then {value}", clause)
        return
    for form, value_of in ((OF_NULL, lambda _: "null"), (OF_VALUE, lambda read: _value_of(keys, read["value"]))):
        match = form.fullmatch(clause)
        state = states.named(match["state"], name) if match else None
        value = value_of(match) if match and state else None
        if match is None or state is None or value is None:
            continue
        premise = state.opposite if match["unless"] else state
        before.append(premise)
        yield Rule(name, f"when {premise} then {name} = {value}", clause)
        if match.groupdict().get("both"):
            yield Rule(name, f"when {premise.opposite} then {name} != {value}", clause)
            return
        if value == "null" or (keys.get("type") == "categorical" and isinstance(value, str) and match["unless"]):
            yield Rule(name, f"when {premise.opposite} then {name} != {value}", clause, is_converse=True)
        return


def none_clauses(keys: Keys, descriptions: Mapping[str, str]) -> dict[str, str]:
    """Return by column the clause that says who has none of it, where no value says so and null is not allowed yet."""
    states, said = States(keys, descriptions), dict[str, str]()
    for name, words in descriptions.items():
        one = keys[name]
        is_other = "computed" in one or one.get("type") not in (*NUMBERS, "datetime", "categorical")
        if is_other or one.get("nullable") or yes_of(one) is not None or _zero_of(one) is not None:
            continue
        for clause in islice(_clauses(words), MOST_CLAUSES):
            match = OF_NONE.fullmatch(clause)
            if match and states.named(match["state"], name):
                said.setdefault(name, clause)
    return said


def _none_of(name: str, keys: Mapping[str, Any]) -> str | None:
    """Return what holds of a column where there is none of it; None where that may be a value or null, or is open."""
    yes, zero = yes_of(keys), _zero_of(keys)
    if yes is None and zero is None:
        return f"{name} = null" if keys.get("nullable") else None
    if keys.get("nullable") or zero == TODO:
        return None
    return f"{name} = {zero}" if yes is None else str(State(name, yes).opposite)


def _zero_of(keys: Mapping[str, Any]) -> Any:
    """Return the value that says that there is none, 0 or a word; TODO where values or bounds are open, else None."""
    listed, low, high = (keys.get(key, TODO) for key in ("values", "min", "max"))
    if keys.get("type") == "datetime" or yes_of(keys) is not None:
        return None
    if keys.get("type") == "categorical":
        is_listed = isinstance(listed, list | tuple)
        return next((one for one in listed if one in (0, "none", "None")), None) if is_listed else TODO
    if not all(isinstance(one, int | float) for one in (low, high)):
        return TODO
    return 0 if low <= 0 <= high else None


def _is_answered(name: str, keys: Mapping[str, Any], words: str) -> bool:
    """Tell whether words say of a column of two answers what its yes means, as `Y if they left, else N` of `left`."""
    spoken = {one for one in re.split(r"[\W_]+", name.casefold()) if len(one) > SHORT}
    return yes_of(keys) is not None and bool(spoken & {*re.split(r"[\W_]+", words.casefold())})


def _otherwise(name: str, keys: Mapping[str, Any], clause: str, words: str, before: Sequence[State]) -> Iterator[Rule]:
    """Read the values that are left where none of the states before holds."""
    listed, values = keys.get("values"), [_value_of(keys, word) for word in OR.split(words) if word]
    if not isinstance(listed, list | tuple) or None in values or keys.get("type") != "categorical":
        return
    others = [value for value in listed if value not in values]
    premises = " and ".join(str(one.opposite) for one in dict.fromkeys(before))
    if others:
        yield Rule(name, f"when {premises} then {' and '.join(f'{name} != {one}' for one in others)}", clause)


def _value_of(keys: Mapping[str, Any], word: str) -> Any:
    """Return the value of a column that a word is; None where it is none of its values."""
    listed = keys.get("values")
    number = float(word.replace(",", ".")) if re.fullmatch(r"[-+]?\d+(?:[.,]\d+)?", word) else None
    if keys.get("type") == "categorical" and isinstance(listed, list | tuple):
        same = [
            one for one in listed if str(one).casefold() == word.casefold() or (number is not None and one == number)
        ]
        return same[0] if len(same) == 1 else None
    if keys.get("type") not in (*NUMBERS, TODO) or number is None:
        return None
    return int(number) if number.is_integer() else number


def readable_columns(keys: Keys) -> dict[str, Any]:
    """Return the columns that can be read, with wide bounds where one is open; as numbers where the type is open."""
    columns = {}
    for name, written in keys.items():
        one = {**OPEN, **written, "type": "number"} if written.get("type") == TODO else written
        low, high = WIDE.get(str(one.get("type")), ("", ""))
        wide = {key: end for key, end in (("min", low), ("max", high)) if one.get(key) == TODO}
        try:
            columns[name] = COLUMN.validate_python({key: v for key, v in {**one, **wide}.items() if key != "confirm"})
        except ValidationError:
            continue
    return columns


def _is_sound(rule: Rule, columns: Mapping[str, Any]) -> bool:
    """Tell whether a schema takes a rule as it is written."""
    try:
        Implication.parse(rule.text, columns)
    except Unsuitable:
        return False
    return True
