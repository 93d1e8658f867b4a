"""Rows that were given in memory: taken over as they are, and written into the sensitive zone for a run to read."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.artifact import aside, settle, write_whole
from dpmodels.codec.convert import laid_out, types_laid_out
from dpmodels.contract.tree import TABLE_NAME
from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.reading.faults.of_frames import ONE_TYPE, at_fault, libraries_of, mixes_types, names_of

KINDS = "a pandas DataFrame, one of polars or Dask, a pyarrow Table, other Arrow batches"
MIXED = "{} cannot be read as a table: {}"
UNNAMED = f"a column mixes types, or two columns have one name; {ONE_TYPE}"
ONE_COLUMN = "{} is one column ({}) and no table: {} makes a table of it, with NAME as the schema calls the column"
FAILING = "the tables cannot be read: the dictionary fails when it is asked for them"
Rows = Sensitive[pa.RecordBatchReader]
Columns = Mapping[str, Collection[str]]
"""The columns of a schema by table; those of a schema of one table by the empty name."""


def are_tables(data: Sensitive[Any]) -> bool:
    """Tell whether what was given in memory is a dictionary of several tables, by its type alone."""
    return isinstance(data.reveal(), Mapping)


def load_tables(
    data: Sensitive[Any], tables: Sequence[str], columns: Columns = MappingProxyType({})
) -> dict[str, Rows]:
    """Take the frames of a dictionary over, one for each of ``tables``; without tables, one frame by the empty name.

    Messages name the ``columns`` that the schema has, by table, and no others.

    Privacy: Sensitive. No message quotes a key of the dictionary: what a caller groups rows by is a value.

    Raises:
        DataError: a table is missing or one too many, or no table at all.
    """
    if not tables and not are_tables(data):
        return {"": load_given(data, columns=columns.get("", ()))}
    frames, fault = _apart(data.reveal(), tables)
    if fault:
        raise DataError("", fault)
    return {name: load_given(frame, f"table {name}", columns.get(name, ())) for name, frame in frames.items()}


def _apart(data: Any, tables: Sequence[str]) -> tuple[dict[str, Sensitive[Any]], str]:
    """Return the frame of each table, or what is wrong."""
    if not tables:
        return {}, "the schema has one table: give one frame, and no dictionary"
    if not isinstance(data, Mapping):
        return {}, f"the schema has {len(tables)} tables: give a dictionary with a frame for each, or a folder of files"
    try:
        frames = {name: Sensitive(data[name]) for name in tables if name in data}
        strange = sum(name not in tables for name in data)
    except Exception:  # of any mapping, whose message may quote what it holds
        return {}, FAILING
    if missing := [name for name in tables if name not in frames]:
        lacking = f"table{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        return {}, f"the data lacks {lacking} of the schema; give a frame for each of its tables"
    if strange:
        return {}, f"the data has {strange} table(s) that the schema lacks, whose tables are {', '.join(tables)}"
    return frames, ""


def load_given(data: Sensitive[Any], name: str = "", columns: Collection[str] = ()) -> Rows:
    """Take rows over as a stream of batches, which is read once; the index of a DataFrame is left out.

    Messages call the rows by their ``name``, if they have one, and name ``columns``, which are the schema's.

    Privacy: Sensitive. What the libraries say of a value that they cannot take quotes it, so it is not passed on, and
        nothing is raised where the rows are at hand: debuggers and notebooks show what a failed function held.

    Raises:
        DataError: it is something else, or a column mixes types.
    """
    reader, fault = _converted(data.reveal(), name, columns)
    if reader is None:
        raise DataError("", fault)
    return Sensitive(reader)


def _converted(data: Any, name: str, columns: Collection[str] = ()) -> tuple[pa.RecordBatchReader | None, str]:
    """Return the batches, or what is wrong."""
    if maker := _maker(data):
        return None, ONE_COLUMN.format(name or "the data", type(data).__name__, maker)
    try:
        if "polars" in (libraries := libraries_of(data)) and hasattr(data, "collect"):  # a LazyFrame
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
        return None, MIXED.format(name or "the data", at_fault(data, columns) or UNNAMED)
    kinds = KINDS if name else f"{KINDS}, or a path or URI of files"
    return None, f"{name or 'the data'} must be {kinds}, and is none of them: {type(data).__name__}"


def _maker(data: Any) -> str:
    """Return the call that makes a table of data that is one column; nothing of any other data."""
    if isinstance(data, pa.Array | pa.ChunkedArray) and not pa.types.is_struct(data.type):  # whose parts are columns
        return 'pyarrow.table({"NAME": it})'
    return "its to_frame(NAME)" if hasattr(type(data), "to_frame") else ""


def _plain_batches(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(types_laid_out(reader.schema), map(laid_out, reader))


def _of_pandas(frame: Any) -> pa.Table:
    if any(mixes_types(frame.iloc[:, index]) for index in range(len(frame.dtypes))):
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


def transform_write_tables(tables: Mapping[str, Rows], folder: Path) -> None:
    """Write the rows of several tables to a folder of a Parquet file each, which is whole or absent.

    Raises:
        DataError: as for ``transform_write``.
    """
    with aside(folder) as part:
        part.mkdir(mode=0o700)
        for name, rows in tables.items():
            transform_write(rows, part / f"{name}.parquet")
        settle(part, folder)


def transform_write(rows: Rows, path: Path) -> None:
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


def write_all_names(data: Sensitive[Any], folder: Path, affirmed: bool) -> Path:
    """Write a Parquet file of no rows for a frame, or a folder of one for each frame of a dictionary; return its place.

    Privacy: no message quotes a key: whoever groups rows by a column has its values there. So frames with the same
        columns are tables only if it is ``affirmed`` that the names are names.

    Raises:
        DataError: as for ``load_given``, or the keys cannot be the names of tables.
    """
    if not are_tables(data):
        frame = load_given(data, columns=names_of(data.reveal(), affirmed))
        return write_names(frame, folder / "data.parquet")
    tables, fault = _described(data.reveal(), affirmed)
    if fault:
        raise DataError("", fault)
    (folder / "data").mkdir()
    for name, types in tables.items():
        pq.write_table(types.empty_table(), folder / "data" / f"{name}.parquet")
    return folder / "data"


def _described(data: Mapping[Any, Any], affirmed: bool) -> tuple[dict[str, pa.Schema], str]:
    """Return the columns of each frame of a dictionary, or what is wrong."""
    try:
        frames = dict(data)
    except Exception:  # of any mapping, whose message may quote what it holds
        return {}, FAILING
    if len(frames) < 2 or not all(isinstance(name, str) and re.fullmatch(TABLE_NAME, name) for name in frames):
        rule = "have the names of two tables at least as its keys, of lowercase letters, digits and _"
        return {}, f"the dictionary must {rule}; of one table give its frame alone"
    tables = {}
    for name, frame in frames.items():
        reader, fault = _converted(frame, f"table {name}" if affirmed else "a table", names_of(frame, affirmed))
        if reader is None:
            return {}, fault
        tables[name] = reader.schema
    if not affirmed and len({frozenset(types.names) for types in tables.values()}) == 1:
        same = "the frames have all the same columns, as parts of one table have"
        return {}, f"{same}: give one frame; if each is a table, and the keys are their names, say header=True"
    return tables, ""


def write_names(rows: Rows, path: Path) -> Path:
    """Write a Parquet file of no rows, with the names and types of these."""
    pq.write_table(rows.reveal().schema.empty_table(), path)
    return path
