"""Read a table from CSV or Parquet, one file or a folder, as a stream of batches in bounded memory; images likewise."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.csv import ConvertOptions

from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.schema.columns import Categorical
from dpmodels.schema.encode import Codec
from dpmodels.schema.partition import held
from dpmodels.schema.pictures import Batches, is_pictures, read_pictures
from dpmodels.schema.schema import Schema
from dpmodels.schema.users import bounded

PART_ROWS = 2**20
BUFFER = 2**20
MISSING = pa.array(["NA", "N/A", "NaN", "nan", "null", "NULL"])


def load_parts(path: Path, schema: Schema, batch_rows: int) -> list[Sensitive[Batches]]:
    """Open a table and check its columns, as parts that can be read at the same time, in reading order.

    The rows are read as they are asked for. Parquet files are cut between row groups. Whatever must be read from front
    to back is one part: CSV files, images, and tables of users, whose first rows are the ones that stay.

    Memory: a part holds one batch and a megabyte of each column's file at a time, whatever the size of a row group.

    Privacy: Sensitive. With a user as the unit, rows beyond ``max_rows`` of a user, in reading order, are left out;
        which of a user's rows stay depends on that user's rows alone, so a neighbor changes at most ``max_rows`` rows.
        With a schema of one partition, the rows of others are left out, by a rule that looks at each row alone.

    Raises:
        DataError: no such file, not a table, damaged, no rows' worth of columns, or columns the schema does not have.
    """
    codec = Codec(schema)
    if is_pictures(path):
        types, pictures = read_pictures(path, schema, batch_rows)
        codec.check_types(types)
        return [Sensitive(_kept(pictures, schema))]
    files = files_of(path)
    if files[0].suffix.lower() == ".csv":
        dataset, kinds = _open_csv(files, path, codec), codec.csv_types
        batches = (_parse(batch, kinds) for batch in guarded(dataset.to_batches(batch_size=batch_rows), path))
        return [Sensitive(_kept(batches, schema))]
    slices = [each for file in files for each in _slices(file, path, codec)]
    if schema.unit.user is not None:
        whole = chain.from_iterable(each.read(batch_rows, path) for each in slices)
        return [Sensitive(_kept(whole, schema))]
    return [Sensitive(_kept(each.read(batch_rows, path), schema)) for each in slices]


def _kept(batches: Batches, schema: Schema) -> Batches:
    """Leave out the rows that are not of the schema's partition, and those beyond a user's most rows."""
    part = schema.partition
    if part is not None and part.value is not None:
        return held(batches, part, schema.columns[part.column])
    return batches if schema.unit.user is None else bounded(batches, schema.unit)


@dataclass(frozen=True)
class _Slice:
    """Some row groups of a Parquet file, and its columns of text: they are read by their dictionaries."""

    file: Path
    groups: tuple[int, ...]
    texts: tuple[str, ...]

    def read(self, batch_rows: int, path: Path) -> Batches:
        with pq.ParquetFile(self.file, read_dictionary=list(self.texts), buffer_size=BUFFER, pre_buffer=False) as open_:
            yield from guarded(open_.iter_batches(batch_rows, row_groups=list(self.groups), use_threads=False), path)


def _slices(file: Path, path: Path, codec: Codec) -> list[_Slice]:
    """Cut a file into runs of row groups of about ``PART_ROWS`` rows."""
    try:
        with pq.ParquetFile(file) as opened:
            types, metadata = opened.schema_arrow, opened.metadata
            named = types.names is not None  # which are decoded when they are asked for
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        named = False
    if not named:
        raise DataError("", f"{path} cannot be read: the file is damaged or not what its name says")
    codec.check_types(types)
    texts = tuple(
        field.name
        for field in types
        if isinstance(codec.columns.get(field.name), Categorical)
        and (pa.types.is_string(field.type) or pa.types.is_large_string(field.type))
    )
    slices: list[_Slice] = []
    groups, rows = [], 0
    for index in range(metadata.num_row_groups):
        groups.append(index)
        rows += metadata.row_group(index).num_rows
        if rows >= PART_ROWS or index + 1 == metadata.num_row_groups:
            slices.append(_Slice(file, tuple(groups), texts))
            groups, rows = [], 0
    return slices


def files_of(path: Path) -> list[Path]:
    """List the files of a table, all of one kind.

    Raises:
        DataError: there are none, one is empty, or they are neither CSV nor Parquet.
    """
    files = sorted(f for f in path.rglob("*") if f.is_file() and f.name[0] not in "._") if path.is_dir() else [path]
    if not path.exists() or not files:
        raise DataError("", f"{path} does not exist or holds no files")
    if any(file.stat().st_size == 0 for file in files):
        raise DataError("", f"{path} is empty or holds an empty file")
    if {file.suffix.lower() for file in files} not in ({".csv"}, {".parquet"}):
        raise DataError("", f"{path} must be one .csv or .parquet file, or a folder of files of one of these kinds")
    return files


def _open_csv(files: list[Path], path: Path, codec: Codec) -> ds.Dataset:
    """Open CSV files as text, each with its own header; a column that one of them lacks would be read as null."""
    options = ConvertOptions(
        column_types=dict.fromkeys(codec.schema.columns, pa.string()), null_values=[""], strings_can_be_null=True
    )
    for file in files:
        codec.check_names(open_files([file], path, ds.CsvFileFormat()).schema.names)
    codec.check_types(pa.schema(codec.csv_types.items()))
    return open_files(files, path, ds.CsvFileFormat(convert_options=options))


def open_files(files: list[Path], path: Path, format_: ds.FileFormat) -> ds.Dataset:
    """Open files of one kind.

    Raises:
        DataError: they are damaged.
    """
    try:
        opened = ds.dataset(files, format=format_)
        if opened.schema.names is not None:  # which are decoded when they are asked for
            return opened
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        pass  # its message may quote the file
    raise DataError("", f"{path} cannot be read: the file is damaged or not what its name says")


def guarded(batches: Iterator[pa.RecordBatch], path: Path) -> Batches:
    """Yield the batches that have rows, and say nothing of what a damaged file holds.

    Raises:
        DataError: the file cannot be read to its end.
    """
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            break
        if batch.num_rows:
            yield batch
    raise DataError("", f"{path} cannot be read to its end: the file is damaged")


def _parse(batch: pa.RecordBatch, kinds: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """Turn a batch of text into the types the schema declares."""
    arrays = [_cast(batch[name], kinds[name], name) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def _cast(text: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    if kind == pa.string():
        return text
    trimmed = pc.utf8_trim_whitespace(text)
    known = pc.if_else(pc.is_in(trimmed, MISSING), pa.scalar(None, pa.string()), trimmed)
    try:
        return known.cast(kind)
    except pa.ArrowInvalid:
        pass  # its message quotes the value
    raise DataError(name, f"must hold values of type {kind} in every row, as the schema says")
