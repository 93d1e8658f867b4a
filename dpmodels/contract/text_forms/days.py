"""Days as other languages write them, in the form in which nacre reads them."""

import re
from contextlib import suppress
from datetime import date

DAY = r"(\d\d?)([./])(\d\d?)\2(\d{4})"


def days_meant(text: str) -> list[str]:
    """Return the days that a text may mean with its year last: one, or two where a slash leaves the month open."""
    if (match := re.fullmatch(DAY, text.strip())) is None:
        return []
    first, mark, second, year = match.groups()
    days = dict[str, None]()
    for month, day in [(second, first), (first, second)][: 1 if mark == "." else 2]:
        with suppress(ValueError):
            days[str(date(int(year), int(month), int(day)))] = None
    return list(days)
