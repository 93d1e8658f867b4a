"""Words that compare a column of numbers: `below grade 4`, `grade 4 and above`, `in the first half year` of service.

What is read names one column of numbers and a number, or the only column that counts how long something has lasted.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dpmodels.authoring.file_types import NUMBERS

NUMBER = r"\d+(?:\.\d+)?"
SIGNS = {
    "<": r"below|under|lower than|less than|unter(?:halb(?: von)?)?|au-dessous d[eu]|en dessous d[eu]|por debajo de",
    ">": r"above|over|higher than|more than|über|oberhalb(?: von)?|au-dessus d[eu]|por encima de",
    ">=": r"at least|from|ab|mindestens|à partir d[eu]|a partir de",
    "<=": r"at most|up to|höchstens|bis|jusqu['’ ]?à|hasta",
}
OPPOSITES = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}
BEFORE = "|".join(SIGNS.values())
"""Words that stand before what is compared, and may stand for a condition without an `if`."""
BEHIND = {
    ">=": r"(?:and|or) (?:above|higher|up|over|more)|und (?:höher|darüber|mehr)|et plus|y más",
    "<=": r"(?:and|or) (?:below|lower|under|less)|und (?:niedriger|darunter|weniger)|et moins|y menos",
}
NAME, IS = r"(?:the |der |die |das |le |la |el )?(?P<name>[^\W\d][\w -]*?)", r"(?:(?:is|ist|est|es)\s+)?"
FORMS = (
    *((sign, rf"(?:{words})\s+{NAME}\s+(?P<number>{NUMBER})") for sign, words in SIGNS.items()),
    *((sign, rf"{NAME}\s+{IS}(?:{words})\s+(?P<number>{NUMBER})") for sign, words in SIGNS.items()),
    *((sign, rf"{NAME}\s+(?P<number>{NUMBER})\s+(?:{words})") for sign, words in BEHIND.items()),
    *((sign, rf"{NAME}\s*{sign}\s*(?P<number>{NUMBER})") for sign in SIGNS),
)
COUNTS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "twelve": 12,
    "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "zwölf": 12,
}  # fmt: skip
UNITS = {
    6: r"half[ -]year|halbjahr|halben jahr",
    12: r"years?|jahre?n?",
    1: r"months?|monate?n?",
}
"""Spans by their months."""
FIRST = re.compile(
    rf"(?:the |im |den |der |dem )?(?:first|ersten?) (?:(?P<count>\d{{1,3}}|{'|'.join(COUNTS)}) )?"
    rf"(?P<unit>{'|'.join(UNITS.values())})"
    r"(?: of (?:service|employment)| in (?:the )?(?:job|company)| der beschäftigung)?",
    re.IGNORECASE,
)
LASTED = (
    r"(?:of (?:service|employment|seniority|tenure)|employed|in (?:the )?(?:job|company|service|post)|"
    r"since (?:joining|hiring|the start of (?:work|employment))|im betrieb|der beschäftigung|betriebszugehörigkeit)"
)
COUNTED = {
    1: re.compile(rf"\b(?:months?|monate)[ _]{LASTED}\b", re.IGNORECASE),
    12: re.compile(rf"\b(?:years?|jahre)[ _]{LASTED}\b", re.IGNORECASE),
}
"""What a column of numbers counts that says how long somebody has been employed, by the months of one."""


class Comparisons:
    """The columns of numbers of a table, as words compare them."""

    def __init__(self, keys: Mapping[str, Mapping[str, Any]], descriptions: Mapping[str, str]) -> None:
        self._named: dict[str, list[str]] = {}
        self._lasting: list[tuple[str, int]] = []
        for name, one in keys.items():
            if _is_of_numbers(one):
                self._named.setdefault(_plain(name), []).append(name)
                self._lasting += [(name, months) for months in _months(name, descriptions.get(name, ""))]

    def read(self, words: str, column: str) -> tuple[str, str, int | float] | None:
        """Return the other column, the sign and the number that words compare it with; None where they do not."""
        for sign, form in FORMS:
            if match := re.fullmatch(form, words.strip(), re.IGNORECASE):
                names = [name for name in self._named.get(_plain(match["name"]), []) if name != column]
                if len(names) == 1:
                    number = float(match["number"])
                    return names[0], sign, int(number) if number.is_integer() else number
        return self._first(words, column)

    def _first(self, words: str, column: str) -> tuple[str, str, int | float] | None:
        """Read that somebody has been employed for less than some months, by the one column that counts that."""
        match = FIRST.fullmatch(words.strip())
        if match is None or len(self._lasting) != 1 or self._lasting[0][0] == column:
            return None
        name, months_of_one = self._lasting[0]
        count = (match["count"] or "1").casefold()
        of_unit = next(one for one, form in UNITS.items() if re.fullmatch(form, match["unit"], re.IGNORECASE))
        months = (int(count) if count.isdigit() else COUNTS[count]) * of_unit
        return (name, "<", months // months_of_one) if months % months_of_one == 0 else None


def _months(name: str, description: str) -> Iterator[int]:
    for months, form in COUNTED.items():
        if form.search(f"{re.sub('_', ' ', name)}; {description}"):
            yield months


def _is_of_numbers(keys: Mapping[str, Any]) -> bool:
    values = keys.get("values")
    listed = isinstance(values, list | tuple) and all(type(one) in (int, float) for one in values)
    return "computed" not in keys and (keys.get("type") in NUMBERS or (keys.get("type") == "categorical" and listed))


def _plain(words: str) -> str:
    return re.sub(r"[\W_]+", " ", words).strip().casefold()
