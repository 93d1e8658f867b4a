"""Read a Parquet file that somebody else may have written: what it takes is reckoned before memory is given to it.

A few kilobytes can say that they are gigabytes: values that repeat are packed to nothing. So the footer is asked first,
and because a footer may lie, the pages are held to it, and rows are unpacked a few at a time and counted.
"""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpmodels.contract.base import is_text
from dpmodels.parquet_footer import RELEASE_FOOTER
from dpmodels.parquet_pages import check_file

STEP = 2**22
"""Bytes that are unpacked at once."""


def read_within(source: pa.NativeFile, most: int) -> pa.Table:
    """Read a table of numbers, truths, text, and lists of one length.

    Memory: ``most``, and once more what the texts take.

    Raises:
        ValueError: it would take more than ``most`` bytes, or has columns of another kind.
        ArrowException: it is damaged.
    """
    metadata, _ = check_file(source, largest_footer=RELEASE_FOOTER)
    types = _types(metadata)
    texts = [field.name for field in types if is_text(field.type)]
    width = sum(_width(field.type) for field in types)
    if metadata.num_rows * width > most:
        raise ValueError
    how = {"read_dictionary": texts, "pre_buffer": False, "buffer_size": STEP, "arrow_extensions_enabled": False}
    with pq.ParquetFile(source, metadata=metadata, **how) as file:
        batches, size = [], 0
        for batch in file.iter_batches(max(1, STEP // max(width, 1)), use_threads=False):
            size += batch.num_rows * width + sum(_letters(batch[name]) for name in texts)
            if size > most:
                raise ValueError
            columns = [_whole(*pair) for pair in zip(batch, types, strict=True)]
            batches.append(pa.RecordBatch.from_arrays(columns, schema=types))
        return pa.Table.from_batches(batches, types)


def _types(metadata: pq.FileMetaData) -> pa.Schema:
    """Return the types of the columns; lists are as long as they are on average, or are refused when they are read."""
    types = metadata.schema.to_arrow_schema()
    for index, field in enumerate(types):
        if pa.types.is_list(field.type):  # of numbers, which are one leaf each, as all other columns that are read
            values = sum(metadata.row_group(n).column(index).num_values for n in range(metadata.num_row_groups))
            length, rest = divmod(values, max(metadata.num_rows, 1))
            if rest:
                raise ValueError
            types = types.set(index, field.with_type(pa.list_(field.type.value_field, length)))
    return types


def _width(kind: pa.DataType) -> int:
    """Return the bytes of a value, of text without its letters."""
    if is_text(kind) or pa.types.is_null(kind):
        return 8
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    if not (pa.types.is_primitive(kind) or pa.types.is_boolean(kind)):
        raise ValueError
    bits: int = kind.bit_width
    return max(1, bits // 8)


def _letters(column: pa.Array) -> int:
    """Count the bytes of the text that a dictionary stands for."""
    letters: int | None = pc.sum(pc.take(pc.binary_length(column.dictionary), column.indices)).as_py()
    return letters or 0


def _whole(column: pa.Array, field: pa.Field) -> pa.Array:
    if pa.types.is_fixed_size_list(field.type) and column.null_count:  # of which there may be any number in no bytes
        raise ValueError
    return column if column.type == field.type else column.cast(field.type)
