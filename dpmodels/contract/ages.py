"""Columns that by their names hold ages, and by their bounds those of children too.

A schema is public, and so are its names and bounds. What they say is a question to a person, and no answer.
"""

import re
from collections.abc import Mapping
from typing import Any

from dpmodels.contract.columns import Integer

OF_AGE = 18
AGE = re.compile(r"(?<![^\W_])(ages?|âge|alter|edad)(?![^\W_])|^years([ _]old)?$", re.IGNORECASE)


def ages_of_minors(columns: Mapping[str, Any]) -> dict[str, int]:
    """Return whole numbers that are ages by their names and may be below 18, each with the least that it may be."""
    whole = {name: one for name, one in columns.items() if isinstance(one, Integer)}
    return {
        name: int(one.min)
        for name, one in whole.items()
        if AGE.search(name) and isinstance(one.min, int | float) and one.min < OF_AGE
    }
