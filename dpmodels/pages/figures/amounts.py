"""How pages write the figures of a number column: times of day as 08:00, years without marks, others as numbers."""

from collections.abc import Mapping
from typing import Any

from dpmodels.clock import MINUTE, duration, time_of_day
from dpmodels.pages.page import beside, ends, short, short_up
from dpmodels.pages.words import is_of_years

Facts = Mapping[str, Any]


def amount(column: Facts, number: float, within: float | None = None) -> str:
    """Write a value of a column, to two figures of what it is within where that is known."""
    if clock := column.get("clock"):
        return time_of_day(number, clock, within is not None and within < MINUTE * clock)
    return beside(number, within, is_of_years(column))


def error(column: Facts, number: float) -> str:
    """Write how far off a value of a column is, rounded up."""
    return duration(number, column["clock"]) if column.get("clock") else short_up(number)


def large_amount(column: Facts, number: float) -> str:
    """Write a quantile of a column, of which four figures are enough."""
    return amount(column, number) if column.get("clock") else short(number, is_of_years(column))


def both_ends(column: Facts, low: float, high: float) -> tuple[str, str]:
    """Write between what a value of a column lies."""
    if column.get("clock"):
        return amount(column, low), amount(column, high)
    return ends(low, high, of_years=is_of_years(column))
