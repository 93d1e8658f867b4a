"""How a raw table's text writes numbers and dates, in the words of ``pandas.read_csv``; left out, with points and ISO.

    text: {decimal: ",", thousands: ".", date_format: "%d.%m.%Y", datetime_format: "%d.%m.%Y %H:%M"}

It says how a table is read and nothing of what is in it: so it is no part of the contract that is hashed, planned and
handed over, and a table that is written in another form is the same data set.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from dpmodels.contract.base import ColumnFaults, of_form
from dpmodels.frozen import Strict

DIGITS = {"d": 2, "m": 2, "Y": 4, "H": 2, "M": 2, "S": 2}
OF_DATES, OF_TIMES, MAY = ("d", "m", "Y"), ("H", "M"), ("S", "f", "z")
"""The directives that formats of dates must have, those that ones with times must have besides, and those they may."""
BLANKS = (" ", "\u00a0", "\u202f")
"""The blanks between thousands, which nobody tells apart: whichever is declared, all three are read."""
APOSTROPHES = ("'", "\u2019")
PIECE = re.compile(r"%(.?)|([^%]+)", re.DOTALL)
Currency = Annotated[str, of_form(r"[€$£¥₹₩₺]|[A-Z]{3}|kr|zł", "a sign such as £ or kr, or three capitals")]
EXAMPLE = datetime(2021, 12, 31, 23, 59, 58, 500_000, UTC)


class TextForm(Strict):
    """How numbers and dates are written where the data are text; a key that is left out changes nothing."""

    decimal: Annotated[Literal[".", ","] | None, Field(description="The mark before decimals. (default: a point)")] = (
        None
    )
    thousands: Annotated[
        Literal[".", ",", " ", "\u00a0", "\u202f", "'", "\u2019"] | None,
        Field(description="The mark between groups of three digits. (default: none)"),
    ] = None
    currency: Annotated[
        Currency | None,
        Field(description="The sign that stands before or behind numbers, which is left out. (default: none)"),
    ] = None
    date_format: Annotated[
        str | None, Field(max_length=40, description="How dates are written, such as %d.%m.%Y. (default: ISO)")
    ] = None
    datetime_format: Annotated[
        str | None,
        Field(max_length=40, description="How dates with times are written, as %d.%m.%Y %H:%M. (default: ISO)"),
    ] = None

    @field_validator("date_format")
    @classmethod
    def _check_dates(cls, written: str | None) -> str | None:
        return None if written is None else _checked(written, OF_DATES, ())

    @field_validator("datetime_format")
    @classmethod
    def _check_times(cls, written: str | None) -> str | None:
        return None if written is None else _checked(written, (*OF_DATES, *OF_TIMES), MAY)

    @model_validator(mode="after")
    def _check(self) -> "TextForm":
        if self.currency and self.decimal is None:  # beside a sign 1.500 is 1.5 or 1500 as it is without
            raise ColumnFaults([("currency", 'goes with `decimal`, as in `{decimal: ".", currency: "£"}`')])
        if self.thousands == self.point:
            other = "." if self.decimal == "," else ","
            raise ColumnFaults([("decimal", f'must be another mark than `thousands`: write decimal: "{other}"')])
        return self

    @property
    def point(self) -> str:
        """The mark before decimals."""
        return self.decimal or "."

    @property
    def is_of_numbers(self) -> bool:
        """Tell whether it says how numbers are written."""
        return self.decimal is not None or self.thousands is not None

    @property
    def is_of_dates(self) -> bool:
        """Tell whether it says how dates are written, with times or without."""
        return self.date_format is not None or self.datetime_format is not None

    @property
    def marks(self) -> str:
        """Return the characters that may stand between thousands."""
        families = (BLANKS, APOSTROPHES)
        return next(("".join(one) for one in families if self.thousands in one), self.thousands or "")

    @property
    def numbers_in_words(self) -> str:
        """Say how numbers are written, with an example."""
        example = f"1{self.thousands or ''}234{self.point}5"
        between = "" if self.thousands else ", without marks between thousands"
        beside = f", with or without {self.currency}" if self.currency else ""
        return f"as {example}{between}{beside}"

    @property
    def in_words(self) -> str:
        """Say how numbers and dates are written where that is not as usual, with examples."""
        numbers = [f"numbers {self.numbers_in_words}"] if self.is_of_numbers else []
        return ", and ".join(numbers + [f"dates {self.dates_in_words}"] * self.is_of_dates)

    @property
    def dates_in_words(self) -> str:
        """Say how dates are written, with examples."""
        formats = self.date_format or "%Y-%m-%d", self.datetime_format or "%Y-%m-%d %H:%M:%S"
        return "as " + " or ".join(EXAMPLE.strftime(one) for one in formats)


Text = Annotated[
    TextForm | None,
    Field(exclude=True, description="How numbers and dates are written where the raw data are text."),
]
"""A key that is no part of what is hashed, planned or handed over."""


def as_written(form: TextForm | None) -> dict[str, dict[str, str]]:
    """Return the key of a schema's file, where there is one."""
    return {} if form is None else {"text": form.model_dump(exclude_none=True)}


def pieces(written: str) -> list[tuple[str, str]]:
    """Cut a format into directives and what stands between them: pairs of which one is empty."""
    return [(match[1] or "", match[2] or "") for match in PIECE.finditer(written)]


def _has_parted_seconds(parts: Sequence[tuple[str, str]]) -> bool:
    """Tell whether parts of seconds, if there are any, stand behind the seconds and a mark."""
    names = [directive for directive, _ in parts]
    return "f" not in names or ("S" in names and names.index("f") == names.index("S") + 2)


def _checked(written: str, needs: Sequence[str], may: Sequence[str]) -> str:
    """Hold a format to the directives that can be read in one way alone."""
    parts = pieces(written)
    directives = [match[1] for match in PIECE.finditer(written) if match[2] is None]
    known = ", ".join(f"%{one}" for one in (*needs, *may))
    if "y" in directives:
        raise ValueError("must not have %y: a year of two digits may be of two centuries; write the data with %Y")
    if strange := next((one for one in directives if one not in (*needs, *may)), None):
        raise ValueError(f"has no directive %{strange}; there are {known}")
    if "" in directives or any(char.isdigit() or not char.isprintable() for _, text in parts for char in text):
        raise ValueError(f"must have no digits and no single % between its directives, which are {known}")
    if missing := [f"%{one}" for one in needs if one not in directives]:
        raise ValueError(f"must have {' and '.join(missing)}, as {'%d.%m.%Y %H:%M' if may else '%d.%m.%Y'} has")
    if len({*directives}) < len(directives) or not _has_parted_seconds(parts):
        raise ValueError("must have each directive once, and %f behind %S with a mark between them, as %S.%f")
    if written != written.strip():
        raise ValueError("must not begin or end with a blank: fields are read without those")
    return written
