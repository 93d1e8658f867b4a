"""Days that documents write in words, such as `1 September 2021`, `1er juillet 2020` and `March 5, 2019`."""

import re
from datetime import date

MONTHS = (
    "jan|ene", "f[eé][bv]", "m[aä]r|mrz|maart|mrt", "apr|avr|abr", "ma[iy]|mei", "jun|juin", "jul|juil",
    "aug|ao[uû]|ago", "sep|set", "o[ck]t", "nov", "de[cz]|déc|dic",
)  # fmt: skip
"""How the months begin in English, German, French, Spanish and Dutch."""
MONTH = "|".join(rf"(?:{begin})[^\W\d_]{{0,7}}" for begin in MONTHS)
DAY, YEAR = r"(?P<day>\d\d?)", r"(?P<year>\d{4})"
WRITTEN = tuple(
    re.compile(rf"(?<![\w.,-]){form}(?![\w-])", re.IGNORECASE)
    for form in (
        rf"{DAY}(?:st|nd|rd|th|er|º|\.)?\s+(?:of\s+|de\s+)?(?P<month>{MONTH})\.?,?\s+(?:del?\s+)?{YEAR}",
        rf"(?P<month>{MONTH})\.?\s+{DAY}(?:st|nd|rd|th)?,?\s+{YEAR}",
    )
)


OF_ONE_YEAR = re.compile(
    rf"(?<![\w.,-])(?P<first>(?:\d\d?(?:st|nd|rd|th|er|º|\.)?\s+(?:of\s+|de\s+)?)?(?:{MONTH})\.?(?:\s+\d\d?(?:st|nd|rd|th)?)?)"
    rf"(?P<to>\s*(?:[-–]|to|until|bis|au|jusqu'au|al?|hasta(?: el)?)\s*)(?P<last>[^;()]{{3,30}}?\s+{YEAR})(?!\d)",
    re.IGNORECASE,
)
"""Two days of which the second has the year of both, as `from 1 January to 31 December 2025`."""


def with_plain_days(text: str) -> str:
    """Return a text in which days in words are written as 2021-09-01; what is no day stays as it is."""
    text = OF_ONE_YEAR.sub(lambda one: f"{one['first']} {one['year']}{one['to']}{one['last']}", text)
    for form in WRITTEN:
        text = form.sub(_plain, text)
    return text


def _plain(match: re.Match[str]) -> str:
    word = match["month"].casefold()
    month = next(number for number, begin in enumerate(MONTHS, 1) if re.match(begin, word))
    try:
        return date(int(match["year"]), month, int(match["day"])).isoformat()
    except ValueError:
        return match[0]
