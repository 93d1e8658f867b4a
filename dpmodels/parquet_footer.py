"""Read the footer of a Parquet file that somebody else wrote, once its lists are known to take little memory.

A few bytes can say that a list has a million items, to which Arrow gives memory before it reads the first. And a footer
may hold a second schema, Arrow's own, in which a few kilobytes can be gigabytes: its parts may be shared, and nested.
So the lists are counted here, and Arrow's schema is hidden: what Parquet itself says of the columns decides.

Source: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

import struct

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.thrift import STRUCT, Items, Reader

LARGEST_FOOTER, FOOTER_SHARE = 2**20, 8
"""Bytes of a footer: so many, and this part of the file."""
RELEASE_FOOTER = 2**23
"""Bytes of the footer of a release, which holds its schema, twice."""
MOST_ITEMS, ITEMS_SHARE = 2**19, 8
"""Items of the footer's lists: so many, and one for each so many bytes of the file; a struct counts as eight."""
KEYS = 5
"""The field of the footer that holds texts by key."""
ARROW, HIDDEN = b"ARROW:schema", b"hidden:arrow"
END = b"PAR1"


def read_footer(source: pa.NativeFile, largest: int = LARGEST_FOOTER) -> pq.FileMetaData:
    """Read a file's footer without Arrow's own schema.

    Raises:
        ValueError: it is longer than ``largest``, or its lists are.
        ArrowException: it is damaged.
    """
    size = source.size()
    length, end = struct.unpack("<I4s", source.read_at(8, max(size - 8, 0)).rjust(8, b"\0"))
    if end != END or length > size - 12:
        raise pa.ArrowInvalid("no Parquet file")
    if length > largest + size // FOOTER_SHARE:
        raise ValueError
    content = bytearray(source.read_at(length, size - 8 - length))
    reader = Reader(bytes(content), MOST_ITEMS + size // ITEMS_SHARE)
    try:
        fields, _ = reader.struct(0)
        keys = fields.get(KEYS)
        if isinstance(keys, Items) and keys.kind == STRUCT:
            at = keys.begin
            for _ in range(keys.length):
                entry, at = reader.struct(at)
                if isinstance(key := entry.get(1), slice) and content[key] == ARROW:
                    content[key] = HIDDEN
    except IndexError:
        raise pa.ArrowInvalid("a damaged footer") from None
    return pq.read_metadata(pa.BufferReader(END + content + struct.pack("<I", length) + END))
