"""Rows drawn beside the asked ones, to stand in for those that break a rule.

Rows that break ``opened <= last_contact`` have an early contact or a late opening. Whoever only draws others for them
makes the contacts later and the openings earlier than the release says. So rows that keep the rules are weighed, and
some of the batch's own give way, until each column of a rule has the numbers of rows in its cells that it was drawn
with, class by class where there are enough rows, and nulls stay with what they were drawn with.

Privacy: post-processing.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Mask, Whole
from dpmodels.codec.records import Records
from dpmodels.contract.columns import Continuous
from dpmodels.contract.conditions import SIGNS
from dpmodels.generators.made_to_fit import make_fit
from dpmodels.generators.refinements.raking import choose, crossed
from dpmodels.generators.sampling import Sampler, batch_stream

if TYPE_CHECKING:
    from dpmodels.generators.constraints import Rules

POOL_ROWS = 4096
POOLS = 64
"""Pools of spare rows that are drawn for one batch before the rows that are still missing are made to fit."""
FEW = 0.01
"""Share of broken rows below which columns hardly change: others are drawn for them, and no fit row gives way."""
MOST_LOST = 0.1
"""Share of the rows of a cell that may be broken before columns are kept, however few rows of all are broken."""
THIN = 10
"""Rows a cell of a column that a group of class and nulls must have on average for its cells to be counted alone."""
MOST_SIDES = 64
"""Numbers that rules compare a column with, at most, for its cells to be cut there."""
SPARES = 64
"""Spare rows to choose from for each broken one, as far as the pools have them: of eight, few have a rare cell."""


class Rare(NamedTuple):
    """A cell of a column of a rule, and how many of its rows break one."""

    name: str
    cell: int
    lost: int


class Spares:
    """Rows drawn beside the asked ones, to stand in for those that break a constraint."""

    def __init__(
        self,
        model: Sampler,
        rules: "Rules",
        seed: int,
        batch: int,
        device: str,
        tick: Callable[[float], object] = lambda part: None,
    ) -> None:
        self.model, self.rules, self.seed, self.batch, self.device = model, rules, seed, batch, device
        self.target, self.tick = rules.target, tick
        self.pools = 0
        self.beyond = POOLS * (2 * len(rules.null_limits) + 5)  # streams from here on are no others'

    def balance(self, records: Records) -> Records:
        """Replace the unfit rows, and some fit ones, so that each column of a rule keeps its cells' numbers of rows.

        Where that would take too many pools, or hardly any row is unfit, the rows stay as they are.
        """
        fit = self.rules.hold(records)
        broken, likely = len(fit) - int(fit.sum()), fit.mean() * POOLS * POOL_ROWS
        if likely < 2 * broken or (broken <= FEW * len(fit) and not self._rare(records, fit)):
            return records
        spares = self._fit_pools(SPARES * broken, self._rare(records, fit))
        both = Records.concat([Records(records.states, records.values), *spares])
        margins, group = self._margins(both, len(fit))
        chosen = choose(margins, group, fit, batch_stream(self.seed, self.batch, self.beyond))
        return Records(both.states[chosen], both.values[chosen], records.pixels)

    def _rare(self, records: Records, fit: Mask) -> list["Rare"]:
        """List the cells of columns of rules of ``when`` and ``then`` that would lose many of their rows."""
        rare = list[Rare]()
        for name in dict.fromkeys(name for rule in self.rules.implications for name in rule.columns):
            cells = self._cells(records, name)
            cell, place = np.unique(cells, return_inverse=True)
            whole, lost = (np.bincount(part, minlength=len(cell)) for part in (place, place[~fit]))
            goes = (lost > MOST_LOST * whole) & (lost >= THIN)
            rare += [Rare(name, int(one), int(go)) for one, go in zip(cell[goes], lost[goes], strict=True)]
        return rare

    def _margins(self, rows: Records, drawn: int) -> tuple[list[Whole], Whole]:
        """Number the cells of each column of a rule, and the groups of class and nulls whose sizes stay.

        They are cells within each group; within the rows of the same nulls, whatever their class, if the class is in a
        rule itself or the groups are too thin.
        """
        rules = self.rules
        ordered = dict.fromkeys(name for rule in rules.constraints for name in (rule.lower, rule.upper))
        ordered |= dict.fromkeys(name for rule in rules.bounds for name in rule.columns)
        ruled = ordered | dict.fromkeys(name for rule in rules.implications for name in rule.columns)
        at = [rules.column_index[name] for name in ruled]
        nulls = crossed(
            np.zeros(len(rows), dtype=np.int64),
            *(rules.null(rows, name) for name in ordered if rules.columns[name].null_state is not None),
        )
        group = crossed(nulls, rows.labels(self.target))
        cells = [np.unique(self._cells(rows, name), return_inverse=True)[1] for name in ruled]
        thin = drawn < THIN * (group.max() + 1) * (max(int(column.max()) for column in cells) + 1)
        within = nulls if thin or self.target in at else group
        return [crossed(within, column) for column in cells], group

    def _cells(self, rows: Records, name: str) -> Whole:
        """Number the cells of a column, cut where rules say from where on they apply: a cell may be years wide."""
        cells = self.rules.codec.to_cells(rows)[:, self.rules.column_index[name]].astype(np.int64)
        said = [one for rule in self.rules.implications for one in (*rule.premises, *rule.then) if one.name == name]
        sides = dict.fromkeys((one.sign, one.value) for one in said if not one.of_state)
        if not isinstance(self.rules.columns[name], Continuous) or len(sides) > MOST_SIDES:
            return cells
        numbers = self.rules.numbers(rows, name)
        for sign in SIGNS:  # on a line, how many hold says which
            cells = cells * (MOST_SIDES + 1) + sum(SIGNS[sign](numbers, value) for each, value in sides if each == sign)
        return cells

    def _fit_pools(self, rows: int, rare: list["Rare"]) -> list[Records]:
        """Draw pools until so many of their rows keep the rules; return these, without pixels.

        Of rare cells there are then as many spare rows as they lose, as far as all pools have them.
        """
        pools, drawn, short = list[Records](), 0, dict.fromkeys(rare, 0)
        while (drawn < rows or short) and len(pools) < POOLS:
            pool = self._draw(self.beyond + 1 + len(pools))
            fit = self.rules.hold(pool)
            inside = {one: fit & (self._cells(pool, one.name) == one.cell) for one in short}
            if drawn >= rows:
                fit = np.logical_or.reduce([*inside.values()])
            pools.append(Records(pool.states[fit], pool.values[fit]))
            drawn += int(fit.sum())
            have = {one: short[one] + int(here.sum()) for one, here in inside.items()}
            short = {one: number for one, number in have.items() if number < one.lost}
            self.tick(min(1.0, max(drawn / rows, len(pools) / POOLS)))
        return pools

    def replace(self, records: Records, unfit: Mask, not_null: str = "") -> Records:
        """Replace the unfit rows by fit ones of the same class, or of any class where a class has none.

        Raises:
            DataError: no row keeps the rules, neither drawn nor made to.
        """
        todo = np.flatnonzero(unfit)
        if not len(todo):
            return records
        states, values = records.states.copy(), records.values.copy()
        for pool in range(POOLS):
            self.pools += 1
            pool_rows = self._draw(self.pools)
            fit = np.flatnonzero(self.rules.hold(pool_rows, not_null))
            for label in np.unique(self._labels(states[todo])):
                rows = todo[self._labels(states[todo]) == label]
                members = fit[self._labels(pool_rows.states[fit]) == label] if pool < POOLS // 2 else fit
                count = min(len(rows), len(members))
                states[rows[:count]], values[rows[:count]] = (
                    pool_rows.states[members[:count]],
                    pool_rows.values[members[:count]],
                )
                todo = np.setdiff1d(todo, rows[:count])
            if not len(todo):
                return Records(states, values, records.pixels)
        replaced = Records(states, values, records.pixels)
        rng = batch_stream(self.seed, self.batch, POOLS * (len(self.rules.null_limits) + 3) + self.pools)
        make_fit(replaced, todo, self.rules, pool_rows, not_null, rng)
        return replaced

    def _draw(self, pool: int) -> Records:
        """Draw a pool by its number."""
        rng = batch_stream(self.seed, self.batch, pool)
        return self.rules.settle(self.model.draw(POOL_ROWS, rng, self.device), rng, self.model.merged_cells)

    def _labels(self, states: NDArray[np.int32]) -> NDArray[np.int32]:
        return states[:, self.target] if self.target is not None else np.zeros(len(states), dtype=np.int32)
