"""A draft with values in the place of its marks, by which the rest of it is checked before a discovery is paid."""

import re
from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from dpmodels.clock import with_counted_times
from dpmodels.contract.columns import NEAREST
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.discovery.discovery import (
    SHARE,
    WORD,
    columns_of,
    has_columns,
    is_derived,
    marked_keys,
)
from dpmodels.contract.formula import Misread, names_in
from dpmodels.contract.implications import is_implication


def stand_in(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a draft with values in the place of the marks, by which the rest of it can be checked.

    What depends on values to come is left out: the partition, constraints on columns with marks or on what follows from
    others, and of what follows from others whatever cannot be checked before they are there.
    """
    columns = columns_of(data)
    waiting = {str(name) for name, (column, _) in columns.items() if marked_keys(column) or is_derived(column)}
    if "columns" in data:
        return _filled_table(data, columns, waiting)
    tables = {}
    for table, branch in data["tables"].items():
        of_table = {name.removeprefix(f"{table}.") for name in waiting if name.startswith(f"{table}.")}
        filled = has_columns(branch)
        tables[table] = (
            _filled_table(branch, {**columns, **branch["columns"]}, waiting | of_table) if filled else branch
        )
    return {**data, "tables": tables}


def _filled_table(data: Mapping[str, Any], known: Collection[str], waiting: Collection[str]) -> dict[str, Any]:
    """Fill one table in; ``known`` are the columns that its constraints may name."""
    columns = {
        name: _filled(column, marked) if (marked := marked_keys(column)) else column
        for name, column in data["columns"].items()
    }
    rest = {key: value for key, value in data.items() if key not in ("constraints", "partition")}
    texts = data.get("constraints")
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        rest["constraints"] = [text for text in texts if _is_checked(text, known, waiting)]
    open_columns = {name: marked_keys(column) for name, column in data["columns"].items()}
    return {**rest, "columns": _following(columns, {name: keys for name, keys in open_columns.items() if keys})}


def _following(columns: Mapping[str, Any], marked: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the columns, those that follow from others only with what can be checked yet.

    Of a column whose values are to come it is not known whether they are text or numbers: what is derived from it is
    left out, and what is computed from it, or from that, is a column like others. While bounds are to come, those of
    what is derived are left out.
    """
    follows = {name: _operands(column) for name, column in columns.items() if is_derived(column)}
    unclear = {name for name, keys in marked.items() if "values" in keys}
    for _ in range(2):  # what is derived, and what names that
        unclear |= {name for name in follows if follows[name] & unclear and columns[name].get("type") == "derived"}
    checked: dict[str, Any] = {}
    for name, column in columns.items():
        if name in marked or name not in follows:
            checked[name] = column
        elif column.get("type") != "derived":
            left_out = ("computed", "keep") if follows[name] & unclear else ()
            checked[name] = {key: value for key, value in column.items() if key not in left_out}
        elif name not in unclear:
            left_out = ("min", "max") if follows[name] & marked.keys() else ()
            checked[name] = {key: value for key, value in column.items() if key not in left_out}
    return checked


def _operands(column: Mapping[str, Any]) -> set[str]:
    """Name what a derived or computed column of a file follows from; nothing where that cannot be read."""
    formula = column.get("computed", column.get("formula"))
    if not isinstance(formula, str):
        return {of} if isinstance(of := column.get("of"), str) else set()
    try:
        return {*names_in(formula)}
    except Misread:
        return set()


def _is_checked(text: str, columns: Collection[str], waiting: Collection[str]) -> bool:
    """Tell whether a constraint can be checked before anything is discovered."""
    compared = None if is_implication(text) else Constraint.parse(text)
    if compared and not {compared.lower, compared.upper} <= {*columns}:
        return True
    return not any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in waiting)


def _filled(column: Mapping[str, Any], marked: tuple[str, ...]) -> dict[str, Any]:
    left_out = ("cells", "dtype") if "values" in marked else ("cells",)
    filled = {key: value for key, value in column.items() if key not in left_out}
    if SHARE in marked:
        filled[SHARE] = 0.5
    if "values" in marked:
        filled["values"] = [0] if column.get("outside") == NEAREST else [column.get("other", WORD)]
    if "min" in marked or "max" in marked:
        filled |= _bounds(column, marked)
    return filled


def _bounds(column: Mapping[str, Any], marked: tuple[str, ...]) -> dict[str, Any]:
    """Return bounds of which the given one stays."""
    moment = column["type"] == "datetime"
    step: Any = timedelta(days=1) if moment else 1
    if len({"min", "max"} & {*marked}) == 2:
        return {"min": date(2000, 1, 1), "max": date(2001, 1, 1)} if moment else {"min": 0, "max": 1}
    bound = with_counted_times(column).get("max" if "min" in marked else "min")
    if not isinstance(bound, date | datetime if moment else int | float):
        return {}
    return {"min": bound - step} if "min" in marked else {"max": bound + step}
