"""The lists of values that stand in the cells of a data dictionary, cut into what is listed."""

import re
from collections.abc import Sequence
from itertools import pairwise

from dpmodels.authoring.documents.intervals import DAY, THOUSANDS
from dpmodels.authoring.documents.worded import LAST_OF_LIST, LED

YES, NO = (
    {"yes", "y", "true", "t", "1", "null", "x", "allowed"},
    {"no", "n", "false", "f", "0", "not null", "none", "-"},
)
FEWEST_PARTED = 3  # by slashes; two may be one word, such as N/A
LONGEST_CHOICE = 2  # words of each of two values that `or` alone parts
BLANK = re.compile(r"(?:left )?(?:empty|blank|leer|leeg|vide|vac[ií][oa])", re.IGNORECASE)
"""What stands behind the `or` of a list for a missing value."""


def listed_in(cell: str, kind: str | None) -> tuple[list[str], bool]:
    """Cut a cell into the values that it lists, if any, and tell whether it lists a missing value as the last.

    Args:
        cell: what stands under a heading of values.
        kind: of the column, if its row says it.
    """
    cell = led["list"] if (led := LED.match(cell)) else cell
    answers = [answer.strip() for answer in cell.split("/")]
    is_list = are_answers(answers) or kind == "boolean" or _are_several(answers)
    tokens = _spaced(cell, kind) or cut(cell) or (answers if is_list else [])
    if tokens[1:] or re.search(r"[|;,/\n]", cell) is None:
        tokens = _with_last(tokens or [cell])
    is_nullable = len(tokens) > 1 and BLANK.fullmatch(tokens[-1]) is not None
    return tokens[: len(tokens) - is_nullable], is_nullable


def _with_last(tokens: Sequence[str]) -> list[str]:
    """Cut the last of several values at `or`; two that nothing else parts are a list where both are short."""
    begin = r"^(?:or|oder|ou|o)\s+" if len(tokens) > 1 else "^"
    last = LAST_OF_LIST.split(re.sub(begin, "", tokens[-1], flags=re.IGNORECASE))
    if len(tokens) == 1 and (len(last) == 1 or any(len(one.split()) > LONGEST_CHOICE for one in last)):
        return []
    return [one.strip().strip("\"'") for one in (*tokens[:-1], *last)]


def are_answers(words: Sequence[str]) -> bool:
    """Tell whether all words say yes or no."""
    return {word.lower() for word in words} <= YES | NO


def _are_several(words: Sequence[str]) -> bool:
    """Tell whether what slashes part is a list: three words or more, none of them empty, and no date."""
    return len(words) >= FEWEST_PARTED and all(words) and not re.fullmatch(DAY, "/".join(words))


def _spaced(cell: str, kind: str | None) -> list[str]:
    """Cut a cell at slashes between blanks, in which a comma parts decimals then; nothing of one that is cut elsewhere.

    Of days and moments it is the form in which they are written, such as DD / MM / YYYY.
    """
    if kind in ("date", "moment") or not re.search(r"\S\s+/\s+\S", cell) or re.search(r"[|;\n]|,\s", cell):
        return []
    return [token.strip("\"'") for token in re.split(r"\s+/\s+", cell)]


def cut(cell: str) -> list[str]:
    """Cut a cell at the first of the marks that it has; a cell without one lists nothing.

    A comma parts no thousands from hundreds where others have a blank behind them, or zeros follow: `0, 80,000`.
    """
    whole = [one.span() for one in THOUSANDS.finditer(cell) if ", " in cell or ",0" in one[0]]
    mark = next((mark for mark in "|;\n" if mark in cell), ",")
    cuts = [at for at, letter in enumerate(cell) if letter == mark and not any(a < at < b for a, b in whole)]
    tokens = [cell[a + 1 : b].strip().strip("\"'") for a, b in pairwise([-1, *cuts, len(cell)])] if cuts else []
    return [token for token in tokens if token]
