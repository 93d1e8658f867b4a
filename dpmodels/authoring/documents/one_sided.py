"""One bound in words, such as `at least 18`, `jusqu'à 25` and `not before 2021-09-01`."""

import re

from dpmodels.authoring.documents.intervals import DAY, NUMBER

OF = r"(?: of| von| del?| du)?:?\s+(?:(?:the|dem|den|le|el)\s+)?"
LOWER, UPPER = (
    r"at least|minimum|min\.?|no less than|mindestens|minimal|au moins|al menos|mínimo|"
    r"(?:not|no) (?:before|earlier than)|nicht vor|frühestens|pas avant|au plus tôt|no antes",
    r"at most|maximum|max\.?|no more than|up to|höchstens|maximal|bis zum?|jusqu['’](?:à|au)|au plus|au maximum|"
    r"como máximo|máximo|(?:not|no) (?:after|later than)|nicht nach|spätestens|pas après|au plus tard|no después",
)
FROM, UNTIL = (
    r"from|since|ab|seit|à partir|depuis|desde|a partir",
    r"until|till|to|bis|jusqu['’]en|hasta",
)
"""Words that say a bound where a heading says that bounds stand there, and elsewhere often something else."""
LIMITS, HEADED = (
    {
        key: re.compile(rf"(?:{words}){OF}({NUMBER}|{DAY})(?:\s+(?:on|onwards?))?", re.IGNORECASE)
        for key, words in (("min", lower), ("max", upper))
    }
    for lower, upper in ((LOWER, UPPER), (f"{LOWER}|{FROM}", f"{UPPER}|{UNTIL}"))
)


def limit_in(text: str, is_headed: bool = False) -> tuple[str, str] | None:
    """Return which bound a text is, `min` or `max`, and its end; None of any other text.

    ``is_headed``: the text stands under a heading of values or of bounds.
    """
    forms = HEADED if is_headed else LIMITS
    return next(((key, match[1]) for key, form in forms.items() if (match := form.fullmatch(text))), None)
