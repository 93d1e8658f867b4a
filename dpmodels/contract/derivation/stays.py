"""What a schema should say of two dates beside a column of the days between them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.contract.columns import Integer
from dpmodels.namable import is_namable

OF_A_STAY = (
    "no rule says in which order {first} and {second} come: if {days} is the days between them, write "
    '`{second}: {{type: derived, formula: "add_days({first}, {days})"}}`, which keeps both '
    "(docs/columns-that-depend.md); otherwise, "
    "if one is never before the other, write so under `constraints`, as `{first} <= {second}`"
)
STAYS = re.compile(r"days?|stay|los|length|duration|dauer|tage|jours|dur[ée]e|d[ií]as|estancia|s[ée]jour")
"""What the name of a column of whole days between two dates has in it, in small letters."""


def of_a_stay(dates: Sequence[str], columns: Mapping[str, Any]) -> str:
    """Say how one of two dates is derived, where a column may hold the days between them; empty where none does."""
    days = next((name for name, column in columns.items() if _may_be_stay(name, column)), "")
    if len(dates) != 2 or not days or not all(map(is_namable, (*dates, days))):
        return ""
    return OF_A_STAY.format(first=dates[0], second=dates[1], days=days)


def _may_be_stay(name: str, column: Any) -> bool:
    """Tell whether a column of the file may hold the days between two dates."""
    return (
        isinstance(column, Integer)
        and column.computed is None
        and column.min >= 0
        and bool(STAYS.search(name.casefold()))
    )
