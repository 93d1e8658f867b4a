"""What stands before the decimals of a document's numbers, a point or a comma, as far as its numbers settle it.

A number such as 1,500 or 1.500 is one thing or a thousand times that. Others of the same document, such as 0,5, say
which; where none does, the bound is left open.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dpmodels.authoring.facts import DECIMAL_COMMA

DECIMAL_POINT = re.compile(r"[-+]?(\d*\.(\d\d?|\d{4,})|0\.\d+|\d{1,3}(,\d{3})+\.\d+|[1-9]\d{0,2}(,\d{3}){2,})")
"""A number that can have no other meaning than that a point stands before its decimals, a comma between thousands."""
POINTED, COMMA = (re.compile(rf"[-+]?[1-9]\d{{0,2}}{mark}\d{{3}}") for mark in (r"\.", ","))
TWO_NUMBERS = "bound {}, which may be two numbers: write {} or {}"


@dataclass(frozen=True)
class Marks:
    """How the numbers of one document are written.

    Attributes:
        decimal: the mark before decimals, or empty where its numbers do not say.
        is_abroad: whether its cells are not parted by commas, as where commas stand in numbers.
    """

    decimal: str = ""
    is_abroad: bool = False

    @classmethod
    def of(cls, ends: Iterable[str], delimiter: str) -> "Marks":
        """Tell it by the ends of all intervals, of which one that can be read in one way alone settles the others."""
        every = list(ends)
        marks = {mark for mark, one in ((",", DECIMAL_COMMA), (".", DECIMAL_POINT)) if any(map(one.fullmatch, every))}
        return cls(marks.pop() if len(marks) == 1 else "", delimiter != ",")

    def is_doubtful(self, end: str, kind: str | None) -> bool:
        """Tell whether an end may be two numbers; nobody writes three decimals of whole numbers behind a comma."""
        if COMMA.fullmatch(end):
            return self.is_abroad and not self.decimal and kind != "integer"
        if not POINTED.fullmatch(end):
            return False
        if self.decimal:
            return self.decimal == "." and kind == "integer"
        return self.is_abroad or kind != "number" or end[-1] == "0"

    def plain(self, end: str, kind: str | None) -> str:
        """Return an end with a point before its decimals, and no mark of thousands, where the document settles it."""
        if COMMA.fullmatch(end):
            return end.replace(",", "." if self.decimal == "," and kind != "integer" else "")
        return end.replace(".", "") if self.decimal == "," and POINTED.fullmatch(end) else end


def two_numbers(end: str) -> str:
    """Say which two numbers an end may be."""
    return TWO_NUMBERS.format(end, f"{float(end.replace(',', '.')):g}", re.sub("[.,]", "", end))
