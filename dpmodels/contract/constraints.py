"""Rules between two columns of one row, such as ``start <= end``: how they are written, and which rows keep them.

The other rules of a schema, such as ``when sick then fee > 0``, are in ``dpmodels/contract/implications.py``.

A row in which either column is null keeps the rule, as in SQL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Mask
from dpmodels.contract.columns import Continuous, Datetime, Derived, Integer
from dpmodels.contract.derivation.shares import in_place_of
from dpmodels.contract.implications import Implication, is_implication
from dpmodels.contract.text_forms.connectors import advice_on
from dpmodels.errors import Unsuitable, near

FORM = re.compile(r"(.+?)\s*(<=|>=|<|>)\s*(.+)")
VALUE = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|\d{4}-\d\d-\d\d([ T][\d:.]+)?", re.IGNORECASE)
"""What a side is that is no column, but a number or a moment."""


@dataclass(frozen=True)
class Constraint:
    """``lower <= upper``, or ``lower < upper`` if strict."""

    lower: str
    upper: str
    strict: bool

    @classmethod
    def parse(cls, text: str) -> "Constraint | None":
        """Read ``COLUMN <= COLUMN`` with any of the four signs; None for anything else."""
        if not (match := FORM.fullmatch(text.strip())):
            return None
        left, sign, right = match.groups()
        return cls(left, right, sign == "<") if sign[0] == "<" else cls(right, left, sign == ">")

    def __str__(self) -> str:
        return f"{self.lower} {'<' if self.strict else '<='} {self.upper}"

    def holds(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> Mask:
        """Tell which pairs of numbers keep the rule; NaN, which is null, does."""
        broken: Mask = lower >= upper if self.strict else lower > upper
        return ~broken


def constraint_faults(texts: Any, columns: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List what is wrong with the constraints of a schema, as (place in the file, message)."""
    faults, read = [], []
    for index, text in enumerate(texts):
        constraint = None if is_implication(text) else Constraint.parse(text)
        message = _implication_fault(text, columns) if is_implication(text) else _fault(constraint, columns)
        if message := message and (advice_on(text) or message):
            faults.append((f"constraints.{index}", f"`{text}` {message}"))
        elif constraint:
            read.append(constraint)
    return faults or _contradictions(read, columns)


def _implication_fault(text: str, columns: Mapping[str, Any]) -> str:
    try:
        Implication.parse(text, columns)
    except Unsuitable as fault:
        return f"cannot be kept: {fault}"
    return ""


def _fault(constraint: Constraint | None, columns: Mapping[str, Any]) -> str:
    if constraint is None:
        form = "must compare two columns, as in `start <= end`, with one of <=, <, >=, >"
        return f"{form}, or be a rule such as `when sick then fee > 0`"
    names = (constraint.lower, constraint.upper)
    if fault := name_fault(constraint, columns):
        return fault
    if names[0] == names[1]:
        return "compares a column with itself"
    first, second = (columns[name] for name in names)
    for name, column in zip(names, (first, second), strict=True):
        if getattr(column, "formula", None):
            return f"names `{name}`, which is derived: what its formula gives decides, so leave the rule out"
        if not isinstance(column, Continuous):
            return f"needs integers, numbers or datetimes, and `{name}` is none of them"
    if isinstance(first, Datetime) != isinstance(second, Datetime):
        return "compares a datetime with a number"
    if isinstance(first, Datetime) and first.tick != second.tick:
        return "needs datetimes of the same resolution"
    return ""


def name_fault(constraint: Constraint, columns: Mapping[str, Any]) -> str:
    """Say which side of a constraint is no column, and of a value, which bound of the other side says it; or nothing.

    A column whose faults stand elsewhere is None.
    """
    lower, upper = constraint.lower, constraint.upper
    if "if " in (lower[:3], upper[:3]):
        return "begins with `if`, and a rule of a row with `when`: write `when CONDITION then CONDITION`"
    for name, other, key, step in ((lower, upper, "min", 1), (upper, lower, "max", -1)):
        if name in columns:
            continue
        column = columns.get(other)
        if other not in columns or not VALUE.fullmatch(name) or not isinstance(column, Continuous | Derived | None):
            instead = in_place_of(name, other, key == "max", columns) or near(name, columns)
            is_none = (name, key) == (lower, "min") and other not in columns and not VALUE.fullmatch(other)
            both = f", and `{other}`, which is none either{near(other, columns)}" if is_none else ""
            return f"names `{name}`, which is no column{instead}{both}"
        is_next = constraint.strict and isinstance(column, Integer) and name.lstrip("-").isdigit()
        bound, too = str(int(name) + step) if is_next else name, f", which {name} keeps too"
        return f"compares `{other}` with a value: write `{key}: {bound}` of that column instead" + too * (
            constraint.strict and not is_next
        )
    return ""


def _contradictions(constraints: list[Constraint], columns: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Say whether the constraints go round in a circle or leave a column no value within its bounds."""
    below: dict[str, set[str]] = {}
    for each in constraints:
        below.setdefault(each.upper, set()).add(each.lower)
    try:
        order = list(TopologicalSorter(below).static_order())
    except CycleError as error:
        return [("constraints", f"go round in a circle: {', '.join(dict.fromkeys(error.args[1]))}")]
    least = {name: columns[name].low for name in order}
    for name in order:
        for each in constraints:
            if each.upper == name:
                least[name] = max(least[name], least[each.lower])
                if least[name] > columns[name].high or (each.strict and least[each.lower] >= columns[name].high):
                    return [("constraints", f"`{each}` cannot hold within the bounds of the columns")]
    return []
