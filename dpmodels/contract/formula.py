"""Arithmetic on columns, as a schema writes it: ``sched // 100``, ``price + tax``, ``weekday(flight)``.

A formula is read with Python's own grammar, of which numbers, names of columns, + - * / // % **, comparisons of two
numbers, tables of numbers by a category and the functions below are admitted; nothing is ever executed. A comparison
is 1 where it holds, and else 0.
Columns are float64 with null as NaN: whole numbers are exact up to 2**53. Where an operand is null, and where the
result is no finite number, as after a division by zero or of the root of a negative number, the result is null.
"""

import ast
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from textwrap import shorten
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.contract.base import Modelled
from dpmodels.contract.continuous import Continuous
from dpmodels.contract.datetimes import Datetime
from dpmodels.contract.derivation.tariff import (
    is_table,
    is_whole_table,
    looked_up,
    misread_table,
    name_of,
    not_a_table,
    table_fault,
)
from dpmodels.contract.numbers import Integer
from dpmodels.limits import DEEPEST_FORMULA
from dpmodels.namable import NAMES, is_namable, meant_by
from dpmodels.similar import near

Operands = Mapping[str, Floats]
LONGEST_SHOWN = 160
ONLY = "may hold only numbers, names of columns, + - * / // % **, > >= < <= == !=, parentheses and functions"
SUCH_AS = "`sched // 100` or `price + tax`"
TIMES = re.compile(r"(?<=[\w)])\s*(?:\s[xX]\s|[×·])\s*(?=[\w(])")
FOR_TIMES = "has a letter or a sign for times that a formula does not know: write `*`, as in `0.19 * net`"
CARET = "has the sign ^: a power is written `**`, as in `(1 + rate) ** years`"
NESTED = f"has parts within parts, more than {DEEPEST_FORMULA} of them: write it with fewer terms"
CHAINED = "compares more than two numbers at once: write `(a < b) * (b < c)`, which is 1 where both hold"
JOINED = "joins conditions by a word: write `(a > 0) * (b > 0)` for and, and `max(a > 0, b > 0)` for or"
OF_TEXT = (
    "holds the text '{0}': a category is asked by a table of numbers, one for each of its values, as "
    "`fee * {{'{0}': 1, 'other': 0}}[COLUMN]`"
)
COMMA = "has a comma in a number: decimals have a point, as in 0.19, and thousands no mark, as in 1000"
ROUNDED = "gives `round` decimals, and it rounds to whole numbers; write `round: {decimals}` beside the formula"
MOST = 2**53
SECONDS = {"D": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def power(base: Floats, exponent: Floats) -> Floats:
    """Raise numbers to powers; NaN where one of the two is, and where the result is no finite number.

    By itself ``1 ** NaN`` were 1. Whole numbers give whole ones, whatever a processor makes of their last digit.
    """
    result = np.power(base, exponent)
    is_whole = (base == np.rint(base)) & (exponent == np.rint(exponent)) & (exponent >= 0)
    is_number = np.isfinite(base + exponent) & np.isfinite(result)
    return np.where(is_number, np.where(is_whole, np.rint(result), result), np.nan)


ARITHMETIC: dict[type[ast.operator], Callable[[Floats, Floats], Floats]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: power,
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Floats, Floats], NDArray[np.bool_]]] = {
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
OF_NUMBERS: dict[str, tuple[int, Callable[..., Floats]]] = {
    "abs": (1, np.abs),
    "floor": (1, np.floor),
    "round": (1, np.rint),
    "min": (2, np.minimum),
    "max": (2, np.maximum),
}
OF_MOMENTS = ("year", "month", "day", "weekday", "hour", "minute")
BETWEEN = {"days_between": 86400.0, "seconds_between": 1.0}
LATER = {"add_days": 86400.0, "add_seconds": 1.0}
FUNCTIONS = (*OF_NUMBERS, *OF_MOMENTS, *BETWEEN, *LATER)
WITHIN = "reckons with `{}`, a datetime, as with a number; {}"


class Misread(ValueError):
    """What is wrong with a formula, as the tail of a sentence that begins with it."""


@lru_cache(maxsize=256)
def parsed(text: str) -> ast.expr:
    """Read a formula.

    Raises:
        Misread: it is none.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Misread(FOR_TIMES if TIMES.search(text) else f"is no formula, such as {SUCH_AS}; {NAMES}") from None
    _check(tree)
    return tree


def in_short(formula: str) -> str:
    """Return a formula as an error shows it, cut where it is longer than anybody reads."""
    return shorten(formula, LONGEST_SHOWN, placeholder=" …")


def names_in(text: str) -> list[str]:
    """Return the columns that a formula names, each once, in order."""
    return list(dict.fromkeys(_columns(parsed(text))))


def faults_of(text: str, columns: Mapping[str, object]) -> str:
    """Say what keeps a formula from being reckoned on these columns, or return an empty text."""
    try:
        node = parsed(text)
        if _is_moment(node):
            _check_moment(node, columns)
        else:
            _kind(node, columns)
    except Misread as fault:
        return str(fault)
    return "" if names_in(text) else "names no column"


def moment_of(text: str, columns: Mapping[str, object]) -> Datetime | None:
    """Return the datetime that a formula adds to, whose kind its result is of; None where it gives numbers."""
    node = parsed(text)
    column = columns.get(_columns(node)[0]) if _is_moment(node) else None
    return column if isinstance(column, Datetime) else None


def is_whole(text: str, columns: Mapping[str, object]) -> bool:
    """Tell whether a formula without faults gives whole numbers."""
    return _kind(parsed(text), columns)


def reckon(text: str, operands: Operands, columns: Mapping[str, object]) -> Floats:
    """Return a formula's value in every row, null as NaN.

    Args:
        text: a formula without faults.
        operands: by name, numbers of a column, ticks of a datetime, or the places of a category's values, where these
            are no numbers. Shape: [B].
        columns: what the schema says of the columns; only the resolution of datetimes is read.
    """
    with np.errstate(all="ignore"):
        numbers = np.asarray(_value(parsed(text), operands, columns), dtype=np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _check(node: ast.expr, depth: int = 1) -> None:
    """Refuse every form but arithmetic, and comparisons of what it gives; ``depth`` is that of the part."""
    if depth > DEEPEST_FORMULA:
        raise Misread(NESTED)
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        _check(node.left, depth + 1)
        _check(node.right, depth + 1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
        raise Misread(CARET)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        _check(node.operand, depth + 1)
    elif isinstance(node, ast.Compare) and {*map(type, node.ops)} <= COMPARISONS.keys():
        if len(node.ops) > 1:
            raise Misread(CHAINED)
        _check(node.left, depth + 1)
        _check(node.comparators[0], depth + 1)
    elif isinstance(node, ast.BoolOp):
        raise Misread(JOINED)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        name = node.func.id
        if name not in FUNCTIONS:
            raise Misread(f"calls `{name}`; the functions are {', '.join(FUNCTIONS)}")
        arity = OF_NUMBERS[name][0] if name in OF_NUMBERS else 1 + (name in (*BETWEEN, *LATER))
        if name == "round" and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
            raise Misread(ROUNDED.format(decimals=node.args[1].value))
        if len(node.args) != arity:
            raise Misread(f"gives `{name}` {len(node.args)} operand(s); it takes {arity}")
        for operand in node.args:
            _check(operand, depth + 1)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        if abs(node.value) > MOST:  # type: ignore[arg-type]
            raise Misread("holds a number that is too large")
    elif isinstance(node, ast.Tuple):
        raise Misread(COMMA)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        raise Misread(OF_TEXT.format(node.value) + ("" if node.value.isidentifier() else f"; {NAMES}"))
    elif isinstance(node, ast.Subscript):
        if not is_table(node):
            raise Misread(not_a_table(node))
        if fault := misread_table(node, MOST):
            raise Misread(fault)
    elif not isinstance(node, ast.Name):
        raise Misread(f"{ONLY}; {NAMES}")


def _columns(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    inner = node.args if isinstance(node, ast.Call) else [n for n in ast.iter_child_nodes(node)]
    return [name for each in inner if isinstance(each, ast.expr) for name in _columns(each)]


def _kind(node: ast.expr, columns: Mapping[str, object]) -> bool:
    """Tell whether a part is whole, and refuse what it cannot be reckoned from."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.Name):
        column = _column(node, columns)
        if isinstance(column, Datetime):
            raise Misread(WITHIN.format(node.id, f"take year({node.id}) or the like"))
        return isinstance(column, Integer) or _listed(column) == "integer"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        if name in OF_NUMBERS:
            whole = [_kind(operand, columns) for operand in node.args]
            return all(whole) or name in ("floor", "round")
        if name in LATER:
            raise Misread(WITHIN.format(f"{name}(...)", "it must be the whole formula"))
        for operand in node.args:
            _check_moment(operand, columns)
        return True
    if isinstance(node, ast.Subscript):
        if fault := table_fault(node, columns):
            raise Misread(fault)
        return is_whole_table(node)
    if isinstance(node, ast.UnaryOp):
        return _kind(node.operand, columns)
    if isinstance(node, ast.Compare):
        return all(_kind(side, columns) is not None for side in (node.left, node.comparators[0]))
    if isinstance(node, ast.BinOp):
        _check_sides(node, columns)
        sides = [_kind(side, columns) for side in (node.left, node.right)]
        is_power = isinstance(node.op, ast.Pow) and not isinstance(node.right, ast.Constant)  # which may be below 0
        return all(sides) and not (isinstance(node.op, ast.Div) or is_power)
    raise Misread(ONLY)


def _check_sides(node: ast.BinOp, columns: Mapping[str, object]) -> None:
    """Refuse a sum or a difference of datetimes, naming the function that is meant."""
    kinds = [columns.get(side.id) if isinstance(side, ast.Name) else None for side in (node.left, node.right)]
    moments = [isinstance(one, Datetime) for one in kinds]
    left, right = ast.unparse(node.left), ast.unparse(node.right)
    is_difference = isinstance(node.op, ast.Sub)
    if not any(moments) or not isinstance(node.op, ast.Add | ast.Sub) or (is_difference and not moments[0]):
        return
    units = ["days", *(["seconds"] if any(getattr(one, "resolution", "day") != "day" for one in kinds) else [])]
    if all(moments):
        calls = [f"`{unit}_between({right}, {left})`" for unit in units] if is_difference else []
    else:
        later = right if isinstance(node.right, ast.Name | ast.Constant) else f"({right})"
        later = f"-{later}" if is_difference else right
        moment, number = (left, later) if moments[0] else (right, left)
        calls = [f'`{{type: derived, formula: "add_{unit}({moment}, {number})"}}`' for unit in units]
    if calls:
        raise Misread(WITHIN.format(left if moments[0] else right, f"write {' or '.join(calls)}"))


def _is_moment(node: ast.expr) -> TypeGuard[ast.Call]:
    """Tell whether a formula gives datetimes: one that is later than another by some time."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LATER


def _check_moment(operand: ast.expr, columns: Mapping[str, object]) -> None:
    """Refuse what is neither a datetime column nor so much later than one."""
    if _is_moment(operand):
        _check_moment(operand.args[0], columns)
        _kind(operand.args[1], columns)
    elif not isinstance(operand, ast.Name) or not isinstance(_column(operand, columns), Datetime):
        raise Misread("gives a function of datetimes something other than a datetime column, or `add_days` of one")


def _column(node: ast.Name, columns: Mapping[str, object]) -> object:
    column = columns.get(node.id)
    if column is None:
        meant = meant_by(node.id, columns) or near(node.id, filter(is_namable, columns))
        raise Misread(f"names `{node.id}`, which is no column{meant}")
    if not isinstance(column, Continuous) and not _listed(column):
        raise Misread(f"needs numbers, listed or between bounds, or datetimes, and `{node.id}` is none of them")
    return column


def _listed(column: object) -> str:
    """Name what a column lists, integer or number; empty of any other column."""
    kind = getattr(column, "kind", "") if isinstance(column, Modelled) else ""
    return kind if kind in ("integer", "number") else ""


def _value(node: ast.expr, operands: Operands, columns: Mapping[str, object]) -> Floats:
    if isinstance(node, ast.Constant):
        return np.float64(node.value)  # type: ignore[arg-type, return-value]
    if isinstance(node, ast.Name):
        return operands[node.id]
    if isinstance(node, ast.Subscript):
        return looked_up(node, operands[name_of(node)], columns[name_of(node)])
    if isinstance(node, ast.UnaryOp):
        return -_value(node.operand, operands, columns)
    if isinstance(node, ast.BinOp):
        left, right = (_value(side, operands, columns) for side in (node.left, node.right))
        return ARITHMETIC[type(node.op)](left, right)
    if isinstance(node, ast.Compare):
        left, right = (_value(side, operands, columns) for side in (node.left, node.comparators[0]))
        return np.where(np.isnan(left + right), np.nan, COMPARISONS[type(node.ops[0])](left, right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _called(node.func.id, node, operands, columns)
    raise Misread(ONLY)


def _called(name: str, node: ast.Call, operands: Operands, columns: Mapping[str, object]) -> Floats:
    if name in OF_NUMBERS:
        return OF_NUMBERS[name][1](*(_value(operand, operands, columns) for operand in node.args))
    if name in LATER:
        return _ticks(node, operands, columns)[0]
    seconds = [ticks * tick for ticks, tick in (_ticks(one, operands, columns) for one in node.args)]
    if name in BETWEEN:
        return np.floor((seconds[1] - seconds[0]) / BETWEEN[name])
    return _part(name, seconds[0])


def _ticks(node: ast.expr, operands: Operands, columns: Mapping[str, object]) -> tuple[Floats, float]:
    """Return the ticks of a datetime column, or of what is later than one, and the seconds of a tick."""
    if _is_moment(node) and isinstance(node.func, ast.Name):
        ticks, tick = _ticks(node.args[0], operands, columns)
        return ticks + np.floor(_value(node.args[1], operands, columns) * (LATER[node.func.id] / tick)), tick
    column = columns[name := ast.unparse(node)]
    return operands[name], SECONDS[column.tick] if isinstance(column, Datetime) else 1.0


def _part(name: str, seconds: Floats) -> Floats:
    """Return a part of the moments that lie so many seconds after the beginning of 1970."""
    finite = np.isfinite(seconds)
    moments = np.where(finite, seconds, 0).astype(np.int64).astype("datetime64[s]")
    days, months = moments.astype("datetime64[D]"), moments.astype("datetime64[M]")
    parts: dict[str, Callable[[], NDArray[np.int64]]] = {
        "year": lambda: moments.astype("datetime64[Y]").astype(np.int64) + 1970,
        "month": lambda: months.astype(np.int64) % 12 + 1,
        "day": lambda: (days - months.astype("datetime64[D]")).astype(np.int64) + 1,
        "weekday": lambda: (days.astype(np.int64) + 3) % 7,  # 0 is Monday; 1970 began with a Thursday
        "hour": lambda: (moments - days).astype(np.int64) // 3600,
        "minute": lambda: (moments - days).astype(np.int64) // 60 % 60,
    }
    return np.where(finite, parts[name]().astype(np.float64), np.nan)
