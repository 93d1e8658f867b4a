"""Rows brought within the bounds of a derived column; the columns that it follows from keep their values.

A generator that draws ``joined`` and ``active`` knows of no last day, and those who joined late were active for too
long. To draw other rows for them would leave late joiners the short times alone, and give the long ones to whoever
joined early, more than there were. So two rows of a class exchange their times first, where both keep the bounds then:
each gets the nearest value that it may have, and the column keeps every one of its values.

Privacy: post-processing.
"""

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.records import Records
from dpmodels.contract.derivation.bounds import DerivedBound, brought_within, movable

if TYPE_CHECKING:
    from dpmodels.generators.constraints import Rules

TRIALS = 8
"""Times that values within cells are drawn anew; what no trial brings within the bounds is left to an exchange."""
PARTNERS = 256
"""Rows, on either side of the nearest value that a row may have, that it may exchange its value with."""


def redraw_within(records: Records, rule: DerivedBound, rules: "Rules", rng: np.random.Generator) -> None:
    """Draw, in place, what a derived column follows from anew within its cells, where that brings it within bounds.

    Of two cells some values keep the bounds and others do not: those are drawn by trial, as often as they occur.
    """
    rows = np.flatnonzero(~rules.keeps(records, rule))
    for _ in range(TRIALS if len(rows) else 0):
        trial = records.take(rows)
        for name in movable(rule, rules.columns, rules.fixed):
            at, grid = rules.column_index[name], rules.column(name).grid
            valued = trial.states[:, at] == 0
            trial.values[valued, at] = grid.draw(grid.of(trial.values[valued, at]), rng)
        fit = rules.hold(trial)
        records.values[rows[fit]] = trial.values[fit]
        rows = rows[~fit]


def exchange(records: Records, rule: DerivedBound, rules: "Rules") -> None:
    """Exchange, in place, the value of rows outside the bounds with that of other rows of their class."""
    names = movable(rule, rules.columns, rules.fixed)
    if not names or rules.keeps(records, rule).all():
        return
    labels = records.labels(rules.target)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        part = records.take(members)
        _exchange(part, rule, rules, names[0])
        records.states[members], records.values[members] = part.states, part.values


def _exchange(records: Records, rule: DerivedBound, rules: "Rules", name: str) -> None:
    """Exchange values of one column among rows, from the nearest value that a row may have on outwards."""
    numbers = {one: rules.numbers(records, one) for one in rule.columns}
    broken = np.flatnonzero(~rules.keeps(records, rule))
    nearest = brought_within(rule, {one: x[broken] for one, x in numbers.items()}, rules.columns, [name])[name]
    usable = ~np.isnan(numbers[name])
    usable[broken] = False  # else one that was exchanged could be taken for what it was
    order = np.flatnonzero(usable)
    order = order[np.argsort(numbers[name][order], kind="stable")]
    start = np.searchsorted(numbers[name][order], nearest, side="right") - 1
    for step in _steps():
        position = start + step
        inside = (position >= 0) & (position < len(order))
        rows, partners = broken[inside], order[position[inside]]
        first = np.unique(partners, return_index=True)[1]  # of rows with the same partner, one alone has it
        rows, partners = rows[first], partners[first]
        fit = usable[partners] & _fit_exchanged(records, rows, partners, rules, name)
        _swap(records, rows[fit], partners[fit], rules.column_index[name])
        usable[partners[fit]] = False
        left = ~np.isin(broken, rows[fit])
        broken, start = broken[left], start[left]
        if not len(broken):
            return


def _steps() -> list[int]:
    """List the steps from the nearest value, downwards and upwards by turns."""
    return [0, *(side * step for step in range(1, PARTNERS + 1) for side in (-1, 1))]


def _fit_exchanged(records: Records, rows: Whole, partners: Whole, rules: "Rules", name: str) -> Mask:
    """Tell which rows keep all rules, as their partners do, once both have exchanged a value."""
    both = records.take(np.concatenate([rows, partners]))
    _swap(both, np.arange(len(rows)), len(rows) + np.arange(len(rows)), rules.column_index[name])
    fit = rules.hold(both)
    exchanged: Mask = fit[: len(rows)] & fit[len(rows) :]
    return exchanged


def _swap(records: Records, rows: Whole, partners: Whole, column: int) -> None:
    for codes in (records.states, records.values):
        codes[rows, column], codes[partners, column] = codes[partners, column], codes[rows, column].copy()
