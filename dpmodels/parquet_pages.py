"""Hold the pages of a Parquet file that somebody else wrote to what its rows may take, before any is unpacked.

A few kilobytes can say that they are gigabytes: values that repeat are packed to nothing, and a footer may lie about
it. Memory is given by the header of each page, which Arrow shows to nobody. So the headers are read here; they are the
struct ``PageHeader`` of Parquet's Thrift definition, in the compact protocol.

Source: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift,
    https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.limits import MOST_COLUMNS
from dpmodels.parquet_footer import LARGEST_FOOTER, read_footer
from dpmodels.thrift import Fields, Reader

BYTES_OF_CHUNK = 2**6
"""Bytes that a column of a row group takes at least, with its place in the footer."""
MOST_ROWS, ROWS_OF_BYTE = 2**28, 2**10
"""Rows that a file may have: so many, and so many for each of its bytes."""
LETTERS, LETTERS_OF_VALUE, PACKED = 2**28, 2**7, 8
"""Bytes of text that a file's pages may hold: so many, and so many for each text, and for each byte of the file."""
FRAME, FRAME_OF_VALUE = 2**12, 8
"""Bytes that a page, and each value in it, may take beside the values themselves."""
MOST_PAGES, BYTES_OF_PAGE = 2**17, 2**10
"""Pages that a file may have: so many, and one for each so many bytes."""
HEADER, LARGEST_HEADER = 2**8, 2**16
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
WIDEST = 64
"""Bytes of a value of a type of fixed length, such as a decimal number."""
MOST_WORDS = 2**20
"""Values in a dictionary that has more of them than there are rows, as one of all categories of a column has."""
TEXT = "BYTE_ARRAY"
COUNTED = {0: 5, 2: 7, 3: 8}
"""The pages that hold values, by the header's field that says how many: data, dictionary, data of version 2."""
DICTIONARY, DATA_2 = 2, 3
BY_PREFIX = 7
"""The encoding DELTA_BYTE_ARRAY: a small page may hold texts of any length."""


@dataclass
class Room:
    """What the pages of a file may still take."""

    letters: int
    pages: int


def check_file(
    source: pa.NativeFile,
    rows: int | None = None,
    listed: int | None = None,
    check_types: Callable[[pa.Schema], int] = lambda _: MOST_COLUMNS,
    largest_footer: int = LARGEST_FOOTER,
) -> tuple[pq.FileMetaData, list[str]]:
    """Hold a file to ``rows`` rows at most, with at most ``listed`` numbers in a list, by default as its footer says.

    Its names and types go to ``check_types`` before any page is read, which returns how many columns there may be.

    Returns:
        Its footer, and the columns of text that must be read by their dictionaries: spelled out, a text that stands
        there once may take any memory.

    Raises:
        ValueError: its footer or its pages say more than such rows take, or it has columns that nothing here has.
        ArrowException: it is damaged.
    """
    metadata = read_footer(source, largest_footer)
    leaves, groups = metadata.num_columns, metadata.num_row_groups
    if leaves > MOST_COLUMNS or leaves * max(groups - 1, 0) > source.size() // BYTES_OF_CHUNK:
        raise ValueError
    types = metadata.schema.to_arrow_schema()
    if leaves > check_types(types) or len(set(types.names)) < len(types.names):
        raise ValueError
    try:
        return metadata, sorted(_check_pages(source, metadata, rows, listed))
    except (KeyError, TypeError, IndexError, OverflowError):  # it is no header
        raise ValueError from None


def _check_pages(source: pa.NativeFile, metadata: pq.FileMetaData, rows: int | None, listed: int | None) -> set[str]:
    """Hold every page to what the rows of its row group take; return the columns of text that have dictionaries."""
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    counts = [group.num_rows for group in groups]
    whole, most = sum(counts), MOST_ROWS + ROWS_OF_BYTE * source.size() if rows is None else rows
    if whole != metadata.num_rows or min(counts, default=0) < 0 or whole > most:
        raise ValueError
    if not (leaves := metadata.num_columns):
        raise ValueError
    texts = sum(metadata.schema.column(index).physical_type == TEXT for index in range(leaves))
    room = Room(
        LETTERS + LETTERS_OF_VALUE * whole * texts + PACKED * source.size(),
        MOST_PAGES + source.size() // BYTES_OF_PAGE,
    )
    by_dictionary, extents = set[str](), list[tuple[int, int]]()
    for group in groups:
        for index in range(leaves):
            leaf = metadata.schema.column(index)
            if leaf.max_repetition_level > 1 or (leaf.max_repetition_level and leaf.physical_type == TEXT):
                raise ValueError
            chunk, most = group.column(index), group.num_rows
            if leaf.max_repetition_level:
                most = chunk.num_values if listed is None else most * listed
            has_dictionary, extent = _check_chunk(source, chunk, leaf, most, room)
            extents.append(extent)
            if has_dictionary and leaf.physical_type == TEXT:
                by_dictionary.add(leaf.path)
    if any(end > begin for (_, end), (begin, _) in pairwise(sorted(extents))):  # one page would be many rows
        raise ValueError
    return by_dictionary


def _check_chunk(source: pa.NativeFile, chunk: Any, leaf: Any, most: int, room: Room) -> tuple[bool, tuple[int, int]]:
    """Hold the pages of one column of a row group to ``most`` values.

    Returns:
        Whether it has a dictionary, and where its pages begin and end.
    """
    text, left, by_dictionary = leaf.physical_type == TEXT, chunk.num_values, False
    width = WIDTHS.get(leaf.physical_type, leaf.length)
    if not 0 <= left <= most or not (text or 0 <= width <= WIDEST):
        raise ValueError
    position, first = chunk.data_page_offset, chunk.dictionary_page_offset
    if first is not None and 0 < first < position:
        position = first
    begin = position if left else 0
    while left > 0:
        fields, position = _header(source, position)
        kind, unpacked, packed = (_number(fields, field) for field in (1, 2, 3))
        position, room.pages = position + packed, room.pages - 1
        if room.pages < 0:
            raise ValueError
        if kind not in COUNTED:
            continue
        page_header = fields[COUNTED[kind]]
        values, encoding = _number(page_header, 1), _number(page_header, 4 if kind == DATA_2 else 2)
        room.letters -= unpacked if text or values > left else 0
        if (
            values > (max(left, MOST_WORDS) if kind == DICTIONARY else left)
            or encoding == BY_PREFIX
            or room.letters < 0
        ):
            raise ValueError
        if not text and unpacked > FRAME + values * (width + FRAME_OF_VALUE):
            raise ValueError
        by_dictionary |= kind == DICTIONARY
        left -= values if kind != DICTIONARY else 0
    return by_dictionary, (begin, position if begin else 0)


def _number(fields: Fields, name: int) -> int:
    number = fields[name]
    if not isinstance(number, int) or not 0 <= number < 2**31:
        raise ValueError
    return number


def _header(source: pa.NativeFile, position: int) -> tuple[Fields, int]:
    """Read the header of a page, and return where the page begins."""
    for size in (HEADER, LARGEST_HEADER):
        content = source.read_at(size, position)
        try:
            fields, length = Reader(content).struct(0)
        except IndexError:  # it goes on
            continue
        return fields, position + length
    raise ValueError
