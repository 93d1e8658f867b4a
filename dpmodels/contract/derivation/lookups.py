"""Conditions on columns that are looked up by another one, as conditions on that: ``region = north`` of an airport."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpmodels.contract.columns import Derived, names_of
from dpmodels.contract.conditions import NULL, Condition, parse
from dpmodels.errors import Unsuitable, near

MOST = 12
"""Values that a message names."""


def of_lookup(text: str, columns: Mapping[str, Any]) -> list[Condition] | None:
    """Read a condition on a column that is looked up by another one, as conditions on that; None of any other text.

    It is not any value of that column which stands for something else.

    Raises:
        Unsuitable: no value stands for the one that it names.
    """
    lookups = {name: one for name, one in columns.items() if isinstance(one, Derived) and one.values}
    for bare, value in ((text.strip(), "true"), (text.strip().removeprefix("not ").strip(), "false")):
        if bare in lookups and lookups[bare].kind == "boolean":
            return _of_lookup(text.strip(), bare, columns, "=", value)
    for name in sorted(lookups, key=len, reverse=True):
        if match := re.fullmatch(rf"{re.escape(name)}\s*(==|!=|=)\s*(.*)", text.strip(), re.DOTALL):
            return _of_lookup(text.strip(), name, columns, match[1].replace("==", "="), match[2].strip())
    return None


def _of_lookup(text: str, name: str, columns: Mapping[str, Any], sign: str, value: str) -> list[Condition]:
    lookup = columns[name]
    operand, named = columns[lookup.of], {key: _as_written(one) for key, one in lookup.values.items()}
    if value == NULL and NULL not in named.values():
        return [replace(parse(f"{lookup.of}{sign}{NULL}", columns), text=text)]
    meant = value.lower() if lookup.kind == "boolean" else _number_as(value, named) or value
    if meant not in named.values():
        there = list(dict.fromkeys(named.values()))
        hint = near(value, there)
        raise Unsuitable(
            f"`{text}`: no value of column {lookup.of} stands for {value}; {name} has {', '.join(there[:MOST])}{hint}"
        )
    others = [key for key in names_of(operand) if (named.get(key) == meant) == (sign == "!=")]
    states = [names_of(operand).index(key) for key in others]
    null = -1 if operand.null_state is None else operand.null_state
    return [Condition(text, lookup.of, operand, "!=", state, of_state=True) for state in [*states, null]]


def _number_as(text: str, named: Mapping[str, str]) -> str | None:
    """Return the value that is the same number as a text, as 0.50 is 0.5; None where none is."""
    try:
        return next((one for one in named.values() if float(one) == float(text)), None)
    except ValueError:
        return None


def _as_written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
