"""Frames of what nacre says of runs, rules and releases, which a terminal shows with all of their columns."""

from typing import Any

import pandas as pd
import pyarrow as pa

from nacre.notebook import rows_as_text

MOST_ROWS, AT_EACH_END = 60, 10
"""Rows up to which all of a listing are shown, and those at each end that are shown of a longer one."""


NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype(), pa.bool_(): pd.BooleanDtype()}
"""Types of pandas that hold nulls; without them whole numbers would be floats, and booleans objects."""


class Listing(pd.DataFrame):
    """A frame whose columns are all shown, in lines of 80 letters as far as words allow; so is what is chosen of it."""

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
        rows = [[_shown(value) for value in row] for end in ends for row in end.itertuples(index=False)]
        lines = rows_as_text([*map(str, groups), *map(str, self.columns)], rows)
        if between or not rows:
            lines.append(f"({between} rows between the first {AT_EACH_END} and the last)" if rows else "(no rows)")
        return "\n".join([*lines, *(f"note: {note}" for note in self.attrs.get("notes", ()))])


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Turn a table into a frame: days are datetime64, and whole numbers and booleans with nulls stay what they are."""
    frame: pd.DataFrame = table.to_pandas(date_as_object=False)
    for place, column in enumerate(table.columns):
        if column.null_count and (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
            frame[frame.columns[place]] = column.to_pandas(types_mapper=NULLABLE.get)
    return frame


def _shown(value: Any) -> str:
    """Write a cell: numbers in six digits, days without an hour, lists by their items, what is missing as a dash."""
    if pd.api.types.is_list_like(value):
        return ", ".join(map(_shown, value))
    if pd.isna(value):
        return "–"
    if isinstance(value, pd.Timestamp) and value == value.normalize():
        return str(value.date())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
