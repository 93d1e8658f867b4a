"""Which cells of a released table the rules of a schema leave empty, and between what values lie in the others.

Rows that break a rule are refused before anything is measured, so what was counted in a cell that a rule forbids is
noise alone: its count is 0. A column that is computed from others is held to what rules leave of these: where overtime
is 0, so is what is paid for it. Numbers without ``round`` are measured to 2**-31 of their range: of two that are nearer
to each other either may be counted as the larger.

Privacy: post-processing of released counts by the public schema.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Mask, Whole
from dpmodels.contract.columns import Continuous, Derived, Discrete, Integer, Modelled, Number
from dpmodels.contract.conditions import Condition, cell_shares
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.derivation.polynomial import moved_by_rounding, polynomial_of, reach_of, settled
from dpmodels.contract.derivation.reach import Ends, reach
from dpmodels.contract.derivation.unstated import CHANGED
from dpmodels.contract.formula import names_in
from dpmodels.contract.implications import Implication
from dpmodels.methods.parts.marginals import NoisyTable
from dpmodels.report.derived.counted import Moments

HALF = 0.5 + 1e-6
"""Of the last decimal, with what float64 adds to it."""
LEAST = 1e-12
"""What float64 may leave of a share that is none."""


@dataclass(frozen=True)
class Rules:
    """The rules of one row.

    Attributes:
        implications, pairs: ``when ... then ...``, and of two columns.
        columns: those of the schema.
        cut: those that were measured, cut into fine cells.
    """

    implications: Sequence[Implication]
    pairs: Sequence[Constraint]
    columns: Mapping[str, Any]
    cut: Mapping[str, Modelled]

    def cleared(self, table: NoisyTable) -> NoisyTable:
        """Return a table whose cells that no row can be in have no rows, and no noise."""
        empty = self._empty(table)
        if not empty.any():
            return table
        stddev = np.broadcast_to(table.stddev, table.counts.shape)
        return replace(table, counts=np.where(empty, 0.0, table.counts), stddev=np.where(empty, 0.0, stddev))

    def ends(self, table: NoisyTable, formula: str) -> tuple[Floats, Floats] | None:
        """Return between what a formula lies in each cell of a table by the rules; None where they say nothing of it.

        It is by one column of the table at a time, of one that is counted beside by what it is computed by. Shapes:
        those of the counts.
        """
        formula = self._computed(formula) or formula
        low, high = np.full(table.counts.shape, -np.inf), np.full(table.counts.shape, np.inf)
        for axis, (name, merge) in enumerate(zip(table.names, table.cells_of, strict=True)):
            reached = np.array([self.between(formula, name, merge == cell) for cell in range(merge.max() + 1)])
            low = np.maximum(low, _along(reached[:, 0], axis, table))
            high = np.minimum(high, _along(reached[:, 1], axis, table))
        is_said = np.isfinite(low).any() or np.isfinite(high).any()
        return (low, high) if is_said and (low <= high).all() else None

    def between(self, formula: str, name: str, inside: Mask) -> Ends:
        """Return between what rules leave a formula where a column is in some of its fine cells; without end by none.

        Shape: inside, which of the fine cells these are, [n].
        """
        known = self._known(names_in(formula), name, inside)
        if not known or _is_of_words(self.cut.get(formula)):
            return -np.inf, np.inf
        columns = {**self.columns, **known}
        low, high = reach(formula, columns)
        least, most = reach_of(settled(polynomial_of(formula), _fixed(known)), columns)
        off = moved_by_rounding(formula)
        least, most = least - off, most + off
        return (max(low, least), min(high, most)) if max(low, least) <= min(high, most) else (low, high)

    def is_settled(self, formula: str, name: str, inside: Mask) -> bool:
        """Tell whether a formula has one value where a column is in some of its fine cells, but for rounding in it."""
        columns, polynomial = {**self.columns, **self._known(names_in(formula), name, inside)}, polynomial_of(formula)
        factors = {one for product in polynomial for one in product if not _is_of_words(self.cut.get(one))}
        ends = {one: reach(one, columns) for one in factors}
        return {*settled(polynomial, {one: low for one, (low, high) in ends.items() if low == high})} <= {()}

    def none_in(self, one: str, other: str, cells: Whole) -> Mask:
        """Tell which values of a column no row has, by a rule, in each cell of another.

        Shapes: cells, that of each fine cell of the other, [n] -> [fine cells of the one, cells].
        """
        size = self.cut[one].size
        table = NoisyTable((one, other), (np.arange(size), cells), np.zeros((size, int(cells.max()) + 1)), 0.0)
        return self._forbidden(table)

    def _known(self, names: Collection[str], name: str, inside: Mask) -> dict[str, Modelled]:
        """Return what is left of columns of which it is not all, where a column is in some of its fine cells."""
        return {one: left for one in names if (left := self._left(one, name, inside)) is not None}

    def within(self, table: NoisyTable, formula: str, moments: Moments) -> Moments:
        """Return what a formula gives in each cell of a table, as far as rules let it."""
        if (ends := self.ends(table, formula)) is None:
            return moments
        low, high = ends
        room = np.maximum(high - low, 0.0) / 2  # the most that values between two ends deviate by
        return Moments(*(np.clip(moments.mean, low, high), *(np.minimum(one, room) for one in moments[1:])))

    def _empty(self, table: NoisyTable) -> Mask:
        """Tell which cells a rule forbids. Shapes: those of the counts."""
        empty = self._forbidden(table)
        for axis, (name, merge) in enumerate(zip(table.names, table.cells_of, strict=True)):
            column, formula = self.cut[name], self._computed(name)
            if isinstance(column, Continuous) and formula and (ends := self.ends(table, formula)) is not None:
                first, last = (_along(one, axis, table) for one in _span(column, merge))
                off = self._rounding(name)
                empty |= (first > ends[1] + off) | (last < ends[0] - off)
        return empty

    def _forbidden(self, table: NoisyTable) -> Mask:
        """Tell which cells a rule of columns of the table alone forbids. Shapes: those of the counts."""
        forbidden = np.zeros(table.counts.shape, dtype=np.bool_)
        for rule in (one for one in self.implications if {*one.columns} <= {*table.names}):
            forbidden |= self._broken(rule, table)
        for pair in (one for one in self.pairs if {one.lower, one.upper} <= {*table.names}):
            forbidden |= self._crossed(pair, table)
        return forbidden

    def _broken(self, rule: Implication, table: NoisyTable) -> Mask:
        """Tell in which cells all values meet what stands after ``when``, and none what stands after ``then``."""
        met, missed = np.ones(table.counts.shape, dtype=np.bool_), np.zeros(table.counts.shape, dtype=np.bool_)
        for one in rule.premises:
            met &= self._all(one, _meets, table)
        for one in rule.then:
            missed |= self._all(one, _misses, table)
        return met & missed

    def _all(self, one: Condition, test: Callable[[Condition, Modelled], Mask], table: NoisyTable) -> Mask:
        """Tell in which cells of a condition's column a test holds of all fine cells, along its axis of a table."""
        axis = table.names.index(one.name)
        fails = np.bincount(table.cells_of[axis], ~test(one, self.cut[one.name]))
        along: Mask = _along(fails == 0, axis, table)
        return along

    def _crossed(self, pair: Constraint, table: NoisyTable) -> Mask:
        """Tell in which cells every value that should be the smaller one is the larger one."""
        axes = table.names.index(pair.lower), table.names.index(pair.upper)
        lower, upper = (
            _along(_span(self.cut[name], table.cells_of[axis])[side], axis, table)
            for side, (name, axis) in enumerate(zip((pair.lower, pair.upper), axes, strict=True))
        )
        crossed: Mask = np.broadcast_to(lower >= upper if pair.strict else lower > upper, table.counts.shape)
        return crossed

    def _computed(self, name: str) -> str:
        """Return the formula that a column is computed by from columns that are none of these; empty without one."""
        text = (getattr(self.columns.get(name), "computed", None) or "").strip()
        followed = self.columns.get(text)
        formula = (followed.formula or "") if isinstance(followed, Derived) else text
        names = [self.columns.get(one) for one in names_in(formula)] if formula else []
        return formula if all(isinstance(one, Modelled) and _is_kept(one) for one in names) else ""

    def _rounding(self, name: str) -> float:
        """Return by how much what a column is computed by may be off for being rounded, with what float64 adds."""
        column, followed = self.columns[name], self.columns.get(self.columns[name].computed.strip())
        whole = 0 if getattr(followed, "dtype", None) == "int64" else None
        kept = [one for one in (column.decimals, getattr(followed, "round", None), whole) if one is not None]
        return HALF * max((10.0**-one for one in kept), default=0.0)

    def _left(self, one: str, other: str, inside: Mask) -> Modelled | None:
        """Return what is left of a column where another is in some of its fine cells, by itself or by rules.

        None where that is all of it, and of dates.
        """
        column = self.cut.get(one)
        if not isinstance(column, Discrete | Integer | Number):
            return None
        out = ~inside if one == other else self._out(one, other, inside)
        if isinstance(column, Discrete):
            left = tuple(value for value, is_out in zip(column.values, out, strict=False) if not is_out)
            return column.model_copy(update={"values": left}) if 0 < len(left) < len(column.values) else None
        first, last = _span(column, np.arange(column.size))
        there = ~out & np.isfinite(first)
        asked = [then for rule in self.implications if self._applies(rule, other, inside) for then in rule.then]
        said = [_set_by(then) for then in asked if then.name == one and not then.of_state]
        if not there.any() or not (said or out.any()):
            return None
        ends = [(float(first[there].min()), float(last[there].max())), *said]
        low, high = max(least for least, _ in ends), min(most for _, most in ends)
        return column.model_copy(update={"min": low, "max": high}) if low <= high else None

    def _out(self, one: str, other: str, inside: Mask) -> Mask:
        """Tell which fine cells of a column no row is in, by rules, where another is in some of its fine cells."""
        size, pairs = self.cut[one].size, ({pair.lower, pair.upper} for pair in self.pairs)
        if {one, other} not in [*({*rule.columns} for rule in self.implications), *pairs]:
            return np.zeros(size, dtype=np.bool_)
        both = NoisyTable((one, other), (np.arange(size), inside.astype(np.int64)), np.zeros((size, 2)), 0.0)
        return self._forbidden(both)[:, 1] if inside.any() else np.zeros(size, dtype=np.bool_)

    def _applies(self, rule: Implication, name: str, inside: Mask) -> bool:
        """Tell whether every value of some fine cells of a column meets all that stands after ``when`` of a rule."""
        return all(one.name == name and _meets(one, self.cut[name])[inside].all() for one in rule.premises)


def _span(column: Modelled, merge: Whole) -> tuple[Floats, Floats]:
    """Return the least and the largest value of each cell of a number, without end of one that holds nulls.

    Shapes: merge, the cell of each fine one, [n] -> [cells] each.
    """
    cells = int(merge.max()) + 1
    first, last = np.full(cells, np.inf), np.full(cells, -np.inf)
    if not isinstance(column, Continuous):
        return -first, -last
    ends = [np.append(one, [0.0] * (column.zero_state is not None)) for one in column.grid.bounds]
    np.minimum.at(first, merge[: len(ends[0])], ends[0])
    np.maximum.at(last, merge[: len(ends[1])], ends[1])
    first[merge[len(ends[0]) :]], last[merge[len(ends[1]) :]] = -np.inf, np.inf
    return first, last


def _fixed(columns: Mapping[str, Modelled]) -> dict[str, float]:
    ends = {name: reach(name, columns) for name, one in columns.items() if not _is_of_words(one)}
    return {name: low for name, (low, high) in ends.items() if low == high}


def _is_of_words(column: Modelled | None) -> bool:
    """Tell whether a column lists values that are no numbers, so that it is one of a formula in a table alone."""
    return isinstance(column, Discrete) and column.kind not in ("integer", "number")


def _set_by(one: Condition) -> Ends:
    """Return between what numbers lie that meet a condition."""
    column, low, high = one.column, -np.inf, np.inf
    step = column.interval.step if isinstance(column, Continuous) and column.decimals is not None else 0.0
    if one.sign in ("=", ">=", ">"):
        low = one.value + step * (one.sign == ">")
    if one.sign in ("=", "<=", "<"):
        high = one.value - step * (one.sign == "<")
    return low, high


def _meets(one: Condition, column: Modelled) -> Mask:
    """Tell of which fine cells of a column every value meets a condition."""
    every: Mask = cell_shares([one], column) >= 1 - LEAST
    return every


def _misses(one: Condition, column: Modelled) -> Mask:
    """Tell of which fine cells no value keeps what a rule asks; a null keeps it that is not what it is about."""
    none: Mask = cell_shares([one], column) <= LEAST
    if (null := column.null_state) is not None and not (one.of_state and one.value == null):
        none[-1 if isinstance(column, Continuous) else null] = False
    return none


def _along(values: Any, axis: int, table: NoisyTable) -> Any:
    """Lay what is known of the cells of one column along its axis of a table."""
    return np.asarray(values).reshape([-1 if place == axis else 1 for place in range(len(table.names))])


def _is_kept(column: Modelled) -> bool:
    """Tell whether no raw value of a column is changed into one that the schema admits."""
    return getattr(column, "outside", "") not in CHANGED
