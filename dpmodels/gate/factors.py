"""Whether the rows that break a formula keep ten, a hundred or a thousand times it, or such a part of it."""

import numpy as np
import pyarrow as pa

from dpmodels.codec.derive import follows
from dpmodels.contract.derivation.nested import named
from dpmodels.contract.formula import Misread, moment_of, parsed
from dpmodels.contract.schema import Schema
from dpmodels.limits import LONGEST_FORMULA

TIMES = tuple(f"{sign} {power}" for power in (10, 100, 1000) for sign in "*/")
FEW = 0.01
"""The share of rows that may break a formula which nearly all keep."""
OF_FACTOR = (
    "in {broken:,} of {rows:,} rows the file has another value than its formula gives; `{formula}` holds in "
    "{holding:,} of {rows:,}, so the formula lacks a factor such as percent or thousands, or has one too many"
)


class Factor:
    """The rows in which a derived column differs from its formula, and from multiples of it, over a stream of batches.

    Privacy: exact counts of raw rows, which no run keeps: they are for whoever has the rows at hand.
    """

    def __init__(self, name: str, schema: Schema) -> None:
        self.name, self._schema, self._column = name, schema, schema.derived[name]
        formulas = (f"({self._column.formula}) {times}" for times in TIMES)
        self._breaking = dict.fromkeys(filter(_is_read, formulas), 0)
        self._rows = self._broken = 0

    @property
    def count(self) -> int:
        """Return in how many rows the file differs from its formula, where nearly all keep a multiple of it."""
        return self._broken if self._multiple and self._broken > FEW * self._rows else 0

    @property
    def _multiple(self) -> str:
        """Return the multiple that nearly all rows keep; an empty text where there is none."""
        kept = {one: breaking for one, breaking in self._breaking.items() if breaking <= FEW * self._rows}
        return min(kept, key=lambda one: kept[one], default="")

    @property
    def text(self) -> str:
        """Say how many rows break the formula, and how many keep a multiple of it."""
        formula = self._multiple
        holding = self._rows - self._breaking[formula]
        said = named(formula, self.name, self._schema.columns)
        return OF_FACTOR.format(broken=self._broken, rows=self._rows, formula=said, holding=holding)

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"

    def see(self, batch: pa.RecordBatch) -> None:
        """Count one more batch; a multiple that too many of its rows break is tried no further."""
        columns = self._schema.columns
        self._rows += batch.num_rows
        self._broken += int(np.count_nonzero(~follows(self.name, columns, batch, raw=True)))
        for formula in [*self._breaking]:
            column = self._column.model_copy(update={"formula": formula})
            breaking = int(np.count_nonzero(~follows(self.name, {**columns, self.name: column}, batch)))
            self._breaking[formula] += breaking
            if breaking > 2 * FEW * batch.num_rows + 2:
                del self._breaking[formula]

    def add(self, other: "Factor") -> None:
        """Add what was counted in other rows."""
        both = self._breaking.keys() & other._breaking.keys()
        self._breaking = {one: n + other._breaking[one] for one, n in self._breaking.items() if one in both}
        self._rows, self._broken = self._rows + other._rows, self._broken + other._broken


def factors_of(schema: Schema) -> dict[str, Factor]:
    """Return a counter of no rows for each column of numbers that a formula gives."""
    formulas = {name: one.formula for name, one in schema.derived.items() if one.formula}
    return {name: Factor(name, schema) for name, one in formulas.items() if not moment_of(one, schema.columns)}


def _is_read(formula: str) -> bool:
    """Tell whether a schema takes a formula, which is longer and deeper than the one that it is made of."""
    try:
        parsed(formula)
    except Misread:
        return False
    return len(formula) <= LONGEST_FORMULA
