"""A column that names a record or a user, and what of it is said: how it is handed over, and whether values repeat."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import Field, StrictBool, model_validator

from dpmodels.arrays import Whole
from dpmodels.contract.base import ColumnFaults
from dpmodels.contract.identifiers.pattern import Pattern, read_pattern
from dpmodels.errors import DataError
from dpmodels.frozen import Strict

PATTERN, TEXT = "pattern:", "text:"
KEEPS = "^(drop|regenerate|pattern:.+|text:.+)$"
FEWER = (
    "give --rows, or fit the release again for fewer: nacre fit RELEASE --rows ROWS; of more rows, `--after 0` begins "
    "at the first identifier again"
)


class Identifier(Strict):
    """A column that is never modeled, such as a name, a number or a free text: dropped, or made without the data.

    ``keep`` is ``drop``; ``regenerate``, fresh sequential numbers; ``pattern:`` and a pattern after which they are
    made; or ``text:`` and a text that stands in every row. ``unique`` says of the raw table that no two of its rows
    have the same value; null is none. ``person`` is false of a column, such as an amount, that is left out though it
    names nobody; nothing but cautions depends on it.
    """

    type: Annotated[Literal["identifier"], Field(description="What names a record or a user; it is never modeled.")]
    keep: Annotated[
        str, Field(description="What synthetic rows get instead.", json_schema_extra={"pattern": KEEPS})
    ] = "drop"
    # left out where it is not said, so that a schema without it keeps the hash it had before it existed
    unique: Annotated[
        StrictBool, Field(exclude_if=lambda one: not one, description="Whether no two raw rows have the same value.")
    ] = False

    person: Annotated[  # left out likewise
        StrictBool, Field(exclude_if=lambda one: one, description="Whether a value may tell who the row is of.")
    ] = True

    @property
    def pattern(self) -> Pattern | None:
        """The pattern that identifiers are made after, if there is one."""
        return read_pattern(self.keep.removeprefix(PATTERN)) if self.keep.startswith(PATTERN) else None

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of what is handed over."""
        return pa.int64() if self.keep == "regenerate" else pa.string()

    def make(self, first_row: int, rows: int) -> pa.Array:
        """Make the column of synthetic rows that follow each other; of nothing but their numbers.

        Raises:
            DataError: the pattern has fewer identifiers than there are rows.
        """
        return self.make_at(np.arange(first_row, first_row + rows, dtype=np.int64))

    def make_at(self, numbers: Whole) -> pa.Array:
        """Make the column of synthetic rows that have these numbers; the same number makes the same identifier.

        Raises:
            DataError: the pattern has fewer identifiers than the numbers ask for.
        """
        if self.keep == "regenerate":
            return pa.array(numbers + 1)
        if self.pattern is None:
            return pa.repeat(self.keep.removeprefix(TEXT), len(numbers))
        if len(numbers) and int(numbers.max()) >= self.pattern.most:
            raise DataError("", f"`{self.keep}` makes {self.pattern.most} identifiers; {FEWER}")
        return self.pattern.write_at(numbers.astype(np.uint64))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.person and self.keep != "drop":
            raise ColumnFaults([("person", "goes with `keep: drop`: what is made anew tells nothing of anybody")])
        if self.keep in ("drop", "regenerate"):
            return self
        if self.keep.startswith(TEXT):
            text = self.keep.removeprefix(TEXT)
            faults = [] if 0 < len(text) <= 200 and text.isprintable() else ["must be `text:` and 1 to 200 characters"]
        elif self.keep.startswith(PATTERN):
            faults = _pattern_faults(self.keep.removeprefix(PATTERN))
        else:
            faults = ["must be drop, regenerate, `pattern:[A-Z]{2}[0-9]{6}` or `text:left out`, in quotes"]
        if faults:
            raise ColumnFaults([("keep", fault) for fault in faults])
        return self


def uniques_of(columns: Mapping[str, Any]) -> list[str]:
    """Name the identifiers of which no two rows of a raw table have the same value."""
    return [name for name, one in columns.items() if isinstance(one, Identifier) and one.unique]


def too_few(columns: Mapping[str, Any], rows: int) -> list[tuple[str, str]]:
    """List the columns whose pattern makes fewer identifiers than so many rows need, as (place in the file, why)."""
    patterns = {name: one.pattern for name, one in columns.items() if isinstance(one, Identifier)}
    return [
        (f"columns.{name}.keep", f"makes {pattern.most} identifiers, fewer than {rows} rows need; make it longer")
        for name, pattern in patterns.items()
        if pattern is not None and pattern.most < rows
    ]


def _pattern_faults(text: str) -> list[str]:
    try:
        read_pattern(text)
    except ValueError as fault:
        return [f"must {fault}"]
    return []
