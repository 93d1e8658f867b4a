"""Parquet files of a few kilobytes that unpack to gigabytes, in each way in which Parquet can be made to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GIGABYTES = 5 * 2**30
ROWS = 100_000
MANY = 5 * 10**7
LONG = "x" * (GIGABYTES // ROWS)


def one_long_text(path: Path, table: pa.Table) -> None:
    """Have one text of a column stand in every row, by its place in the dictionary."""
    repeated = pa.DictionaryArray.from_arrays(pa.array(np.zeros(ROWS, np.int32)), pa.array([LONG]))
    columns = {name: repeated if _is_text(table[name].type) else _repeated(table[name]) for name in table.column_names}
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False)


def long_prefixes(path: Path, table: pa.Table) -> None:
    """Have each text be the one before it, as an encoding may say in two bytes."""
    texts = [name for name in table.column_names if _is_text(table[name].type)]
    columns = {name: _repeated(table[name]) for name in table.column_names} | {
        name: pa.repeat(LONG, ROWS // 50) for name in texts
    }
    short = pa.table({name: column.slice(0, ROWS // 50) for name, column in columns.items()})
    how = {"column_encoding": dict.fromkeys(texts, "DELTA_BYTE_ARRAY")}
    pq.write_table(short, path, compression="zstd", use_dictionary=False, store_schema=False, **how)


def texts_that_are_packed(path: Path, table: pa.Table) -> None:
    """Have every text spelled out, and packed to nothing."""
    texts = [name for name in table.column_names if _is_text(table[name].type)]
    columns = {name: _repeated(table[name]).slice(0, 20_000) for name in table.column_names}
    columns |= {name: pa.repeat("x" * 20_000, 20_000) for name in texts[:1]}
    pq.write_table(pa.table(columns), path, compression="zstd", use_dictionary=False, store_schema=False)


def a_page_that_lies(path: Path, table: pa.Table) -> None:
    """Have the header of the first page say that two gigabytes are packed in it."""
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    content = path.read_bytes()
    at = pq.read_metadata(path).row_group(0).column(0).data_page_offset + 3
    end = next(place for place in range(at, at + 5) if content[place] < 128) + 1
    assert content[at - 3 : at] == b"\x15\x00\x15" and content[end] == 0x15  # the kind of the page, and then its sizes
    path.write_bytes(content[:at] + b"\xfe\xff\xff\xff\x0f" + content[end:])


def a_list_without_end(path: Path, table: pa.Table) -> None:
    """Have a list of fifty million numbers in a row."""
    columns = {name: _repeated(table[name]).slice(0, 50) for name in table.column_names}
    first = table.column_names[0]
    columns[first] = pa.LargeListArray.from_arrays([*range(50), MANY], pa.array(np.zeros(MANY, np.uint8)))
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False)


def _is_text(kind: Any) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner))


def _repeated(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks().take(pa.array(np.zeros(ROWS, np.int64)))


BOMBS: dict[str, Callable[[Path, pa.Table], None]] = {
    one.__name__: one
    for one in (one_long_text, long_prefixes, texts_that_are_packed, a_page_that_lies, a_list_without_end)
}
