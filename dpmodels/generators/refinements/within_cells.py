"""Rows brought to keep ``when ward = children then age < 18`` by an exchange of values within a cell.

A release says how many rows of a ward fall into the cell of ages 0 to 27, and the generator spreads these alike over
that cell. So most patients of a children's ward break the rule, and to draw other rows for them would leave the ward
with the few that keep it. Two rows of one class and one cell exchange their ages first, where both keep the rules then:
all counts that were released stay as they are, and the rule decides what the release leaves open.

Privacy: post-processing.
"""

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.records import Records
from dpmodels.codec.rules import names_in
from dpmodels.codec.thresholds import gathered
from dpmodels.contract.columns import Continuous
from dpmodels.contract.implications import Seen

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
    seen, groups = rules.read(records, rules.all), dict[str, Whole]()
    cells, label = partition.cells(records), records.labels(partition.class_column)
    for rule in rules.implications:
        for name in filter(rules.is_free, dict.fromkeys(rule.columns)):
            at = rules.column_index[name]
            if not isinstance(rules.columns[name], Continuous) or at == partition.class_column:
                continue
            if name not in groups:  # an exchange leaves every row in its class and cell
                place = cells[:, partition.names.index(name)]
                group = label.astype(np.int64) * (int(place.max(initial=0)) + 1) + place
                group[records.states[:, at] != 0] = -1  # null and the like, which are no numbers
                groups[name] = group
            broken = np.flatnonzero(~rules.kept(seen, rule) & (groups[name] >= 0))
            if len(broken):
                _exchange(records, seen, broken, groups[name], name, rules, rng)


def _exchange(
    records: Records,
    seen: dict[str, Seen],
    broken: Whole,
    group: Whole,
    name: str,
    rules: "Rules",
    rng: np.random.Generator,
) -> None:
    """Exchange one column's values among rows of a group, until all keep the rules or have tried their partners.

    ``seen`` has states and numbers of the records, and follows the exchange.
    """
    values, numbers, free = records.values[:, rules.column_index[name]], seen[name][1], group >= 0
    concerned = [rule for rule in rules.all if name in names_in(rule)]
    columns, together = dict.fromkeys(one for rule in concerned for one in names_in(rule)), gathered(concerned)
    free[broken] = False
    for _ in range(TRIALS):
        rows, partners = _partners(broken, np.flatnonzero(free), group, rng)
        if not len(rows):
            continue
        both, after = np.concatenate([rows, partners]), np.concatenate([partners, rows])
        before = {one: (seen[one][0][both], seen[one][1][both]) for one in columns}
        exchanged = before | {name: (before[name][0], numbers[after])}
        fewer = np.split(rules.broken(before, together) - rules.broken(exchanged, together), 2)
        fit: Mask = (fewer[0] > 0) & (fewer[1] >= 0)
        rows, partners = rows[fit], partners[fit]
        for column in (values, numbers):
            column[rows], column[partners] = column[partners], column[rows]
        free[partners] = False
        broken = np.setdiff1d(broken, rows)
        if not len(broken):
            return


def _partners(rows: Whole, others: Whole, group: Whole, rng: np.random.Generator) -> tuple[Whole, Whole]:
    """Give each row another one of its group by chance, and each of these to one row alone, as far as they reach."""
    rows, others = rng.permutation(rows), rng.permutation(others)
    wanted = np.zeros(int(group.max()) + 1, dtype=np.bool_)
    wanted[group[rows]] = True
    others = others[wanted[group[others]]]
    rows, others = (each[np.argsort(group[each], kind="stable")] for each in (rows, others))
    begin = np.searchsorted(group[others], group[rows], side="left")
    rank = np.arange(len(rows)) - np.searchsorted(group[rows], group[rows], side="left")
    place = begin + rank
    there = place < np.searchsorted(group[others], group[rows], side="right")
    return rows[there], others[place[there]]
