"""Frames of what nacre says of runs, rules and releases, which a terminal shows with all of their columns."""

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa

from dpmodels.plural import counted
from nacre.notebook import rows_as_text

MOST_ROWS, AT_EACH_END = 60, 10
"""Rows up to which all of a listing are shown, and those at each end that are shown of a longer one."""
OF_MEANS = frozenset({"mean", "within", "standard_error", "noise", "inside"})
"""Columns of means by groups that have the unit of the mean."""
NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype(), pa.bool_(): pd.BooleanDtype()}
"""Types of pandas that hold nulls; without them whole numbers would be floats, and booleans objects."""


class Listing(pd.DataFrame):
    """A frame whose columns are all shown, in lines as wide as words and screen allow; so is what is chosen of it."""

    @classmethod
    def of(cls, frame: pd.DataFrame) -> "Listing":
        """Show a frame as a listing, with what is noted of it (``attrs``)."""
        listing = cls(frame)
        listing.attrs = frame.attrs
        return listing

    @property
    def _constructor(self) -> type["Listing"]:
        return Listing

    def __repr__(self) -> str:
        groups = [name for name in self.index.names if name is not None]
        plain = not groups and pd.api.types.is_integer_dtype(self.index)
        if not plain and (len(groups) < self.index.nlevels or any(name is not None for name in self.columns.names)):
            return super().__repr__()  # what rows and columns are called by is not left out
        between = len(self) - 2 * AT_EACH_END if len(self) > MOST_ROWS else 0
        ends: list[pd.DataFrame] = [self] if not between else [self.head(AT_EACH_END), self.tail(AT_EACH_END)]
        if groups:
            ends = [pd.concat([end.index.to_frame(index=False), end.reset_index(drop=True)], axis=1) for end in ends]
        rows = [row for end in ends for row in _cells(end)]
        lines = rows_as_text([*map(str, groups), *map(str, self.columns)], rows)
        if between or not rows:
            lines.append(f"({between} rows between the first {AT_EACH_END} and the last)" if rows else "(no rows)")
        return "\n".join([*lines, *(f"note: {note}" for note in self.attrs.get("notes", ()))])


class RuleListing(Listing):
    """The rules that a table was held to: those that it breaks are shown, and what policies do; all are in the frame.

    What is chosen of it is a listing of all that was chosen.
    """

    def __repr__(self) -> str:
        if not {"success", "rows", "column"} <= {*self.columns}:  # which whoever has the frame may take out of it
            return super().__repr__()
        holds = self["success"] & (self["rows"].notna() | self["column"].isna())
        held = f"{counted(int(holds.sum()), 'rule')} {'holds' if holds.sum() == 1 else 'hold'}; the frame has all"
        shown = Listing(self[~holds])
        shown.attrs = {"notes": [held, *self.attrs.get("notes", ())]}
        return repr(shown) if len(shown) else "\n".join(f"note: {note}" for note in shown.attrs["notes"])


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Turn a table into a frame: days are datetime64, and whole numbers and booleans with nulls stay what they are."""
    frame: pd.DataFrame = table.to_pandas(date_as_object=False)
    for place, column in enumerate(table.columns):
        if column.null_count and (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
            frame[frame.columns[place]] = column.to_pandas(types_mapper=NULLABLE.get)
    return frame


def _cells(frame: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the cells of each row; of a mean and its errors as many digits as its own error has to two."""
    names = [*map(str, frame.columns)]
    of_means = {"mean", "within"} <= {*names} and "mean_" not in names
    for row in frame.itertuples(index=False):
        within: Any = row[names.index("within")] if of_means else None
        is_stated = isinstance(within, float) and 0 < within < math.inf
        decimals = 1 - math.floor(math.log10(within)) if is_stated else None
        yield [_shown(value, decimals if name in OF_MEANS else None) for name, value in zip(names, row, strict=True)]


def _shown(value: Any, decimals: int | None = None) -> str:
    """Write a cell: numbers to some decimals or in six digits, days without an hour, what is missing as a dash."""
    if pd.api.types.is_list_like(value):
        return ", ".join(map(_shown, value))
    if pd.isna(value):
        return "–"
    if isinstance(value, pd.Timestamp) and value == value.normalize():
        return str(value.date())
    if isinstance(value, float) and decimals is not None and math.isfinite(value):
        return f"{round(value, decimals):.{max(decimals, 0)}f}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
