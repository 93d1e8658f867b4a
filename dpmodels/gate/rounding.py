"""Whether rows that break a formula differ from it by rounding alone, and which formula they keep."""

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from dpmodels.codec.derive import follows, off_by_one_unit
from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.schema import Schema

ROUND = re.compile(r"(?<![\w.])(?:round|floor)\(")
WHOLE = re.compile(r"(?<![\w.])round\(([^()]+)\) / (10+)\b")
"""A part in whole units of its last decimal, such as cents, whose halves may be off by what float64 leaves of them."""
SAID = (
    "in {near:,} of the {broken:,} rows that break its formula the file differs from it by one unit of the last "
    "decimal ({unit}) at most, so the file rounds otherwise"
)
INSTEAD = "; `{formula}` with `round: {decimals}` holds in every row{beside}"
ADMITS = ", since it admits a half that is rounded up or down; sums of such columns may be off by that unit"
MODELED = (
    "; no other way of rounding that was tried holds in every row: correct the rows, or write the column as one of its "
    "own, `{{type: number, min: …, max: …, round: {decimals}}}`"
)


class Rounding:
    """The rows in which one derived column differs from its formula, counted over a stream of batches.

    Privacy: exact counts of raw rows, which no run keeps: they are for whoever has the rows at hand.
    """

    def __init__(self, name: str, schema: Schema) -> None:
        self.name, self._schema, self._column = name, schema, schema.derived[name]
        self._breaking = dict.fromkeys(_otherwise(self._column), 0)
        self._broken = self._near = 0

    @property
    def count(self) -> int:
        """Return in how many rows the file differs by rounding; none where most rows differ by more."""
        return self._near if 2 * self._near > self._broken else 0

    @property
    def text(self) -> str:
        """Say in how many rows it is rounding alone, and which formula holds in every row."""
        decimals = self._column.round or 0
        said = SAID.format(near=self._near, broken=self._broken, unit=f"{10.0**-decimals:.{decimals}f}")
        formula = next((one for one, breaking in self._breaking.items() if not breaking), "")
        if not formula:
            return said + MODELED.format(decimals=decimals)
        is_plain = not ROUND.search(formula)
        return said + INSTEAD.format(formula=formula, decimals=decimals, beside=ADMITS if is_plain else "")

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"

    def see(self, batch: pa.RecordBatch) -> None:
        """Count one more batch, whose columns are of the types that the schema asks for."""
        columns = self._schema.columns
        breaks = ~follows(self.name, columns, batch)
        self._broken += int(breaks.sum())
        self._near += int((breaks & off_by_one_unit(self.name, columns, batch)).sum()) if breaks.any() else 0
        for formula, breaking in self._breaking.items():
            column = self._column.model_copy(update={"formula": formula})
            fits = follows(self.name, {**columns, self.name: column}, batch)
            self._breaking[formula] = breaking + int(np.count_nonzero(~fits))

    def add(self, other: "Rounding") -> None:
        """Add what was counted in other rows."""
        self._broken, self._near = self._broken + other._broken, self._near + other._near
        self._breaking = {one: breaking + other._breaking[one] for one, breaking in self._breaking.items()}


def _otherwise(column: Derived) -> Iterator[str]:
    """Yield formulas that round otherwise: by the quotient, by the column's own decimals, or by cutting them off."""
    formula, power = str(column.formula), 10 ** (column.round or 0)
    if WHOLE.search(formula):
        yield WHOLE.sub(r"round(\1 / \2 * \2) / \2", formula)
    if ROUND.search(formula):
        yield ROUND.sub("(", formula)
        yield ROUND.sub("floor(", formula)
    else:
        yield f"floor(({formula}) * {power}) / {power}" if power > 1 else f"floor({formula})"
