"""How documents write the ends of what a column may hold, and what values stand for."""

import re
from collections.abc import Sequence

NUMBER = r"[-+]?[\d.,]*\d(?:e[-+]?\d+)?"
DAY = r"\d{4}-\d\d-\d\d|\d\d?/\d\d?/\d{4}"
END = rf"({NUMBER}|{DAY})"
TO = (
    r"to|through|and|bis(?: zum)?|und|à|a|al|au|et(?: le)?|y|hasta(?: el)?|tot(?: en met)?|t/m|"
    r"(?:up to|until|till)(?: and including)?|jusqu['’](?:à|au)"
)
"""Words between two ends."""
RANGE = re.compile(
    rf"\[?\s*(?:(?:vo[nm]|from|between|zwischen|d[eu]|del|desde|entre|ab|van(?:af)?|tussen)\s+(?:le\s+|el\s+|dem\s+)?)?{END}\s*"
    rf"(?:\.\.+|…|–|—|(?<=\d)\s*-|(?<![^\W\d])(?:{TO})(?![^\W\d]))\s*{END}\s*\]?",
    re.IGNORECASE,
)
POINTED = rf"([-+]?[\d.]*\d(?:e[-+]?\d+)?|{DAY})"
INTERVAL = re.compile(rf"([\[(\]])\s*(?:{END}\s*;\s*{END}|{POINTED}\s*,\s*{POINTED})\s*([\])\[])", re.IGNORECASE)
"""An interval as in mathematics, such as [1; 10] and [0, 1); a comma parts its ends where it stands in neither."""
SIGN = rf"(>=|=>|≥|>|<=|=<|≤|<)\s*{END}"
SIGNS = re.compile(rf"{SIGN}(?:\s*(?:,\s|;|&|\b(?:and|und|et|y)\b)?\s*{SIGN})?", re.IGNORECASE)
CURRENCY = re.compile(
    r"\s*(?:[€$£¥]|(?<![^\W\d])(?:EUR|USD|GBP|CHF|JPY|euros?|dollars?|dólares|pounds?|franken|francs?)(?![^\W\d]))\s*",
    re.IGNORECASE,
)
THOUSANDS = re.compile(r"(?<![\d,.])[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)")
BLANKS = re.compile(r"(?<![\d.,])(?<!\d\s)([1-9]\d{0,2})((?:[ \u00a0\u202f\u2009]\d{3})+)(?![\d\s]*\d)")
"""A number whose thousands blanks part, as in `1 200,00`."""
BAND = re.compile(rf"\d+\s+(?:{TO})\s+\d+", re.IGNORECASE)
LED_BY = re.compile(r"(?:vo[nm]|van(?:af)?|from|d[eu]|del|desde)\s+\d+", re.IGNORECASE)
"""What is left of the first end of an interval that was cut, as in `du 02`."""
BOTH = re.compile(r"\btussen\s+(\S+)\s+en\s+(?=\S*\d)", re.IGNORECASE)
"""The first end in Dutch, whose word for `and` stands before a year in French and Spanish."""
MOST_OPEN = 2  # numbers beside one group of numbers, as ages below and above it may be
BETWEEN = re.compile(rf"\d\s+(?:{TO})\s+[-+]?\d", re.IGNORECASE)
A_DAY = re.compile(r"(?<![\d/])(?:\d\d?\s?/\s?\d\d?\s?/\s?\d{4}|\d{4}\s?/\s?\d\d?\s?/\s?\d\d?)(?![\d/])")
OF_A_FORM = re.compile(r"(?:d{1,2}|t{1,2}|j{1,4}|m{1,2}|y{2,4}|a{2,4}|h{1,2}|s{1,2}|\W)+", re.IGNORECASE)
"""What stands for days, months and years, as in `JJ/MM/AAAA`."""
LABELED = re.compile(r"(.+?)(?:\s*=\s*|:\s+|\s+[-–]\s+)(\S.*)")


def bare(cell: str) -> str:
    """Return a cell of numbers without the words and signs of currencies, and without blanks between thousands."""
    plain = BOTH.sub(r"\1 tot ", CURRENCY.sub(" ", cell))
    return BLANKS.sub(lambda number: re.sub(r"\s", "", number[0]), plain).strip()


def are_pieces(cell: str, tokens: Sequence[str]) -> bool:
    """Tell whether the tokens that a cell was cut into are parts of dates, of their form, or of decimal numbers.

    Ends with a word between them, such as `1,00 à 1 200,00`, were cut at the marks of their decimals; a category such
    as `18 to 24` stands between marks as a whole.
    """
    joined = "".join(tokens)
    if A_DAY.search(cell) and not all(A_DAY.fullmatch(token) for token in tokens):
        return True
    if "/" in cell and len(tokens) > 1 and OF_A_FORM.fullmatch(joined) and any(len(token) > 1 for token in tokens):
        return re.search("[jyaJYA]{2}", joined) is not None
    if not re.search(r"\d,\d", cell) or all(BAND.fullmatch(token) for token in tokens):
        return False
    whole = [token for token in tokens if re.fullmatch(r"[-+]?\d+", token)]
    if any(re.search(r"[\s/]", token) and re.search(r"^\d|\d$", token) for token in tokens):
        return True
    return bool(re.search(r"\d,0+(?!\d)", cell)) and "00" in whole and len({*map(len, whole)}) > 1


def pieces_among(values: Sequence[str]) -> list[str]:
    """Return those of listed texts that hold a word between numbers, where all others are numbers or begin an interval.

    Groups such as `18 to 24` beside `25 to 64` are none, nor beside one number as the last.
    """
    cut = [value for value in values if BETWEEN.search(value)]
    led = [value for value in values if LED_BY.fullmatch(value)]
    whole = [value for value in values if re.fullmatch(r"[\d ]+", value)]
    is_cut = len(cut) == 1 and (led or len(whole) >= MOST_OPEN) and len(cut) + len(led) + len(whole) == len(values)
    return [*led, *cut] if is_cut else []
