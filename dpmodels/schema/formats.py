"""One file of a table as a stream of batches in bounded memory: Parquet, Arrow, CSV or JSON lines."""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.parquet as pq

from dpmodels.errors import DataError
from dpmodels.limits import LONGEST_LINE
from dpmodels.schema.columns import Categorical, Identifier
from dpmodels.schema.encode import Codec
from dpmodels.schema.pictures import Batches
from dpmodels.schema.places import FAILURES, DataFile, is_uri

PART_ROWS = 2**20
BUFFER = 2**20
BLOCK = 2**22
"""Bytes of a text file that are read at once; no row is longer."""
MISSING = pa.array(["NA", "N/A", "NaN", "nan", "null", "NULL"])
DROPPED = Identifier(type="identifier")
DELIMITERS = ",;\t|"
DAMAGED = "the file is damaged or not what its name says"
ALSO = {
    "csv": ", is not in UTF-8, or a row has more or fewer fields than there are names",
    "json": ", or a line has a key, or a kind of value, that earlier lines have not",
}
"""What else may be wrong with a file of text."""
NO_TEXT = "{} is no CSV file or JSON lines: its first line is no UTF-8 text, or is longer than a megabyte"


@dataclass(frozen=True)
class Part:
    """Some rows of a file: all of them, or some row groups of a Parquet file.

    Attributes:
        kinds: the types that text is turned into, by column.
        texts: columns of a Parquet file that are read by their dictionaries.
    """

    file: DataFile
    kinds: Mapping[str, pa.DataType]
    delimiter: str = ","
    explicit: pa.Schema | None = None
    groups: tuple[int, ...] = ()
    texts: tuple[str, ...] = field(default=())

    def read(self, batch_rows: int) -> Batches:
        """Read the rows, with the columns that the file's folders are named after."""
        keys = {key: cast_text(pa.array([text], pa.string()), self.kinds[key], key) for key, text in self.file.keys}
        for batch in guarded(iter(READERS[self.file.format](self, batch_rows)), self.file.place, _fault(self.file)):
            for start in range(0, batch.num_rows, batch_rows):
                piece = batch.slice(start, batch_rows)
                arrays = [*piece.columns, *(pa.repeat(value[0], piece.num_rows) for value in keys.values())]
                yield pa.RecordBatch.from_arrays(arrays, [*piece.schema.names, *keys])


def parts_of(file: DataFile, codec: Codec) -> list[Part]:
    """Open a file, hold its names and types to the schema, and cut it into parts; only Parquet has more than one.

    Raises:
        DataError: the file is damaged or not what its name says, or has other columns than the schema.
    """
    part = _opened(file, codec)
    if part is None:
        raise DataError("", f"{file.place} cannot be read: {_fault(file)}")
    return part


def _fault(file: DataFile) -> str:
    """Say what may be wrong with a file that cannot be read."""
    return ("the connection broke, or " if is_uri(file.place) else "") + DAMAGED + ALSO.get(file.format, "")


def _opened(file: DataFile, codec: Codec) -> list[Part] | None:
    """Return the parts, or None where the file cannot be read; errors of readers may quote it."""
    try:
        return OPENERS[file.format](file, codec)
    except FAILURES:
        return None


def _parquet(file: DataFile, codec: Codec) -> list[Part]:
    """Cut a file into runs of row groups of about ``PART_ROWS`` rows."""
    with file.open() as source, pq.ParquetFile(source) as opened:
        types, metadata = opened.schema_arrow, opened.metadata
        check_types(file, types, codec)
    texts = tuple(
        column.name
        for column in types
        if isinstance(codec.columns.get(column.name), Categorical)
        and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type))
    )
    parts: list[Part] = []
    groups, rows = [], 0
    for index in range(metadata.num_row_groups):
        groups.append(index)
        rows += metadata.row_group(index).num_rows
        if rows >= PART_ROWS or index + 1 == metadata.num_row_groups:
            parts.append(Part(file, codec.csv_types, groups=tuple(groups), texts=texts))
            groups, rows = [], 0
    return parts


def _read_parquet(part: Part, batch_rows: int) -> Batches:
    options: dict[str, Any] = {"read_dictionary": list(part.texts), "buffer_size": BUFFER, "pre_buffer": False}
    with part.file.open() as source, pq.ParquetFile(source, **options) as opened:
        yield from opened.iter_batches(batch_rows, row_groups=list(part.groups), use_threads=False)


def _arrow(file: DataFile, codec: Codec) -> list[Part]:
    with file.open() as source, pa.ipc.open_file(source) as opened:
        check_types(file, opened.schema, codec)
    return [Part(file, codec.csv_types)]


def _read_arrow(part: Part, _: int) -> Batches:
    with part.file.open() as source, pa.ipc.open_file(source) as opened:
        for index in range(opened.num_record_batches):
            batch = opened.get_batch(index)
            batch.validate(full=True)  # the file may be damaged, and Arrow follows whatever places it names
            yield batch


def _csv(file: DataFile, codec: Codec) -> list[Part]:
    """Open a file with a header; the delimiter is the one at which the header holds most of the schema's names."""
    header = first_line(file).decode("utf-8-sig", "replace")
    keys = [key for key, _ in file.keys]
    others = dict.fromkeys(char for char in header if char.isascii() and not char.isalnum() and char not in '"\r\n')
    wanted = set(codec.schema.columns) - set(keys)
    delimiter = max(dict.fromkeys([*DELIMITERS, *others]), key=lambda char: len(wanted & set(split(header, char))))
    codec.check_names([*split(header, delimiter), *keys])
    codec.check_types(pa.schema(codec.csv_types.items()))
    return [Part(file, codec.csv_types, delimiter)]


def _read_csv(part: Part, _: int) -> Batches:
    """Read a file as text, and turn its columns into the types that the schema declares."""
    text = pacsv.ConvertOptions(
        column_types=dict.fromkeys(part.kinds, pa.string()), null_values=[""], strings_can_be_null=True
    )
    form = pacsv.ParseOptions(delimiter=part.delimiter, newlines_in_values=True)
    with part.file.stream() as source:
        read = pacsv.open_csv(source, pacsv.ReadOptions(block_size=BLOCK), form, text)
        yield from (parsed(batch, part.kinds) for batch in read)


def _json(file: DataFile, codec: Codec) -> list[Part]:
    """Open a file of one object a line; a column that is looked at is read as what its first value is.

    Privacy: Arrow reads a column that it is told nothing of by all values of a block: as moments, if all of its text is
        moments. Then one record would decide what all others are.
    """
    kinds, row, apart = codec.csv_types, json.loads(first_line(file)), codec.schema.partition
    if not isinstance(row, dict):
        raise DataError("", f"{file.place} must hold one JSON object in each line, whose keys are the columns")
    explicit, named = [], (codec.schema.unit.user, apart and apart.column)
    for name, value in ((name, row.get(name)) for name in kinds if name not in dict(file.keys)):
        if isinstance(value, dict | list):
            continue
        spoken = isinstance(value, str) or (value is None and name not in codec.columns)
        if name in codec.columns:
            explicit.append((name, pa.string() if spoken or pa.types.is_temporal(kinds[name]) else kinds[name]))
        elif name in named or (not codec.columns and codec.schema.columns[name] != DROPPED):  # it is to be discovered
            number = pa.int64() if name in named else pa.float64()
            explicit.append((name, pa.string() if spoken else pa.bool_() if isinstance(value, bool) else number))
    part = Part(file, kinds, explicit=pa.schema(explicit))
    with file.stream() as source:
        check_types(file, _open_json(source, part).schema, codec, part.explicit)
    return [part]


def _read_json(part: Part, _: int) -> Batches:
    with part.file.stream() as source:
        yield from (parsed(batch, part.kinds) for batch in _open_json(source, part))


def _open_json(source: pa.NativeFile, part: Part) -> Any:
    form = pajson.ParseOptions(explicit_schema=part.explicit, unexpected_field_behavior="infer")
    return pajson.open_json(source, pajson.ReadOptions(block_size=BLOCK), form)


OPENERS = {"parquet": _parquet, "arrow": _arrow, "csv": _csv, "json": _json}
READERS = {"parquet": _read_parquet, "arrow": _read_arrow, "csv": _read_csv, "json": _read_json}


def check_types(file: DataFile, types: pa.Schema, codec: Codec, text: pa.Schema | None = None) -> None:
    """Hold the columns of a file and of its folders to the schema; columns of text will be what the schema says."""
    said = {key: codec.csv_types.get(key, pa.string()) for key, _ in file.keys}
    spoken = {name: codec.csv_types[name] for name in (text.names if text is not None else ())}
    fields = [(name, spoken.get(name, types.field(index).type)) for index, name in enumerate(types.names)]
    codec.check_types(pa.schema([*fields, *said.items()]))


def first_line(file: DataFile) -> bytes:
    """Read the first line of a text file; nothing below it is looked at."""
    with file.stream() as source:
        line: bytes = source.read(LONGEST_LINE)
    line = line.replace(b"\r", b"\n").partition(b"\n")[0]
    if len(line) == LONGEST_LINE:
        raise DataError("", NO_TEXT.format(file.place))
    return line


def split(header: str, delimiter: str) -> list[str]:
    """Cut the header of a CSV file into names; a header that is none has none."""
    try:
        return next(csv.reader([header], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []


def guarded(batches: Iterator[pa.RecordBatch], place: object, fault: str = DAMAGED) -> Batches:
    """Yield the batches that have rows, and say nothing of what a damaged file holds.

    Raises:
        DataError: the file cannot be read to its end.
    """
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except FAILURES:
            break
        if batch.num_rows:
            yield batch
    raise DataError("", f"{place} cannot be read to its end: {fault}")


def parsed(batch: pa.RecordBatch, kinds: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """Turn the columns of text of a batch into the types that the schema declares."""
    names = batch.schema.names
    arrays = [
        cast_text(array, kinds[name], name) if pa.types.is_string(array.type) and name in kinds else array
        for name, array in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names)


def cast_text(text: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """Turn text into values of a type.

    Raises:
        DataError: a row holds no such value.
    """
    if kind == pa.string():
        return text
    trimmed = pc.utf8_trim_whitespace(text)
    known = pc.if_else(pc.is_in(trimmed, MISSING), pa.scalar(None, pa.string()), trimmed)
    try:
        if not pa.types.is_time(kind):
            return known.cast(kind)
        moments = pc.binary_join_element_wise("1970-01-01 ", known, "").cast(pa.timestamp("ns"))
        return moments.cast(pa.time64("ns")).cast(kind, safe=False)
    except pa.ArrowException:
        pass  # its message quotes the value
    raise DataError(name, f"must hold values of type {kind} in every row, as the schema says")
