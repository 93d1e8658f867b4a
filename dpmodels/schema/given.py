"""Rows that were given in memory: taken over as they are, and written into the sensitive zone for a run to read."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive

KINDS = "a pandas DataFrame, a pyarrow Table, or the path of a CSV or Parquet file or folder"


def load_given(data: Sensitive[Any]) -> Sensitive[pa.Table]:
    """Take a pandas DataFrame or a pyarrow Table over as a table; the index of a DataFrame is left out.

    Privacy: Sensitive. What the libraries say of a value that they cannot take quotes it, so it is not passed on, and
        nothing is raised where the rows are at hand: debuggers and notebooks show what a failed function held.

    Raises:
        DataError: it is something else, or a column mixes types.
    """
    table, fault = _converted(data.reveal())
    if table is None:
        raise DataError("", fault)
    return Sensitive(table)


def _converted(data: Any) -> tuple[pa.Table | None, str]:
    """Return the table, or what is wrong."""
    if isinstance(data, pa.Table):
        return data.replace_schema_metadata(), ""
    if not hasattr(data, "columns"):
        return None, f"the data must be {KINDS}, and is none of them: {type(data).__name__}"
    try:
        return pa.Table.from_pandas(data, preserve_index=False).replace_schema_metadata(), ""
    except (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError):
        return None, (
            "the data cannot be read as a table: a column mixes types, or two columns have one name; give every column "
            "one type, as the schema has it"
        )


def transform_write(rows: Sensitive[pa.Table], path: Path) -> None:
    """Write rows to a Parquet file that is whole or absent, which its owner alone can read.

    Raises:
        DataError: the disk is full, or Parquet has no such type.
    """
    part, failed = path.with_name(f".part-{path.name}"), False
    part.unlink(missing_ok=True)
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            pq.write_table(rows.reveal(), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except (pa.ArrowException, OSError):
        part.unlink(missing_ok=True)
        failed = True
    if failed:
        raise DataError(
            "", "the data cannot be written as Parquet: the disk is full, or a column's type is unknown to it"
        )


def write_names(rows: Sensitive[pa.Table], path: Path) -> Path:
    """Write a Parquet file of no rows, with the names and types of these."""
    pq.write_table(rows.reveal().schema.empty_table(), path)
    return path
