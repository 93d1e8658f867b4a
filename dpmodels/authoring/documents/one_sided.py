"""One bound in words, such as `at least 18`, `jusqu'à 25` and `not before 2021-09-01`."""

import re

from dpmodels.authoring.documents.intervals import DAY, NUMBER

OF = r"(?: of| von| van| del?| du)?:?\s+(?:(?:the|dem|den|le|el)\s+)?"
LOWER, UPPER = (
    r"at least|minimum|min\.?|no less than|mindestens|minimal|minstens|ten minste|minimaal|au moins|al menos|mínimo",
    r"at most|maximum|max\.?|no more than|up to|höchstens|maximal|hoogstens|ten hoogste|maximaal|"
    r"bis zum?|jusqu['’](?:à|au)|au plus|au maximum|"
    r"como máximo|máximo",
)
EARLIEST, LATEST = (
    r"(?:not|no) (?:before|earlier than)|nicht vor|frühestens|niet voor|op zijn vroegst|pas avant|au plus tôt|no antes",
    r"(?:not|no) (?:after|later than)|nicht nach|spätestens|niet na|uiterlijk|pas après|au plus tard|no después",
)
"""Words of days; before a number, such as that of a year, they may say since when a column is filled in."""
FROM, UNTIL = (
    r"from|since|ab|seit|vanaf|sinds|à partir|depuis|desde|a partir",
    r"until|till|to|bis|tot|jusqu['’]en|hasta",
)
"""Words that say a bound where a heading says that bounds stand there, and elsewhere often something else."""


def _form(words: str, end: str = f"{NUMBER}|{DAY}") -> str:
    return rf"(?:{words}){OF}({end})(?:\s+(?:on|onwards?))?"


LIMITS = {
    "min": re.compile(f"{_form(LOWER)}|{_form(EARLIEST, DAY)}", re.IGNORECASE),
    "max": re.compile(f"{_form(UPPER)}|{_form(LATEST, DAY)}", re.IGNORECASE),
}
HEADED = {
    "min": re.compile(_form(f"{LOWER}|{EARLIEST}|{FROM}"), re.IGNORECASE),
    "max": re.compile(_form(f"{UPPER}|{LATEST}|{UNTIL}"), re.IGNORECASE),
}


def limit_in(text: str, is_headed: bool = False) -> tuple[str, str] | None:
    """Return which bound a text is, `min` or `max`, and its end; None of any other text.

    ``is_headed``: the text stands under a heading of values or of bounds.
    """
    for key, form in (HEADED if is_headed else LIMITS).items():
        if match := form.fullmatch(text):
            return key, match[match.lastindex or 1]
    return None
