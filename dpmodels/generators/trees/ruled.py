"""Rows of a tree that keep the rules of their table: drawn again given the same rows above, until they do.

A row is drawn again given all that was known of it, so what it says is what the mixture says of rows that keep the
rules. Rows that never do are made to fit (generators/made_to_fit.py) by their own columns; what is known of them is not
changed. Rows that even so break a rule are left out by whoever calls.

Privacy: post-processing.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.codes import from_codes, to_codes
from dpmodels.codec.encode import Records
from dpmodels.codec.rules import RowRules
from dpmodels.codec.tree import TreeRecords
from dpmodels.contract.columns import Continuous
from dpmodels.contract.tree import Tree
from dpmodels.generators.constraints import Rules, caution_of
from dpmodels.generators.made_to_fit import mend
from dpmodels.generators.sampling import batch_stream
from dpmodels.generators.trees.given import GivenColumns

CAUTION_UNITS = 1024
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
            others[:, -1:] &= index not in draw.present
            masks[index] = masks.get(index, True) & np.concatenate([reach, others], axis=1)
    return masks


def caution_of_tree(model: Any, seed: int) -> str:
    """Say of which table fewer than half of the rows keep its rules as they are drawn, if of any; of the worst one.

    It is reckoned from units that are drawn as if there were no rules.
    """
    tree, shares = model.schema, dict[str, float]()
    content = tree.model_dump()
    for table in content["tables"].values():
        table.pop("constraints", None)
    if content == tree.model_dump():
        return ""
    drawn = replace(model, schema=Tree.model_validate(content)).draw(CAUTION_UNITS, batch_stream(seed, 0))
    for name, branch in tree.tables.items():
        if branch.constraints and drawn.rows(name):
            records = TreeRecords(tree, drawn.codes, drawn.parents).ruled(name)
            shares[name] = float(RowRules(tree.ruled(name)).hold(records).mean())
    worst = min(shares, key=lambda name: shares[name], default="")
    return caution_of(shares[worst], RowRules(tree.ruled(worst))) if worst and shares[worst] < 0.5 else ""


def _settled(records: Records, rules: Rules, rng: np.random.Generator) -> Records:
    """Exchange values whose cells overlap, and round every number as it is written."""
    settled = rules.settle(records, rng)
    for index, (name, column) in enumerate(rules.columns.items()):
        if isinstance(column, Continuous) and column.decimals is None and rules.is_free(name):
            codes = to_codes(column, settled.states[:, index], settled.values[:, index])
            settled.values[:, index] = from_codes(column, codes)[1]
    return settled
