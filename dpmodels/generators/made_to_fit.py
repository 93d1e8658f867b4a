"""Rows made to fit the rules of a schema: the last resort for rows that no spare row can stand in for.

Only the columns that a broken rule is about are changed. A value after ``then`` becomes one that the rule allows, taken
from rows that the generator drew, or from the whole of what the schema admits where none of them has one; two values
that are to be in order are put in order; what a derived column follows from becomes what keeps its bounds. Whatever
else the row says stays as it was drawn.
"""

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.arrays import Whole
from dpmodels.codec.convert import encode_numbers
from dpmodels.codec.records import Records
from dpmodels.contract.columns import Continuous
from dpmodels.contract.conditions import Condition, bounds, cell_shares, hold
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.derivation.bounds import DerivedBound, brought_within, movable
from dpmodels.errors import DataError

TRIALS = 16
"""Drawn rows whose value is tried where a derived column lies outside its bounds."""

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpmodels.generators.constraints import Rules


def make_fit(
    records: Records, rows: Whole, rules: "Rules", donors: Records, not_null: str, rng: np.random.Generator
) -> None:
    """Change rows, in place, until they keep every rule and are not null in one column if it is named.

    A row that cannot be brought to it, where one rule undoes another, becomes a copy of one that keeps them all.

    Args:
        records: a batch.
        rows: the numbers of those of its rows that are to be changed.
        rules: the rules.
        donors: rows from the generator, of which values are taken.
        not_null: the column that must not be null, or nothing.
        rng: the stream that decides.

    Raises:
        DataError: no row of the batch keeps the rules.
    """
    unfit = mend(records, rows, rules, donors, not_null, rng)
    if not len(unfit):
        return
    source, good = records, np.flatnonzero(rules.hold(records, not_null))
    if not len(good):  # the class of others may let them keep every rule
        source = donors.take(np.arange(len(donors)))
        mend(source, np.arange(len(source)), rules, donors, not_null, rng)
        good = np.flatnonzero(rules.hold(source, not_null))
    if not len(good):
        raise DataError("", f"no row keeps {rules}: these rules contradict each other; nothing was handed over")
    picks = rng.choice(good, len(unfit))
    records.states[unfit], records.values[unfit] = source.states[picks], source.values[picks]


def mend(
    records: Records, rows: Whole, rules: "Rules", donors: Records, not_null: str, rng: np.random.Generator
) -> Whole:
    """Change the free columns of rows, in place, as ``make_fit`` does; return the numbers of those that stay unfit."""
    for turn in range(2 * len(rules.all) + 2):
        unfit = rows[~rules.hold(records.take(rows), not_null)]
        if not len(unfit):
            return unfit
        if not_null:
            column = rules.columns[not_null]
            null = -1 if column.null_state is None else column.null_state
            not_null_condition = [Condition(f"{not_null} != null", not_null, column, "!=", null, of_state=True)]
            _assign(records, unfit[rules.null(records.take(unfit), not_null)], not_null_condition, rules, donors, rng)
        for rule in rules.implications:
            for name in filter(rules.is_free, dict.fromkeys(one.name for one in rule.then)):
                broken = unfit[~rules.keeps(records.take(unfit), rule)]
                _assign(records, broken, [one for one in rule.then if one.name == name], rules, donors, rng)
        for pair in rules.constraints:
            _put_in_order(records, unfit, pair, rules)
        for bound in rules.bounds:
            _bring_within(records, unfit[~rules.keeps(records.take(unfit), bound)], bound, rules, donors, rng, turn)
    return rows[~rules.hold(records.take(rows), not_null)]


def _assign(
    records: Records,
    rows: Whole,
    conditions: list[Condition],
    rules: "Rules",
    donors: Records,
    rng: np.random.Generator,
) -> None:
    """Give rows a value that meets all conditions on one column, by the drawn rows or else by the schema alone."""
    name = conditions[0].name
    at, column = rules.column_index[name], rules.columns[name]
    meeting = np.flatnonzero(hold(conditions, donors.states[:, at], donors.values[:, at]))
    if len(meeting):
        picks = rng.choice(meeting, len(rows))
        records.states[rows, at], records.values[rows, at] = donors.states[picks, at], donors.values[picks, at]
        return
    shares = cell_shares(conditions, column)
    cells = rng.choice(len(shares), len(rows), p=shares / shares.sum()).astype(np.int32)
    if not isinstance(column, Continuous):
        records.states[rows, at] = cells
        return
    inside = cells < column.cells
    records.states[rows, at] = np.where(inside, 0, cells - column.cells + 1)
    records.values[rows, at] = 0.0
    records.values[rows[inside], at] = column.grid.draw(cells[inside], rng, *bounds(conditions))


def _put_in_order(records: Records, rows: Whole, pair: Constraint, rules: "Rules") -> None:
    """Exchange the two values of rows that break a comparison; where that is not enough, take the columns' ends."""
    names = pair.lower, pair.upper
    for ends in (False, True):
        in_order = pair.holds(*(rules.numbers(records.take(rows), name) for name in names))
        rows = rows[~in_order]
        lower, upper = (rules.numbers(records.take(rows), name) for name in names)
        for name, x in zip(names, (np.minimum(lower, upper), np.maximum(lower, upper)), strict=True):
            if not rules.is_free(*(names if not ends else [name])):  # an exchange takes both columns
                continue
            column, at = rules.column(name), rules.column_index[name]
            end = column.low if name == pair.lower else column.high
            records.states[rows, at], records.values[rows, at] = encode_numbers(
                column, np.full_like(x, end) if ends else x
            )


def _bring_within(
    records: Records, rows: Whole, bound: DerivedBound, rules: "Rules", donors: Records, rng: "Generator", turn: int
) -> None:
    """Bring a derived column within its bounds: by a value of a drawn row, and else by the nearest that keeps them.

    The nearest value of a stay is what the last day leaves, and would make that day the last of every such row.
    """
    names = movable(bound, rules.columns, rules.fixed)
    names = [*names[turn % max(1, len(names)) :], *names[: turn % max(1, len(names))]]  # another rule may undo one
    for name in names[:1] * TRIALS:
        at, picks = rules.column_index[name], rng.choice(len(donors), len(rows))
        trial = records.take(rows)
        trial.states[:, at], trial.values[:, at] = donors.states[picks, at], donors.values[picks, at]
        fit = rules.keeps(trial, bound) & ~(rules.null(trial, name))
        records.states[rows[fit], at], records.values[rows[fit], at] = trial.states[fit, at], trial.values[fit, at]
        rows = rows[~fit]
    operands = {name: rules.numbers(records.take(rows), name) for name in bound.columns}
    for name, x in brought_within(bound, operands, rules.columns, names).items():
        at, moved = rules.column_index[name], x != operands[name]
        codes = encode_numbers(rules.column(name), x[moved])
        records.states[rows[moved], at], records.values[rows[moved], at] = codes
