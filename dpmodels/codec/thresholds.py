"""Rules that differ in their numbers alone, looked at together.

A schema may hold ``when hired < 1999-01-01 then birth_year <= 1982`` once for every year. One comparison of each column
with all of the numbers then tells how many of these rules a row breaks.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.conditions import SIGNS, Condition
from dpmodels.contract.implications import Implication, Seen

BLOCK = 2**22
"""Comparisons of a row with a rule that are held at once."""


@dataclass(frozen=True)
class Thresholds:
    """Rules ``when A < a then B <= b`` of the same two columns and signs.

    Shapes: ``premises`` and ``limits`` [rules], the numbers after ``when`` and after ``then``.
    """

    premise: Condition
    then: Condition
    premises: Floats
    limits: Floats

    def broken(self, seen: Mapping[str, Seen]) -> Whole:
        """Count the rules that each row breaks, by states and numbers of the two columns. Shapes: [rows]."""
        (given_states, given), (states, numbers) = seen[self.premise.name], seen[self.then.name]
        valued = (given_states != self.premise.null) & (states != self.then.null)
        count, step = np.zeros(len(valued), dtype=np.int64), max(1, BLOCK // len(self.limits))
        for start in range(0, len(valued), step):
            rows = slice(start, start + step)
            applies = SIGNS[self.premise.sign](given[rows, None], self.premises)
            met = SIGNS[self.then.sign](numbers[rows, None], self.limits)
            count[rows] = np.count_nonzero(applies & ~met, axis=1)
        return np.where(valued, count, 0)


def gathered(rules: Iterable[Any]) -> list[Any]:
    """Return rules with those put together that differ in their numbers alone; the others as they are."""
    alike: dict[Hashable, list[Any]] = {}
    for rule in rules:
        alike.setdefault(_form(rule), []).append(rule)
    return [one for several in alike.values() for one in (several if len(several) == 1 else [_together(several)])]


def _form(rule: Any) -> Hashable:
    """Return what rules have in common that can be put together; of any other rule, something of its own."""
    if not isinstance(rule, Implication) or len(rule.premises) != 1 or len(rule.then) != 1:
        return id(rule)
    (premise,), (then,) = rule.premises, rule.then
    if premise.of_state or then.of_state:
        return id(rule)
    return premise.name, premise.sign, then.name, then.sign


def _together(rules: list[Implication]) -> Thresholds:
    numbers = [np.array([side.value for side in sides]) for sides in zip(*map(_sides, rules), strict=True)]
    return Thresholds(*_sides(rules[0]), *numbers)


def _sides(rule: Implication) -> tuple[Condition, Condition]:
    return rule.premises[0], rule.then[0]
