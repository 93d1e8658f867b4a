"""Reading the Parquet files of a table that was made."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.errors import DataError


def parquet_files(path: Path) -> list[Path]:
    """List the Parquet files of a table.

    Raises:
        DataError: there are none.
    """
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise DataError("", f"{path} holds no .parquet file")
    return files


def read_batches(file: Path, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Read a Parquet file with one batch in memory.

    Raises:
        DataError: the file does not exist, or is damaged.
    """
    try:
        with pq.ParquetFile(file, pre_buffer=False) as opened:
            yield from opened.iter_batches(batch_size=batch_rows, use_threads=False)
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        raise DataError("", f"{file} does not exist, is no Parquet file, or is damaged") from None
