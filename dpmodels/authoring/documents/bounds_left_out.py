"""What a draft says of documented bounds that it does not take."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpmodels.authoring.facts import TODO, Facts

REVERSED = "is reversed, and neither bound is taken"
WITHOUT_BOUNDS = ("categorical", "boolean", "identifier")
"""Types of columns that have no bounds."""


def unused(keys: Mapping[str, Any], facts: Facts) -> list[str]:
    """Say that the documented bounds of what has no bounds are left out, or stand where the type is still open."""
    ends = [f"{key}: {end.value}" for key, end in (("min", facts.low), ("max", facts.high)) if end]
    if not ends or keys["type"] not in (TODO, *WITHOUT_BOUNDS) or keys.get("values", TODO) != TODO:
        return []
    if keys["type"] == TODO:
        return [f"{', '.join(ends)} as documented, which says no type that is read"]
    return [f"not used: {', '.join(ends)}, as documented; write its values, or a type that has bounds"]


def without_reversed(name: str, facts: Facts) -> tuple[Facts, list[str]]:
    """Leave both bounds out where a document has the larger one first: either may be the one that is wrong."""
    if facts.low is None or facts.high is None:
        return facts, []
    (low, _), (high, _) = facts.low, facts.high
    try:
        if not low > high:  # type: ignore[operator]
            return facts, []
    except TypeError:  # a number and a moment
        return facts, []
    remark = f"column {name}: the documented range {low} to {high} {REVERSED}: write the smaller one first, or as `min`"
    return replace(facts, low=None, high=None), [remark]
