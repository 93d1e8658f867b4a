"""Read a table from CSV or Parquet, one file or a folder, as a stream of batches in bounded memory; images likewise."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.csv import ConvertOptions

from dpmodels.errors import DataError
from dpmodels.privacy import PrivacyUnit, Sensitive
from dpmodels.schema.encode import Codec
from dpmodels.schema.pictures import Batches, is_pictures, read_pictures
from dpmodels.schema.schema import Schema

MISSING = pa.array(["NA", "N/A", "NaN", "nan", "null", "NULL"])


def load_table(path: Path, schema: Schema, batch_rows: int) -> Sensitive[Batches]:
    """Open a table and check its columns; the rows are read as they are asked for.

    Privacy: Sensitive. With a user as the unit, rows beyond ``max_rows`` of a user, in reading order, are left out;
        which of a user's rows stay depends on that user's rows alone, so a neighbour changes at most ``max_rows`` rows.

    Raises:
        DataError: no such file, not a table, damaged, no rows' worth of columns, or columns the schema does not have.
    """
    codec = Codec(schema)
    if is_pictures(path):
        types, pictures = read_pictures(path, schema, batch_rows)
        codec.check_types(types)
        return Sensitive(pictures if schema.unit.user is None else _bounded(pictures, schema.unit))
    dataset = _open(path)
    batches = _read(dataset, path, batch_rows)
    if isinstance(dataset.format, ds.CsvFileFormat):
        kinds = codec.csv_types
        codec.check_types(pa.schema([(name, kinds.get(name, pa.string())) for name in dataset.schema.names]))
        batches = (_parse(batch, kinds) for batch in batches)
    else:
        codec.check_types(dataset.schema)
    return Sensitive(batches if schema.unit.user is None else _bounded(batches, schema.unit))


def _open(path: Path) -> ds.Dataset:
    files = sorted(f for f in path.rglob("*") if f.is_file() and f.name[0] not in "._") if path.is_dir() else [path]
    if not path.exists() or not files:
        raise DataError("", f"{path} does not exist or holds no files")
    if any(file.stat().st_size == 0 for file in files):
        raise DataError("", f"{path} is empty or holds an empty file")
    kinds = {file.suffix.lower() for file in files}
    if kinds not in ({".csv"}, {".parquet"}):
        raise DataError("", f"{path} must be one .csv or .parquet file, or a folder of files of one of these kinds")
    try:
        if kinds == {".parquet"}:
            return ds.dataset(files, format="parquet")
        text = {name: pa.string() for name in ds.dataset(files, format="csv").schema.names}
        options = ConvertOptions(column_types=text, null_values=[""], strings_can_be_null=True)
        return ds.dataset(files, format=ds.CsvFileFormat(convert_options=options), schema=pa.schema(text))
    except (pa.ArrowException, OSError):
        pass
    raise DataError("", f"{path} cannot be read: the file is damaged or not what its name says")


def _read(dataset: ds.Dataset, path: Path, batch_rows: int) -> Batches:
    batches = dataset.to_batches(batch_size=batch_rows, batch_readahead=1, fragment_readahead=1)
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except (pa.ArrowException, OSError):
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


def _bounded(batches: Batches, unit: PrivacyUnit) -> Batches:
    """Keep the first ``max_rows`` rows of each user."""
    seen: dict[object, int] = {}
    for batch in batches:
        users = batch[unit.user].to_pandas()
        if users.isna().any():
            raise DataError(str(unit.user), "must not be null: every row belongs to a user")
        earlier = users.map(seen).fillna(0).astype("int64")
        rank = earlier + users.groupby(users, sort=False).cumcount()
        seen.update((rank + 1).groupby(users, sort=False).max().to_dict())
        kept = batch.filter(pa.array(rank < unit.max_rows))
        if kept.num_rows:
            yield kept
