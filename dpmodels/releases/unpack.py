"""Read a Parquet file that somebody else may have written: what it takes is reckoned before memory is given to it.

A few kilobytes can say that they are gigabytes: values that repeat are packed to nothing. So the footer is asked first,
and because a footer may lie, the pages are held to it, and rows are unpacked a few at a time and counted.
"""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpmodels.parquet_pages import RELEASE_FOOTER, check_file

STEP = 2**22
"""Bytes that are unpacked at once."""


def read_within(source: pa.NativeFile, most: int) -> pa.Table:
    """Read a table of numbers, truths, text, and lists of one length.

    Memory: ``most``, and once more what the texts take.

    Raises:
        ValueError: it would take more than ``most`` bytes, or has columns of another kind.
        ArrowException: it is damaged.
    """
    types = check_file(source, largest_footer=RELEASE_FOOTER)[0].schema.to_arrow_schema()
    texts = [field.name for field in types if _is_text(field.type)]
    width = sum(_width(field.type) for field in types)
    with pq.ParquetFile(source, read_dictionary=texts, pre_buffer=False, buffer_size=STEP) as file:
        if file.metadata.num_rows * width > most:
            raise ValueError
        batches, size = [], 0
        for batch in file.iter_batches(max(1, STEP // max(width, 1)), use_threads=False):
            size += batch.num_rows * width + sum(_letters(batch[name]) for name in texts)
            if size > most:
                raise ValueError
            columns = [_whole(*pair) for pair in zip(batch, types, strict=True)]
            batches.append(pa.RecordBatch.from_arrays(columns, schema=types))
        return pa.Table.from_batches(batches, types)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _width(kind: pa.DataType) -> int:
    """Return the bytes of a value, of text without its letters."""
    if _is_text(kind) or pa.types.is_null(kind):
        return 8
    if pa.types.is_dictionary(kind):
        return _width(kind.value_type)
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    if pa.types.is_nested(kind) or not (pa.types.is_primitive(kind) or pa.types.is_boolean(kind)):
        raise ValueError
    bits: int = kind.bit_width
    return max(1, bits // 8)


def _letters(column: pa.Array) -> int:
    """Count the bytes of the text that a dictionary stands for."""
    letters: int | None = pc.sum(pc.take(pc.binary_length(column.dictionary), column.indices)).as_py()
    return letters or 0


def _whole(column: pa.Array, field: pa.Field) -> pa.Array:
    return column if column.type == field.type else column.cast(field.type)
