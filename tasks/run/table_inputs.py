"""Tables that are compared or checked, from whatever tool: what a run reads, they may be given as."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.codec.derive import may_lack, within_bounds
from dpmodels.codec.encode import Codec
from dpmodels.codec.text_values import written_as_text
from dpmodels.contract.columns import computed, helpers
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.written import with_form
from dpmodels.errors import DataError
from dpmodels.gate.suite import columns_of_table, dropped_from
from dpmodels.privacy import PrivacyUnit
from dpmodels.reading.addresses import LOG, address_of
from dpmodels.reading.data_files import FAILURES, DataFile, find_files, is_uri
from dpmodels.reading.ingest import faults_in
from dpmodels.reading.load import RawRows
from dpmodels.reading.named_columns import names_of
from dpmodels.reading.pictures import is_pictures

BATCH_ROWS = 65_536


@contextmanager
def as_parquet(data: str | Path, contract: Any, private: Path | None = None) -> Iterator[Path]:
    """Lend a table, wherever it lies, as Parquet: itself, or a copy in a private folder that is deleted afterwards.

    Raises:
        DataError: as for ``load_parts``; columns that are not modeled may be missing.
    """
    path = Path(data)
    if not contract.is_table or (is_path(str(data)) and _is_typed(path, contract)):
        yield path
        return
    with TemporaryDirectory(prefix="nacre-", dir=private) as folder:  # which its owner alone can enter
        yield _copied(str(data), contract, Path(folder) / f"{path.stem}.parquet")


def is_path(data: str) -> bool:
    """Tell the path of one file or folder from patterns, URIs and tables whose files are not all of their rows."""
    return not (is_uri(data) or "*" in data or address_of(data).kind or Path(data, LOG).exists())


def _is_typed(path: Path, schema: Schema) -> bool:
    """Tell whether a table is Parquet without text to be read; what is not there is told by whoever reads it."""
    files = find_files(str(path)) if path.exists() and path.suffix != ".npz" else []
    kinds, alike = {} if schema.users else Codec(schema).csv_types, not computed(schema.columns)
    with suppress(*FAILURES):
        types = (pq.read_schema(one.path) if one.format == "parquet" else None for one in files)
        alike &= not any(one is None or written_as_text(one, kinds, schema.text) for one in types)
    return alike


def is_raw(data: str, schema: Schema) -> bool:
    """Tell by the names of its columns whether a table is raw: one that was made lacks columns that are dropped.

    Of a schema that drops no column the names tell nothing, and what cannot be read is told by whoever reads it.
    """
    made, names = computed(schema.columns).keys() - helpers(schema.columns), set[str]()
    if (dropped_from(schema) or made) and (is_uri(data) or not is_pictures(Path(data))):
        with suppress(DataError, *FAILURES):
            file = find_files(data)[0]
            names = {*names_in(file, schema), *dict(file.keys)}
    return names >= schema.raw.keys() - may_lack(schema).keys() and not (made and made <= names)


def names_in(file: DataFile, schema: Schema) -> Collection[str]:
    """Read the names of a file's columns, and no row."""
    return [*names_of(file, schema.columns), *file.columns]


def _reading(data: str, schema: Schema) -> Schema:
    """Return the schema without what says which rows are read, and without dropped columns that a file lacks."""
    file, there = find_files(data)[0], {*schema.columns}
    with suppress(*FAILURES):  # whoever reads it says what is wrong with it
        if file.format in ("csv", "excel", "parquet"):
            there = {*names_in(file, schema), *dict(file.keys)}
    columns = columns_of_table(schema.columns, there)
    named: dict[str, Any] = {key: getattr(schema, key) for key in ("name", "target", "constraints", "text")}
    return schema.model_construct(unit=PrivacyUnit(), columns=columns, **named)


def faults_of(data: str, contract: Any) -> Iterator[str]:
    """Yield all that is wrong with a table, each of whose values must lie within its schema."""
    if contract.kind == "table":
        yield from faults_in(data, with_form(_reading(data, contract).refusing(), contract.text), BATCH_ROWS)


def typed_rows(data: str, schema: Schema, types: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table from whatever tool, its columns in the types of the schema where no value changes.

    Raises:
        DataError: as for ``load_parts``; columns that are not modeled may be missing.
    """
    reading = _reading(data, schema)
    for batch in RawRows(data, reading, BATCH_ROWS):
        yield _typed(within_bounds(batch, reading), {field.name: field.type for field in types})


def _copied(data: str, schema: Schema, target: Path) -> Path:
    writer: pq.ParquetWriter | None = None
    try:
        for batch in typed_rows(data, schema, Codec(schema).output_schema):
            writer = writer or pq.ParquetWriter(target, batch.schema)
            writer.write_batch(batch)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise DataError("", f"{data} holds no rows")
    return target


def _typed(batch: pa.RecordBatch, types: dict[str, pa.DataType]) -> pa.RecordBatch:
    """Give columns the types of the schema where no value changes: a text file has no types of its own."""
    arrays = []
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        with suppress(*FAILURES):  # the gate says that the type is another
            array = array.cast(types.get(name, array.type))
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)
