"""The compact protocol of Thrift, in which Parquet writes its footer and the headers of its pages.

Source: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

HIGHEST_FIELD = 63
"""Arrow keeps sixteen bits of a field's number: a higher one would be another field to it than to whoever looks."""
WHOLES, WHOLE, TEXT, LISTS, STRUCT = (4, 5, 6), 5, 8, (9, 10), 12
"""The types of fields that are read; of the others, only the length is."""
LENGTHS = {1: 0, 2: 0, 3: 1, 7: 8}
DEEPEST, WEIGHT = 8, 8
"""Structs within one another; and what one in a list takes, where a number or a text takes 1."""

Fields = dict[int, Any]


class Items(NamedTuple):
    """A list: the type of its items, their number, and where the first begins."""

    kind: int
    length: int
    begin: int


@dataclass
class Reader:
    """Reads structs, each of whose fields may be there once, in order; the items of lists take ``room``.

    A list says first how many items it has, and Arrow gives memory to that many.
    """

    content: bytes
    room: int = 0

    def struct(self, at: int, depth: int = 0) -> tuple[Fields, int]:
        """Read a struct, and return where it ends.

        Raises:
            ValueError: it is none, or its lists are longer than there is room for.
            IndexError: it goes on beyond the content.
        """
        fields, name = Fields(), 0
        while head := self.content[at]:
            at += 1
            kind, step, before = head & 15, head >> 4, name
            if not step:
                number, at = varint(self.content, at)
                name = number >> 1 ^ -(number & 1)
            name += step
            if not before < name <= HIGHEST_FIELD:
                raise ValueError
            fields[name], at = (None, at + LENGTHS[kind]) if kind in LENGTHS else self._value(kind, at, depth)
        return fields, at + 1

    def _value(self, kind: int, at: int, depth: int) -> tuple[Any, int]:
        if depth == DEEPEST:
            raise ValueError
        if kind == STRUCT:
            return self.struct(at, depth + 1)
        if kind in LISTS:
            return self._items(at, depth)
        number, end = varint(self.content, at)
        if kind == TEXT:
            return slice(end, end + number), end + number
        if kind not in WHOLES:
            raise ValueError
        return number >> 1 ^ -(number & 1) if kind == WHOLE else None, end

    def _items(self, at: int, depth: int) -> tuple[Items, int]:
        kind, count, at = self.content[at] & 15, self.content[at] >> 4, at + 1
        if count == 15:
            count, at = varint(self.content, at)
        self.room -= count * (WEIGHT if kind == STRUCT else 1)
        if self.room < 0:
            raise ValueError
        items = Items(kind, count, at)
        for _ in range(count):
            at = at + (LENGTHS[kind] or 1) if kind in LENGTHS else self._value(kind, at, depth)[1]
        return items, at


def varint(content: bytes, at: int) -> tuple[int, int]:
    """Read a number without a sign, and return where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        number |= (content[at] & 127) << shift
        at += 1
        if content[at - 1] < 128:
            return number, at
    raise ValueError
