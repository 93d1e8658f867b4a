"""What stands before the decimals of a document's numbers, a point or a comma, as far as its numbers settle it.

A number such as 1,500 or 1.500 is one thing or a thousand times that. Others of the same document, such as 0,5, say
which; where none does, the bound is left open.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from dpmodels.authoring.facts import DECIMAL_COMMA
from dpmodels.contract.text_forms.text_form import TextForm

DECIMAL_POINT = re.compile(r"[-+]?(\d*\.(\d\d?|\d{4,})|0\.\d+|\d{1,3}(,\d{3})+\.\d+|[1-9]\d{0,2}(,\d{3}){2,})")
"""A number that can have no other meaning than that a point stands before its decimals, a comma between thousands."""
POINTED, COMMA = (re.compile(rf"[-+]?[1-9]\d{{0,2}}{mark}\d{{3}}") for mark in (r"\.", ","))
TWO_NUMBERS = "bound {}, which may be two numbers: write {} or {}, or say --text"


@dataclass(frozen=True)
class Marks:
    """How the numbers of one document are written.

    Attributes:
        decimal: the mark before decimals, or empty where its numbers do not say.
        is_abroad: whether its cells are not parted by commas, as where commas stand in numbers.
        form: how its numbers and dates are written, where a person says so.
        has_cents: whether the numbers of the column at hand are money, whole, or of one or two decimals.
    """

    decimal: str = ""
    is_abroad: bool = False
    form: TextForm | None = None
    has_cents: bool = False

    @classmethod
    def of(cls, ends: Iterable[str], delimiter: str, form: TextForm | None = None) -> "Marks":
        """Tell it by the ends of all intervals, of which one that can be read in one way alone settles the others.

        A form that says how numbers are written goes before.
        """
        if form is not None and form.is_of_numbers:
            return cls(form.point, delimiter != ",", form)
        every = list(ends)
        marks = {mark for mark, one in ((",", DECIMAL_COMMA), (".", DECIMAL_POINT)) if any(map(one.fullmatch, every))}
        return cls(marks.pop() if len(marks) == 1 else "", delimiter != ",", form)

    def is_doubtful(self, end: str, kind: str | None) -> bool:
        """Tell whether an end may be two numbers; nobody writes three decimals of whole numbers behind a comma.

        Nor of money: the form that a person says is that of the table, and a document beside it may have another.
        """
        if self.form is not None and self.form.is_of_numbers and self.has_cents:
            return bool((COMMA if self.form.point == "," else POINTED).fullmatch(end))
        if COMMA.fullmatch(end):
            return self.is_abroad and not self.decimal and kind != "integer"
        if not POINTED.fullmatch(end):
            return False
        if self.decimal:
            return self.decimal == "." and kind == "integer"
        return self.is_abroad or kind != "number" or end[-1] == "0"

    def plain(self, end: str, kind: str | None) -> str:
        """Return an end with a point before its decimals, and no mark of thousands, where the document settles it.

        A day or a moment that is written in the form is returned as ISO has it.
        """
        if (declared := self._declared(end)) is not None:
            return declared
        if COMMA.fullmatch(end):
            return end.replace(",", "." if self.decimal == "," and kind != "integer" else "")
        return end.replace(".", "") if self.decimal == "," and POINTED.fullmatch(end) else end

    def without_blanks(self, cell: str) -> str:
        """Return a cell without the marks of thousands that part numbers elsewhere, which are blanks or apostrophes."""
        if self.form is None or not self.form.marks.strip(".,"):
            return cell
        return re.sub(rf"(?<=\d)[{self.form.marks}](?=\d{{3}}(?!\d))", "", cell)

    def _declared(self, end: str) -> str | None:
        """Read an end in the form that a person says; None of one that is not written in it."""
        form = self.form
        if form is None:
            return None
        for written in filter(None, (form.date_format, form.datetime_format)):
            with suppress(ValueError):
                moment = datetime.strptime(end, written)
                if moment.tzinfo is not None:
                    moment = moment.astimezone(UTC).replace(tzinfo=None)
                return moment.date().isoformat() if written == form.date_format else moment.isoformat()
        if not form.is_of_numbers:
            return None
        point, thousands = re.escape(form.point), re.escape(form.thousands or "")
        grouped = rf"[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+|" if thousands else ""
        if not re.fullmatch(rf"[-+]?(?:{grouped}\d+)(?:{point}\d+)?", end):
            return None
        return end.replace(form.thousands or "\0", "").replace(form.point, ".")


def two_numbers(end: str) -> str:
    """Say which two numbers an end may be."""
    return TWO_NUMBERS.format(end, f"{float(end.replace(',', '.')):g}", re.sub("[.,]", "", end))
