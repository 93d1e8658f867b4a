"""The synthetic rows of a hand-off, as they lie in its folder, read a batch at a time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Floats
from dpmodels.codec.flat import join, tables_of
from dpmodels.contract.columns import Derived
from dpmodels.contract.family import CHILDREN
from dpmodels.contract.schema import Schema
from dpmodels.files import open_plain
from dpmodels.gate.made_files import batches_of
from dpmodels.hand_off.recount.groups import Inside, Values
from dpmodels.parquet_footer import read_footer
from dpmodels.report.fidelity import FIT_ROWS

BATCH_ROWS = 65_536


@dataclass(frozen=True)
class HandedOver:
    """The rows of one table in the files of a hand-off, in their order."""

    folder: Path
    parts: Sequence[str]
    schema: Schema
    tell: Callable[[int], None] = lambda _: None

    def reporting(self, tell: Callable[[int], None]) -> "HandedOver":
        """Return the same, which tells how many rows were read."""
        return replace(self, tell=tell)

    def count(self) -> int:
        """Return how many rows the footers of the files say that they have."""
        number = 0
        for name in self.parts:
            with open_plain(self.folder, self.folder / name) as file:
                number += read_footer(pa.PythonFile(file, mode="r")).num_rows
        return number

    def __iter__(self) -> Iterator["Rows"]:
        number = 0
        for batch in self.batches():
            yield Rows(batch, self.schema)
            number += len(batch)
            self.tell(number)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they are read."""
        for name in self.parts:
            with open_plain(self.folder, self.folder / name) as file:
                yield from batches_of(pa.PythonFile(file, mode="r"), BATCH_ROWS, self.schema)

    @cached_property
    def first(self) -> "Rows":
        """Return the first rows, of which a report makes all that is of several columns together."""
        read, missing = list[Rows](), FIT_ROWS
        for rows in self:
            read.append(rows.take(missing))
            missing -= len(read[-1])
            if not missing:
                break
        table = pa.Table.from_batches([batch for one in read for batch in one.batches()]).unify_dictionaries()
        return Rows(table, read[0].schema, np.concatenate([one.weights for one in read]))


@dataclass(frozen=True)
class OfUsers(HandedOver):
    """The rows of two tables, of users and of theirs, joined again; each user weighs one."""

    def __iter__(self) -> Iterator["Rows"]:
        tables = dict[str, pa.Table]()
        for name in tables_of(self.schema):
            of_table = replace(self, parts=[part for part in self.parts if part.split("/")[1] == name])
            tables[name] = pa.Table.from_batches([*of_table.batches()]).unify_dictionaries()
        flat = join(self.schema, tables)
        weights = 1.0 / np.maximum(flat.column(CHILDREN).to_numpy().astype(np.float64), 1.0)
        yield Rows(flat, self.schema.flat, weights)
        self.tell(len(flat))


class Rows:
    """Some rows, whose columns are read as they are asked for, with what each weighs. Shapes: ``weights`` [B]."""

    def __init__(self, table: pa.Table | pa.RecordBatch, schema: Schema, weights: Floats | None = None) -> None:
        self.table, self.schema, self.columns = table, schema, schema.columns
        self.weights = np.ones(len(self)) if weights is None else weights
        self._values = dict[str, Values]()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def take(self, most: int) -> "Rows":
        """Return the first of them."""
        return Rows(self.table.slice(0, most), self.schema, self.weights[:most])

    def batches(self) -> list[pa.RecordBatch]:
        """Return them as batches."""
        return self.table.to_batches() if isinstance(self.table, pa.Table) else [self.table]

    def has(self, *names: str) -> bool:
        """Tell whether columns are among those that are handed over."""
        return {*names} <= {*self.table.schema.names}

    def values(self, name: str) -> Values:
        """Return the values of a column."""
        if name not in self._values:
            self._values[name] = Values.of(self.columns[name], self.table.column(name))
        return self._values[name]

    def groups(self, name: str, labels: Sequence[Sequence[str]]) -> Inside:
        """Tell which rows are in groups of a column's values."""
        return self.values(name).groups(labels)

    def numbers(self, name: str) -> Floats:
        """Return a column as numbers, or of dates as days or seconds; null, and what is no number, as NaN."""
        numbers = self.values(name).numbers
        is_date = isinstance(self.columns[name], Derived) and len(numbers) != len(self)
        return np.full(len(self), np.nan) if is_date else numbers
