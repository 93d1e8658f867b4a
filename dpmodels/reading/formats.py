"""One file of a table as a stream of batches in bounded memory: Parquet, Arrow, CSV or JSON lines."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.codec.convert import laid_out
from dpmodels.codec.derive import may_lack
from dpmodels.codec.encode import Codec
from dpmodels.codec.plain_text import with_plain_text
from dpmodels.codec.text_values import cast_text, with_text_read, written_as_text
from dpmodels.codec.thousands import checked, undeclared
from dpmodels.contract.columns import Categorical, Identifier, computed
from dpmodels.contract.formula import names_in
from dpmodels.contract.identifiers.identifier import uniques_of
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.errors import DataError
from dpmodels.limits import LONGEST_RECORD
from dpmodels.reading.data_files import FAILURES, DataFile
from dpmodels.reading.open_tables import LIBRARIES, read_table, types_of
from dpmodels.reading.pictures import Batches
from dpmodels.reading.text_files import CsvForm, csv_form, fault_of, first_object, guarded, parsed, read_csv, read_json
from dpmodels.reading.workbook import read_sheet, sheet_names

PART_ROWS = 2**20
BUFFER = 2**20
DROPPED = Identifier(type="identifier")


@dataclass(frozen=True)
class Part:
    """Some rows of a file: all of them, or some row groups of a Parquet file.

    Attributes:
        kinds: the types that text is turned into, by column.
        texts: columns of a Parquet file that are read by their dictionaries.
        undeclared: columns of numbers that may have marks of thousands, as ``thousands.checked`` has them.
        types: those of the file's columns; none of text, which is turned into ``kinds``.
        schema: of the table; it says how text is written, but not that of the cells of a sheet, which have types.
    """

    file: DataFile
    kinds: Mapping[str, pa.DataType]
    form: CsvForm | None = None
    undeclared: frozenset[str] = frozenset()
    explicit: pa.Schema | None = None
    groups: tuple[int, ...] = ()
    texts: tuple[str, ...] = field(default=())
    types: pa.Schema | None = None
    schema: Schema | None = None

    @property
    def text(self) -> TextForm | None:
        """How the values of text are written."""
        return None if self.schema is None else self.schema.text

    @property
    def is_text(self) -> bool:
        """Tell whether what a record is shows only when the file is read to its end."""
        return self.file.format in ("csv", "json", "excel")

    def read(self, batch_rows: int) -> Batches:
        """Read the rows, with the columns that the file's folders are named after."""
        keys = {key: cast_text(pa.array([text], pa.string()), self.kinds[key], key) for key, text in self.file.keys}
        for batch in guarded(iter(READERS[self.file.format](self, batch_rows)), self.file):
            for start in range(0, batch.num_rows, batch_rows):
                piece = with_text_read(laid_out(batch.slice(start, batch_rows)), self.kinds, self.text)
                if self.schema is not None:
                    piece = with_plain_text(piece, self.schema.columns, self.text)
                arrays = [*piece.columns, *(pa.repeat(value[0], piece.num_rows) for value in keys.values())]
                yield pa.RecordBatch.from_arrays(arrays, [*piece.schema.names, *keys])


def parts_of(file: DataFile, codec: Codec, keys: Sequence[str] = ()) -> list[Part]:
    """Open a file, hold its names and types to the schema, and cut it into parts; only Parquet has more than one.

    JSON lines are read for what is modeled, and for the ``keys`` that join the table with others.

    Raises:
        DataError: the file is damaged or not what its name says, or has other columns than the schema.
    """
    part = _opened(file, codec, keys)
    if part is None:
        raise DataError("", f"{file.uri} cannot be read: {fault_of(file)}")
    return part


def _opened(file: DataFile, codec: Codec, keys: Sequence[str]) -> list[Part] | None:
    """Return the parts, or None where the file cannot be read; errors of readers may quote it."""
    try:
        return _json(file, codec, keys) if file.format == "json" else OPENERS[file.format](file, codec)
    except FAILURES:
        return None


def _parquet(file: DataFile, codec: Codec) -> list[Part]:
    """Cut a file into runs of row groups of about ``PART_ROWS`` rows."""
    with file.open() as source, pq.ParquetFile(source) as opened:
        types, metadata = opened.schema_arrow, opened.metadata
        older = [(name, None) for name in file.columns if name not in {*types.names, *dict(file.keys)}]
        file = replace(file, keys=(*file.keys, *older))  # columns that the table had not yet
        check_types(file, types, codec)
        _check_spans(metadata, codec)
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
            held: Any = {"groups": tuple(groups), "texts": texts, "types": types, "schema": codec.schema}
            parts.append(Part(file, codec.csv_types, **held))
            groups, rows = [], 0
    return parts


def _check_spans(metadata: pq.FileMetaData, codec: Codec) -> None:
    """Refuse dictionaries of spans: Parquet has no spans, and Arrow then reads numbers of a unit that is not said."""
    stored = (metadata.metadata or {}).get(b"ARROW:schema")
    try:
        types = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored))) if stored else pa.schema([])
    except (ValueError, pa.ArrowException):
        return  # whoever wrote it wrote no types of Arrow's, and none were read
    for one in types:
        spans = pa.types.is_dictionary(one.type) and pa.types.is_duration(one.type.value_type)
        if spans and one.name in codec.columns:
            why = "was written as categories of spans of time, whose unit a Parquet file does not keep"
            raise DataError(one.name, f"{why}; write the column as spans, without categories")


def _read_parquet(part: Part, batch_rows: int) -> Batches:
    options: dict[str, Any] = {"read_dictionary": list(part.texts), "buffer_size": BUFFER, "pre_buffer": False}
    with part.file.open() as source, pq.ParquetFile(source, **options) as opened:
        yield from opened.iter_batches(batch_rows, row_groups=list(part.groups), use_threads=False)


def _arrow(file: DataFile, codec: Codec) -> list[Part]:
    with file.open() as source, pa.ipc.open_file(source) as opened:
        check_types(file, types := opened.schema, codec)
    return [Part(file, codec.csv_types, types=types, schema=codec.schema)]


def _read_arrow(part: Part, _: int) -> Batches:
    with part.file.open() as source, pa.ipc.open_file(source) as opened:
        for index in range(opened.num_record_batches):
            batch = opened.get_batch(index)
            batch.validate(full=True)  # the file may be damaged, and Arrow follows whatever places it names
            yield batch


def _csv(file: DataFile, codec: Codec) -> list[Part]:
    """Open a file with a header, which is the only line that is looked at."""
    keys = [key for key, _ in file.keys]
    form = csv_form(file, set(codec.schema.raw) - set(keys))
    codec.check_names([*form.names, *keys], is_text=True)
    codec.check_types(pa.schema(codec.csv_types.items()))
    open_columns = undeclared(codec.schema) if form.delimiter != "," else frozenset[str]()
    return [Part(file, codec.csv_types, form, open_columns, schema=codec.schema)]


def _read_csv(part: Part, _: int) -> Batches:
    """Read a file as text, and turn its columns into the types that the schema declares."""
    form = part.form or csv_form(part.file, part.kinds)
    texts = checked(read_csv(part.file, form, form.names, LONGEST_RECORD), part.undeclared)
    yield from (parsed(batch, part.kinds, form.delimiter, part.text) for batch in texts)


def _excel(file: DataFile, codec: Codec) -> list[Part]:
    """Open a sheet, of which the first row is looked at."""
    keys = [key for key, _ in file.keys]
    names = sheet_names(file)
    codec.check_names([*names, *keys], is_text=True)
    codec.check_types(pa.schema(codec.csv_types.items()))
    there = {*names, *keys}
    return [Part(file, {name: kind for name, kind in codec.csv_types.items() if name in there})]


def _read_excel(part: Part, batch_rows: int) -> Batches:
    names = [name for name in part.kinds if name not in dict(part.file.keys)]
    yield from (parsed(batch, part.kinds) for batch in read_sheet(part.file, names, batch_rows))


def _table(file: DataFile, codec: Codec) -> list[Part]:
    check_types(file, types := types_of(file), codec)
    return [Part(file, codec.csv_types, types=types, schema=codec.schema)]


def _read_table(part: Part, batch_rows: int) -> Batches:
    yield from read_table(part.file, batch_rows)


def _json(file: DataFile, codec: Codec, keys: Sequence[str] = ()) -> list[Part]:
    """Open a file of one object a line; a column that is looked at is read as what its first value is, others not.

    A derived column that the first line lacks is computed for every line.
    """
    row, apart = first_object(file), codec.schema.partition
    lacking = may_lack(codec.schema).keys() - {*row, *dict(file.keys)}
    kinds = {name: kind for name, kind in codec.csv_types.items() if name not in lacking}
    looked_at = {*codec.columns, *codec.schema.derived}
    looked_at |= {one for formula in computed(codec.schema.columns).values() for one in names_in(formula)}
    explicit, parts = [], []
    key_columns = (codec.schema.unit.user, *keys, apart and apart.column, *uniques_of(codec.schema.columns))
    for name, value in ((name, row.get(name)) for name in kinds if name not in dict(file.keys)):
        if isinstance(value, dict | list) and name in looked_at:
            parts.append((name, pa.array([value]).type))
            continue
        spoken = isinstance(value, str) or (value is None and name not in looked_at)
        if name in looked_at:
            explicit.append((name, pa.string() if spoken or pa.types.is_temporal(kinds[name]) else kinds[name]))
        elif name in key_columns or (
            not codec.columns and codec.schema.columns[name] != DROPPED
        ):  # it is to be discovered
            number = pa.int64() if name in key_columns else pa.float64()
            explicit.append((name, pa.string() if spoken else pa.bool_() if isinstance(value, bool) else number))
    text = pa.schema(explicit)
    unread = [(name, _unread(row.get(name))) for name in {**dict.fromkeys(row), **kinds} if name not in text.names]
    types = {**dict(unread), **dict(parts), **dict(explicit)}
    check_types(file, pa.schema(types.items()), codec, text)
    return [Part(file, kinds, explicit=text, schema=codec.schema)]


def _unread(value: Any) -> pa.DataType:
    """Return the type of a value that is not read: of an object or a list that it is one, of any other none."""
    return pa.struct([]) if isinstance(value, dict | list) else pa.null()


def _read_json(part: Part, _: int) -> Batches:
    explicit = pa.schema([]) if part.explicit is None else part.explicit
    unread = [name for name in part.kinds if name not in {*explicit.names, *dict(part.file.keys)}]
    for batch in read_json(part.file, explicit, LONGEST_RECORD):
        columns = [*parsed(batch, part.kinds, form=part.text).columns, *(pa.nulls(len(batch)) for _ in unread)]
        yield pa.RecordBatch.from_arrays(columns, [*batch.schema.names, *unread])


OPENERS = {"parquet": _parquet, "arrow": _arrow, "csv": _csv, "excel": _excel} | dict.fromkeys(LIBRARIES, _table)
READERS = {"parquet": _read_parquet, "arrow": _read_arrow, "csv": _read_csv, "json": _read_json, "excel": _read_excel}
READERS |= dict.fromkeys(LIBRARIES, _read_table)


def check_types(file: DataFile, types: pa.Schema, codec: Codec, text: pa.Schema | None = None) -> None:
    """Hold the columns of a file and of its folders to the schema; what is written as text will fit it."""
    partition_types = {key: codec.csv_types.get(key, pa.string()) for key, _ in file.keys}
    spoken = {name: codec.csv_types[name] for name in (text.names if text is not None else ())}
    spoken |= written_as_text(types, codec.csv_types, codec.schema.text)
    fields = [(name, spoken.get(name, types.field(index).type)) for index, name in enumerate(types.names)]
    codec.check_types(pa.schema([*fields, *partition_types.items()]))
