"""Names and listed values that by their words may be of a special category of data (GDPR, Art. 9(1)).

A schema is public, and so is what its words hint at. A hint is a question to a person: words decide nothing.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

MOST = 3
"""So many hints are given; whoever answers one looks at the rest."""
SPECIAL = re.compile(
    r"health|medical|medicine|diagnos|disease|illness|disab|pregnan|blood|genetic|biometric|religio|church|faith|"
    r"trade union|ethnic|racial|sexual|politic|"
    r"gesundheit|krank|diagnose|schwanger|behinder|konfession|gewerkschaft|ethnisch|sexuell|politisch|"
    r"santé|maladie|grossesse|handicap|syndica|ethni|politique",
    re.IGNORECASE,
)


def hints(columns: Mapping[str, Any]) -> list[str]:
    """Return columns, or values that they list, whose words may be of a special category; the first few.

    Args:
        columns: of a schema, by name.
    """
    every = (hint for name, column in columns.items() for hint in _hints(name, column))
    return [hint for hint, _ in zip(every, range(MOST), strict=False)]


def _hints(name: str, column: Any) -> Iterator[str]:
    """Yield a hint of a column: its name, or else the first such value that it lists."""
    if SPECIAL.search(name):
        yield f"column {name}"
        return
    values = [str(one) for one in getattr(column, "values", None) or ()]
    yield from (f"“{one}” in column {name}" for one in list(filter(SPECIAL.search, values))[:1])
