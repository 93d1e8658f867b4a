"""Reading the Parquet files of a table that was made."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpmodels.codec.embedded import EmbeddedCodec
from dpmodels.contract.base import is_text
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.parquet_pages import LETTERS, PACKED, check_file

LETTERS_OF_ROW = 2**12
"""Bytes of text that a row has on average, at most, in a file that repeats its texts."""
LETTERS_AT_ONCE = 2**26
"""Bytes of text that are spelled out at once."""
VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""Types that are read as others, in which Arrow can count letters."""


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

    A batch has fewer rows where these hold long texts.

    Raises:
        DataError: the file does not exist, is damaged, has more than ``rows`` rows, or unpacks to more than rows of
            the contract take.
    """
    try:
        with pa.OSFile(str(file)) as source:
            yield from _batches(source, batch_rows, contract, rows)
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        raise DataError("", f"{file} does not exist, is no Parquet file, or is damaged") from None
    except ValueError:
        raise DataError("", f"{file} holds more than the rows of such a table take; nothing more was read") from None


def list_length(contract: Any) -> int:
    """Return how many numbers a list in a contract's table has at most."""
    if not isinstance(contract, Schema):
        return int(contract.encoder.dim)
    return contract.image[1].numbers if contract.image else 0


def _check_names(names: Sequence[str], contract: Any) -> int:
    """Refuse columns that the contract's table does not have; return how many it may have.

    Privacy: a name that the contract lacks may be a value, and is never shown.

    Raises:
        DataError: a column is unknown, or there twice.
    """
    if isinstance(contract, Schema):
        known = {*contract.columns, *contract.flat.columns}
    else:
        known = set(EmbeddedCodec(contract).output_schema.names)
    if extra := sum(name not in known for name in names):
        raise DataError("", f"the data has {extra} column(s) that the schema lacks")
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise DataError(twice[0], "is in the data more than once")
    return len(known)


def _batches(source: pa.NativeFile, batch_rows: int, contract: Any, rows: int | None) -> Iterator[pa.RecordBatch]:
    """Read texts by their dictionaries, and spell them out a few megabytes at a time."""
    metadata, by_dictionary = check_file(
        source, rows, list_length(contract), lambda names: _check_names(names, contract)
    )
    types = pa.schema([each.with_type(VIEWS.get(each.type, each.type)) for each in metadata.schema.to_arrow_schema()])
    texts = [field.name for field in types if _is_long(field.type)]
    with pq.ParquetFile(source, metadata=metadata, read_dictionary=by_dictionary, pre_buffer=False) as opened:
        left = LETTERS + PACKED * source.size()
        for read in opened.iter_batches(batch_size=batch_rows, use_threads=False):
            columns = [one.cast(VIEWS[one.type]) if one.type in VIEWS else one for one in read]
            batch = pa.RecordBatch.from_arrays(columns, types.names)
            letters = np.cumsum(sum((_letters(batch[name]) for name in texts), np.zeros(len(batch), np.int64)))
            left += LETTERS_OF_ROW * len(batch) - (int(letters[-1]) if len(letters) else 0)
            if left < 0:
                raise ValueError
            yield from _spelled_out(batch, types, letters)


def _spelled_out(batch: pa.RecordBatch, types: pa.Schema, letters: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    begin = 0
    while begin < len(batch):
        before = int(letters[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(letters, before + LETTERS_AT_ONCE, side="right")))
        part = batch.slice(begin, end - begin)
        columns = [one if one.type == to.type else one.cast(to.type) for one, to in zip(part, types, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=types)
        begin = end


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
