"""Columns most of whose values are exactly 0 or null: how often they are, and what is known of their other values."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.pages.glance import rank_error, unresolved

Facts = Mapping[str, Any]
STATES = ("exactly 0", "null")
"""How a report calls values that are none of an interval."""
MOSTLY = 0.5
"""Part of the rows that have another value than 0 below which these are looked at by themselves."""


def is_mostly_empty(column: Facts) -> bool:
    """Tell whether most values of a number column are exactly 0 or null, as far as is known."""
    return bool(column["ordered"] and "released" in column and not unresolved(column) and _part(column) < MOSTLY)


def _part(column: Facts) -> float:
    """Return the share of synthetic rows that have a value other than 0, where zeros are counted by themselves."""
    shares = zip(column["labels"], column["synthetic"], strict=True)
    return float(sum(share for label, share in shares if label not in STATES))


def error_of_values(column: Facts) -> float:
    """Return what the quantiles of a column's values that are neither 0 nor null are within, of these values."""
    return 2 * rank_error(column) / max(_part(column), 1e-9)


def states_of(columns: Sequence[Facts], names: Sequence[str]) -> list[str]:
    """Name what values of some columns are that are none of an interval."""
    there = {label for one in columns if one["name"] in names for label in one["labels"]}
    return [words for label, words in zip(STATES, ("0", "null"), strict=True) if label in there]
