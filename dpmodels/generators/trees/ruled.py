"""Rows of a tree that keep the rules of their table: drawn again given the same rows above, until they do.

A row is drawn again given all that was known of it, so what it says is what the mixture says of rows that keep the
rules. Rows that never do are made to fit (generators/made_to_fit.py) by their own columns; what is known of them is not
changed. Rows that even so break a rule are left out by whoever calls.

Privacy: post-processing.
"""

from collections.abc import Callable
from typing import cast

import numpy as np

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.codes import from_codes, to_codes
from dpmodels.codec.encode import Records
from dpmodels.contract.columns import Continuous
from dpmodels.generators.constraints import Rules
from dpmodels.generators.made_to_fit import mend
from dpmodels.generators.trees.given import GivenColumns

TRIES = 60
"""Times that a row is drawn again before it is made to fit."""


def draw_by_rules(
    draw: Callable[[Whole], Records], rows: int, rules: Rules, rng: np.random.Generator
) -> tuple[Records, Mask]:
    """Draw rows by their numbers, with all that is known of them; return them, and which of them keep the rules."""
    records = _settled(draw(np.arange(rows)), rules, rng)
    unfit = np.flatnonzero(~rules.hold(records))
    for _ in range(TRIES):
        if not len(unfit):
            break
        fresh = _settled(draw(unfit), rules, rng)
        fit = rules.hold(fresh)
        records.states[unfit[fit]], records.values[unfit[fit]] = fresh.states[fit], fresh.values[fit]
        unfit = unfit[~fit]
    fits = np.ones(rows, dtype=np.bool_)
    fits[mend(records, unfit, rules, records, "", rng)] = False
    return records, fits


def allowed_cells(draw: GivenColumns, records: Records, rules: Rules) -> dict[int, Mask]:
    """Say which fine cells of drawn columns reach what a rule compares them with, where that is known of each row.

    Shapes: by the place of a drawn column [B, cells].
    """
    masks = dict[int, Mask]()
    for rule in rules.constraints:
        for name, other in ((rule.upper, rule.lower), (rule.lower, rule.upper)):
            index = draw.partition.names.index(name)
            column = draw.partition.columns[index]
            if index not in draw.drawn or draw.partition.names.index(other) in draw.drawn:
                continue
            limit = rules.numbers(records, other)[:, None]
            first, last = cast(Continuous, column).grid.bounds
            reach = rule.holds(limit, last) if name == rule.upper else rule.holds(first, limit)
            others = np.ones((len(limit), column.size - len(first)), dtype=np.bool_)  # zero, which is tried, and null
            masks[index] = masks.get(index, True) & np.concatenate([reach, others], axis=1)
    return masks


def _settled(records: Records, rules: Rules, rng: np.random.Generator) -> Records:
    """Exchange values whose cells overlap, and round every number as it is written."""
    settled = rules.settle(records, rng)
    for index, (name, column) in enumerate(rules.columns.items()):
        if isinstance(column, Continuous) and column.decimals is None and rules.is_free(name):
            codes = to_codes(column, settled.states[:, index], settled.values[:, index])
            settled.values[:, index] = from_codes(column, codes)[1]
    return settled
