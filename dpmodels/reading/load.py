"""Read a table from files, from images or from a database, as a stream of batches in bounded memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa

from dpmodels.codec.derive import with_computed
from dpmodels.codec.encode import Codec
from dpmodels.codec.partition_rows import within
from dpmodels.codec.plain_text import with_plain_text
from dpmodels.contract.base import is_text
from dpmodels.contract.identifiers.identifier import uniques_of
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.reading.data_files import find_files, is_uri
from dpmodels.reading.database import Query, read_query
from dpmodels.reading.formats import Part, parts_of
from dpmodels.reading.pictures import Batches, is_pictures, read_pictures
from dpmodels.reading.user_ids import bounded


@dataclass(frozen=True)
class FileRows:
    """The rows of a part of a file, read from the start at each iteration, by whoever has this: it holds none itself.

    What it holds, the file's place and the schema, is public, so it can be sent to a machine that reads the rows.
    """

    part: Part
    schema: Schema
    batch_rows: int

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if not (is_uri(self.part.file.uri) or Path(self.part.file.path).exists()):
            raise DataError("", f"{self.part.file.uri} must be readable by whoever encodes it; it is not there")
        yield from _kept(self.part.read(self.batch_rows), self.schema)


def are_apart(source: str | Path | Query, schema: Schema) -> bool:
    """Tell whether the parts of a table can be read by different machines, which each find its files.

    They cannot where all is read from front to back by one: images, the answer to a query, and tables of users.
    """
    if isinstance(source, Query) or schema.unit.user is not None:
        return False
    return is_uri(str(source)) or not is_pictures(Path(source))


def load_parts(
    source: str | Path | Query, schema: Schema, batch_rows: int, keys: Sequence[str] = ()
) -> list[Sensitive[Batches]]:
    """Open a table and check its columns, as parts that can be read at the same time, in reading order.

    The rows are read as they are asked for. Parquet files are cut between row groups; any other file is one part, and
    so is whatever must be read from front to back: images, the answer to a query, and tables of users, whose first
    rows are the ones that stay. ``keys`` are the columns that join the table with others.

    Memory: a part holds one batch, and a few megabytes of its file, at a time, whatever the size of a row group. Of an
        Arrow file it holds a batch as large as it was written.

    Privacy: Sensitive. With a user as the unit, rows beyond ``max_rows`` of a user, in reading order, are left out;
        which of a user's rows stay depends on that user's rows alone, so a neighbor changes at most ``max_rows`` rows.
        With a schema of one partition, the rows of others are left out, by a rule that looks at each row alone.

    Raises:
        DataError: no such file, not a table, damaged, no rows' worth of columns, or columns the schema does not have.
    """
    codec = Codec(schema)
    if isinstance(source, Query):
        answer = read_query(source, codec.csv_types, codec.check_names, batch_rows, schema.text)
        plain = (with_plain_text(batch, schema.columns, schema.text) for batch in answer)
        return [Sensitive(_kept(plain, schema))]
    if not is_uri(str(source)) and is_pictures(Path(source)):
        types, pictures = read_pictures(Path(source), schema, batch_rows)
        codec.check_types(types)
        return [Sensitive(_kept(pictures, schema))]
    parts = [part for file in find_files(str(source)) for part in parts_of(file, codec, keys)]
    if schema.unit.user is not None:
        return [Sensitive(_kept(chain.from_iterable(part.read(batch_rows) for part in parts), schema))]
    return [Sensitive(FileRows(part, schema, batch_rows)) for part in parts]


def check_first(source: str | Path, schema: Schema, keys: Sequence[str] = ()) -> None:
    """Open the first file of a table, and hold the names and types of its columns to the schema; reads no rows.

    Raises:
        DataError: as for ``load_parts``.
    """
    if is_uri(str(source)) or not is_pictures(Path(source)):
        parts_of(find_files(str(source))[0], Codec(schema), keys)


SEVERAL = "must hold one kind of value in all files; it holds {} in others"


def _kind_of(dtype: pa.DataType) -> set[str]:
    """Name the kind of the values of a type, of which a list of values can have one; nulls have none."""
    inner = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    number = pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_decimal(inner)
    kinds = {"text": is_text(inner), "numbers": number, "booleans": pa.types.is_boolean(inner)}
    return {name for name, fits in kinds.items() if fits}


class RawRows:
    """The rows of a table as they are read; each iteration reads them anew. At most one batch is in memory."""

    def __init__(self, source: str | Path | Query, schema: Schema, batch_rows: int, keys: Sequence[str] = ()) -> None:
        self._arguments = source, schema, batch_rows, keys

    def check(self) -> None:
        """Open the files, check the names and types of their columns, and read text to its end; a query is not asked.

        Raises:
            DataError: as for ``load_parts``, text is not what its kind is, or a column is of two kinds in two files.
        """
        source, schema, batch_rows, keys = self._arguments
        if isinstance(source, Query):
            return
        if not is_uri(str(source)) and is_pictures(Path(source)):
            load_parts(*self._arguments)
            return
        kinds, codec = dict[str, set[str]](), Codec(schema)
        for part in (part for file in find_files(str(source)) for part in parts_of(file, codec, keys)):
            batches = part.read(batch_rows)
            read = (batch.schema for batch in (batches if part.is_text else islice(batches, 1)))
            for column in chain(part.types or (), *read):
                kinds.setdefault(column.name, set()).update(_kind_of(column.type))
        for name, of_files in kinds.items():
            if len(of_files) > 1:
                raise DataError(name, SEVERAL.format(" in some files and ".join(sorted(of_files))))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for part in load_parts(*self._arguments):
            yield from part.reveal()


def _kept(batches: Batches, schema: Schema) -> Batches:
    """Compute columns, and leave out rows that are not of the schema's partition, or beyond a user's most rows."""
    part, batches = schema.partition, with_computed(batches, schema)
    if part is not None and part.value is not None:
        return within(batches, part, schema.columns[part.column])
    user = schema.unit.user
    return batches if user is None else bounded(batches, schema.unit, user in uniques_of(schema.columns))
