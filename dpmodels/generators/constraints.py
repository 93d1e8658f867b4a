"""Synthetic rows that keep the schema's constraints and null limits: post-processing of what a generator draws.

A generator draws each value within a cell without looking at the other columns, so some rows break ``lower <= upper``.
Where the two cells overlap, the values could have fallen in either order, and are exchanged. Where a row breaks ``when
sick then fee > 0`` although the cell of its fee reaches above 0, the fee is drawn anew from that part of its cell, or
exchanged with that of a row of the same cell among those that a release counted (``refinements/within_cells.py``). The
other rows come from noise, and are drawn anew, class by class, so that the classes keep their shares, and so that the
columns of the rules keep theirs (``refinements/spares.py``). Where the noise has left hardly any row that keeps the
rules, rows are made to fit (``made_to_fit.py``), because the release is paid for; the report says of about how many
rows that is true.
"""

from collections.abc import Callable, Collection, Iterator
from functools import partial

import numpy as np

from dpmodels.arrays import Mask
from dpmodels.codec.convert import encode_numbers
from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.rules import RowRules
from dpmodels.contract.columns import Continuous
from dpmodels.contract.conditions import bounds
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.partition import Partition
from dpmodels.generators.refinements.spares import POOL_ROWS, POOLS, Spares
from dpmodels.generators.refinements.within_bounds import exchange, redraw_within
from dpmodels.generators.refinements.within_cells import exchange_in_cells
from dpmodels.generators.sampling import Sampler, batch_sizes, batch_stream


def sample_valid(
    model: Sampler,
    rows: int,
    seed: int,
    device: str = "cpu",
    first: int = 0,
    tick: Callable[[float], object] = lambda done: None,
) -> Iterator[Records]:
    """Yield batches of synthetic records that keep every constraint, from batch ``first`` on.

    The same (rows, seed) gives the same records: a batch depends on its number and size alone. ``tick`` hears within a
    batch that takes long of about how many rows the work is done.

    Privacy: post-processing.

    Raises:
        DataError: no row keeps the constraints, so they contradict each other.
    """
    if not model.schema.is_table:  # only columns of a table have constraints
        yield from model.sample(rows, seed, device, first)
        return
    rules, done = Rules(model.schema), 0
    for batch, count in batch_sizes(rows, model.batch_rows, first):
        records = model.draw(count, batch_stream(seed, batch), device)
        share_done = partial(_tick_part, tick, done, count)
        yield _repaired(records, rules, Spares(model, rules, seed, batch, device, share_done))
        done += count


def _tick_part(tick: Callable[[float], object], before: int, count: int, part: float) -> None:
    """Say how many rows are done when so large a part of a batch is."""
    tick(before + part * count)


def caution_of_rules(model: Sampler, rows: int, seed: int) -> str:
    """Say what the rules of a schema did to ``rows`` rows, if fewer than half keep them as drawn; else return nothing.

    It is reckoned from the rows of one pool.

    Privacy: post-processing.
    """
    if not model.schema.is_table or not (rules := Rules(model.schema)).all:
        return ""
    rng = batch_stream(seed, 0)
    fit = float(rules.hold(rules.exchange(rules.settle(model.draw(POOL_ROWS, rng), rng, model.merged_cells))).mean())
    if fit >= 0.5:
        return ""
    size = min(rows, model.batch_rows)
    unfit = max(0.0, 1 - fit - fit * POOLS * POOL_ROWS / size)
    caution = caution_of(fit, rules)
    if not unfit:
        return caution
    return (
        f"{caution} That was not enough: about {100 * unfit:.3g} % of the rows were made to fit, by setting columns of "
        "these rules to values that the rules allow, so take nothing about these columns from the synthetic rows."
    )


def caution_of(share: float, rules: RowRules) -> str:
    """Say that so small a share of the rows that are drawn keeps the rules."""
    return f"Of the rows that the generator draws, about {100 * share:.3g} % keep {rules}; the others were drawn anew."


def _repaired(batch: Records, rules: "Rules", spares: Spares) -> Records:
    """Put in order, or replace, the rows that break a constraint or exceed a null limit."""
    limits = rules.null_limits
    if not rules.all and not limits:
        return batch
    rng = batch_stream(spares.seed, spares.batch, POOLS * (len(limits) + 2))
    records = rules.settle(batch, rng, spares.model.merged_cells)
    records = spares.balance(rules.exchange(records))
    records = spares.replace(records, ~rules.hold(records))
    for name, limit in limits.items():
        nulls = np.flatnonzero(rules.null(records, name))
        excess = np.zeros(len(records), dtype=np.bool_)
        excess[nulls[int(limit * len(records)) :]] = True
        records = spares.replace(records, excess, not_null=name)
    return records


class Rules(RowRules):
    """The constraints of a schema, and how rows that break them are mended.

    Args:
        schema: of the rows.
        fixed: names of columns that are not changed.
    """

    def __init__(self, schema: Schema, fixed: Collection[str] = ()) -> None:
        super().__init__(schema)
        self.codec, self.target, self.fixed = Codec(schema), schema.class_index, frozenset(fixed)

    def is_free(self, *names: str) -> bool:
        """Tell whether columns may be changed."""
        return self.fixed.isdisjoint(names)

    def settle(self, records: Records, rng: np.random.Generator, partition: Partition | None = None) -> Records:
        """Mend the rows that break a constraint although the cells of their values do not ask for it.

        ``partition``: the cells that a release counted together, within which values may be exchanged.
        """
        records = self._order(self._redraw(records, rng) if self.implications else records)
        if partition and self.implications:
            exchange_in_cells(records, partition, self, rng)
        for rule in self.bounds:
            redraw_within(records, rule, self, rng)
        return records

    def exchange(self, records: Records) -> Records:
        """Exchange, in place, values of rows outside the bounds of a derived column with those of other rows."""
        for rule in self.bounds:
            exchange(records, rule, self)
        return records

    def _redraw(self, records: Records, rng: np.random.Generator) -> Records:
        """Draw the values after a ``then`` anew from the part of their cells that keeps it, where there is one."""
        settled = Records(records.states, records.values.copy(), records.pixels)
        for rule in self.implications:
            broken = ~self.keeps(settled, rule)
            for name in dict.fromkeys(one.name for one in rule.then):
                column, at = self.columns[name], self.column_index[name]
                if not isinstance(column, Continuous) or not self.is_free(name):
                    continue
                low, high = bounds([one for one in rule.then if one.name == name])
                rows = np.flatnonzero(broken & (settled.states[:, at] == 0))
                grid = column.grid
                cells = grid.of(settled.values[rows, at])
                reach = grid.shares(low, high)[cells] > 0
                settled.values[rows[reach], at] = grid.draw(cells[reach], rng, low, high)
        return settled

    def _order(self, records: Records) -> Records:
        """Exchange the two values of rows that break a constraint although their cells overlap."""
        states, values = records.states.copy(), records.values.copy()
        ordered = Records(states, values, records.pixels)
        for _ in self.constraints:  # one pass moves a value by one place in a chain of constraints
            for rule in filter(lambda rule: self.is_free(rule.lower, rule.upper), self.constraints):
                lower, upper = self.numbers(ordered, rule.lower), self.numbers(ordered, rule.upper)
                swap = np.flatnonzero(~rule.holds(lower, upper) & self._overlap(ordered, rule))
                for name, x in ((rule.lower, upper[swap]), (rule.upper, lower[swap])):
                    at = swap, self.column_index[name]
                    states[at], values[at] = encode_numbers(self.column(name), x)
        return ordered

    def _overlap(self, records: Records, rule: Constraint) -> Mask:
        """Tell where the lower column's cell begins no later than the upper column's cell ends."""
        cells = self.codec.to_cells(records)
        begin, end = self.column(rule.lower).grid.bounds[0], self.column(rule.upper).grid.bounds[1]
        first, last = (cells[:, self.column_index[name]] for name in (rule.lower, rule.upper))
        overlapping = (first < len(begin)) & (last < len(end))
        overlap: Mask = overlapping & (begin[np.where(overlapping, first, 0)] <= end[np.where(overlapping, last, 0)])
        return overlap
