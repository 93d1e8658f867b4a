"""Tell figures from words in facts that somebody else wrote."""

import math
from collections.abc import Collection
from typing import Any

FIGURES_OF_A_RATE = ("released", "stddev", "synthetic", "share", "within")
"""What a report says of the rate of the target in each group of a column."""


def are_figures(value: Any, keys: Collection[str] = ()) -> bool:
    """Tell whether a value is a number, none, or lists of these; mappings of these have no other keys than ``keys``."""
    if isinstance(value, list):
        return all(are_figures(one, keys) for one in value)
    if isinstance(value, dict):
        return value.keys() <= set(keys) and all(are_figures(one, keys) for one in value.values())
    return value is None or isinstance(value, bool) or is_number(value)


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number, and no boolean."""
    return type(value) in (int, float) and math.isfinite(value)


def ascend(values: Any) -> bool:
    """Tell whether a value is a list of numbers of which none is below the one before it."""
    return isinstance(values, list) and all(map(is_number, values)) and values == sorted(values)


def has_figures(facts: Any, keys: Collection[str], *words: str) -> bool:
    """Tell whether a mapping has exactly these keys and words, and figures under the keys."""
    if not isinstance(facts, dict) or facts.keys() != {*keys, *words}:
        return False
    return all(are_figures(facts[key]) for key in keys)
