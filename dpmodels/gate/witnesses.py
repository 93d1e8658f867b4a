"""The rows of a batch that decide whether it keeps a suite's rules: new extremes and categories not seen before.

A rule about single values holds for all numbers of a column if it holds for the smallest and the largest, and for
every row if it holds for every category in the batch. A rule about two columns holds everywhere if it holds where they
are nearest. So Great Expectations need look at these rows only, and a table has few of them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.arrays import Floats
from dpmodels.codec.convert import as_numbers
from dpmodels.contract.columns import Continuous, Discrete, Modelled
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.schema import Schema

MOST_CATEGORIES = 2**16
"""Categories of a column that are remembered; those of a longer list are looked at again in every batch."""


class Witnesses:
    """What has been seen of each column so far. Privacy: as sensitive as the table."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._values: dict[str, set[Any]] = {name: set() for name in schema.modelled}
        self._range: dict[str, tuple[float, float]] = {}

    def pick(self, batch: pa.RecordBatch, rules: Sequence[Constraint]) -> pa.RecordBatch:
        """Return the rows of a batch that may be the first to break a rule, at least one."""
        rows = {0}
        for name, column in self._schema.modelled.items():
            array = batch.column(name)
            if array.null_count:
                rows |= self._categories(name, ["null"], lambda _, array=array: pc.index(array.is_valid(), False))
            rows |= self._new(name, column, array)
        for rule in rules:
            rows |= self._extremes(str(rule), gap(self._schema, rule, batch))
        return batch.take(pa.array(sorted(rows)))

    def _new(self, name: str, column: Modelled, array: pa.Array) -> set[int]:
        if isinstance(column, Continuous):
            return self._extremes(name, as_numbers(column, array))
        if not isinstance(column, Discrete):
            return set()
        if pa.types.is_dictionary(array.type):
            texts, positions = array.dictionary, array.indices
            return self._categories(
                name, texts.to_pylist(), lambda value: pc.index(positions, texts.index(value).as_py())
            )
        values = pc.drop_null(pc.unique(array)).to_pylist()
        return self._categories(name, values, lambda value: pc.index(array, pa.scalar(value, array.type)))

    def _categories(self, name: str, values: Sequence[Any], find: Any) -> set[int]:
        rows: set[int] = set()
        for value in values:
            if value is None or value in self._values[name]:
                continue
            row = find(value).as_py()
            if row >= 0:  # a dictionary may list what does not occur
                rows.add(row)
                if len(self._values[name]) < MOST_CATEGORIES:
                    self._values[name].add(value)
        return rows

    def _extremes(self, name: str, x: Floats) -> set[int]:
        low, high = np.fmin.reduce(x, initial=np.inf), np.fmax.reduce(x, initial=-np.inf)
        least, most = self._range.get(name, (np.inf, -np.inf))
        self._range[name] = (min(low, least), max(high, most))
        rows = [np.argmax(x == low)] if low < least else []
        return {int(row) for row in (*rows, *([np.argmax(x == high)] if high > most else []))}


def gap(schema: Schema, rule: Constraint, batch: pa.RecordBatch) -> Floats:
    """Return how far apart the two columns of a rule are, NaN where either is null; negative where it is broken."""
    lower, upper = (
        as_numbers(column, batch.column(name))
        for name in (rule.lower, rule.upper)
        if isinstance(column := schema.columns[name], Continuous)
    )
    return upper - lower
