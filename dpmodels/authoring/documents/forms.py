"""What a document says in words of the table as a whole: how many rows it has, and how its text is written."""

import re

from dpmodels.authoring.facts import DECIMAL_COMMA
from dpmodels.authoring.marks import DECIMAL_POINT

COUNT = r"(\d{1,3}(?:[ \u00a0\u202f\u2009.,'’]\d{3}){1,3}|\d{1,12})"
COUNTS = rf"(?<![\w.,]){COUNT}\s*(?:to|and|bis|und|à|et|a|y|-|–)\s*{COUNT}\s+"
ROWS = "rows|records|lines|zeilen|datensätzen?|lignes|enregistrements|filas|registros"
A_ROW = re.compile(
    r"\b(?:(?:one|a|each|every) (?:row|line|record)|(?:eine|jede) zeile|(?:une|chaque) ligne|(?:una|cada) fila)\s*"
    r"(?:is|=|:|stands for|ist|est|es)\s*(?:(?:one|a|an|eine?|une?|una)\s+)?([^\W\d]{3,})",
    re.IGNORECASE,
)
"""What one row is, so that so many of these are so many rows."""
LONGEST = 80  # letters of a sentence that a comment quotes
DAY, MONTH, YEAR = (
    "DD|JJ|TT|dd|jj|tt|(?i:day|tag|jour|día)",
    "MM|mm|(?i:month|monat|mois|mes)",
    "YYYY|AAAA|JJJJ|yyyy|aaaa|jjjj|(?i:year|jahr|année|año)",
)
DATE = re.compile(
    rf"(?<![\w/.-])(?:({DAY})([./-])({MONTH})\2({YEAR})|({MONTH})([./-])(DD|dd|(?i:day))\6(YYYY|yyyy|(?i:year)))(?![\w/-])"
)
COMMA = r"(?:comma|komma|virgule|coma|[\"'`‘“]?,[\"'`’”]?)"
DECIMAL_COMMA_SAID = re.compile(
    r"\b(?:decimal comma|comma (?:as|for) (?:the )?decimal|dezimalkomma|komma als dezimal|virgule décimale|"
    r"coma decimal|(?:decimal (?:separator|mark|sign)|dezimal(?:trenn)?zeichen|séparateur décimal|separador decimal)"
    rf"\s*(?:is|ist|est|es|[=:])?\s*(?:(?:a|das|une|una)\s)?{COMMA})",
    re.IGNORECASE,
)
"""Words by which the numbers of a file have a comma before their decimals."""
TIME = re.compile(r"[ T](?:HH|hh):(?:MM|mm)(:(?:SS|ss))?(?![\w:])")
"""What stands behind the form of a date where a time of day belongs to it."""
MONEY = re.compile(r"(?<![\w$£])([$£])\s?(\d[\d.,]*)")
POINT_MONEY = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d\d?)?")
"""An amount behind its sign, with a point before cents and commas between thousands, if it has either."""
BLANK_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:[ \u00a0\u202f\u2009]\d{3})+,\d")
ZERO_CENTS, CENTS = re.compile(r",\d0$"), re.compile(r",\d\d$")
NUMBER = re.compile(r"(?<![\d.,/])\d{1,12}(?:[ \u00a0\u202f.,]\d{1,12}){0,4}(?![\d.,/]{0,20}\d)")
SPAN = re.compile(r"(?<![\w.,])\d{1,12},\d{1,6} ?(?:to|bis|à|a|hasta|–|-) ?\d{1,12},\d{1,6}(?![\w.,])", re.IGNORECASE)
DENIED = re.compile(r"\b(?:not|never|no|nor|nicht|nie|kein\w*|ne|pas|jamais|nunca|sin)\b[^.;\n]*$", re.IGNORECASE)
"""What before a form, in its sentence, may say that nothing is written so."""


def rows_in(text: str) -> tuple[int, int, str] | None:
    """Return how many rows a document says that its table has, and the words; None where none or two do."""
    nouns = "".join(rf"|{noun}(?:e?[sn]|x)?" for noun in {*A_ROW.findall(text)})
    counts = re.finditer(rf"{COUNTS}(?:{ROWS}{nouns})\b", text, re.IGNORECASE)
    ranges = {tuple(int(re.sub(r"\D", "", one)) for one in match.groups()): match for match in counts}
    if len(ranges) != 1:
        return None
    ((least, most), match) = next(iter(ranges.items()))
    start = max(text.rfind(mark, 0, match.start()) + 1 for mark in (". ", "\n", "; "))
    end = re.compile(r"[.;](?:\s|$)|\n|$").search(text, match.end())
    words = text[start : end.start() if end else match.end()].strip()[:LONGEST]
    return (least, most, words) if 0 < least < most else None


def date_format_in(text: str) -> str:
    """Return how dates are written, of a form such as `JJ/MM/AAAA`; empty where none or two are."""
    formats = set()
    for match in DATE.finditer(text):
        if DENIED.search(text, max(0, match.start() - LONGEST), match.start()):
            continue
        mark = match[2] or match[6]
        formats.add(f"%d{mark}%m{mark}%Y" if match[1] else f"%m{mark}%d{mark}%Y")
    return formats.pop() if len(formats) == 1 else ""


def moment_format_in(text: str) -> str:
    """Return how dates with times are written, of a form such as `MM/DD/YYYY HH:MM`; empty where none or two are."""
    written = date_format_in(text)
    times = {match[1] or "" for date in DATE.finditer(text) if (match := TIME.match(text, date.end()))}
    return f"{written} %H:%M{':%S' * bool(times.pop())}" if written and len(times) == 1 else ""


def money_in(text: str) -> dict[str, str]:
    """Return how amounts are written, of bounds such as `$1,200.00`; nothing where no sign or two stand before them."""
    written = [(sign, amount.rstrip(".,")) for sign, amount in MONEY.findall(text)]
    signs = {sign for sign, _ in written}
    is_read = len(signs) == 1 and all(POINT_MONEY.fullmatch(amount) for _, amount in written)
    return {"decimal": ".", "thousands": ",", "currency": signs.pop()} if is_read else {}


def with_comma(text: str) -> dict[str, str]:
    """Return how numbers with a comma before decimals are written, of which a blank may part the thousands."""
    return {"decimal": ",", **({"thousands": " "} if BLANK_THOUSANDS.search(text) else {})}


def says_comma(text: str) -> bool:
    """Tell whether a document says in words that a comma stands before decimals, as `decimal comma`."""
    said = DECIMAL_COMMA_SAID.search(text)
    return said is not None and not DENIED.search(text, max(0, said.start() - LONGEST), said.start())


def has_comma(text: str) -> bool:
    """Tell whether prose writes decimals behind a comma, as `1,00`, and none behind a point."""
    numbers = [re.sub(r"[ \u00a0\u202f\u2009]", "", number) for number in NUMBER.findall(text)]
    with_commas = [one for one in numbers if DECIMAL_COMMA.fullmatch(one)]
    cents = sum(CENTS.search(one) is not None for one in with_commas)
    is_sure = (
        cents > 1 or any(map(ZERO_CENTS.search, with_commas)) or SPAN.search(text) is not None
    )  # of `1,2` a list of codes may be made too
    return is_sure and not any(map(DECIMAL_POINT.fullmatch, numbers))
