"""Which rows meet the conditions of a draw, and which rows of a table keep a schema's rules of one row."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Mask, Whole
from dpmodels.codec.contradictions import contradicted, unmet
from dpmodels.codec.convert import as_numbers, plain, states_of
from dpmodels.codec.records import Records
from dpmodels.codec.thresholds import Thresholds, gathered
from dpmodels.contract.columns import Continuous, Discrete, raw_columns
from dpmodels.contract.conditions import Condition, hold, numbers_of
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.continuous import decode_numbers
from dpmodels.contract.derivation.bounds import DerivedBound, handed_over, reckoned
from dpmodels.contract.derivation.lookups import of_lookup
from dpmodels.contract.implications import Implication, Seen
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.written_conditions import read_condition
from dpmodels.errors import DataError, Unsuitable


class Conditions:
    """Conditions on the rows of one schema, all of which are to be met.

    Raises:
        Unsuitable: one is none, or no row can meet it as it is written.
    """

    def __init__(self, schema: Schema, texts: Sequence[str]) -> None:
        self.schema, self.all = schema, [one for text in texts for one in _read(text, schema.columns)]
        self.column_index = {name: index for index, name in enumerate(schema.modelled)}

    def __str__(self) -> str:
        return " and ".join(f"`{text}`" for text in dict.fromkeys(one.text for one in self.all))

    def by_column(self) -> Iterator[tuple[int, list[Condition]]]:
        """Yield the place among the modeled columns of each column with conditions, and these."""
        for name in dict.fromkeys(one.name for one in self.all):
            yield self.column_index[name], [one for one in self.all if one.name == name]

    def forbidding(self) -> Constraint | Implication | None:
        """Return a rule of the schema that every row breaks which meets them; None where none is evident."""
        return contradicted(self.schema, self.all)

    def check(self) -> None:
        """Refuse conditions that no row can meet.

        Raises:
            Unsuitable: no value of a column meets those on it, or a rule of the schema forbids every row that does.
        """
        if fault := next(filter(None, (unmet(several) for _, several in self.by_column())), ""):
            raise Unsuitable(fault)
        if (rule := self.forbidding()) is not None:
            raise Unsuitable(f"no row can meet {self}, for the schema has the rule `{rule}`; nothing was drawn")

    def hold(self, records: Records) -> Mask:
        """Tell which rows meet all conditions."""
        holding = np.ones(len(records), dtype=np.bool_)
        for column, conditions in self.by_column():
            holding &= hold(conditions, records.states[:, column], records.values[:, column])
        return holding


def _read(text: str, columns: Mapping[str, Any]) -> list[Condition]:
    """Read a condition; one on a column that is looked up is several on the column that this is looked up by."""
    return of_lookup(text, columns) or [read_condition(text, columns)]


class UnitConditions(Conditions):
    """Conditions on the columns of a tree's tables: a unit meets those on a table if one row of it meets them all.

    Columns of a table of at most one row a parent, and numbers of rows, are those of the parent's row.
    """

    def __init__(self, tree: Any, texts: Sequence[str]) -> None:
        super().__init__(tree.overview, texts)
        self.tables = dict[str, Conditions]()
        for name in tree.measured:
            columns = tree.attributes(name)
            if on_table := [one.text for one in self.all if one.name in columns]:
                self.tables[name] = Conditions(Schema(name=tree.name, columns=columns), on_table)

    def forbidding(self) -> Constraint | Implication | None:
        """Return none: rows of several tables may meet them."""
        return None

    def hold(self, records: Any) -> Mask:
        """Tell which units meet all conditions."""
        holding = np.ones(len(records), dtype=np.bool_)
        for name, conditions in self.tables.items():
            meeting = conditions.hold(records.rows_of(name))
            holding &= np.bincount(records.units(name)[meeting], minlength=len(records)) > 0
        return holding


def conditions_of(contract: Any, texts: Sequence[str]) -> Conditions:
    """Return conditions on the rows of a contract.

    Raises:
        Unsuitable: one is none, or no row can meet it as it is written; or there are no columns to set them on.
    """
    if contract.kind == "tree":
        return UnitConditions(contract, texts)
    if not contract.is_table:
        raise Unsuitable("embedded documents have no columns, so no conditions can be set on them; leave --where out")
    return Conditions(contract, texts)


RowRule = Constraint | Implication | DerivedBound


class RowRules:
    """The constraints of a schema, and the bounds of its derived columns, on encoded rows."""

    def __init__(self, schema: Schema) -> None:
        self.constraints, self.implications, self.null_limits = schema.rules, schema.implications, schema.null_limits
        self.bounds = schema.derived_bounds
        self.all: tuple[RowRule, ...] = (*self.constraints, *self.implications, *self.bounds)
        self.column_index = {name: index for index, name in enumerate(schema.modelled)}
        self.columns = schema.modelled
        self.gathered = gathered(self.all)

    def __str__(self) -> str:
        return ", ".join(f"`{rule}`" for rule in self.all) or "the null limits"

    def hold(self, records: Records, not_null: str = "") -> Mask:
        """Tell which rows keep every constraint, and are not null in one column if it is named."""
        keeping = ~self.null(records, not_null) if not_null else np.ones(len(records), dtype=np.bool_)
        return keeping & (self.broken(self.read(records, self.all), self.gathered) == 0) if self.all else keeping

    def null(self, records: Records, name: str) -> Mask:
        """Tell where a column is null."""
        null: Mask = records.states[:, self.column_index[name]] == self.columns[name].null_state
        return null

    def keeps(self, records: Records, rule: RowRule) -> Mask:
        """Tell which rows keep one rule."""
        return self.kept(self.read(records, [rule]), rule)

    def read(self, records: Records, some: Sequence[RowRule]) -> dict[str, Seen]:
        """Return states and numbers of the columns that some rules are about."""
        names = dict.fromkeys(name for rule in some for name in names_in(rule))
        at = {name: (records.states[:, place := self.column_index[name]], records.values[:, place]) for name in names}
        return {name: (codes[0], numbers_of(self.columns[name], *codes)) for name, codes in at.items()}

    def kept(self, seen: Mapping[str, Seen], rule: RowRule) -> Mask:
        """Tell which rows keep one rule, by states and numbers of its columns."""
        if isinstance(rule, DerivedBound):
            return rule.kept({name: seen[name][1] for name in rule.columns}, self.columns)
        if isinstance(rule, Constraint):
            return rule.holds(seen[rule.lower][1], seen[rule.upper][1])
        return rule.kept(seen)

    def broken(self, seen: Mapping[str, Seen], some: Iterable[RowRule | Thresholds]) -> Whole:
        """Count the rules, of at least one, that each row breaks, by states and numbers of their columns."""
        counts = [
            rule.broken(seen) if isinstance(rule, Thresholds) else (~self.kept(seen, rule)).astype(np.int64)
            for rule in some
        ]
        broken: Whole = np.sum(counts, axis=0, dtype=np.int64)
        return broken

    def numbers(self, records: Records, name: str) -> NDArray[np.float64]:
        """Return the numbers of a column on an interval, NaN for null."""
        index = self.column_index[name]
        return decode_numbers(self.column(name), records.states[:, index], records.values[:, index])

    def column(self, name: str) -> Continuous:
        """Return a column on an interval."""
        column = self.columns[name]
        if not isinstance(column, Continuous):  # the schema's own check refuses it
            raise DataError(name, "must be on an interval to be compared")
        return column


def names_in(rule: RowRule) -> Sequence[str]:
    """Name the columns that a rule is about."""
    return (rule.lower, rule.upper) if isinstance(rule, Constraint) else rule.columns


def keeping(rule: Implication | DerivedBound, columns: Mapping[str, Any], batch: pa.RecordBatch | pa.Table) -> Mask:
    """Tell which rows of a raw or synthetic table keep a rule; a row that is dropped anyway does.

    A derived column is judged by its values, where the table has it.

    Privacy: as sensitive as the table.
    """
    dropped, codes = np.zeros(batch.num_rows, dtype=np.bool_), {}
    for name in rule.columns:
        states, numbers, rejected = _seen(columns[name], plain(batch.column(name)))
        codes[name] = states, numbers
        dropped |= rejected
    keeps: Mask = rule.kept(codes) if isinstance(rule, Implication) else _within(rule, columns, batch)
    return keeps | dropped


def breaking_encoded(rule: Constraint, columns: Mapping[str, Any], batch: pa.RecordBatch | pa.Table) -> Mask:
    """Tell which rows of a raw table break a rule of two columns by what the encoding takes their values for.

    It sets values to bounds (``outside: clip``) and rounds them, each column by itself, so a row that keeps the rule as
    it is written may be measured as one that breaks it. Nulls keep every rule, as do rows that are dropped anyway.

    Privacy: as sensitive as the table.
    """
    lower, upper = (_seen(columns[name], plain(batch.column(name))) for name in (rule.lower, rule.upper))
    null, dropped = np.isnan(lower[1]) | np.isnan(upper[1]), lower[2] | upper[2]
    broken: Mask = ~(rule.holds(lower[1], upper[1]) | null | dropped)
    return broken


def _within(rule: DerivedBound, columns: Mapping[str, Any], batch: pa.RecordBatch | pa.Table) -> Mask:
    """Tell which rows of a table hold in a derived column, or in what it follows from, what its bounds admit.

    A value that is there is judged by itself: that it follows from the others is a rule apart, which lets a half be
    rounded either way.
    """
    operands = {name: as_numbers(columns[name], batch.column(name)) for name in rule.columns}
    values = reckoned(rule.column, operands, columns)
    if rule.name in batch.schema.names:
        raw = as_numbers(raw_columns(columns)[rule.name], batch.column(rule.name))
        values = np.where(np.isnan(raw), values, handed_over(rule.column, raw, columns))
    within: Mask = rule.side(values) == 0
    return within


def _seen(column: Continuous | Discrete, array: pa.Array) -> tuple[NDArray[np.int32], Floats, Mask]:
    """Return the states and numbers of raw values as the encoding takes them, and which of them cost their row."""
    null = pc.is_null(array, nan_is_null=True).to_numpy(zero_copy_only=False)
    if isinstance(column, Continuous):
        raw = as_numbers(column, array)
        null, outside = np.isnan(raw), (raw < column.low) | (raw > column.high)
        numbers, states = column.interval.snap(raw), np.zeros(len(raw), dtype=np.int32)
        numbers = numbers.astype(np.float32).astype(np.float64) if column.resolved_dtype == "float32" else numbers
    else:
        states = np.where(null, -1, states_of(column, array)) if not null.all() else np.full(len(array), -1)
        outside, other = (states < 0) & ~null, getattr(column, "other", None)
        states = np.where(outside, list(column.values).index(other) if other is not None else -1, states)
        numbers = numbers_of(column, states, np.zeros(len(states)))
    dropped = (outside | null & (not column.nullable)) & (column.outside == "reject-row")
    empty = -1 if column.null_state is None else column.null_state
    return np.where(null, empty, states).astype(np.int32), numbers, dropped
