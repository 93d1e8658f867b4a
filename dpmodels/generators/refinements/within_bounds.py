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
TURNS = 8
"""Parts that the rows outside the bounds are taken in, those that lie farthest outside first."""
NEAR, WIDER = 32, 1.1
"""Partners on either side of the nearest value that a row may have that are all tried, and how steps then grow."""


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
    """Exchange values of one column among rows, first of those that lie farthest outside: few others can take these."""
    numbers = {one: rules.numbers(records, one) for one in rule.columns}
    broken = np.flatnonzero(~rules.keeps(records, rule))
    if not len(broken):
        return
    nearest = brought_within(rule, {one: x[broken] for one, x in numbers.items()}, rules.columns, [name])[name]
    usable = ~np.isnan(numbers[name])
    usable[broken] = False  # else one that was exchanged could be taken for what it was
    order = np.flatnonzero(usable)
    order = order[np.argsort(numbers[name][order], kind="stable")]
    start = np.searchsorted(numbers[name][order], nearest, side="right") - 1
    hardest = np.argsort(-np.abs(numbers[name][broken] - nearest), kind="stable")
    for turn in np.array_split(hardest, min(TURNS, len(hardest))):
        _exchange_outwards(records, broken[turn], start[turn], order, usable, rules, name)


def _exchange_outwards(
    records: Records, rows: Whole, start: Whole, order: Whole, usable: Mask, rules: "Rules", name: str
) -> None:
    """Exchange values of rows with those of others in their order, from a place in it on outwards."""
    for step in _steps(len(order)):
        position = start + step
        inside = (position >= 0) & (position < len(order))
        trying, partners = rows[inside], order[position[inside]]
        first = np.unique(partners, return_index=True)[1]  # of rows with the same partner, one alone has it
        trying, partners = trying[first], partners[first]
        trying, partners = trying[usable[partners]], partners[usable[partners]]
        fit = _fit_exchanged(records, trying, partners, rules, name)
        _swap(records, trying[fit], partners[fit], rules.column_index[name])
        usable[partners[fit]] = False
        left = ~np.isin(rows, trying[fit])
        rows, start = rows[left], start[left]
        if not len(rows):
            return


def _steps(most: int) -> list[int]:
    """List the steps from the nearest value, downwards and upwards by turns, which grow once they are many."""
    steps = [*range(1, NEAR + 1)]
    while steps[-1] < most:
        steps.append(int(steps[-1] * WIDER))
    return [0, *(side * step for step in steps for side in (-1, 1))]


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
