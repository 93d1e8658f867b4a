"""Columns most of whose values are exactly 0 or null: how often they are, and what is known of their other values."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.pages.glance import likely_error, rank_error, unresolved

Facts = Mapping[str, Any]
STATES = ("exactly 0", "null")
"""How a report calls values that are none of an interval."""
MOSTLY = 0.5
"""Part of the rows that have another value than 0 below which these are looked at by themselves."""


def is_mostly_empty(column: Facts) -> bool:
    """Tell whether most values of a number column, derived ones too, are exactly 0 or null, as far as is known."""
    is_known = "quantiles_within" in column if "follows" in column else "released" in column and not unresolved(column)
    return bool(column["ordered"] and is_known and _part(column) < MOSTLY)


def _part(column: Facts) -> float:
    """Return the share of synthetic rows that have a value other than 0, where zeros are counted by themselves."""
    shares = zip(column["labels"], column["synthetic"], strict=True)
    return float(sum(share for label, share in shares if label not in STATES))


def error_of_values(column: Facts) -> float:
    """Return what the quantiles of a column's values that are neither 0 nor null are within, of these values."""
    quantiles = column["quantiles_within"] if "follows" in column else rank_error(column)
    return float(2 * quantiles / max(_part(column), 1e-9))


def error_of_states(column: Facts) -> float:
    """Return within what it is how often a column is 0 or null."""
    return float(column["quantiles_within"]) if "follows" in column else likely_error(column)


def states_of(columns: Sequence[Facts], names: Sequence[str]) -> list[str]:
    """Name what values of some columns are that are none of an interval."""
    there = {label for one in columns if one["name"] in names for label in one["labels"]}
    return [words for label, words in zip(STATES, ("0", "null"), strict=True) if label in there]
