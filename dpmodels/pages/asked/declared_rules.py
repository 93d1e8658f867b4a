"""Which checks of a hand-off are rules of its schema: what stands under `constraints`, one number on every page.

Bounds of a derived column are checked as rules are, and are bounds all the same.
"""

import re
from collections.abc import Container, Iterable

from dpmodels.pages.figures.ruled import RULE, WHEN
from dpmodels.plural import counted

SIGN = re.compile(r"<=|>=|<|>")
WHERE = "`constraints` of schema.yaml"
"""Where whoever counts rules finds all of them."""


def declared_rules(checks: Iterable[str], derived: Container[str]) -> list[str]:
    """Return those checks that are rules of a schema, as it writes them, of a table with such derived columns."""
    every = (match[1].strip() for match in map(RULE.match, checks) if match)
    return [one for one in every if WHEN.fullmatch(one) or not _is_bound(one, derived)]


def _is_bound(rule: str, derived: Container[str]) -> bool:
    """Tell whether a rule holds a derived column, which no rule of a schema compares, to its bounds."""
    return any(side.strip() in derived for side in SIGN.split(rule))


def rules_in_words(number: int) -> str:
    """Write how many rules there are, and where they stand."""
    return f"{counted(number, 'rule')} ({WHERE})"
