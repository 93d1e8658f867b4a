"""Reading the Parquet files of a table that was made."""

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpmodels.codec.embedded import codec_of
from dpmodels.codec.encode import LACKED, LISTED
from dpmodels.codec.names import count_unknown, missing_from
from dpmodels.codec.stacked import whole_units
from dpmodels.contract.base import described, is_text
from dpmodels.errors import DataError
from dpmodels.gate.suite import lacking_from
from dpmodels.parquet_pages import LETTERS, PACKED, check_file
from dpmodels.plural import counted

LETTERS_OF_ROW = 2**12
"""Bytes of text that a row has on average, at most, in a file that repeats its texts."""
LETTERS_AT_ONCE = 2**26
"""Bytes of text that are spelled out at once."""


def parquet_files(path: Path) -> list[Path]:
    """List the Parquet files of a table.

    Raises:
        DataError: there are none.
    """
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise DataError("", f"{path} holds no .parquet file")
    return files


def read_batches(file: Path, batch_rows: int, contract: Any, rows: int | None = None) -> Iterator[pa.RecordBatch]:
    """Read a Parquet file that somebody else may have written, with one batch in memory.

    A batch has fewer rows where these hold long texts. Of a tree it holds whole units, which ``rows`` counts.

    Raises:
        DataError: the file does not exist, is damaged, has more than ``rows`` rows, or unpacks to more than rows of
            the contract take.
    """
    is_tree = contract.kind == "tree"
    most = rows * contract.rows_below if is_tree and rows is not None else rows
    try:
        with pa.OSFile(str(file)) as source:
            batches = batches_of(source, batch_rows, contract, most)
            yield from whole_units(contract, batches) if is_tree else batches
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        raise DataError("", f"{file} does not exist, is no Parquet file, or is damaged") from None
    except ValueError:
        raise DataError("", f"{file} holds more than the rows of such a table take; nothing more was read") from None


@dataclass(frozen=True)
class SyntheticRows:
    """The encoded rows of a folder, or the units of a tree, read from the start at each iteration, batch by batch."""

    folder: Path
    contract: Any
    batch_rows: int

    def __iter__(self) -> Iterator[Any]:
        codec = codec_of(self.contract)
        for file in parquet_files(self.folder):
            yield from map(codec.encode, read_batches(file, self.batch_rows, self.contract))


def list_length(contract: Any) -> int:
    """Return how many numbers a list in a contract's table has at most."""
    if contract.kind == "tree":
        return 0
    if not contract.is_table:
        return int(contract.encoder.dim)
    return contract.image[1].numbers if contract.image else 0


def _check_types(types: pa.Schema, contract: Any) -> int:
    """Refuse columns that the contract's table does not have; return how many it may have.

    Privacy: a name that the contract lacks may be a value, and is never shown.

    Raises:
        DataError: a column is unknown, or there twice, or holds values of several parts.
    """
    lists = "embedding"
    if contract.is_table:
        columns = {*contract.columns, *contract.flat.columns}
        lists = contract.image[0] if contract.image else ""
    else:
        columns = set(codec_of(contract).output_schema.names)
    if extra := sum(name not in columns for name in types.names):
        needed, unknown = _needed(contract), LACKED + LISTED
        if missing := missing_from(needed, types.names):
            strange = count_unknown(needed, types.names)
            more = f"; {unknown.format(counted(strange, 'column'))}" if strange else ""
            raise DataError(missing[0], missing[1] + more)
        raise DataError("", unknown.format(counted(extra, "column")))
    if twice := [name for name, times in Counter(types.names).items() if times > 1]:
        raise DataError(twice[0], "is in the data more than once: keep one of them, or rename it")
    for field in types:
        inner = field.type.value_type if field.name == lists and pa.types.is_list(field.type) else field.type
        if pa.types.is_nested(inner):
            raise DataError(field.name, f"holds {described(field.type)}, which no such table has")
    return len(columns)


def _needed(contract: Any) -> list[str]:
    """Name the columns that every table of a contract has; none where it has several, or is no table."""
    if not contract.is_table or contract.users:
        return []
    return [name for name in contract.columns if name not in lacking_from(contract)]


def batches_of(
    source: pa.NativeFile, batch_rows: int, contract: Any, rows: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Read an open file as above: texts by their dictionaries, which are spelled out a few megabytes at a time.

    Raises:
        ValueError: it unpacks to more than its rows take.
        ArrowException: it is damaged.
    """
    length = list_length(contract)
    metadata, by_dictionary = check_file(source, rows, length, lambda types: _check_types(types, contract))
    types = _types(metadata, contract)
    texts = [field.name for field in types if _is_long(field.type)]
    if not metadata.num_rows:
        yield pa.RecordBatch.from_pylist([], types)
    how = {"read_dictionary": by_dictionary, "pre_buffer": False, "arrow_extensions_enabled": False}
    with pq.ParquetFile(source, metadata=metadata, **how) as opened:
        left = LETTERS + PACKED * source.size()
        for batch in opened.iter_batches(batch_size=batch_rows, use_threads=False):
            letters = np.cumsum(sum((_letters(batch[name]) for name in texts), np.zeros(len(batch), np.int64)))
            left += LETTERS_OF_ROW * len(batch) - (int(letters[-1]) if len(letters) else 0)
            if left < 0:
                raise ValueError
            yield from _spelled_out(batch, types, letters)


def _types(metadata: pq.FileMetaData, contract: Any) -> pa.Schema:
    """Return the types to read columns as: the contract's, where Parquet has no such type but stores its values."""
    types = metadata.schema.to_arrow_schema().remove_metadata()
    stored = {field.name: field.type for field in codec_of(contract).output_schema}
    return pa.schema([field.with_type(_as_stored(field.type, stored.get(field.name))) for field in types])


def _as_stored(kind: pa.DataType, target: pa.DataType | None) -> pa.DataType:
    if target is None:
        return kind
    words = pa.types.is_dictionary(target) and target.value_type == kind
    duration = pa.types.is_duration(target) and kind == pa.int64()
    zoned = pa.types.is_timestamp(target) and target.tz and kind == pa.timestamp(target.unit, "UTC")
    lists = pa.types.is_fixed_size_list(target) and pa.types.is_list(kind) and kind.value_type == target.value_type
    return target if words or duration or zoned or lists else kind


def _spelled_out(batch: pa.RecordBatch, types: pa.Schema, letters: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    begin = 0
    while begin < len(batch):
        before = int(letters[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(letters, before + LETTERS_AT_ONCE, side="right")))
        part = batch.slice(begin, end - begin)
        columns = [_stored_as(*pair) for pair in zip(part, types.types, strict=True)]
        fields = [field.with_type(column.type) for field, column in zip(types, columns, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
        begin = end


def _stored_as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Turn a column into another type; lists of other lengths stay, and the gate refuses them."""
    with suppress(pa.ArrowInvalid) if pa.types.is_list(column.type) else nullcontext():
        return column if column.type == kind else column.cast(kind)
    return column


def _is_long(kind: pa.DataType) -> bool:
    """Tell whether values have no fixed length; those of a dictionary may be long as well."""
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_text(inner) or pa.types.is_binary(inner) or pa.types.is_large_binary(inner)


def _letters(column: pa.Array) -> NDArray[np.int64]:
    """Count the bytes of each text of a column, also of one that was read by its dictionary."""
    if pa.types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary).take(column.indices)
    else:
        lengths = pc.binary_length(column)
    counted: NDArray[np.int64] = lengths.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return counted
