"""Whether two rules of a row say the same, however each is written: `not sick` and `sick = false`, `< 4` and `<= 3`."""

from collections.abc import Mapping
from typing import Any

from dpmodels.contract.columns import Discrete, Integer
from dpmodels.contract.conditions import Condition
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.implications import Implication, is_implication
from dpmodels.errors import Unsuitable

Said = tuple[frozenset[Any], frozenset[Any]]
"""When a rule holds, and what it then says; two columns that are compared are compared always."""
TWO = 2


def is_said_by(rule: str, other: str, columns: Mapping[str, Any]) -> bool:
    """Tell whether a rule says nothing beside another one, which may say more of the same rows."""
    when, then = _said(rule, columns)
    other_when, other_then = _said(other, columns)
    return when == other_when and then <= other_then


def _said(rule: str, columns: Mapping[str, Any]) -> Said:
    """Return what a rule says; of one that cannot be read, its text."""
    try:
        read = Implication.parse(rule, columns) if is_implication(rule) else None
    except Unsuitable:
        return frozenset(), frozenset([rule.strip()])
    if read is None:
        return frozenset(), frozenset([Constraint.parse(rule) or rule.strip()])
    return frozenset(map(_condition, read.premises)), frozenset(map(_condition, read.then))


def _condition(one: Condition) -> tuple[Any, ...]:
    """Return a condition in one of the ways in which it may be written."""
    sign, value = one.sign, one.value
    if isinstance(one.column, Integer) and sign in ("<", ">") and not one.of_state:
        sign, value = (f"{sign}=", value - 1 if sign == "<" else value + 1)
    if isinstance(one.column, Discrete) and len(one.column.values) == TWO and sign == "!=" and value < TWO:
        sign, value = "=", 1 - value
    return one.name, sign, float(value), one.of_state
