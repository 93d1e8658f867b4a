"""What of a schema is no fault, and yet not what most would expect."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

import numpy as np

from dpmodels.contract.columns import Datetime, Derived, Identifier, Integer, Number, computed
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.continuous import DEFAULT_CELLS
from dpmodels.contract.derivation.bounds import unseen_bounds
from dpmodels.contract.derivation.shares import as_share
from dpmodels.contract.derivation.stays import of_a_stay
from dpmodels.contract.derivation.unstated import for_figures_alone, of_changed, of_products, with_nulls
from dpmodels.contract.formula import names_in
from dpmodels.contract.identifiers.identifier import uniques_of
from dpmodels.contract.workload import weighed
from dpmodels.namable import is_namable
from dpmodels.plural import listed
from dpmodels.privacy import PrivacyUnit

OF_ROWS = ": all figures are of "
FIRST_ROWS = (
    f"only the first row of each user is used{OF_ROWS}these rows. In the schema, `max_rows: N` under "
    "`unit` has the first N used, under more noise"
)
MORE_ROWS = f"only the first {{rows:,}} rows of each user are used{OF_ROWS}these rows"
LEFT_OUT = (
    "rows in which {names} holds what the schema does not take are left out before anything is measured "
    f"(`outside: reject-row`){OF_ROWS}the rows that remain"
)
OF_ROWS_ALONE = "the unit is one record, and identifier "
MAY_REPEAT = (
    f"{OF_ROWS_ALONE}{{names}} is left out: each row is hidden alone, so if it names persons, "
    "one in several rows is hidden less. In the schema, `unit: {{user: {user}, max_rows: N}}`{which} hides all rows of "
    "a person"
)
OF_PERSONS = ", with the identifier of persons for COLUMN,"
ONE_ROW_EACH = (
    "if no two rows have the same {names}, write `unique: true` for it: a run refuses a table that has, before its "
    "charge, and nothing warns of persons in several rows; for a column that names nobody, such as an amount that is "
    "left out, write `person: false`"
)
OF_DATES = "` keeps the order of two dates, but not how far apart they are"
APART = (
    f"`{{rule}}{OF_DATES}, where that is less than a cell of either. Two columns keep it in place of this rule and of "
    "{lower} (docs/columns-that-depend.md#a-stay-between-two-dates): {name}: {{type: integer, min: {least}, "
    'max: {most}, computed: "{unit}s_between({lower}, {upper})"}}, and {lower}: '
    '{{type: derived, formula: "add_{unit}s({upper}, -{name})", min: {first}}}, or the other way round where many rows '
    'share one {lower}: derive {upper} by "add_{unit}s({lower}, {name})"'
)
OF_PARTS = "` keeps the order of two numbers, but not which share of one the other is"
PART = (
    f"`{{rule}}{OF_PARTS}, nor that it is often the whole. If {{lower}} is a part of {{upper}}, such as a refund of an "
    "amount, keep its share{shared}"
)
IN_ORDER = (
    "no rule says in which order {names} come: if one is never before another, write so under `constraints`, as "
    "`{first} <= {second}`; otherwise synthetic rows may have them the other way round. If they are days and not years "
    "apart, write the days between them instead (docs/columns-that-depend.md#a-stay-between-two-dates)"
)
WIDE = 1000
"""From which bound on whole numbers that begin at 0 are likely to be amounts."""
AMOUNTS = (
    "{names} can be 0: before a charge write `zero_inflated: true`, which costs nothing and keeps zeros exactly, or "
    "false where none is 0 (docs/schema.md)"
)
FEW = (
    "{names} {come} back as any whole number between `min` and `max`: where a column has few values, such as 0, 150, "
    "300 and 500, write these, as `type: categorical, values: [0, 150, 300, 500]`"
)
ALL_DIGITS = (
    "{names} {come} back with all digits of a float, such as 36.61803398874989: `round: 1` keeps one decimal, "
    "`round: 2` two, and `dtype: float64` says that all digits are meant"
)
ROUND_ENDS, FEWEST_A_CELL, WIDEST = 50, 4, 5000
"""What both bounds of a tariff are multiples of, as of 0 to 300, how many whole numbers each range of a column has at
least, and how wide an interval is at most: a percentage or an age has fewer, and an amount more."""
FALLS_APART = (
    "column {name}: computed from {others} as the table is read, it does not follow from them in synthetic rows. "
    "In the schema, derive one of them: `type: derived` with a formula of {name}"
)
NOT_HANDED_OVER = (
    "column {name}: not handed over (`keep: drop`); what is said of it is of the rows before it was left out of them"
)
FOR_FIGURES = "column {name}: counted for figures alone, as the workload asks, and handed to nobody (`keep: drop`)"
COARSE_AT_ZERO = (
    "column {name}: `scale: log` tells values apart best beside its `min`, {low}, and worst near zero and beyond. "
    "In the schema, leave it out, or write amounts that are all negative as positive ones"
)
UNROUNDED = (
    "column {name}: its formula gives numbers as float64 reckons them, such as 43.629999999999995. In the schema, "
    "write `round: {decimals}` for as many decimals as the columns in it have"
)


def remarks_of(
    columns: Mapping[str, Any], unit: PrivacyUnit, rules: Iterable[Constraint] = (), in_parts: bool = False
) -> Iterator[str]:
    """Say in a sentence each what is to be looked at again.

    ``in_parts``: the table is read part by part, so no rule tells who is in several of them.
    """
    for rule in rules:
        if all(isinstance(columns.get(name), Datetime) for name in (rule.lower, rule.upper)):
            yield _between(rule, columns[rule.lower], columns[rule.upper])
    yield from unseen_bounds(columns)
    formulas = computed(columns)
    if unit.user is not None and unit.max_rows == 1 and unit.user not in uniques_of(columns):
        yield FIRST_ROWS
    if unit.kind == "record" and (names := _repeatable(columns, in_parts)):
        user, which = (names[0], "") if len(names) == 1 else ("COLUMN", OF_PERSONS)
        yield MAY_REPEAT.format(names=listed(names, "or"), user=user, which=which)
    yield from _further(columns, unit)
    yield from (NOT_HANDED_OVER.format(name=name) for name in formulas if columns[name].keep)
    operands = {name for one in columns.values() if isinstance(one, Derived) for name in one.operands}
    for name, column in columns.items():
        if name in formulas and name not in operands and not column.keep:
            yield FALLS_APART.format(name=name, others=listed(names_in(formulas[name]), "and"))
        if isinstance(column, Integer | Number) and column.log and column.low < 0:
            yield COARSE_AT_ZERO.format(name=name, low=f"{column.low:.10g}")
        if isinstance(column, Derived) and column.formula is not None and column.round is None and not column.dtype:
            decimals = [getattr(columns.get(operand), "decimals", None) or 0 for operand in column.operands]
            if all(decimals):
                yield UNROUNDED.format(name=name, decimals=max(decimals))


def _repeatable(columns: Mapping[str, Any], in_parts: bool) -> list[str]:
    """Name the identifiers that are left out and may be the same in several rows."""
    identifiers = {name: one for name, one in columns.items() if isinstance(one, Identifier)}
    dropped = [name for name, one in identifiers.items() if one.keep == "drop" and one.person]
    return dropped if in_parts else [name for name in dropped if name not in uniques_of(columns)]


def _between(rule: Constraint, lower: Datetime, upper: Datetime) -> str:
    """Say how a schema keeps the time between two dates of a rule, whose names are those of a formula."""
    if not all(map(is_namable, (rule.lower, rule.upper))):
        return f"`{rule}{OF_DATES}; a column that is `computed` from both keeps it, under names without spaces"
    unit = "day" if lower.resolution == "day" else "second"
    name, least = f"{unit}s_to_{rule.upper}", int(rule.strict)
    most = "MOST_" + f"{unit}s".upper()
    names = {"lower": rule.lower, "upper": rule.upper, "name": name}
    return APART.format(rule=rule, unit=unit, least=least, most=most, first=_first(lower, upper), **names)


def _first(lower: Datetime, upper: Datetime) -> date:
    """Return the first moment of one date, cut to its resolution and to that of another, which it is to have then."""
    if not isinstance(lower.min, datetime):
        return lower.min
    ticks = np.datetime64(lower.min).astype(f"datetime64[{lower.tick}]").astype(f"datetime64[{upper.tick}]")
    moment: datetime = ticks.astype("datetime64[s]").item()
    return moment if "D" not in (lower.tick, upper.tick) else moment.date()


def before_a_charge(contract: Any) -> list[str]:
    """Say of a schema what is to be written before a charge, since nothing mends it afterwards."""
    columns, implications = getattr(contract, "columns", {}), getattr(contract, "implications", ())
    ruled = {name for rule in getattr(contract, "rules", ()) for name in (rule.lower, rule.upper)}
    ruled |= {name for rule in implications for name in rule.columns}
    each = (_of_amounts, _of_few, _of_digits)
    of_columns = [_of_order(columns, ruled), *(one(columns) for one in each)]
    of_columns.append(for_figures_alone(columns, asked_by_name(contract)))
    joint = [one.columns for one in weighed(contract) if one.joint] if getattr(contract, "workload", ()) else []
    target = getattr(contract, "target", None)
    of_columns += [*of_products(columns, target, joint), *with_nulls(columns, target, joint), *of_changed(columns)]
    parts = (_of_part(rule, columns) for rule in getattr(contract, "rules", ()))
    return [*filter(None, (*of_columns, *parts, _of_persons(contract, columns)))]


def as_asked(remarks: Iterable[str], contract: Any) -> list[str]:
    """Return remarks, of which those on columns that are counted since the workload names them say so."""
    asked = {NOT_HANDED_OVER.format(name=name): FOR_FIGURES.format(name=name) for name in asked_by_name(contract)}
    return [asked.get(one, one) for one in remarks]


def asked_by_name(contract: Any) -> frozenset[str]:
    """Name the columns that a workload names, alone or beside others."""
    return frozenset(name for one in getattr(contract, "workload", ()) for name in (*one.columns, one.by) if name)


def _of_part(rule: Constraint, columns: Mapping[str, Any]) -> str:
    """Say how a schema keeps which share of an amount another one is; nothing of a rule that may not be between two.

    Whole numbers that have a range each are told apart as they are.
    """
    part, whole = columns.get(rule.lower), columns.get(rule.upper)
    if not isinstance(part, Integer | Number) or not isinstance(whole, Integer | Number):
        return ""
    if min(part.low, whole.low) < 0 or part.computed or whole.computed or not (_is_blurred(part) or _is_blurred(whole)):
        return ""
    if not all(map(is_namable, (rule.lower, rule.upper))):
        return f"`{rule}{OF_PARTS}; a share that is `computed` from both keeps it, under names without spaces"
    shared = as_share(rule.lower, rule.upper, columns)
    return PART.format(rule=rule, lower=rule.lower, upper=rule.upper, shared=shared)


def _is_blurred(column: Integer | Number) -> bool:
    """Tell whether a range of a column has several values."""
    return column.decimals != 0 or column.high - column.low > column.cells


def _of_order(columns: Mapping[str, Any], ruled: Collection[str]) -> str:
    """Name the dates that no rule holds in order; empty where there is one date alone, or none that is left out."""
    dates = [name for name, column in columns.items() if isinstance(column, Datetime)]
    alone = [name for name in dates if name not in ruled]
    if not alone or len(dates) < 2:
        return ""
    named = alone if alone[1:] else [*alone, *(name for name in dates if name in ruled)]
    return of_a_stay(named, columns) or IN_ORDER.format(names=listed(named, "and"), first=named[0], second=named[1])


def _of_amounts(columns: Mapping[str, Any]) -> str:
    """Advise a value of its own for the zeros of amounts of which a schema says nothing; empty without any."""
    names = [name for name, column in columns.items() if is_open_amount(column)]
    return AMOUNTS.format(names=listed(names, "and")) if names else ""


def _of_few(columns: Mapping[str, Any]) -> str:
    """Say of wide intervals of whole numbers that a list of few values is no interval; empty without any."""
    names = [name for name, column in columns.items() if _may_be_few(column)]
    return FEW.format(names=listed(names, "and"), come="comes" if len(names) == 1 else "come") if names else ""


def _of_digits(columns: Mapping[str, Any]) -> str:
    """Name the numbers of which a schema does not say how many decimals they have; empty without any."""
    names = [name for name, column in columns.items() if isinstance(column, Number) and _has_all_digits(column)]
    return ALL_DIGITS.format(names=listed(names, "and"), come="comes" if len(names) == 1 else "come") if names else ""


def _has_all_digits(column: Number) -> bool:
    return column.round is None and column.dtype is None and not column.computed


def _may_be_few(column: object) -> bool:
    """Tell whether a column is of whole numbers between round bounds, of which each range has several.

    Ranges that grow, or whose number is written, are for what may have any value, as decimals are, and nobody lists
    what is computed, nor amounts that have zeros of their own or spread over more than a tariff does.
    """
    if (
        not isinstance(column, Integer | Number)
        or column.decimals != 0
        or column.log
        or column.computed
        or column.unit > 1
        or column.zero_inflated
        or "cells" in column.model_fields_set
    ):
        return False
    is_round = column.low % ROUND_ENDS == column.high % ROUND_ENDS == 0
    return is_round and FEWEST_A_CELL * DEFAULT_CELLS <= column.high - column.low <= WIDEST


def _of_persons(contract: Any, columns: Mapping[str, Any]) -> str:
    """Say how a schema whose unit is a record says that each has one row; empty where nothing else is warned of."""
    unit, part = getattr(contract, "unit", None), getattr(contract, "partition", None)
    names = _repeatable(columns, in_parts=False) if unit and unit.kind == "record" and part is None else []
    return ONE_ROW_EACH.format(names=listed(names, "or")) if names else ""


def is_open_amount(column: object) -> bool:
    """Tell whether a column is an amount from 0 on, of whose zeros nothing is said.

    Of few numbers, and of whole ones whose ranges grow, zero has a range of its own as it is; midnight is no zero.
    """
    if not isinstance(column, Integer | Number) or "zero_inflated" in column.model_fields_set or column.low != 0:
        return False
    points = column.interval.points  # None where values have no lattice
    if (points is not None and points <= column.cells) or column.resolved_dtype.startswith("time"):
        return False
    return column.decimals != 0 or (column.high >= WIDE and (isinstance(column, Number) or not column.log))


def is_declared(remark: str, bound: bool = False) -> bool:
    """Tell whether a remark repeats what a schema declares: how many rows of each user are used, or what is left out.

    ``bound``: the schema says so itself; it says nothing where one row is used since nothing is written.
    """
    ends = tuple(text.partition("}")[2] for text in (MORE_ROWS, NOT_HANDED_OVER, FOR_FIGURES))
    return remark.endswith(ends) or (bound and remark == FIRST_ROWS)


def of_figures(remark: str) -> str:
    """Return of which rows all figures of a report are, as a remark says; or nothing."""
    return remark.partition(OF_ROWS)[0] if OF_ROWS in remark else ""


def is_of_dates(remark: str) -> bool:
    """Tell whether a remark is on rules between dates, which the lint, the begin of a run and its pages say alone."""
    return OF_DATES in remark


def in_short(remark: str) -> str:
    """Return what is said of a remark when a run begins, where the lint says at length what to do about it."""
    if remark.startswith(OF_ROWS_ALONE):
        return "the unit is one record: a person in several rows is hidden less; `nacre schema lint` says what to write"
    if is_of_dates(remark):
        return f"{remark.partition(OF_DATES)[0]}{OF_DATES}; `nacre schema lint` says what to write"
    return remark


def dates_of(remark: str) -> tuple[str, str] | None:
    """Return the two columns of dates that a remark is on, the earlier one first; None of other remarks."""
    match = re.match(rf"`(.+?) <=? (.+?){re.escape(OF_DATES)}", remark)
    return (match[1], match[2]) if match else None


def _further(columns: Mapping[str, Any], unit: PrivacyUnit) -> Iterator[str]:
    if unit.user is not None and unit.max_rows > 1:
        yield MORE_ROWS.format(rows=unit.max_rows)
    if left_out := [name for name, column in columns.items() if getattr(column, "outside", "") == "reject-row"]:
        yield LEFT_OUT.format(names=listed(left_out, "or"))
