"""Which rows are in a group of a column's values, as a report calls it.

A report writes values of columns without decimals with four digits, so whether a value at the end of a range is in it
cannot be told from its name. So there are two answers: rows that are surely in it, and rows that may be.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.arrays import Floats, Mask, Whole
from dpmodels.codec.convert import as_numbers, joined, plain
from dpmodels.codec.convert import states_of as places_of
from dpmodels.contract.columns import Continuous, Derived, Discrete, names_of
from dpmodels.report.derived.counted import named_value
from dpmodels.report.groups.ranges import ends_of_range

NULL, ZERO = "null", "exactly 0"
FOUR_DIGITS, SIX_DIGITS = 5.1e-4, 5.1e-6
"""Part of a number by which it may be off that is written with so many digits."""
MOST_DECIMALS = 4
"""Decimals up to which every number is written whole."""
MORE = re.compile(r"[0-9,]+ more")
"""What stands for the categories of a group that are not named."""


class Inside(NamedTuple):
    """The rows that are surely in groups, and those that may be. Shapes: [groups, B] both."""

    sure: Mask
    maybe: Mask

    @property
    def is_known(self) -> Mask:
        """Tell of which groups the rows are known. Shape: [groups]."""
        known: Mask = self.sure.sum(axis=1) == self.maybe.sum(axis=1)
        return known


@dataclass(frozen=True)
class Values:
    """The values of a column in some rows.

    Attributes:
        column: as the schema has it.
        numbers: of an interval and of a formula; null is NaN. Shape: [B].
        names: of categories, each once.
        places: of each row's category among them, -1 for none. Shape: [B].
    """

    column: Any
    numbers: Floats
    names: list[str]
    places: Whole

    @classmethod
    def of(cls, column: Any, array: pa.Array | pa.ChunkedArray) -> "Values":
        """Take the values of a column as it is handed over."""
        array = joined(array)
        if isinstance(column, Continuous):
            return cls(column, as_numbers(column, array), [], np.zeros(0, dtype=np.int64))
        if isinstance(column, Derived):
            kinds = (plain(array)).unique()
            names = [named_value(one) for one in kinds.to_pylist()]
            places = pc.index_in(plain(array), value_set=kinds).to_numpy(zero_copy_only=False)
            return cls(column, _numbers(array), names, places.astype(np.int64))
        names, places = [*names_of(column), *[NULL] * column.nullable], places_of(column, array).astype(np.int64)
        is_number = isinstance(column, Discrete) and column.kind in ("integer", "number")
        numbers = _numbers(array) if is_number else np.zeros(0)
        return cls(column, numbers, names, np.where(places < 0, len(names) - 1 if column.nullable else -1, places))

    def groups(self, labels: Sequence[Sequence[str]]) -> Inside:
        """Tell which rows are in each group of values that is called so."""
        sure, maybe = list[Mask](), list[Mask]()
        for names in labels:
            each = [self._inside(name) for name in names]
            sure.append(np.logical_or.reduce([one for one, _ in each]))
            maybe.append(np.logical_or.reduce([one for _, one in each]))
        return Inside(np.array(sure), np.array(maybe))

    def _inside(self, name: str) -> tuple[Mask, Mask]:
        """Tell which rows have what is called so."""
        if isinstance(self.column, Continuous):
            return self._in_range(name)
        if self.names.count(name) == 1:
            exact = self.places == self.names.index(name)
            return exact, exact
        some = MORE.fullmatch(name) is not None or name in self.names
        return np.zeros(len(self.places), dtype=np.bool_), np.full(len(self.places), some)

    def _in_range(self, name: str) -> tuple[Mask, Mask]:
        column, numbers = self.column, self.numbers
        is_zero = (numbers == 0) & (column.zero_state is not None)
        if name in (NULL, ZERO):
            exact = np.isnan(numbers) if name == NULL else is_zero
            return exact, exact
        low, high = ends_of_range(name, column) or (-np.inf, np.inf)
        step = 0.0 if column.decimals is None else column.unit / 10.0**column.decimals
        low, high = low - step / 4, high + step / 4  # nearer than a step no other value lies
        off, rest = [_off(column, end) for end in (low, high)], ~is_zero
        sure = (numbers >= low + off[0]) & (numbers <= high - off[1]) & rest
        return sure, (numbers >= low - off[0]) & (numbers <= high + off[1]) & rest


def _numbers(array: pa.Array) -> Floats:
    """Return what is no text as numbers; null as NaN."""
    kind = plain(array).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return np.zeros(0)
    numbers: Floats = plain(array).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def _off(column: Continuous, end: float) -> float:
    """Return by how much the end of a range may be off as it is written."""
    if column.decimals is None:
        return FOUR_DIGITS * abs(end)
    return SIX_DIGITS * abs(end) if column.decimals > MOST_DECIMALS else 0.0
