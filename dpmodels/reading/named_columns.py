"""Some columns of a file, whatever its format: how documents and the records of clients are read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.codec.convert import laid_out, types_laid_out
from dpmodels.errors import DataError
from dpmodels.reading.data_files import FAILURES, DataFile
from dpmodels.reading.formats import BUFFER
from dpmodels.reading.open_tables import LIBRARIES, read_table, types_of
from dpmodels.reading.text_files import (
    csv_form,
    csv_names,
    fault_of,
    first_object,
    guarded,
    parsed,
    read_csv,
    read_json,
)
from dpmodels.reading.workbook import read_sheet, sheet_names


@dataclass(frozen=True)
class NamedColumns:
    """Columns that a file has, each once, and which can be read any number of times.

    Attributes:
        types: what they hold; the columns of text are turned into what was asked for.
    """

    file: DataFile
    types: pa.Schema

    def read(self, batch_rows: int, longest: int, null: bool = True) -> Iterator[pa.RecordBatch]:
        """Read the columns, in their order, in batches that have rows.

        A record of text has at most ``longest`` bytes. An empty field of a CSV file is null, or else an empty text.

        Raises:
            DataError: while reading: the file cannot be read to its end, or a value is not of the column's type.
        """
        for batch in guarded(self._batches(batch_rows, longest, null), self.file):
            piece = laid_out(batch.select(self.types.names))
            yield from (piece.slice(first, batch_rows) for first in range(0, len(piece), batch_rows))

    def _batches(self, batch_rows: int, longest: int, null: bool) -> Iterator[pa.RecordBatch]:
        names = self.types.names
        if self.file.format == "csv":
            kinds = dict(zip(names, self.types.types, strict=True))
            form = csv_form(self.file, names)
            texts = read_csv(self.file, form, names, longest, null)
            yield from (parsed(batch, kinds, form.delimiter) for batch in texts)
        elif self.file.format == "excel":
            kinds = dict(zip(names, self.types.types, strict=True))
            yield from (parsed(batch, kinds) for batch in read_sheet(self.file, names, batch_rows, null))
        elif self.file.format in LIBRARIES:
            yield from read_table(self.file, batch_rows)
        elif self.file.format == "json":
            yield from read_json(self.file, self.types, longest)
        elif self.file.format == "arrow":
            with self.file.open() as source, pa.ipc.open_file(source) as opened:
                for index in range(opened.num_record_batches):
                    batch = opened.get_batch(index)
                    batch.validate(full=True)  # the file may be damaged, and Arrow follows whatever places it names
                    yield batch
        else:
            with self.file.open() as source, pq.ParquetFile(source, buffer_size=BUFFER, pre_buffer=False) as opened:
                yield from opened.iter_batches(batch_rows, columns=names, use_threads=False)


def open_columns(file: DataFile, texts: Mapping[str, pa.DataType], missing: str) -> NamedColumns:
    """Open a file and find columns by name; no row is read, but the first line of text.

    ``texts`` names the columns, and what each is turned into where the file holds text; ``missing`` is said of a column
    that is not in the file, or there twice.

    Raises:
        DataError: the file is damaged or not what its name says, or a column is missing.
    """
    names, types = _names(file, texts)
    check_once_named(names, texts, missing)
    return NamedColumns(file, types_laid_out(pa.schema([types.field(name) for name in texts])))


def names_of(file: DataFile, listed: Iterable[str]) -> list[str]:
    """Return the names of all columns of a file, some of which are ``listed``; no row is read.

    Raises:
        DataError: the file is damaged or not what its name says.
    """
    return _names(file, dict.fromkeys(listed, pa.string()))[0]


def check_once_named(names: Sequence[str], columns: Iterable[str], missing: str) -> None:
    """Refuse names among which that of a column is missing, or twice; of which ``missing`` is said."""
    for column in columns:
        if names.count(column) != 1:
            raise DataError(column, missing)


def _names(file: DataFile, texts: Mapping[str, pa.DataType]) -> tuple[list[str], pa.Schema]:
    """Return the names of all columns of a file, and the types at least of those that are asked for."""
    if file.format == "csv":
        return csv_names(file, texts), pa.schema(texts.items())
    if file.format == "excel":
        return list(sheet_names(file)), pa.schema(texts.items())
    if file.format in LIBRARIES:
        return types_of(file).names, types_of(file)
    try:
        if file.format == "json":
            row = first_object(file)
            return list(row), pa.schema([(name, _type(row.get(name), kind)) for name, kind in texts.items()])
        with file.open() as source:
            types = pa.ipc.open_file(source).schema if file.format == "arrow" else pq.read_schema(source)
            return list(types.names), types  # names are decoded when they are asked for
    except FAILURES:
        pass  # its message may quote the file
    raise DataError("", f"{file.uri} cannot be read: {fault_of(file)}")


def _type(value: Any, text: pa.DataType) -> pa.DataType:
    """Return the type that a key of JSON lines is read as, by its first value; numbers in lists are floats."""
    if isinstance(value, list):
        return pa.list_(_type(value[0], pa.float64()) if value and isinstance(value[0], list) else pa.float64())
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    return text if value is None or not pa.types.is_string(text) else pa.int64()
