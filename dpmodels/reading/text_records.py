"""What a record of a text file is: text is held to one reading of it, byte by byte, before anything parses it.

A parser that forgives lets one record decide what the others are: a quotation mark that never closes swallows every
record after it. Here such a file is refused, and so is every file of which two parsers could read other records.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Places = NDArray[np.intp]
MARK, CR, LF = b'"\r\n'
OPEN, CLOSE = b"{}"
BOM = b"\xef\xbb\xbf"


class Malformed(ValueError):
    """The text has no records that can be told apart; what it says is about the whole file and never about a record."""


class TextRule(ABC):
    """Holds text to a rule, block by block; how the text is cut into blocks decides nothing.

    The last byte of a block is judged with the next one, so that every byte is judged with both of its neighbors.

    Attributes:
        records: the lines that hold something, so far; only of JSON lines.
    """

    FAULT: ClassVar[str]

    def __init__(self, longest: int, after: int = LF) -> None:
        """Begin a file, whose last byte is judged as if ``after`` came next."""
        self.records = 0
        self._longest, self._length, self._after_all = longest, 0, after
        self._tail = bytes([LF])  # a file begins as a line does

    def feed(self, block: bytes | memoryview) -> None:
        """Take the next bytes.

        Raises:
            Malformed: they break the rule.
        """
        text = np.frombuffer(b"".join([self._tail, block]), np.uint8)
        self._tail = text[-2:].tobytes()
        if len(text) > 2:
            self._judge(text)

    def end(self) -> None:
        """Take the end of the file.

        Raises:
            Malformed: it may not end here.
        """
        self.feed(bytes([self._after_all]))

    @abstractmethod
    def _judge(self, text: Bytes) -> None:
        """Judge all bytes but the first and the last."""

    def _fault(self) -> Malformed:
        return Malformed(self.FAULT)

    def _measure(self, ends: Places, judged: int) -> None:
        """Refuse a record that is longer than what is read at once, wherever in the file it is."""
        if not len(ends):
            self._length += judged
        else:  # positions count from 1
            lengths = np.diff(ends, prepend=-self._length)
            self._length = judged - int(ends[-1])
            if lengths.max() > self._longest:
                raise self._too_long()
        if self._length > self._longest:
            raise self._too_long()

    def _too_long(self) -> Malformed:
        return Malformed(f"holds a record of more than {self._longest // 2**20} MiB, which no table has")


class Quoted(TextRule):
    """CSV as RFC 4180 has it.

    A quotation mark opens at the beginning of a field and nowhere else, and closes before a delimiter, the end of the
    line or of the file; two of them inside are one. A CR outside a quoted field is followed by an LF. Then marks open
    and close by turns, and whether a byte is quoted follows from how many there are before it.
    """

    FAULT = (
        "is not written as CSV is (RFC 4180): a quotation mark may stand only around a whole field, doubled inside it, "
        "and lines end in LF or CRLF; write the file with quoting, or, if quotation marks mean nothing in it, "
        "name it .tsv"
    )

    def __init__(self, longest: int, delimiter: str) -> None:
        super().__init__(longest, ord(delimiter))  # a field may end with the file, and no CR may
        self._before, self._after = np.zeros(256, np.bool_), np.zeros(256, np.bool_)
        self._before[[ord(delimiter), LF, MARK]] = True
        self._after[[ord(delimiter), LF, CR, MARK]] = True
        self._inside = 0

    def end(self) -> None:
        super().end()
        if self._inside:
            raise self._fault()

    def _judge(self, text: Bytes) -> None:
        marks = np.flatnonzero(text[1:-1] == MARK) + 1
        opened, closed = marks[self._inside :: 2], marks[1 - self._inside :: 2]
        if not (self._before[text[opened - 1]].all() and self._after[text[closed + 1]].all()):
            raise self._fault()
        returns = np.flatnonzero(text[1:-1] == CR) + 1
        if self._outside(returns[text[returns + 1] != LF], marks).size:
            raise self._fault()
        self._measure(self._outside(np.flatnonzero(text[1:-1] == LF) + 1, marks), len(text) - 2)
        self._inside = (self._inside + len(marks)) % 2

    def _outside(self, positions: Places, marks: Places) -> Places:
        """Keep the places that no marks are around."""
        if not len(marks):
            return positions[: 0 if self._inside else None]
        quoted: NDArray[np.bool_] = (np.searchsorted(marks, positions) + self._inside) % 2 == 1
        outside: Places = positions[~quoted]
        return outside


class Plain(TextRule):
    """Text whose fields are what stands between delimiters: a quotation mark is a letter, as in most ``.tsv`` files."""

    FAULT = "has lines that end in a CR alone; write it with the ends of lines of Unix or Windows"

    def __init__(self, longest: int) -> None:
        super().__init__(longest, after=0)

    def _judge(self, text: Bytes) -> None:
        returns = np.flatnonzero(text[1:-1] == CR) + 1
        if (text[returns + 1] != LF).any():
            raise self._fault()
        self._measure(np.flatnonzero(text[1:-1] == LF) + 1, len(text) - 2)


class JsonLines(TextRule):
    """One JSON object in each line, from its first byte to its last.

    Inside an object no opening brace directly follows a closing one. So where a line ends in a brace and the next
    begins with one, no object goes on from one to the other. A line with two objects has fewer lines than rows.
    """

    FAULT = "must hold one JSON object in each line, from the first letter of the line to its last"

    def __init__(self, longest: int) -> None:
        super().__init__(longest)
        self._first = True
        self._begins, self._ends = np.zeros(256, np.bool_), np.zeros(256, np.bool_)
        self._begins[[OPEN, LF, CR]] = True
        self._ends[[CLOSE, LF, CR]] = True

    def end(self) -> None:
        if self._tail[-1] not in (LF, CR):
            self.feed(bytes([LF]))
        super().end()

    def _judge(self, text: Bytes) -> None:
        lines, returns = (np.flatnonzero(text[1:-1] == end) + 1 for end in (LF, CR))
        fine = self._ends[text[lines - 1]].all() and self._begins[text[lines + 1]].all()
        fine &= (text[returns + 1] == LF).all() and self._ends[text[returns - 1]].all()
        if not fine or (self._first and not self._begins[text[1]]):
            raise self._fault()
        self._first = False
        self.records += int((text[lines - 1] == CLOSE).sum() + (text[returns - 1] == CLOSE).sum())
        self._measure(lines, len(text) - 2)


class RuledText:
    """A text file that is read from front to back, of which no byte is handed on before it was held to a rule.

    A byte order mark is left out.
    """

    def __init__(self, source: pa.NativeFile, rule: TextRule) -> None:
        self.rule, self.closed, self._source = rule, False, source
        self._ahead = source.read(len(BOM))
        if self._ahead == BOM:
            self._ahead = b""

    def read(self, size: int) -> bytes:
        """Return the next bytes: as many as are asked for, unless the file ends.

        Raises:
            Malformed: they break the rule.
        """
        pieces, self._ahead = [self._ahead[:size]], self._ahead[size:]
        missing = size - len(pieces[0])
        while missing and (piece := self._source.read(missing)):
            pieces.append(piece)
            missing -= len(piece)
        block = b"".join(pieces)
        self.rule.feed(block)
        if missing:
            self.rule.end()
        return block

    def readable(self) -> bool:
        """Tell Arrow that this is read."""
        return True

    def close(self) -> None:
        """Close nothing: the file is closed by whoever opened it."""
        self.closed = True
