"""Conditions as people write them: what is none is answered with what to write, in the name of the column.

Privacy: what a condition holds was written by whoever asks, and the examples are bounds and values of the schema.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpmodels.contract.columns import Datetime, Discrete, Integer, Number, names_of
from dpmodels.contract.conditions import EQUAL, NULL, SIGNS, Condition, is_boolean, parse
from dpmodels.contract.text_forms.days import days_meant
from dpmodels.errors import Unsuitable, without_commas

SIGN = "==|<=|>=|!=|=|<|>"
JOINED = re.compile(r"\s+and\s+|\s*&&?\s*|\s*,\s*", re.IGNORECASE)
JOINT = re.compile(r"\s*(?:and\s*|&&?|,|;|\s)\s*(?!or\b|\|)", re.IGNORECASE)
EITHER = re.compile(r"\s+or\s+|\s*\|+\s*", re.IGNORECASE)
FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "==": "=", "!=": "!="}
ANSWERS = {**dict.fromkeys(("true", "yes", "y", "t"), "true"), **dict.fromkeys(("false", "no", "n", "f"), "false")}
ALL_HOLD, BY_ITSELF = "all must hold", "draw rows for each by itself"


def read_condition(text: str, columns: Mapping[str, Any]) -> Condition:
    """Read a condition; of what is none say what to write, as far as it is several, or written as elsewhere.

    Raises:
        Unsuitable: as for ``parse``.
    """
    try:
        return parse(text, columns)
    except Unsuitable as fault:
        cause = next(filter(None, (advise(text.strip(), columns) for advise in ADVICE)), "")
        example = "" if re.search(SIGN, text) else next(filter(None, (_example(name, columns) for name in columns)), "")
        form, mark, near = fault.fact.partition("; did you mean")
        otherwise = form + (f", such as `{example}`" if example else "") + mark + near
        raise Unsuitable(f"`{text}`: {cause}" if cause else otherwise) from None


def _behind(text: str, columns: Mapping[str, Any]) -> str:
    """Advise on what stands behind a whole condition: another one, whatever joins them."""
    parts = _parts(text, columns)
    if not parts:
        return ""
    for part in parts[1:]:
        if (fault := _fault_of(part, columns)) is not None:
            return f"only `{parts[0]}` is understood, since each is given by itself; behind it, {fault.fact}"
    others, each = " and ".join(f"`{part}`" for part in parts[1:]), " and ".join(map(repr, parts))
    return f"only `{parts[0]}` is understood, and not {others} behind it: give each by itself, as {each}; {ALL_HOLD}"


def _parts(text: str, columns: Mapping[str, Any]) -> list[str]:
    """Cut a text behind the longest condition that it begins with, if another one seems to follow."""
    for end in range(len(text) - 1, 0, -1):
        rest = _following(text[end:], columns)
        if rest and _fault_of(text[:end], columns) is None:
            return [text[:end].strip(), *(_parts(rest, columns) or [rest])]
    return []


def _following(text: str, columns: Mapping[str, Any]) -> str:
    """Return what seems to be a condition, without what joins it to the one before; empty if it is none."""
    for rest in (text, text[match.end() :] if (match := JOINT.match(text)) else text):
        word = re.match(rf"(?:not\s+)?(.+?)\s*(?:(?:{SIGN}).*)?$", rest, re.DOTALL | re.IGNORECASE)
        if word and _named(word[1], columns):
            return rest.strip()
    return rest if rest != text and re.match(rf"[^\s<>=!]+\s*(?:{SIGN})", rest) else ""


def _fault_of(text: str, columns: Mapping[str, Any]) -> Unsuitable | None:
    try:
        parse(text, columns)
    except Unsuitable as fault:
        return fault
    return None


def _null(text: str, columns: Mapping[str, Any]) -> str:
    """Advise on a null as SQL and Python write it."""
    match = re.fullmatch(r"(.+?)(?:\s+is(\s+not)?\s+|\s*(<>|!=|==?)\s*)(?:null|none|missing)", text, re.IGNORECASE)
    if match is None or (name := _named(match[1], columns)) is None:
        return ""
    if getattr(columns[name], "null_state", None) is None:
        return f"column {name} is never null, so leave this condition out"
    sign = "!=" if match[2] or match[3] in ("<>", "!=") else "="
    return f"write `{name}{sign}{NULL}`"


def _word(text: str, columns: Mapping[str, Any]) -> str:
    """Advise on a word that stands for a sign, as in ``sick is true`` and ``ward is not north``."""
    match = re.fullmatch(r"(.+?)\s+(?:is|are|equals?)(\s+not)?(?:\s+equal)?(?:\s+to)?\s+(.+)", text, re.IGNORECASE)
    if match is None or (name := _named(match[1], columns)) is None:
        return ""
    sign, value = "!=" if match[2] else "=", _plain(match[3])
    meant = ANSWERS.get(value.lower(), value) if is_boolean(columns[name]) else value
    written = f"{name}{sign}{meant}"
    written = written if _fault_of(written, columns) is None else _example(name, columns, sign)
    return f"a condition has a sign and no word for it; write such as `{written}`" if written else ""


def _between(text: str, columns: Mapping[str, Any]) -> str:
    match = re.fullmatch(r"(.+?)\s+(not\s+)?between\s+(.+?)\s+and\s+(.+)", text, re.IGNORECASE)
    if match is None:
        return ""
    name, low, high = _named(match[1], columns) or match[1], _plain(match[3]), _plain(match[4])
    if match[2]:
        return f"`between` is not known; {BY_ITSELF}, as `{name}<{low}` and `{name}>{high}`"
    return f"`between` is not known; give two conditions, `{name}>={low}` and `{name}<={high}`: {ALL_HOLD}"


def _list(text: str, columns: Mapping[str, Any]) -> str:
    match = re.fullmatch(r"(.+?)\s+(not\s+)?in\s*[(\[](.*)", text, re.IGNORECASE | re.DOTALL)
    if match is None:
        return ""
    name, values = _named(match[1], columns) or match[1], [_plain(value) for value in re.split(",", match[3])]
    sign = "!=" if match[2] else "="
    conditions = " and ".join(f"`{name}{sign}{value}`" for value in values if value) or f"`{name}{sign}VALUE`"
    if match[2]:
        return f"`not in` is not known; give a condition for each value, {conditions}: {ALL_HOLD}"
    return f"`in` is not known; {BY_ITSELF}, as {conditions}"


def _chain(text: str, columns: Mapping[str, Any]) -> str:
    """Advise on two signs in one condition, as ``18 < age < 65``."""
    match = re.fullmatch(r"([^<>=!]+)(<=|>=|<|>)([^<>=!]+)(<=|>=|<|>)([^<>=!]+)", text)
    if match is None or JOINED.search(text) or EITHER.search(text):
        return ""
    first, sign, middle, other, last = (part.strip() for part in match.groups())
    if name := _named(middle, columns):
        return f"give two conditions, `{name}{FLIPPED[sign]}{first}` and `{name}{other}{last}`: {ALL_HOLD}"
    if name := _named(first, columns):
        return f"give two conditions, `{name}{sign}{middle}` and `{name}{other}{last}`: {ALL_HOLD}"
    return ""


def _reversed(text: str, columns: Mapping[str, Any]) -> str:
    match = re.fullmatch(rf"(.*?)\s*({SIGN})\s*(.+)", text, re.DOTALL)
    if match is None or _named(match[1], columns) or (name := _named(match[3], columns)) is None:
        return ""
    if not match[1]:
        return f"the column is missing before the sign; write such as `{_example(name, columns)}`"
    return f"the column comes first: write `{name}{FLIPPED[match[2]]}{_plain(match[1])}`"


def _half(text: str, columns: Mapping[str, Any]) -> str:
    """Advise on a condition that lacks its value, or its column."""
    match = re.fullmatch(rf"(.*?)\s*({SIGN})\s*(.*)", text, re.DOTALL)
    if match is None or (match[1] and match[3]):
        return ""
    if not match[1]:
        name = next((name for name in columns if _example(name, columns)), "")
        return f"the column is missing before the sign; write such as `{_example(name, columns)}`" if name else ""
    name = _named(match[1], columns) or ""
    example = _example(name, columns, match[2].replace("==", "="))
    return f"the value is missing behind the sign; write such as `{example}`" if example else ""


def _comma(text: str, columns: Mapping[str, Any]) -> str:
    match = re.search(r"-?(?:\d[\d.]*)?\d,\d[\d.,]*\s*$", text)
    number = match[0].strip() if match else ""
    meant = without_commas(number) or number.replace(",", ".") * (number.count(",") == 1 and "." not in number)
    return f"a comma is no decimal point; write {meant}" if meant else ""


def _day(text: str, columns: Mapping[str, Any]) -> str:
    """Advise on a day as other languages write it, of which a slash leaves open which number is the month."""
    match = re.fullmatch(rf"(.+?)\s*(?:{SIGN})\s*['\"]?([\d./]+)['\"]?", text)
    name = _named(match[1], columns) if match else None
    if match is None or not isinstance(columns.get(name or ""), Datetime):
        return ""
    days = days_meant(match[2])
    return f"a day is written with its year first; write {' or '.join(days)}" if days else ""


def _sign(text: str, columns: Mapping[str, Any]) -> str:
    if not (sign := re.search(r"[=!<>]+", text)) or sign[0] in FLIPPED:
        return ""
    left, right = text[: sign.start()].strip(), text[sign.end() :].strip()
    name = _named(left, columns) or ""
    if left and not name and not _named(right, columns):
        return ""  # the sign may be half of a value: that there is no such column comes first
    name = name or next((name for name in columns if _example(name, columns)), "")
    return f"`{sign[0]}` is no sign; write one of {' '.join(SIGNS)}, such as `{_example(name, columns)}`"


def _quotes(text: str, columns: Mapping[str, Any]) -> str:
    match = re.fullmatch(r"(.*[=!<>]\s*)(['\"])(.*)\2\s*", text, re.DOTALL)
    return f"write the value without quotes: `{match[1]}{match[3]}`" if match else ""


def _several(text: str, columns: Mapping[str, Any]) -> str:
    parts = EITHER.split(text)
    if len(parts) > 1:
        return f"conditions cannot be joined by `or`; {BY_ITSELF}, as {' and '.join(map(repr, parts))}"
    parts = [part for part in map(str.strip, JOINED.split(f" {text} ")) if part]
    if len(parts) == 1 and (dangling := JOINED.search(f" {text} ")):
        return f"nothing stands beside `{dangling[0].strip()}`; write `{parts[0]}`"
    if len(parts) < 2:
        return ""
    return f"these are several conditions: give each by itself, as {' and '.join(map(repr, parts))}; {ALL_HOLD}"


def _no_sign(text: str, columns: Mapping[str, Any]) -> str:
    """Advise on a column and a value with no sign between them."""
    match = re.fullmatch(r"(\S+)\s+(\S+)", text)
    if match is None or re.search(SIGN, text) or (name := _named(match[1], columns)) is None:
        return ""
    written = f"{name}={match[2]}"
    example = written if _fault_of(written, columns) is None else _example(name, columns)
    return f"a sign is missing between `{match[1]}` and `{match[2]}`; write such as `{example}`" if example else ""


def _letters(text: str, columns: Mapping[str, Any]) -> str:
    word = re.split(r"[=!<>\s]", text)[0]
    name = _named(word, columns)
    return f"the column is called {name}" if name and name != word else ""


ADVICE: tuple[Callable[[str, Mapping[str, Any]], str], ...] = (
    *(
        _behind,
        _null,
        _between,
        _list,
        _chain,
        _comma,
        _day,
        _sign,
        _quotes,
        _reversed,
        _half,
        _several,
        _word,
        _no_sign,
        _letters,
    ),
)
"""What says how to write a condition, or nothing where it is not about it; the first that says something is heard."""


def _named(word: str, columns: Mapping[str, Any]) -> str | None:
    """Return the column that a word names, in whatever letters."""
    word = word.strip()
    return word if word in columns else next((name for name in columns if name.casefold() == word.casefold()), None)


def _plain(value: str) -> str:
    """Return a value without the marks that other languages have around it."""
    return value.strip().rstrip(")]").strip().strip("'\"")


def _example(name: str, columns: Mapping[str, Any], sign: str = ">") -> str:
    """Return a condition on a column that can be met; nothing of a column that takes none."""
    column = columns.get(name)
    if isinstance(column, Integer | Number | Datetime):
        if sign in EQUAL and column.decimals is None:
            sign = ">="
        return f"{name}{sign}{column.max if sign in ('<', '<=') else column.min}"
    if not isinstance(column, Discrete):
        return ""
    return f"{name}{sign if sign in EQUAL else '='}{next(iter(names_of(column)), 'VALUE')}"


def conditions_of(sides: Sequence[Sequence[str]], columns: Mapping[str, Any]) -> list[tuple[Condition, ...]]:
    """Read the conditions of the sides of a rule.

    Raises:
        Unsuitable: one is none; the faults of all of them are named, and the columns that there are once.
    """
    read, faults = list[tuple[Condition, ...]](), list[str]()
    for side in sides:
        conditions = list[Condition]()
        for part in side:
            try:
                conditions.append(parse(part, columns))
            except Unsuitable as fault:
                words = re.sub(r"(there is no column [^,]+), but [^;]+", r"\1", str(fault)) if faults else str(fault)
                faults.append(words)
        read.append(tuple(conditions))
    if faults:
        raise Unsuitable("; ".join(faults))
    return read
