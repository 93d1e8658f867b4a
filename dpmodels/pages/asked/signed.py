"""What a check says beside an officer's signature: what files are not for, what it leaves out, and who advises."""

import re
from collections.abc import Mapping
from typing import Any

from dpmodels.pages.asked.limits import hard_limits, without_use
from dpmodels.pages.card_words import cut
from dpmodels.pages.figures.named import listed

RANGE = re.compile(r"(?<![\w.,(])(\d+)\s*(?:to|-|–|à|bis)\s*(\d+)(?![\w(]|[.,]\d)")
NUMBER = re.compile(r"(?<![\w.,(/-])(\d+)(?![\w(/-]|[.,]\d|\s?%)")
"""A plain number of an officer's words: none of an article, a day or an amount."""
MOST_NAMED = 3


def not_for_columns(facts: Mapping[str, Any]) -> str:
    """Name a few columns of which no use holds, count the others, and ask what they are for; empty without any."""
    if not (names := [cut(one) for one in without_use(facts)]):
        return ""
    one = len(names) == 1
    handed_over = "is handed over and has no use that holds" if one else "are handed over and have no use that holds"
    return f"{listed(names, MOST_NAMED)} {handed_over}: does the purpose need {'it' if one else 'them'}?"


def limits_left_out(facts: Mapping[str, Any], reason: str) -> str:
    """Say which limits of the statement an officer's reason does not name by its number; empty where it has all."""
    every = range(1, len(hard_limits(facts)) + 1)
    named = {int(one) for one in NUMBER.findall(reason)}
    for first, last in RANGE.findall(reason):
        named |= {one for one in every if int(first) <= one <= int(last)}
    left = [str(one) for one in every if one not in named]
    if not left:
        return ""
    if len(left) == len(every):
        return f"none of the {len(every)} limits of statement.html is named in it by its number"
    several = len(left) > 1
    return f"limit{'s' * several} {listed(left, len(left))} {'are' if several else 'is'} not named in it"
