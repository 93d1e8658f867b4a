"""By how much the rows that break a formula differ from it, and with which decimals they keep it."""

import numpy as np
import pyarrow as pa

from dpmodels.codec.derive import apart_by, follows
from dpmodels.contract.derivation.nested import in_names
from dpmodels.contract.schema import Schema
from dpmodels.gate.rounding import Rounding, decimals_of

FEWEST, MOST = 0, 4
"""The decimals that are tried for a column whose schema says none."""
OFF = "in {broken:,} of {rows:,} rows the file differs from `{formula}`, by {most} at most"
ROUNDED = ": write `round: {decimals}`, with which it holds in every row"
CENTS, CENT = 2, 0.01
NEARLY = 1 + 1e-6
"""What float64 may add to a difference of a cent."""
OF_CENTS = ": write `round: 2`{remedy}"
COUNTED = (
    ": correct these rows or, where the difference is right, have it counted beside, as `{name}_apart: {{type: number, "
    'min: LEAST, max: MOST,{round} zero_inflated: true, keep: drop, computed: "{name} - ({formula})"}}` and `{name}: '
    '{{type: derived, formula: "{formula} + {name}_apart"{of_name}}}`'
)


class Difference:
    """The rows in which one derived column of numbers differs from its formula, counted over a stream of batches.

    Privacy: exact counts and an exact difference of raw rows, which no run keeps: they are for whoever has the rows at
        hand.
    """

    def __init__(self, name: str, schema: Schema) -> None:
        self.name, self._schema, self._column = name, schema, schema.derived[name]
        is_open = decimals_of(self._column) is None and self._column.dtype != "int64"
        self._breaking = dict.fromkeys(range(MOST, FEWEST - 1, -1) if is_open else (), 0)
        operands = [schema.columns.get(one) for one in self._column.operands]
        has_cents = is_open and any(getattr(one, "round", None) == CENTS for one in operands)
        self._in_cents = Rounding(name, schema, CENTS) if has_cents else None
        self._rows = self.count = 0
        self._most = 0.0

    @property
    def text(self) -> str:
        """Say how many rows differ, by how much at most, and what to write."""
        formula, decimals = in_names(self.name, self._schema.columns).formula, self._column.round
        said = OFF.format(broken=self.count, rows=self._rows, formula=formula, most=f"{self._most:,.6g}")
        fitting = next((one for one, breaking in self._breaking.items() if not breaking), None)
        if self._in_cents and self._most <= CENT * NEARLY and (fitting is None or fitting < CENTS):
            return said + OF_CENTS.format(remedy=self._in_cents.remedy)
        if fitting is not None:
            return said + ROUNDED.format(decimals=fitting)
        written = "" if decimals is None else f" round: {decimals},"
        of_name = "" if decimals is None else f", round: {decimals}"
        return said + COUNTED.format(name=self.name, formula=formula, round=written, of_name=of_name)

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"

    def see(self, batch: pa.RecordBatch) -> None:
        """Count one more batch, whose columns are of the types that the schema asks for."""
        columns = self._schema.columns
        breaks = ~follows(self.name, columns, batch, raw=True)
        self._rows += batch.num_rows
        self.count += int(np.count_nonzero(breaks))
        if not breaks.any():
            return
        self._most = max(self._most, float(apart_by(self.name, columns, batch)[breaks].max()))
        if self._in_cents:
            self._in_cents.see(batch)
        for decimals in [one for one, breaking in self._breaking.items() if not breaking]:
            rounded = self._column.model_copy(update={"round": decimals})
            fits = follows(self.name, {**columns, self.name: rounded}, batch, raw=True)
            self._breaking[decimals] = int(np.count_nonzero(~fits))

    def add(self, other: "Difference") -> None:
        """Add what was counted in other rows."""
        self._rows, self.count = self._rows + other._rows, self.count + other.count
        self._most = max(self._most, other._most)
        if self._in_cents and other._in_cents:
            self._in_cents.add(other._in_cents)
        self._breaking = {one: breaking + other._breaking[one] for one, breaking in self._breaking.items()}
