"""How often each key of some columns is in a table, in one pass over its batches.

A row has at most one key in a column: it is null, cannot be read as what the column is, or has a value. Of numbers the
key is a cell of a public lattice of the figures 1, 2, 5, 10, 20, ... of both signs, of moments the year; of an open set
it is the value itself, which the data names. Everything is a function of one row.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.arrays import Whole
from dpmodels.codec.convert import plain, to_floats
from dpmodels.codec.plain_text import MISSING, whole_text
from dpmodels.contract.base import is_text
from dpmodels.contract.columns import EXACT
from dpmodels.mechanisms.threshold import KeyCounts
from dpmodels.privacy import Sensitive

ROWS, NULL, UNREAD = "rows", "null", "unread"
YEARS = (1, 9999)
MERGE = 2**20
"""Counts of found keys that wait before they are added up."""
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+(Z|[+-][0-9:]+)?)?$"


@dataclass(frozen=True)
class Figures:
    """A public lattice: cells between the figures 1, 2 and 5 times powers of ten, of both signs, and one about zero.

    Cell k above 0 reaches from figure k to the next, the last one to infinity; cell -k is its mirror image, and cell 0
    is all that is smaller than the first figure.
    """

    least_power: int
    most_power: int

    @cached_property
    def figures(self) -> NDArray[np.float64]:
        """The figures above 0."""
        powers = range(self.least_power, self.most_power)
        return np.array([float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)])

    @property
    def cells(self) -> range:
        """The numbers of the cells, in the order of what is in them."""
        return range(-len(self.figures), len(self.figures) + 1)

    def cells_of(self, x: NDArray[np.float64]) -> Whole:
        """Return the cell of each number."""
        return np.sign(x).astype(np.int64) * np.searchsorted(self.figures, np.abs(x), side="right")

    def reach(self, cell: int) -> tuple[float, float]:
        """Return the ends of a cell, in their order; infinite where it has none. What is in cell 0 counts as zero."""
        ends = np.concatenate([[0.0], self.figures, [np.inf]])
        if cell == 0:
            return 0.0, 0.0
        low, high = float(ends[abs(cell)]), float(ends[abs(cell) + 1])
        return (low, high) if cell > 0 else (-high, -low)


@dataclass(frozen=True)
class Coordinates:
    """What is counted, in order: the rows; then of each column nulls, what cannot be read, and its cells or years.

    Attributes:
        columns: by name what is counted besides: ``values``, ``cells``, ``years`` or nothing.
        longest: most characters of a value; a longer one, or one with a character that does not print, is not read.
    """

    columns: dict[str, str]
    figures: Figures
    longest: int
    steps_per_row: int

    @property
    def public(self) -> list[tuple[str, str]]:
        """Column and key of each public count."""
        keys = [("", ROWS)]
        for name, counts in self.columns.items():
            keys += [(name, key) for key in (NULL, UNREAD, *map(str, self.within(counts)))]
        return keys

    @property
    def open(self) -> tuple[str, ...]:
        """The columns whose keys are found in the data."""
        return tuple(name for name, counts in self.columns.items() if counts == "values")

    def within(self, counts: str) -> range:
        """Return the public cells of a column."""
        return {"cells": self.figures.cells, "years": range(YEARS[0], YEARS[1] + 1)}.get(counts, range(0))


def transform_key_counts(batches: Sensitive[Iterable[pa.RecordBatch]], what: Coordinates) -> Sensitive[KeyCounts]:
    """Count the keys of every row.

    Memory: one batch, and of an open set its values and their counts, about a hundred bytes a value; not the rows.

    Privacy: Sensitive -> Sensitive; a row adds ``steps_per_row`` to the count of the rows, and to that of one key of
        each column.
    """
    rows, public = 0, {name: np.zeros(2 + len(what.within(counts)), np.int64) for name, counts in what.columns.items()}
    tallies = {name: _Tally() for name in what.open}
    for batch in batches.reveal():
        rows += batch.num_rows
        for name, counts in what.columns.items():
            array = whole_text(plain(batch.column(name)))
            if counts == "values":
                public[name] += tallies[name].add(array, what.longest)
            else:
                public[name] += _counted(array, counts, what)
    each = [tallies[name].whole for name in what.open]
    keys = pa.concat_arrays([pa.array([], pa.large_string()), *(table["key"].combine_chunks() for table in each)])
    column_numbers = np.repeat(np.arange(len(each)), [len(table) for table in each])
    times = np.concatenate([np.zeros(0, np.int64), *(table["n"].to_numpy() for table in each)]) * what.steps_per_row
    whole = np.concatenate([[rows], *public.values()]).astype(np.int64) * what.steps_per_row
    return Sensitive(KeyCounts(whole, keys, column_numbers, times))


class _Tally:
    """Counts of the values of an open set, added up now and then; as sensitive as the rows."""

    def __init__(self) -> None:
        self._waiting = [pa.table({"key": pa.array([], pa.large_string()), "n": pa.array([], pa.int64())})]
        self._size = 0

    @property
    def whole(self) -> pa.Table:
        """The values so far, each once, with their counts."""
        summed = pa.concat_tables(self._waiting).group_by("key", use_threads=False).aggregate([("n", "sum")])
        self._waiting = [summed.select(["key", "n_sum"]).rename_columns(["key", "n"])]
        self._size = len(self._waiting[0])
        return self._waiting[0]

    def add(self, array: pa.Array, longest: int) -> Whole:
        """Count more rows in, and return how many are null and how many hold what is no value."""
        if pa.types.is_nested(array.type) or isinstance(array.type, pa.BaseExtensionType):
            return np.array([array.null_count, len(array) - array.null_count])
        if pa.types.is_string_view(array.type):
            array = array.cast(pa.large_string())
        values, times = pc.value_counts(array).flatten()
        null, keys = values.is_null(nan_is_null=True), _named(values, longest)
        within_length = keys.is_valid()
        some = pa.table({"key": keys.filter(within_length), "n": times.filter(within_length)})
        self._waiting.append(some)
        if sum(map(len, self._waiting[1:])) > max(MERGE, self._size):
            _ = self.whole
        nulls, whole, listed_rows = (_sum(times.filter(mask)) for mask in (null, pc.is_valid(times), within_length))
        return np.array([nulls, whole - nulls - listed_rows])


def _sum(times: pa.Array) -> int:
    return int(pc.sum(times, min_count=0).as_py())


def _named(values: pa.Array, longest: int) -> pa.Array:
    """Name values by their kind and their text; null where one is null or is not read."""
    kind, nothing = values.type, pa.scalar(None, pa.large_string())
    if is_text(kind):
        text = values.cast(pa.large_string())
        fits = pc.and_(pc.less_equal(pc.utf8_length(text), longest), pc.utf8_is_printable(text))
        return pc.if_else(fits, _joined("s", text), nothing)
    if pa.types.is_boolean(kind):
        return pc.if_else(values, pa.scalar("btrue", pa.large_string()), pa.scalar("bfalse", pa.large_string()))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        x = to_floats(values)
        read = np.isfinite(x) & (np.abs(x) <= EXACT)
        whole = read & (x == np.floor(x))
        text = pa.array(np.where(whole, x, 0).astype(np.int64)).cast(pa.large_string())
        parts = _joined("f", pa.array(np.where(read, x, 0)).cast(pa.large_string()))
        return pc.if_else(pa.array(whole), _joined("i", text), pc.if_else(pa.array(read), parts, nothing))
    return pa.nulls(len(values), pa.large_string())


def _joined(kind: str, text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(kind, text.type), text, pa.scalar("", text.type))


def _counted(array: pa.Array, counts: str, what: Coordinates) -> Whole:
    """Count nulls, what cannot be read, and cells or years; of a column of which nothing more is asked, nulls alone."""
    cells = what.within(counts)
    if not counts:
        return np.array([_sum(_nulls(array).cast(pa.int64())), 0])
    read: Callable[[pa.Array], tuple[NDArray[np.bool_], NDArray[np.float64]]] = (
        _numbers if counts == "cells" else _years
    )
    null, x = read(array)
    fits = np.isfinite(x) & ~null
    if counts == "years":
        fits &= (x >= YEARS[0]) & (x <= YEARS[1])
        cells_found = x[fits].astype(np.int64) - YEARS[0]
    else:
        cells_found = what.figures.cells_of(x[fits]) - cells[0]
    return np.concatenate([[null.sum(), (~null & ~fits).sum()], np.bincount(cells_found, minlength=len(cells))])


def _numbers(array: pa.Array) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which are null, and the numbers; NaN where there is none."""
    import pandas as pd

    kind, null = array.type, _nulls(array)
    if is_text(kind):
        trimmed = _trimmed(array)
        x = pd.to_numeric(pd.Series(trimmed.to_numpy(zero_copy_only=False)), errors="coerce").to_numpy(np.float64)
    elif pa.types.is_time(kind) or pa.types.is_duration(kind):
        x = array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.float64(), safe=False)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        x = to_floats(array)
    else:
        x = np.full(len(array), np.nan)
    values = x.to_numpy(zero_copy_only=False) if isinstance(x, pa.Array) else x
    return null.to_numpy(zero_copy_only=False), values


def _nulls(array: pa.Array) -> pa.Array:
    """Tell which rows hold nothing, or a text that stands for nothing where no text is expected."""
    null = array.is_null(nan_is_null=True)
    if not is_text(array.type):
        return null
    return pc.or_(null, pc.is_in(_trimmed(array), MISSING.cast(pa.large_string())))


def _trimmed(array: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(array.cast(pa.large_string()))


def _years(array: pa.Array) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which are null, and the years, in UTC where a time has a zone; NaN where there is none."""
    null = _nulls(array)
    if is_text(array.type):
        trimmed = _trimmed(array)
        day = pc.match_substring_regex(trimmed, DAY)
        x = pc.if_else(day, pc.utf8_slice_codeunits(trimmed, 0, 4), None).cast(pa.float64())
    elif pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        zoned = pa.types.is_timestamp(array.type) and array.type.tz is not None
        x = pc.year(array.cast(pa.timestamp(array.type.unit, "UTC")) if zoned else array).cast(pa.float64())
    else:
        x = pa.nulls(len(array), pa.float64())
    return null.to_numpy(zero_copy_only=False), x.to_numpy(zero_copy_only=False)
