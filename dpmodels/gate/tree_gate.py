"""The gate for a tree of tables before a hand-off: every table keeps its schema, and all keys join."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.arrays import Whole
from dpmodels.codec.convert import plain
from dpmodels.codec.encode import Codec
from dpmodels.codec.public import NONE, UNKNOWN, rows_named
from dpmodels.codec.rules import RowRule, RowRules
from dpmodels.codec.stacked import objects_of, unstack
from dpmodels.codec.tree import TreeCodec, TreeRecords
from dpmodels.contract.columns import Identifier
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate, Outcome, Verdicts
from dpmodels.gate.suite import ROW_COUNT, Rule


class TreeRules(Verdicts):
    """The rules of rows that name columns of tables above them, for a stream of encoded rows of whole units.

    The rules of one table by itself are in the suite of that table.
    """

    def __init__(self, tree: Tree, raw: bool = False) -> None:
        self.rules = [(name, rules, one) for name in tree.tables for rules, one in _crossing(tree, name)]
        texts = [f"`{one}` must hold in every row of table {name}" for name, _, one in self.rules]
        super().__init__(tree, [Rule("rule", {}, text) for text in texts], raw)
        self.tree = tree

    def check(self, records: TreeRecords) -> bool:
        """Check more units; tell whether every row so far keeps every rule.

        Privacy: as the check of any gate: exact counts of rows, of which only whether all keep a rule is ever shown.
        """
        rows = {name: records.ruled(name) for name in {name for name, _, _ in self.rules}}
        for (name, rules, one), outcome in zip(self.rules, self.outcomes, strict=True):
            holding = rules.keeps(rows[name], one)
            outcome.checked += len(holding)
            outcome.failed += int((~holding).sum())
            outcome.sound &= bool(holding.all())
        return self.sound


class TreeGate(Verdicts):
    """A suite for a stream of stacked rows of whole units."""

    def __init__(self, tree: Tree, rows: int | None) -> None:
        self.tree, self.codec = tree, TreeCodec(tree)
        self.gates = {name: Gate(tree.handed_over(name), raw=False) for name in tree.tables}
        self.suites = [(name, outcome) for name, gate in self.gates.items() for outcome in gate.outcomes]
        exactly = {"min_value": rows or 0, "max_value": rows}
        count = Rule(ROW_COUNT, exactly, f"there must be {'some' if rows is None else rows} units")
        super().__init__(tree, [*(_named(name, one.rule) for name, one in self.suites), *_rules(tree), count])
        self.own = {(one.rule.expectation, one.rule.column): one for one in self.outcomes[len(self.suites) :]}
        self.rules = TreeRules(tree)
        self.outcomes = (*self.outcomes, *self.rules.outcomes)
        self.names: dict[str, list[pa.Array]] = {}

    def check(self, batch: pa.RecordBatch | pa.Table) -> bool:
        """Check one more batch of whole units; tell whether every single row so far keeps every rule.

        Raises:
            DataError: rows do not stand below those of their parents, or a column has another type.
        """
        tables, parents = unstack(self.tree, batch)
        for name, table in tables.items():
            types = self.codec.output_of(name)
            if table.schema.names != types.names:
                raise DataError("", f"table {name} has not the columns of the schema")
            for rows in table.combine_chunks().to_batches():
                self._check_rows(name, rows)
        self._sync()
        for name, table in tables.items():
            if name != self.tree.root:
                parent = tables[str(self.tree.tables[name].parent)]
                self._check_below(name, table, parent, parents[name])
            self._check_references(name, table)
            for column in self._made_keys(name):
                self.names.setdefault(f"{name}.{column}", []).append(plain(table.column(column)))
        self._count(self.own[ROW_COUNT, ""], 0, len(tables[self.tree.root]))
        if self.rules.rules and self.sound:
            self.rules.check(self.codec.encode_tables(tables, parents))
        return self.sound

    def add(self, other: Verdicts) -> None:
        """Add what a gate of the same tree found in other files."""
        if isinstance(other, TreeGate):
            for name, gate in self.gates.items():
                gate.add(other.gates[name])
            for key, outcome in self.own.items():
                theirs = other.own[key]
                outcome.checked, outcome.failed = outcome.checked + theirs.checked, outcome.failed + theirs.failed
                outcome.sound &= theirs.sound
            self.rules.add(other.rules)
            for name, arrays in other.names.items():
                self.names.setdefault(name, []).extend(arrays)
            self._sync()

    def settle(self) -> None:
        """Settle every table, and look for a key that two rows have."""
        for gate in self.gates.values():
            gate.settle()
        self._sync()
        for name, arrays in self.names.items():
            keys = pa.chunked_array(arrays)
            repeated = len(keys) - pc.count_distinct(keys, mode="only_valid").as_py()
            self._count(self.own["key", name], repeated, len(keys))
        self.names.clear()

    def _made_keys(self, name: str) -> list[str]:
        """Name the columns of a table's key that are made for it, and so name each row once."""
        branch, on = self.tree.tables[name], self.tree.keys_of(name)
        return [key for key in branch.key if key not in on and isinstance(branch.columns[key], Identifier)]

    def _check_rows(self, name: str, rows: pa.RecordBatch) -> None:
        gate = self.gates[name]
        try:
            Codec(gate.schema.refusing()).encode(rows)
        except DataError:
            try:
                gate.check(rows)
            except DataError as fault:
                raise DataError(f"{name}.{fault.column}", fault.rule, fault.faults) from None
        else:
            gate.check_encoded(rows)

    def _check_below(self, name: str, table: pa.Table, parent: pa.Table, above: Whole) -> None:
        """Hold rows to those of their parents: the same keys, no more than there may be, in their order."""
        branch = self.tree.tables[name]
        key = self.tree.tables[str(branch.parent)].key
        for own, theirs in zip(self.tree.keys_of(name), key, strict=True):
            there = plain(parent.column(theirs)).take(pa.array(above))
            here = plain(table.column(own))
            same = (
                here.type == there.type and pc.all(pc.equal(here, there), min_count=0).as_py() and not here.null_count
            )
            self._count(self.own["parent", f"{name}.{own}"], 0 if same else len(table), len(table))
        counts = np.bincount(above, minlength=len(parent))
        self._count(self.own["rows", f"{name}"], int((counts > branch.most).sum()), len(counts))
        if branch.order:
            codes = self.codec.codecs[name].encode(table.select(list(self.codec.codecs[name].columns))).codes or ()
            order = codes[list(branch.modelled).index(branch.order)].astype(np.int64)
            step, same_parent = np.diff(order), np.diff(above) == 0
            wrong = same_parent & ((step <= 0) if branch.unique else (step < 0))
            self._count(self.own["order", f"{name}.{branch.order}"], int(wrong.sum()), len(table))

    def _check_references(self, name: str, table: pa.Table) -> None:
        """Hold rows to the public rows that they name."""
        branch = self.tree.tables[name]
        for one in branch.refers:
            keys = [objects_of(table.column(column)) for column in one.by]
            rows = rows_named(branch.public_of(one), keys)
            wrong = (rows == UNKNOWN) | ((rows == NONE) & (not one.nullable))
            self._count(self.own["reference", f"{name}.{one.by[0]}"], int(wrong.sum()), len(table))

    def _sync(self) -> None:
        """Take over what the gates of the tables have found."""
        for mine, (_, theirs) in zip(self.outcomes, self.suites, strict=False):
            mine.checked, mine.failed, mine.sound = theirs.checked, theirs.failed, theirs.sound

    def _count(self, outcome: Outcome, failed: int, checked: int) -> None:
        outcome.checked, outcome.failed = outcome.checked + checked, outcome.failed + failed
        outcome.sound &= failed == 0


def _crossing(tree: Tree, name: str) -> Iterator[tuple[RowRules, RowRule]]:
    """Yield the rules of a table that name columns of others, with what holds rows to them."""
    crossing = {rule.flat for rule in tree.rules_of(name) if rule.alone is None}
    rules = RowRules(tree.ruled(name)) if crossing else None
    yield from ((rules, one) for one in (rules.all if rules else ()) if rules and str(one) in crossing)


def _named(table: str, rule: Rule) -> Rule:
    """Name the table in a rule about one of its columns, or about all of it."""
    if rule.column:
        return replace(rule, arguments={**rule.arguments, "column": f"{table}.{rule.column}"})
    return replace(rule, text=f"{rule.text} (table {table})")


def _rules(tree: Tree) -> Iterator[Rule]:
    """List the rules about keys, and about the rows of one parent."""
    for name, branch in tree.tables.items():
        for column in branch.key:
            if column not in tree.keys_of(name) and isinstance(branch.columns[column], Identifier):
                yield Rule("key", {"column": f"{name}.{column}"}, "must name each row once")
        for one in branch.refers:
            words = f"must be the key of a row of public table {one.to}" + (", or null" if one.nullable else "")
            yield Rule("reference", {"column": f"{name}.{one.by[0]}"}, words)
        if branch.parent is None:
            continue
        for column in tree.keys_of(name):
            words = f"must be the key of a row of table {branch.parent}, below which the row stands"
            yield Rule("parent", {"column": f"{name}.{column}"}, words)
        yield Rule("rows", {"column": name}, f"must have {branch.most} rows at most of one row of {branch.parent}")
        if branch.order:
            rises = "rise" if branch.unique else "never fall"
            words = f"must {rises} among the rows of one row of {branch.parent}"
            yield Rule("order", {"column": f"{name}.{branch.order}"}, words)
