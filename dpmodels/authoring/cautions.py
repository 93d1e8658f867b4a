"""What a lint says of a schema: its faults, and, where there is none, what is to be looked at before a charge."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpmodels.authoring.documents.intervals import pieces_among
from dpmodels.authoring.lint import lint, read
from dpmodels.contract.columns import Categorical, Continuous, Datetime, Derived, Integer, computed
from dpmodels.contract.formula import is_whole, moment_of
from dpmodels.contract.identifiers.identifier import Identifier
from dpmodels.contract.remarks import as_asked, before_a_charge
from dpmodels.errors import SchemaFault
from dpmodels.namable import is_namable

OF_NUMBERS = (
    "target {} has no classes: the report states no rates of it by other columns, as it does of a boolean or a "
    "categorical target"
)
NO_RULE = (
    "no rule between columns is declared: where two values cannot stand in one row, as a ward for children and an age "
    "of 40, synthetic rows may have both; write so under `constraints`, as in `when ward = paediatrics then age < 18`"
)
CUT = (
    "`outside: clip` of {} sets values beyond a bound to it, a discovered bound too: `outside: reject-row` "
    "leaves their rows out, and a bound from a public document cuts none that it allows"
)
OF_COUNT = (
    "no number of rows is declared: where it is public, `rows: {min: …, max: …}` has `nacre plan` say whether delta is "
    "too large for it; a run refuses a table with fewer rows, or more"
)
LEVELS = (
    "{}: few whole numbers, of which a report joins neighbors to groups where it states rates; if each is to have a "
    "rate of its own, as the stages of a reminder, write `type: categorical, values: [{}, …]`"
)
MOST_LEVELS = 8
"""Whole numbers up to which they may be stages, of which each matters."""
PIECES = (
    "values of {} look like pieces of a date or of a number ({}), as a list has that was cut at the wrong marks: if it "
    "lies between two ends, write its type with `min` and `max`"
)
WHOLE = (
    "{}: its formula gives whole numbers, which come back as int64 for all of `round: {}`; where the file has "
    "decimals, write `dtype: float64` beside it"
)
OF_CLOCK = (
    "{names}: days and times are counted in ranges longer than an hour, so hours come out nearly even in synthetic "
    "rows, and so do weekdays in ranges of weeks; where the hour matters, have it counted, as `{hour}: {{type: "
    "integer, min: 0, max: 23, computed: hour({name}), keep: drop}}`, whose rates and means by other columns the "
    "release then tells (docs/columns-that-depend.md)"
)
AN_HOUR = {"hour": 1, "minute": 60, "second": 3600}
"""Ticks of an hour, by resolution."""
PARTS_OF_A_DAY = re.compile(r"\b(?:hour|weekday)\((\w+)\)")
MADE_LIKE_REAL = (
    "keys that are made after a pattern (`keep: pattern:…` of {}) may by chance be those of real persons, if real keys "
    "have this form: then choose a pattern that no real key has, such as another first letter; of one that none "
    "has, as drafts suggest it, there is nothing to do"
)


def faults_and_cautions(path: str | Path) -> tuple[list[SchemaFault], list[str]]:
    """Return the faults of a contract's file, by line, and sentences on what is no fault of one that has none."""
    if faults := lint(path):
        return faults, []
    contract = read(path)[0]
    asked = (_of_pieces, _of_whole, _of_continuous, _of_clock, _of_levels, _of_rules, _of_keys, _of_count)
    further = (sentence for sentences_of in asked for sentence in sentences_of(contract))
    return [], [*as_asked(getattr(contract, "remarks", ()), contract), *before_a_charge(contract), *further]


def _of_count(contract: Any) -> Iterator[str]:
    """Ask for the number of rows of a table of records, which says before a charge whether a delta is too large."""
    if contract.is_table and contract.rows is None and not contract.unit.user:
        yield OF_COUNT


def _of_clock(contract: Any) -> Iterator[str]:
    """Say of moments that hours come out even, and how they are counted, unless a column has them or ranges do."""
    columns = contract.columns if contract.is_table else {}
    counted = {name for text in computed(columns).values() for name in PARTS_OF_A_DAY.findall(text)}
    names = [name for name, one in columns.items() if isinstance(one, Datetime) and _is_wide(one)]
    if names := [name for name in names if name not in counted and is_namable(name)]:
        hour = "hour" if "hour" not in columns else f"hour_of_{names[0]}"
        yield OF_CLOCK.format(names=", ".join(names), name=names[0], hour=hour)


def _is_wide(column: Datetime) -> bool:
    """Tell whether a range of moments finer than days spans more than an hour."""
    return column.high - column.low + 1 > AN_HOUR.get(column.resolution, math.inf) * column.cells


def _of_levels(contract: Any) -> Iterator[str]:
    """Say of whole numbers that may be stages, beside a target with classes, that a report joins them."""
    if not contract.is_table or contract.classes < 2:
        return
    numbers = {name: one for name, one in contract.columns.items() if isinstance(one, Integer) and not one.computed}
    if few := {name: one for name, one in numbers.items() if 3 <= one.high - one.low + 1 <= MOST_LEVELS}:
        low = int(next(iter(few.values())).low)
        yield LEVELS.format(", ".join(few), f"{low}, {low + 1}")


def _of_rules(contract: Any) -> Iterator[str]:
    """Ask for a rule of a table that has none, where values that are listed stand beside several numbers or dates.

    Of two dates it is said in which order they may be.
    """
    columns = list(contract.modelled.values()) if contract.is_table and not contract.image else []
    intervals = [one for one in columns if isinstance(one, Continuous)]
    related = contract.constraints or contract.derived or computed(contract.columns) if columns else True
    dates = sum(isinstance(one, Datetime) for one in intervals)
    if not related and dates < 2 <= len(intervals) < len(columns):
        yield NO_RULE


def _of_pieces(contract: Any) -> Iterator[str]:
    """Name listed texts that look like what is left of two ends of an interval."""
    for name, column in _columns(contract):
        if isinstance(column, Categorical) and column.kind == "text":
            values = [str(value) for value in column.values]
            if pieces := pieces_among(values):
                yield PIECES.format(name, ", ".join(f"`{value}`" for value in pieces[:2]))


def _of_whole(contract: Any) -> Iterator[str]:
    """Say of derived whole numbers with decimals that they come back without."""
    for table in contract.tables.values() if contract.kind == "tree" else [contract]:
        columns = getattr(table, "columns", {})
        for name, one in columns.items():
            formula = one.formula if isinstance(one, Derived) and one.round and one.dtype is None else None
            if formula and not moment_of(formula, columns) and is_whole(formula, columns):
                yield WHOLE.format(name, one.round)


def _columns(contract: Any) -> list[tuple[str, Any]]:
    """Return the columns of a table, or those of all tables of a tree."""
    tables = contract.tables.values() if contract.kind == "tree" else [contract]
    return [one for table in tables for one in getattr(table, "columns", {}).items()]


def _of_keys(contract: Any) -> Iterator[str]:
    """Say of identifiers that are made after a pattern that real ones may have the same form."""
    made = [
        name for name, column in _columns(contract) if isinstance(column, Identifier) and column.pattern is not None
    ]
    if made:
        yield MADE_LIKE_REAL.format(", ".join(made))


def _of_continuous(contract: Any) -> Iterator[str]:
    """Say what a column of numbers or dates is not asked for as a target, and where a discovered bound cuts it."""
    columns = {name: one for name, one in getattr(contract, "columns", {}).items() if isinstance(one, Continuous)}
    if (target := getattr(contract, "target", None)) in columns:
        yield OF_NUMBERS.format(target)
    cut = [name for name, column in columns.items() if column.outside == "clip"]
    if cut and getattr(contract, "discovered", None):
        yield CUT.format(", ".join(cut))
