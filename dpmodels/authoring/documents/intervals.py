"""How documents write the ends of what a column may hold, and what values stand for."""

import re

NUMBER = r"[-+]?[\d.,]*\d(?:e[-+]?\d+)?"
DAY = r"\d{4}-\d\d-\d\d|\d\d?/\d\d?/\d{4}"
END = rf"({NUMBER}|{DAY})"
RANGE = re.compile(
    rf"\[?\s*(?:(?:von|from|between|zwischen|de|desde|entre)\s+)?{END}\s*"
    rf"(?:\.\.+|…|–|—|(?<=\d)\s*-|\b(?:to|through|and|bis|und|à|a|au|et|y|hasta)\b)\s*{END}\s*\]?",
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
LABELED = re.compile(r"(.+?)(?:\s*=\s*|:\s+|\s+[-–]\s+)(\S.*)")


def bare(cell: str) -> str:
    """Return a cell of numbers without the words and signs of currencies."""
    return CURRENCY.sub(" ", cell).strip()
