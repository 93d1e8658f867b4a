"""Rows brought to keep ``when ward = children then age < 18`` by an exchange of values within a cell.

A release says how many rows of a ward fall into the cell of ages 0 to 27, and the generator spreads these alike over
that cell. So most patients of a children's ward break the rule, and to draw other rows for them would leave the ward
with the few that keep it. Two rows of one class and one cell exchange their ages first, where both keep the rules then:
all counts that were released stay as they are, and the rule decides what the release leaves open.

Privacy: post-processing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.records import Records
from dpmodels.codec.rules import RowRule
from dpmodels.contract.columns import Continuous
from dpmodels.contract.constraints import Constraint

if TYPE_CHECKING:
    from dpmodels.embeddings.partition import Partition
    from dpmodels.generators.constraints import Rules

TRIALS = 16
"""Partners that a row is tried with; what none of them mends is left to other rows."""


def exchange_in_cells(records: Records, partition: "Partition", rules: "Rules", rng: np.random.Generator) -> None:
    """Exchange, in place, a number of rows that break a rule with that of other rows of the same class and cell.

    Args:
        records: a batch.
        partition: the cells that a release counted together.
        rules: of which those of ``when`` and ``then`` are mended.
        rng: the stream that decides who exchanges.
    """
    cells, label = partition.cells(records), records.labels(partition.class_column)
    for rule in rules.implications:
        for name in filter(rules.is_free, dict.fromkeys(rule.columns)):
            at = rules.column_index[name]
            if not isinstance(rules.columns[name], Continuous) or at == partition.class_column:
                continue
            place = partition.names.index(name)
            group = label.astype(np.int64) * (int(cells[:, place].max(initial=0)) + 1) + cells[:, place]
            group[records.states[:, at] != 0] = -1  # null and the like, which are no numbers
            broken = np.flatnonzero(~rules.keeps(records, rule) & (group >= 0))
            _exchange(records, broken, group, name, rules, rng)


def _exchange(
    records: Records, broken: Whole, group: Whole, name: str, rules: "Rules", rng: np.random.Generator
) -> None:
    """Exchange one column's values among rows of a group, until all keep the rules or have tried their partners."""
    at, free = rules.column_index[name], group >= 0
    concerned = [rule for rule in rules.all if name in _columns(rule)]
    free[broken] = False
    for _ in range(TRIALS if len(broken) else 0):
        rows, partners = _partners(broken, np.flatnonzero(free), group, rng)
        both, after = np.concatenate([rows, partners]), np.concatenate([partners, rows])
        exchanged = records.take(both)
        exchanged.values[:, at] = records.values[after, at]
        fewer = np.split(_broken(records.take(both), rules, concerned) - _broken(exchanged, rules, concerned), 2)
        fit: Mask = (fewer[0] > 0) & (fewer[1] >= 0)
        records.values[rows[fit], at], records.values[partners[fit], at] = (
            records.values[partners[fit], at],
            records.values[rows[fit], at].copy(),
        )
        free[partners[fit]] = False
        broken = np.setdiff1d(broken, rows[fit])
        if not len(broken):
            return


def _columns(rule: RowRule) -> Sequence[str]:
    return (rule.lower, rule.upper) if isinstance(rule, Constraint) else rule.columns


def _broken(records: Records, rules: "Rules", some: Sequence[RowRule]) -> Whole:
    """Count the rules, of some, that each row breaks."""
    broken: Whole = np.sum([~rules.keeps(records, rule) for rule in some], axis=0, dtype=np.int64)
    return broken


def _partners(rows: Whole, others: Whole, group: Whole, rng: np.random.Generator) -> tuple[Whole, Whole]:
    """Give each row another one of its group by chance, and each of these to one row alone, as far as they reach."""
    rows, others = rng.permutation(rows), rng.permutation(others)
    rows, others = (each[np.argsort(group[each], kind="stable")] for each in (rows, others))
    begin = np.searchsorted(group[others], group[rows], side="left")
    rank = np.arange(len(rows)) - np.searchsorted(group[rows], group[rows], side="left")
    place = begin + rank
    there = place < np.searchsorted(group[others], group[rows], side="right")
    return rows[there], others[place[there]]
