"""The gate for users and their rows before a hand-off: both tables keep their schemas, and their keys join."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.arrays import Mask
from dpmodels.codec.convert import plain
from dpmodels.codec.encode import Codec
from dpmodels.codec.flat import FlatCodec, split
from dpmodels.contract.family import CHILDREN, POSITION, Users
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate, Outcome, Verdicts
from dpmodels.gate.suite import ROW_COUNT, Rule

KEYS = {
    "users": "must name each user once: no two users have one key",
    "constant": "what `users` lists must be the same in all rows of a user",
    "children": "must number each user's rows from 1 to the number of them, which the schema's `max_rows` bounds",
}
"""The rules about both tables together, in words, by the name of the expectation."""


@dataclass
class GateState:
    """What is kept of the batches so far: the last row, and the key of every user."""

    last: pa.Table | None = None
    keys: list[pa.Array] = field(default_factory=list)


class FamilyGate(Verdicts):
    """A suite for a stream of rows of the flat table; batches of one file are given in order."""

    def __init__(self, contract: Schema, rows: int | None) -> None:
        self.gates = {"children": Gate(contract.children, raw=False)}
        if contract.users and contract.users.columns:
            self.gates["parents"] = Gate(contract.parents, raw=False, rows=rows)
        key = {"column": contract.unit.user}
        rules = [Rule(name, key if name == "users" else {}, text) for name, text in KEYS.items()]
        exactly = {"min_value": rows or 0, "max_value": rows}
        rules.append(Rule(ROW_COUNT, exactly, f"there must be {'some' if rows is None else rows} users"))
        super().__init__(contract, rules)
        self.family_outcomes = self.outcomes
        self.outcomes = (*(each for gate in self.gates.values() for each in gate.outcomes), *self.family_outcomes)
        self.schema, self.state = contract, GateState()
        types = FlatCodec(contract).output_schema
        self.joins = {name: types.field(name) for name in (str(contract.unit.user), CHILDREN, POSITION)}

    def check(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Check one more batch of a file.

        Raises:
            DataError: the batch lacks a column by which tables are told apart and joined, or one has another type.
        """
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        if [table.schema.field(name) for name in self.joins if name in table.schema.names] != list(self.joins.values()):
            raise DataError("", "the synthetic table has not the columns by which users and their rows are joined")
        if not len(table):
            return
        for name, part in split(self.schema, table).items():
            for rows in part.combine_chunks().to_batches():
                self._check_rows(self.gates[name], rows)
        self._check_keys(table)

    def end(self) -> None:
        """Check that a file ends with the last row of a user; call it after the file's last batch."""
        if (last := self.state.last) is not None:
            unfinished = last.column(POSITION)[0].as_py() != last.column(CHILDREN)[0].as_py()
            self._count(self.family_outcomes[2], int(unfinished), 0)
        self.state.last = None

    def add(self, other: Verdicts) -> None:
        """Add what a gate of the same contract found in other files."""
        if isinstance(other, FamilyGate):
            for name, gate in self.gates.items():
                gate.add(other.gates[name])
            for mine, theirs in zip(self.family_outcomes, other.family_outcomes, strict=True):
                mine.checked, mine.failed = mine.checked + theirs.checked, mine.failed + theirs.failed
                mine.sound &= theirs.sound
            self.state.keys += other.state.keys

    def settle(self) -> None:
        """Settle both tables, and look for a key that two users have."""
        for gate in self.gates.values():
            gate.settle()
        keys = pa.chunked_array(self.state.keys) if self.state.keys else pa.chunked_array([pa.array([], pa.int64())])
        repeated = len(keys) - pc.count_distinct(keys, mode="only_valid").as_py()
        self._count(self.family_outcomes[0], repeated, len(keys))
        self._count(self.family_outcomes[3], 0, len(keys))
        self.state.keys.clear()

    def _check_rows(self, gate: Gate, rows: pa.RecordBatch) -> None:
        try:
            Codec(gate.schema.refusing()).encode(rows)
        except DataError:
            gate.check(rows)
        else:
            gate.check_encoded(rows)

    def _check_keys(self, table: pa.Table) -> None:
        """Hold every row against the one before it: it goes on with the same user, or begins another after the last."""
        position, number = (table.column(name).to_numpy() for name in (POSITION, CHILDREN))
        begins, user = position <= 1, str(self.schema.unit.user)
        whole = table if self.state.last is None else pa.concat_tables([self.state.last, table])
        before, here = whole.slice(0, len(whole) - 1), whole.slice(1)
        first = len(table) - len(here)
        goes_on = np.ones(len(here), dtype=np.bool_)
        same = np.ones(len(here), dtype=np.bool_)
        for name in (user, *(self.schema.users or Users()).columns):
            if name in whole.column_names:
                equal = _equal(plain(before.column(name)), plain(here.column(name)))
                goes_on, same = (goes_on & equal, same) if name == user else (goes_on, same & equal)
        at, p, n = begins[first:], before.column(POSITION).to_numpy(), before.column(CHILDREN).to_numpy()
        wrong = np.where(at, p != n, ~goes_on | (position[first:] != p + 1) | (number[first:] != n))
        beyond = (number > self.schema.unit.max_rows) | (position > number) | ((position == 0) != (number == 0))
        self._count(self.family_outcomes[1], int((~at & ~same).sum()), len(table))
        self._count(self.family_outcomes[2], int(wrong.sum() + beyond.sum() + (first and not begins[0])), len(table))
        self.state.keys.append(table.column(user).combine_chunks().filter(pa.array(begins)))
        self.state.last = table.slice(len(table) - 1)

    def _count(self, outcome: Outcome, failed: int, checked: int) -> None:
        outcome.checked, outcome.failed = outcome.checked + checked, outcome.failed + failed
        outcome.sound &= failed == 0


def _equal(x: pa.Array, y: pa.Array) -> Mask:
    """Tell where two columns hold the same, null included."""
    same = pc.fill_null(pc.equal(x, y), False)
    equal: Mask = pc.or_(same, pc.and_(x.is_null(), y.is_null())).to_numpy(zero_copy_only=False)
    return equal
