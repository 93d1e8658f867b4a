"""How many rows of a raw table the policies of its columns, `outside` in the schema, leave out or change."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dpmodels.codec.convert import as_numbers, joined, unlisted
from dpmodels.codec.derive import otherwise_rounded
from dpmodels.contract.columns import Continuous
from dpmodels.contract.derivation.nested import in_names
from dpmodels.contract.schema import Schema
from dpmodels.gate.differences import Difference
from dpmodels.gate.factors import Factor, factors_of
from dpmodels.gate.rounding import LastDecimals, Rounding, decimals_of
from dpmodels.plural import counted, listed

ROUNDED = "round"
DONE = {
    "reject-row": "{count:,} of {rows:,} rows are left out",
    "clip": "{count:,} of {rows:,} values are set to the nearest bound",
    "nearest": "{count:,} of {rows:,} values are set to the nearest one that is listed",
    "other": "{count:,} of {rows:,} values are set to {other}",
    ROUNDED: (
        "in {count:,} of {rows:,} rows the formula is rounded to another last decimal than the file has, as synthetic "
        "rows will be, so that sums of such columns may be off by it"
    ),
}


MEND_FIRST = (
    "in {rows} its formula is broken, which follows from {of}, of which more is said: mend that first, and look again"
)


@dataclass
class Policy:
    """What one column's policy has done so far.

    Privacy: exact counts of raw rows, which no run keeps: they are for whoever has the rows at hand.
    """

    name: str
    outside: str
    other: Any = None
    count: int = 0
    rows: int = 0
    instead: LastDecimals | None = None

    @property
    def text(self) -> str:
        """Say how many rows it leaves out, or how many values it changes, and what formula changes none."""
        text = f"{DONE[self.outside].format(count=self.count, rows=self.rows, other=self.other)} ({self.key})"
        return text + (self.instead.text if self.instead else "")

    @property
    def key(self) -> str:
        """The key of the schema that says so."""
        return f"round: {self.other}" if self.outside == ROUNDED else f"outside: {self.outside}"

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@dataclass
class Following:
    """A formula that rows break, and that follows from other formulas of which something is said already."""

    name: str
    of: list[str]
    count: int

    @property
    def text(self) -> str:
        """Say what to mend first."""
        return MEND_FIRST.format(rows=counted(self.count, "row"), of=listed(self.of, "and"))

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


Counted = Policy | Rounding | Factor | Difference | Following


class Policies:
    """The policies of a schema's columns, counted over a stream of batches."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        said = {name: getattr(column, "outside", "refuse") for name, column in schema.modelled.items()}
        self._each = {
            name: Policy(name, outside, getattr(schema.modelled[name], "other", None))
            for name, outside in said.items()
            if outside in DONE
        }
        derived = {name: one for name, one in schema.derived.items() if one.formula and decimals_of(one) is not None}
        self._rounded = {
            name: Policy(name, ROUNDED, one.round, instead=LastDecimals(name, schema))
            for name, one in derived.items()
            if one.round is not None
        }
        self._broken = {name: Rounding(name, schema) for name in derived}
        self._factors = factors_of(schema)
        self._differences = {name: Difference(name, schema) for name in self._factors}

    @property
    def used(self) -> list[Counted]:
        """List those that leave out or change something, and the formulas that are broken, by rounding or otherwise."""
        every: list[Counted] = [*self._each.values(), *self._rounded.values()]
        broken: list[Counted] = [*self._broken.values(), *self._factors.values()]
        broken = [one for one in broken if one.count]
        others = [one for name, one in self._differences.items() if name not in {one.name for one in broken}]
        policies: list[Counted] = [policy for policy in (*every, *broken, *others) if policy.count]
        spoken_of = {policy.name for policy in policies if policy.name in self._schema.derived}
        named = {policy.name: self._named(policy, spoken_of) for policy in policies}
        return [Following(one.name, of, one.count) if (of := _first(one.name, named)) else one for one in policies]

    def _named(self, policy: Counted, spoken_of: Collection[str]) -> list[str]:
        """Name the formulas that another one names, and of which something is said, unless something else helps it."""
        is_open = isinstance(policy, Difference) or (isinstance(policy, Rounding) and not policy.is_explained)
        named = in_names(policy.name, self._schema.columns).operands if is_open else ()
        return [one for one in named if one in spoken_of and one != policy.name]

    def count(self, batch: pa.RecordBatch) -> None:
        """Count what they do in one more batch, whose columns are of the types that the schema asks for."""
        for name, policy in self._each.items():
            column = self._schema.modelled[name]
            if batch.schema.names.count(name) == 1:  # the suite says what is missing, or there twice
                policy.count += _outside(column, joined(batch.column(name)), policy.outside == "reject-row")
                policy.rows += batch.num_rows
        there = {name for name in self._factors.keys() | self._broken.keys() if self._is_whole(name, batch)}
        for name in self._factors.keys() & there:
            self._factors[name].see(batch)
            self._differences[name].see(batch)
        for name in self._broken.keys() & there:
            self._broken[name].see(batch)
            if rounded := self._rounded.get(name):
                rounded.count += int(otherwise_rounded(name, self._schema.columns, batch, raw=True).sum())
                rounded.rows += batch.num_rows
                if rounded.instead:
                    rounded.instead.see(batch)

    def _is_whole(self, name: str, batch: pa.RecordBatch) -> bool:
        """Tell whether a batch has a derived column and all that it follows from, each once."""
        operands = self._schema.derived[name].operands
        return all(batch.schema.names.count(one) == 1 for one in (name, *operands))

    def add(self, other: "Policies") -> None:
        """Add what they do in other rows."""
        for name, factor in self._factors.items():
            factor.add(other._factors[name])
            self._differences[name].add(other._differences[name])
        for mine, theirs in ((self._each, other._each), (self._rounded, other._rounded)):
            for name, policy in mine.items():
                policy.count += theirs[name].count
                policy.rows += theirs[name].rows
                if policy.instead and (instead := theirs[name].instead):
                    policy.instead.add(instead)
        for name, mine_broken in self._broken.items():
            mine_broken.add(other._broken[name])


def _first(name: str, named: Mapping[str, Sequence[str]]) -> list[str]:
    """Name what a broken formula follows from in the end; nothing of one that names no other broken one."""
    of = [one for other in named[name] for one in (_first(other, named) or [other])]
    return list(dict.fromkeys(of))


def _outside(column: Any, array: pa.Array, rejects: bool) -> int:
    """Count the values that a column lacks; nulls, too, where their rows are left out."""
    if isinstance(column, Continuous):
        x = as_numbers(column, array)
        outside, null = (x < column.low) | (x > column.high), np.isnan(x)
    else:
        outside, null = unlisted(column, array)
    return int((outside | null if rejects and not column.nullable else outside).sum())
