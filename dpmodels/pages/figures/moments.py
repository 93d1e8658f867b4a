"""Of which dates and times a release counted no single days, or no single hours, so that weekdays and hours are lost.

A datetime column is counted in ranges, and within one its rows are spread alike: by ranges of weeks no row tells which
weekday or hour is frequent, however close the quantiles are.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dpmodels.pages.notes import not_handed_over

Facts = Mapping[str, Any]
MOMENT = "datetime"
BETWEEN = " to "
DAY, HOUR = len("2025-01-31"), len("2025-01-31 08")
"""Letters of a moment, as labels write it, which name its day, and its hour."""
STATES = ("exactly 0", "null")


def uncounted_moments(report: Facts) -> dict[str, list[str]]:
    """Name the dates and times that are handed over, by what of them no count tells: weekdays, and hours too."""
    dropped, every = not_handed_over(report), dict[str, list[str]]()
    for column in report.get("columns", ()):
        if column.get("type") == MOMENT and column["name"] not in dropped and (lost := _lost(column)):
            every.setdefault(lost, []).append(column["name"])
    return every


def uncounted_in_words(report: Facts, named: Callable[[list[str]], str]) -> Iterator[str]:
    """Say which weekdays and hours nobody is to ask for."""
    for what, names in uncounted_moments(report).items():
        yield f"{what} of {named(names)}: only longer ranges were counted, within which all come out alike"


def _lost(column: Facts) -> str:
    """Say what no count of a column tells; empty where each is of one hour, or of one day of a column of days."""
    labels = [one for one in column.get("ranges") or column.get("labels", ()) if one not in STATES]
    ends = [one.split(BETWEEN) for one in labels]
    has_hours = any(len(end) > DAY for pair in ends for end in pair)
    of_days = all(len({end[:DAY] for end in pair}) == 1 for pair in ends)
    of_hours = all(len({end[:HOUR] for end in pair}) == 1 for pair in ends)
    if of_days:
        return "hours" if has_hours and not of_hours else ""
    return "weekdays and hours" if has_hours else "weekdays"
