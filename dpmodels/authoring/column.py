"""One column of a draft: what its type in the file and its documentation make of it, with a TODO for what is open."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import yaml
from pydantic import TypeAdapter, ValidationError

from dpmodels.authoring.documents.bounds_left_out import unused, without_reversed
from dpmodels.authoring.documents.fitted import bounds_of, in_cents, unfilled, values_of
from dpmodels.authoring.documents.forms_of_keys import form_of, with_other_letter
from dpmodels.authoring.documents.spans import is_open
from dpmodels.authoring.facts import TODO, Facts
from dpmodels.authoring.file_types import NUMBERS, TYPES, Keys, beside_given, inner_type, of_type
from dpmodels.authoring.given.whole import as_given, is_whole_entry
from dpmodels.authoring.suggest import (
    ADVICE,
    OF_BOUNDS,
    OF_CLOCK,
    OF_OTHERS,
    UNIQUE,
    Suggestion,
    advice_on,
    by_bounds,
    is_no_answer,
    of_count,
    of_person,
    of_scale,
    suggestion,
)
from dpmodels.contract.base import APART, ColumnFaults, described, is_text
from dpmodels.contract.columns import Column
from dpmodels.contract.discovery.discovery import MARKABLE, WORD
from dpmodels.contract.remarks import is_open_amount
from dpmodels.contract.text_forms.written_conditions import ANSWERS

COLUMN: TypeAdapter[Any] = TypeAdapter(Column)
OF_ZEROS = "zeros are kept exactly, at no cost; write zero_inflated: false if none is 0"
IF_ZEROS = "zero_inflated: true if any is exactly 0"
OF_DECIMALS = "how many decimals have they (round: 2)?"
IN_SECONDS = "times are cut to the second; or write resolution: day, hour or minute"
MAY_BE_ANSWERS = "`type: boolean` alone if it holds yes and no only"
NOT_READ = "not read: "
MADE = 'left out; or `keep: "pattern:{}"` makes keys of the documented form, but for a first letter that none has'
SUGGESTED = "suggested, as "
"""How a remark begins that suggests keys."""
CONFIRM = {"confirm": TODO}
"""Marks a whole column that is suggested: the lint refuses it until a person deletes the mark."""


@dataclass(frozen=True)
class ColumnDraft:
    """The keys of a column, of which some may be TODO, and what its author should read beside them."""

    keys: Mapping[str, Any]
    remarks: tuple[str, ...] = ()

    @property
    def is_unsure(self) -> bool:
        """Tell whether the type is open, or is what the name suggests."""
        return self.keys["type"] == TODO or any(remark.startswith(SUGGESTED) for remark in self.remarks)


def drafted(
    name: str, dtype: pa.DataType | None, facts: Facts, accept: bool = False, discover: bool = False
) -> ColumnDraft:
    """Draft a column from its name, its type in the file (None in a CSV file), and what is documented.

    A suggestion that leaves nothing open bears a mark until it is accepted. With ``discover`` the type that a name
    suggests is taken, and what a discovery can fill in is left to it.
    """
    facts, reversed_range = without_reversed(name, facts)
    if facts.keys is not None:
        return _given(facts.keys, dtype, facts, [*_described(facts), *reversed_range, *_unread(facts)], discover)
    facts, doubts = _doubted(in_cents(_of_days(facts, dtype), dtype), accept, discover)
    stated = _stated(name, dtype, facts)
    keys, remarks = _joined(stated, facts)
    keys, seconds = _in_seconds(keys) if facts.from_person else (keys, [])
    keys, faults = _settled(keys)
    remarks += seconds
    faults += [MAY_BE_ANSWERS] if stated == keys == of_type(pa.string()) and not is_no_answer(name) else []
    remarks = [*_described(facts), *reversed_range, *remarks, *faults, *doubts]
    suggested = _suggested(name, dtype, keys, facts)
    if suggested and suggested.because in (UNIQUE, OF_CLOCK):
        remarks = [one for one in remarks if one != MAY_BE_ANSWERS]
    remarks += [] if suggested and suggested.keys and keys["type"] == TODO else unused(keys, facts)
    remarks += _unread(facts)
    if keys["type"] == TODO and dtype is not None and pa.types.is_nested(dtype):
        return ColumnDraft(keys, (*remarks, f"holds {described(dtype)}, which no column does; {APART}"))
    keys |= CONFIRM if doubts and not (accept or discover or TODO in keys.values()) else {}
    if suggested and suggested.keys and (accept or not discover):
        keys, faults = _with(suggested, keys, facts.decimals)
        remarks += [_offer(suggested, keys, accept), *faults]
        keys |= {} if accept or TODO in keys.values() else CONFIRM
    elif discover and suggested and "formula" not in suggested.keys and _names_type(keys, suggested):
        known = _documented(keys, suggested)
        keys = {**_without_bounds(suggested.keys), **known}
        remarks.append(_taken(suggested, known))
    elif suggested and not discover:
        remarks.append(suggested.because)
    elif suggested and suggested.keys:
        remarks.append(f"{SUGGESTED}{suggested.because}: {_keys_in(suggested)}, which would cost nothing")
    return _finished(keys, remarks, facts, discover)


def _suggested(name: str, dtype: pa.DataType | None, keys: Keys, facts: Facts) -> Suggestion | None:
    """Suggest keys by the name of a column, its documented bounds, or what its description offers; or how to choose."""
    suggested = suggestion(name, keys) if TODO in keys.values() else None
    if not (suggested and suggested.keys) and not any(words.startswith("type ") for words in facts.unread):
        numbered = of_person(name, keys, facts.description)
        counted = of_count(keys, facts.description) if facts.decimals is None else None
        suggested = by_bounds(keys, facts.decimals, facts.unique, facts.description) or numbered or counted or suggested
    if facts.kind is None and not facts.from_person and facts.decimals is None:
        suggested = of_scale(name, keys, facts.description) or suggested
    is_number = (
        keys["type"] in NUMBERS and not facts.from_person
    )  # typed in words, it may follow from others all the same
    if facts.offered and (TODO in keys.values() or is_number if "formula" in facts.offered else is_open(keys)):
        suggested = Suggestion(_typed_as(facts.offered, dtype), OF_OTHERS if "formula" in facts.offered else OF_CLOCK)
    return suggested


def _typed_as(offered: Mapping[str, Any], dtype: pa.DataType | None) -> Mapping[str, Any]:
    """Keep decimals of a formula of whole numbers where the file has some, as of a price by the piece."""
    is_plain = "formula" in offered and "round" not in offered and dtype is not None and pa.types.is_floating(dtype)
    return {**offered, "dtype": "float64"} if is_plain else offered


def _given(
    given: Mapping[str, Any], dtype: pa.DataType | None, facts: Facts, remarks: list[str], discover: bool
) -> ColumnDraft:
    """Draft a column of which a person gives keys: as they are given if they are whole, else beside what is known."""
    keys, seconds = _in_seconds(_of_person(given, dtype, facts))
    if not is_whole_entry(given):
        return _finished(keys, [*remarks, *seconds], facts, discover)
    keys, beside = as_given(given, keys, of_type(dtype))
    zeros = [IF_ZEROS] if _with_zeros(keys)[0] != keys else []
    return ColumnDraft(keys, (*remarks, *beside, *seconds, *zeros))


def _of_person(given: Mapping[str, Any], dtype: pa.DataType | None, facts: Facts) -> Keys:
    """Return the keys that a person writes; those left out are as documented, as the file's type has them, or open."""
    type_name = given["type"]
    stated = _stated("", dtype, facts) if facts.kind else {}
    stated = stated if stated.get("type") == type_name else unfilled(type_name, facts)
    nullable = {"nullable": True} if facts.nullable and type_name in MARKABLE else {}
    keys = {**stated, **bounds_of(stated, facts), **nullable, **given}
    is_unfit = "dtype" not in given and any(key == "dtype" for key, _ in _faults(keys))
    return {key: value for key, value in keys.items() if key != "dtype"} if is_unfit else keys


def _finished(keys: Keys, remarks: list[str], facts: Facts, discover: bool) -> ColumnDraft:
    """Leave to a discovery what it can fill in, and say what a person is to look at in a column of numbers or times."""
    if discover:
        keys = _left_to_discovery(keys)
        keys, more = _in_seconds(keys)
        remarks = [*remarks, *more]
    if facts.zeros and keys["type"] in NUMBERS and keys.get("min") in (0, TODO, WORD):
        keys = {**keys, "zero_inflated": True}
    keys, more = _with_zeros({**keys, "unique": True} if facts.unique and keys["type"] == "identifier" else keys)
    if keys["type"] == "identifier" and "keep" not in keys and (pattern := form_of(_form_words(facts))):
        remarks = [one for one in remarks if not (one.startswith(NOT_READ) and form_of(one))]
        more = [*more, MADE.format(with_other_letter(pattern))]
    is_advised = any(ADVICE in remark for remark in remarks)
    if may_hold_zeros(keys) and not is_advised:
        more = [*more, IF_ZEROS]
    if keys["type"] == "number" and not {"round", "dtype", "computed"} & keys.keys() and not is_advised:
        more = [*more, OF_DECIMALS]
    return ColumnDraft(keys, (*remarks, *more))


def _form_words(facts: Facts) -> str:
    """Return the words that may say the form of keys: the description, and cells that list no values."""
    return "; ".join([facts.description, *(re.sub("^(?:values|type|range) ", "", words) for words in facts.unread)])


def _described(facts: Facts) -> list[str]:
    """Return the description of a column, with its line in a document of prose."""
    return [f"{facts.description} ({facts.place})" if facts.place else facts.description] * bool(facts.description)


def _unread(facts: Facts) -> list[str]:
    return [f"{NOT_READ}{words}" for words in dict.fromkeys(facts.unread)]


def _doubted(facts: Facts, accept: bool, discover: bool) -> tuple[Facts, list[str]]:
    """Say what was read of words that may be meant otherwise; a discovery finds it instead, unless it is accepted."""
    if not facts.unsure:
        return facts, []
    if accept:
        return facts, ["a suggestion that was accepted: bounds or values as its description may be read"]
    if discover:
        return replace(facts, low=None, high=None, values=None), [f"{SUGGESTED}its description may say what is open"]
    return facts, [f"{SUGGESTED}its description may be read; to take it, delete `, confirm: TODO`"]


def _with_zeros(keys: Keys) -> tuple[Keys, list[str]]:
    """Give the zeros of an amount a value of their own."""
    known = {key: value for key, value in keys.items() if key not in CONFIRM}
    if known["type"] not in NUMBERS or {TODO, WORD} & {str(value) for value in known.values()}:
        return keys, []
    if next(_faults(known), None) or not is_open_amount(COLUMN.validate_python(known)):
        return keys, []
    return {**keys, "zero_inflated": True}, [OF_ZEROS]


def may_hold_zeros(keys: Keys) -> bool:
    """Tell whether a column of numbers, of which a bound is open and the other lets 0 in, says nothing of its zeros."""
    low, high = (keys.get(bound, TODO) for bound in ("min", "max"))
    if keys["type"] not in NUMBERS or "zero_inflated" in keys or TODO not in (low, high):
        return False
    return bool((low in (TODO, WORD) or low <= 0) and (high in (TODO, WORD) or high >= 0))


def _with(suggested: Suggestion, keys: Keys, decimals: int | None) -> tuple[Keys, list[str]]:
    """Write a suggestion into the keys that are known, of which one of another type leaves nulls and decimals."""
    known = {key: value for key, value in keys.items() if key == "nullable" or "type" not in suggested.keys}
    known = {} if suggested.keys.get("type") == "derived" else known
    rounded = {"round": decimals} if suggested.keys.get("type") == "number" and decimals else {}
    return _settled({**({} if suggested.keys.get("type") == "identifier" else known), **suggested.keys, **rounded})


def _offer(suggested: Suggestion, keys: Keys, accept: bool) -> str:
    """Say what a name suggests, and what makes it count."""
    advice = f"; {advice_on({**keys, **suggested.keys})}" if suggested.keys.get("max") == TODO else ""
    if accept:
        return f"a suggestion that was accepted: {suggested.because}{advice}"
    mark = "" if TODO in keys.values() else "; to take it, delete `, confirm: TODO`"
    return f"{SUGGESTED}{suggested.because}{advice}{mark}"


def _names_type(keys: Keys, suggested: Suggestion) -> bool:
    """Tell whether a suggestion says what a column is; of one that has a type, only that it names somebody."""
    return "type" in suggested.keys and (keys["type"] == TODO or suggested.keys["type"] == "identifier")


def _without_bounds(keys: Mapping[str, Any]) -> Keys:
    return {key: TODO if key in ("min", "max") else value for key, value in keys.items()}


def _documented(keys: Keys, suggested: Suggestion) -> Keys:
    """Return what is known of a column and fits the type that a name suggests."""
    fits = ("nullable", *(bound for bound in ("min", "max") if keys["type"] == TODO and bound in suggested.keys))
    return {key: keys[key] for key in fits if key in keys}


def _taken(suggested: Suggestion, known: Keys) -> str:
    """Say what a column was taken for by its name, and which bounds need no discovery."""
    words = _bounds_in(suggested, known)
    by = "" if suggested.because in (UNIQUE, *OF_BOUNDS) else "by its name "
    return f"taken {by}for {suggested.because}: check it" + (f"; {words} would cost nothing" if words else "")


def _keys_in(suggested: Suggestion) -> str:
    """Write the bounds that are suggested, or all keys of a formula."""
    if "formula" not in suggested.keys:
        return _bounds_in(suggested)
    return yaml.safe_dump(dict(suggested.keys), default_flow_style=True, sort_keys=False, width=10_000).strip()


def _bounds_in(suggested: Suggestion, known: Collection[str] = ()) -> str:
    keys = {key: value for key, value in suggested.keys.items() if key not in known}
    bounds = {key: value for key, value in keys.items() if key in ("min", "max") and value != TODO}
    return yaml.safe_dump(bounds, default_flow_style=True, sort_keys=False).strip() if bounds else ""


def _stated(name: str, dtype: pa.DataType | None, facts: Facts) -> Keys:
    """Return what the type in the file tells of a column, as far as nothing goes before it."""
    if dtype is not None and facts.from_person:
        return beside_given(dtype, facts)
    return of_type(None if _may_be_other(name, dtype, facts) else dtype)


def _may_be_other(name: str, dtype: pa.DataType | None, facts: Facts) -> bool:
    """Tell whether a text column may hold dates or answers, which a run reads of text: then its type is open.

    Its name says so, or of dates its documentation.
    """
    if dtype is None or not is_text(inner_type(dtype)):
        return False
    if TYPES.get(facts.kind or "") == "datetime" and facts.values is None:
        return True
    suggested = suggestion(name, of_type(None)) if is_text(dtype) else None
    return suggested is not None and suggested.keys.get("type") in ("datetime", "boolean")


def _of_days(facts: Facts, dtype: pa.DataType | None) -> Facts:
    """Take for dates what nobody says the kind of, and whose documented bounds are days or moments."""
    ends = [end.value for end in (facts.low, facts.high) if end]
    is_untyped = dtype is None or pa.types.is_null(dtype) or is_text(inner_type(dtype))
    is_open = facts.kind is None and facts.values is None and is_untyped
    if not is_open or not ends or not all(isinstance(end, date) for end in ends):
        return facts
    return replace(facts, kind="moment" if any(isinstance(end, datetime) for end in ends) else "date")


def _left_to_discovery(keys: Keys) -> Keys:
    """Mark what a discovery finds of a column's type wherever it is a TODO."""
    markable = MARKABLE.get(keys["type"], ())
    return {key: WORD if value == TODO and key in markable else value for key, value in keys.items()}


def _in_seconds(keys: Keys) -> tuple[Keys, list[str]]:
    """Cut times to the second where nothing says otherwise, and say so."""
    return ({**keys, "resolution": "second"}, [IN_SECONDS]) if keys.get("resolution") == TODO else (keys, [])


def _joined(stated: Keys, facts: Facts) -> tuple[Keys, list[str]]:
    """Join what the file states with what is documented; where they differ, the file is right, and it is said."""
    kind, type_name = stated["type"], TYPES.get(facts.kind or "", TODO)
    if kind == "image":
        return stated, []
    if facts.derived:
        bounds = {"min": facts.low, "max": facts.high} if "formula" in facts.derived else {}
        rounded = {"round": facts.decimals} if bounds and facts.decimals else {}
        return {
            "type": "derived",
            **facts.derived,
            **rounded,
            **{key: one.value for key, one in bounds.items() if one},
        }, []
    nullable = {"nullable": True} if facts.nullable else {}
    if type_name == "identifier" and kind in ("integer", "categorical", TODO):
        return {"type": "identifier"}, []
    if kind == "categorical" and type_name == "boolean" and _are_answers(facts.values):
        return {"type": "boolean", **nullable}, []  # text of yes and no, y and n, true and false is read as such
    if facts.values is not None and kind != "boolean":
        values = values_of(facts, kind)
        if values is None:
            return {**stated, **nullable}, ["the documented values are not of the type that the file has"]
        if set(values) == {False, True} and isinstance(values[0], bool):
            return {"type": "boolean", **nullable}, []
        dtype = {key: stated[key] for key in ("dtype",) if key in stated}
        return {"type": "categorical", "values": values, **dtype, **nullable}, []
    if kind == "integer" and facts.kind == "category":
        return {**unfilled("categorical", facts), **nullable}, []
    if kind == "integer" and type_name == "boolean":
        return {"type": "categorical", "values": [0, 1], **nullable}, []
    remarks = []
    if kind == TODO:
        keys = unfilled(type_name, facts)
    elif kind == "number" and type_name == "integer":
        keys = {"type": "integer", "min": TODO, "max": TODO}
    else:
        alike = (NUMBERS, ("boolean", "categorical") if facts.kind == "category" else ())
        differ = type_name not in (TODO, "identifier", kind) and not any(
            {kind, type_name} <= set(each) for each in alike
        )
        remarks = [f"documented as {facts.kind}, which is not what the file holds"] if differ else []
        keys = dict(stated)
    return {**keys, **bounds_of(keys, facts), **nullable}, remarks


def _are_answers(values: Sequence[Any] | None) -> bool:
    """Tell whether a run reads each of some values as true or false; of values that nobody lists it is taken for so."""
    return values is None or {str(value).lower() for value in values} <= ANSWERS.keys()


def _settled(keys: Keys) -> tuple[Keys, list[str]]:
    """Leave open what a schema refuses, and say why."""
    remarks = []
    if TODO not in keys.values():
        for key, message in _faults(keys):
            remarks.append(f"{key} as documented {message}")
            keys = {one: TODO if one == key else value for one, value in keys.items() if one != key or key in REQUIRED}
    return keys, remarks


REQUIRED = ("type", "min", "max", "values", "resolution")


def _faults(keys: Keys) -> Iterator[tuple[str, str]]:
    try:
        COLUMN.validate_python(keys)
    except ValidationError as refused:
        for error in refused.errors():
            cause = error.get("ctx", {}).get("error")
            if isinstance(cause, ColumnFaults):
                yield from cause.faults
            elif len(error["loc"]) > 1:
                yield str(error["loc"][1]), "cannot be written"
