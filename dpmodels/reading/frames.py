"""Rows that were given in memory: taken over as they are, and written into the sensitive zone for a run to read."""

import os
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.artifact import write_whole
from dpmodels.codec.convert import laid_out, mixes, types_laid_out
from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive

KINDS = "a pandas DataFrame, one of polars or Dask, a pyarrow Table, other Arrow batches, or a path or URI of files"
MIXED = (
    "the data cannot be read as a table: a column mixes types, or two columns have one name; give every column "
    "one type, as the schema has it"
)


def load_given(data: Sensitive[Any]) -> Sensitive[pa.RecordBatchReader]:
    """Take rows over as a stream of batches, which is read once; the index of a DataFrame is left out.

    Privacy: Sensitive. What the libraries say of a value that they cannot take quotes it, so it is not passed on, and
        nothing is raised where the rows are at hand: debuggers and notebooks show what a failed function held.

    Raises:
        DataError: it is something else, or a column mixes types.
    """
    reader, fault = _converted(data.reveal())
    if reader is None:
        raise DataError("", fault)
    return Sensitive(reader)


def _converted(data: Any) -> tuple[pa.RecordBatchReader | None, str]:
    """Return the batches, or what is wrong."""
    try:
        if "polars" in (libraries := _libraries(data)) and hasattr(data, "collect"):  # a LazyFrame
            data = data.collect()
        if "pandas" in libraries and hasattr(data, "columns"):
            return _plain_batches(_of_pandas(data).to_reader()), ""
        if hasattr(data, "partitions") and hasattr(data, "npartitions"):
            return _of_dask(data), ""
        if hasattr(data, "__arrow_c_stream__"):
            return _plain_batches(pa.RecordBatchReader.from_stream(data)), ""
        if isinstance(data, pa.RecordBatch):
            return _plain_batches(pa.Table.from_batches([data]).to_reader()), ""
    except Exception:  # of any library, each of which has its own
        return None, MIXED
    return None, f"the data must be {KINDS}, and is none of them: {type(data).__name__}"


def _plain_batches(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(types_laid_out(reader.schema), map(laid_out, reader))


def _libraries(data: Any) -> set[str]:
    """Name the libraries that an object's classes are from."""
    return {kind.__module__.split(".")[0] for kind in type(data).__mro__}


def _of_pandas(frame: Any) -> pa.Table:
    for index, kind in enumerate(frame.dtypes):
        values = getattr(kind, "categories", frame.iloc[:, index])  # of a category column its values, each once
        if values.dtype == np.dtype(object) and mixes(values):
            raise TypeError
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()


def _of_dask(data: Any) -> pa.RecordBatchReader:
    """Compute a Dask DataFrame partition by partition, each of which must have the types of the first.

    Privacy: a partition that was cast to the first one's types would lose what those cannot hold, so that one record
        decided how others are read. A column without any value has any type.
    """

    def table(index: int) -> pa.Table:
        part = _of_pandas(data.partitions[index].compute())
        return part.cast(pa.schema([field.with_type(_plain(field.type)) for field in part.schema]))

    def as_first(index: int) -> pa.Table:
        part = table(index)
        if any(field.type not in (pa.null(), first.schema.field(at).type) for at, field in enumerate(part.schema)):
            raise TypeError
        return part.cast(first.schema)

    first = table(0)
    rest = (batch for index in range(1, data.npartitions) for batch in as_first(index).to_batches())
    return pa.RecordBatchReader.from_batches(first.schema, chain(first.to_batches(), rest))


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary's values: partitions may number the same ones otherwise."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def transform_write(rows: Sensitive[pa.RecordBatchReader], path: Path) -> None:
    """Write rows to a Parquet file that is whole or absent, which its owner alone can read.

    Memory: one batch, or one partition of a Dask DataFrame.

    Raises:
        DataError: the disk is full, Parquet has no such type, or a later batch has other types than the first.
    """

    def write(part: Path) -> None:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            reader = rows.reveal()
            with pq.ParquetWriter(file, reader.schema.remove_metadata()) as writer:
                for batch in reader:
                    writer.write_batch(batch)

    failed = False
    try:
        write_whole(path, write)
    except Exception:  # what computes the rows is of any library, and its message may quote them
        failed = True
    if failed:
        raise DataError(
            "",
            "the data cannot be written as Parquet: the disk is full, a column's type is unknown to it, or a partition "
            "has other types than the first; give every column one type, as the schema has it",
        )


def write_names(rows: Sensitive[pa.RecordBatchReader], path: Path) -> Path:
    """Write a Parquet file of no rows, with the names and types of these."""
    pq.write_table(rows.reveal().schema.empty_table(), path)
    return path
