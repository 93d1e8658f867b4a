"""A partition: the rows of a table that have one value in one public column.

The rule looks at each row alone, so a row is in one partition at most, whichever files it is read from. A moment is in
the partition of its day, cut down from the moment as it is written, without a zone; text and whole numbers are in that
of their own value; a null, and a value that the schema does not list, are in none.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any

from pydantic import Field

from dpmodels.contract.base import Modelled
from dpmodels.contract.columns import Categorical, Column, Datetime, Identifier
from dpmodels.errors import near_or_listed
from dpmodels.frozen import Strict

KINDS = "must be a datetime, a categorical column of text or whole numbers, or an identifier with `keep: drop`"


class Partition(Strict):
    """The column that tells partitions apart and, for one partition, its value: a day as 2026-01-31, or text."""

    column: Annotated[str, Field(description="The column that tells partitions apart.")]
    value: Annotated[str | None, Field(description="The one partition that the schema is about.")] = None

    def __str__(self) -> str:
        return self.column if self.value is None else f"{self.column}={self.value}"


def partition_faults(
    partition: Partition, columns: Mapping[str, Column], target: str | None, user: str | None
) -> list[tuple[str, str]]:
    """List what is wrong with a schema's partition, as (key, message)."""
    name, column = partition.column, columns.get(partition.column)
    message = ""
    if user is not None:
        message = "goes with `unit: record`: a user may be in several partitions"
    elif column is None:
        message = f"`{name}` is no column of this schema{near_or_listed(name, columns)}"
    elif not _tells_apart(column):
        message = f"`{name}` {KINDS}"
    elif name == target:
        message = f"`{name}` must not be the target, which would be the same in all rows of a partition"
    elif not any(isinstance(other, Modelled) for key, other in columns.items() if key != name):
        message = f"`{name}` must not be the only column that is no identifier"
    elif partition.value is not None and not _fits(column, partition.value):
        message = f"`{name}` has no partition {partition.value}: it must be {_values(column)}"
    return [("partition", message)] if message else []


def narrowed(column: Column, value: str) -> Column:
    """Return the partition column as it is within one partition, where its value is public."""
    if isinstance(column, Categorical):
        changes: dict[str, Any] = {"values": (listed(column)[value],)}
        changes |= {"outside": "refuse", "other": None}
    elif isinstance(column, Datetime):
        changes = {"min": _within(column.min, value), "max": _within(column.max, value)}
    else:
        return column
    settings = column.model_dump(exclude={"cells", "max_null_share"})  # a day has the number of cells that suits a day
    return type(column).model_validate({**settings, **changes, "nullable": False})


def _tells_apart(column: Column) -> bool:
    if isinstance(column, Categorical):
        return column.kind in ("text", "integer")
    return isinstance(column, Datetime) or (isinstance(column, Identifier) and column.keep == "drop")


def _fits(column: Column, value: str) -> bool:
    if isinstance(column, Categorical):
        return value in listed(column)
    return not isinstance(column, Datetime) or (
        is_day(value) and _day(column.min) <= date.fromisoformat(value) <= _day(column.max)
    )


def _values(column: Column) -> str:
    if isinstance(column, Datetime):
        return f"a day such as 2026-01-31, from {_day(column.min)} to {_day(column.max)}"
    return "one of the listed values"


def listed(column: Categorical) -> dict[str, Any]:
    """Return the listed values by how a partition writes them."""
    return {str(value): value for value in column.values}


def _within(bound: date | datetime, value: str) -> date | datetime:
    """Return a bound that lies within a day, or else the day."""
    return bound if _day(bound).isoformat() == value else date.fromisoformat(value)


def _day(moment: date | datetime) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def is_day(value: str) -> bool:
    """Tell whether a text is a day such as 2026-01-31."""
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False
