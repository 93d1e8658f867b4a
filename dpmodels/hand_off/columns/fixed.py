"""What the rules of a schema fix in groups of a column's values: a rate at 0 or 1, or a mean.

A report states such figures without noise, since rows that break a rule are refused; no other figure has none.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmodels.arrays import Mask
from dpmodels.contract.columns import Continuous, Derived, Discrete, names_of
from dpmodels.contract.schema import Schema

if TYPE_CHECKING:
    from dpmodels.report.derived.possible import Rules


def rules_of(table: Schema) -> "Rules":
    """Return the rules of one row of a table."""
    from dpmodels.report.derived.possible import Rules

    return Rules(table.implications, table.rules, table.columns, table.modelled)


def cells_of(by: Any, labels: Sequence[Sequence[str]]) -> Sequence[Mask | None]:
    """Return which fine cells of a column are in each group that it makes; None where that is not known."""
    from dpmodels.report.groups.ranges import cells_of_ranges

    if isinstance(by, Continuous):
        return cells_of_ranges(labels, by) or [None] * len(labels)
    if not isinstance(by, Discrete):
        return [None] * len(labels)
    names = names_of(by)
    places = [[names.index(label) for label in each] if {*each} <= {*names} else None for each in labels]
    return [None if each is None else np.isin(np.arange(by.size), each) for each in places]


def fixed_rate(rules: "Rules", one: str, by: str, inside: Mask, taken: int, others: Sequence[int]) -> float | None:
    """Return the rate of a class of a column in a group of another, if one rule fixes it at 0 or 1 in all of it."""
    if not inside.any():
        return None
    none = rules.none_in(one, by, inside.astype(np.int64))[:, 1]
    return 0.0 if none[taken] else 1.0 if none[others].all() else None


def may_be_fixed(rules: "Rules", one: str, by: str, inside: Mask, taken: int, others: Sequence[int]) -> bool:
    """Tell whether rules may fix a rate, cell by cell; of ranges, and of what is computed, whether there are any."""
    if {one, by} & {name for name, each in rules.columns.items() if getattr(each, "computed", None)}:
        return True
    if isinstance(rules.cut[by], Continuous):
        return any({*rule.columns} == {one, by} for rule in rules.implications)
    none = rules.none_in(one, by, np.arange(rules.cut[by].size))[:, inside]
    return bool(none[taken].all() or none[others].all(axis=0).all())


def may_be_sure(table: Schema, column: str, by: str, labels: Sequence[str]) -> bool:
    """Tell whether rules may fix the mean of a column in a group of another, value by value."""
    from dpmodels.report.groups.reconciled import ends_of_values

    low, high = ends_of_values(table.columns, column)
    of, every = table.columns[by], table.columns[column]
    if low == high or not isinstance(of, Discrete):
        return True
    rules, formula = rules_of(table), str(every.formula) if isinstance(every, Derived) else column
    for (inside,) in (cells_of(of, [[label]]) for label in labels):
        ends = (0.0, 0.0) if inside is None else rules.between(formula, by, inside)
        if ends[0] != ends[1] and not (inside is not None and rules.is_settled(formula, by, inside)):
            return False
    return True
