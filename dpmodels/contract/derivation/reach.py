"""Between which numbers the values of a formula lie, whatever its columns hold: never less than they reach.

A bound beyond them is one that no row keeps. A formula that names a column twice may reach less than is said here.
"""

import ast
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from dpmodels.contract.continuous import Continuous
from dpmodels.contract.datetimes import Datetime
from dpmodels.contract.derivation.tariff import name_of, numbers_of, values_of
from dpmodels.contract.formula import ARITHMETIC, BETWEEN, LATER, OF_NUMBERS, SECONDS, is_whole, parsed, power

Ends = tuple[float, float]
PARTS: dict[str, Ends] = {"month": (1, 12), "day": (1, 31), "weekday": (0, 6), "hour": (0, 23), "minute": (0, 59)}
ANY: Ends = (-np.inf, np.inf)


def reach(formula: str, columns: Mapping[str, Any]) -> Ends:
    """Return the least and the largest number, or tick, that a formula without faults may give."""
    with np.errstate(all="ignore"):
        low, high = _reach(parsed(formula), columns)
    return ANY if np.isnan(low) or np.isnan(high) else (float(low), float(high))


def _reach(node: ast.AST, columns: Mapping[str, Any]) -> Ends:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value), float(node.value)
    if isinstance(node, ast.Name):
        column = columns[node.id]
        listed = map(float, getattr(column, "keys", ()))  # of numbers that are listed
        return (column.low, column.high) if isinstance(column, Continuous) else (min(ends := [*listed]), max(ends))
    if isinstance(node, ast.Subscript):
        numbers = numbers_of(node)
        of_values = [numbers[value] for value in values_of(columns.get(name_of(node))) if value in numbers]
        return float(min(of_values or numbers.values())), float(max(of_values or numbers.values()))
    if isinstance(node, ast.UnaryOp):
        low, high = _reach(node.operand, columns)
        return -high, -low
    if isinstance(node, ast.BinOp):
        low, high = _of_arithmetic(type(node.op), _reach(node.left, columns), _reach(node.right, columns))
        short = isinstance(node.op, ast.Mod) and is_whole(ast.unparse(node), columns)  # a remainder is less than 7
        return (min(low + short, 0.0), max(high - short, 0.0)) if short else (low, high)
    if isinstance(node, ast.Compare):
        return 0.0, 1.0
    return _of_function(node, columns) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ANY


def _of_arithmetic(kind: type[ast.operator], left: Ends, right: Ends) -> Ends:
    """Reckon with the ends of both sides, where the largest and the least value are of two of them."""
    if kind in (ast.Div, ast.FloorDiv, ast.Mod) and right[0] <= 0 <= right[1]:
        return ANY
    if kind is ast.Mod:
        return min(right[0], 0.0), max(right[1], 0.0)
    if kind is ast.Pow:
        return _of_power(left, right)
    ends = [float(ARITHMETIC[kind](np.array(one), np.array(other))) for one, other in product(left, right)]
    return min(ends), max(ends)


def _of_power(base: Ends, exponent: Ends) -> Ends:
    """Reckon a power at the ends of both sides, where it is known to be least and largest there, or at 0."""
    is_count = exponent[0] == exponent[1] == np.rint(exponent[0]) >= 0
    if not (base[0] > 0 or (base[0] >= 0 and exponent[0] >= 0) or is_count):
        return ANY
    ends = [float(power(np.array(one), np.array(other))) for one, other in product(base, exponent)]
    ends += [0.0] * (base[0] < 0 < base[1] and exponent[0] > 0)
    return ANY if np.isnan(ends).any() else (min(ends), max(ends))


def _of_function(node: ast.Call, columns: Mapping[str, Any]) -> Ends:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    sides = [_reach(operand, columns) for operand in node.args]
    if name == "abs":
        low, high = sides[0]
        return max(low, -high, 0.0), max(abs(low), abs(high))
    if name in OF_NUMBERS:  # what is left of them only rises with its operands
        low, high = (float(OF_NUMBERS[name][1](*(np.float64(side[end]) for side in sides))) for end in (0, 1))
        return low, high
    ticks = [SECONDS[one.tick] for one in map(columns.get, map(_moment, node.args)) if isinstance(one, Datetime)]
    if name in LATER and ticks:
        (first, last), (least, most) = sides
        scale = LATER[name] / ticks[0]
        return first + float(np.floor(least * scale)), last + float(np.floor(most * scale))
    if name in BETWEEN and len(ticks) == 2:
        begin, end = ([bound * tick for bound in side] for side, tick in zip(sides, ticks, strict=True))
        return tuple(float(np.floor((end[at] - begin[1 - at]) / BETWEEN[name])) for at in (0, 1))  # type: ignore[return-value]
    if name == "year" and ticks:
        years = [np.datetime64(int(bound * ticks[0]), "s").astype("datetime64[Y]") for bound in sides[0]]
        return float(years[0].astype(int)) + 1970, float(years[1].astype(int)) + 1970
    return PARTS.get(name, ANY)


def _moment(node: ast.AST) -> str:
    """Name the datetime that a part is, or is later than; empty of any other part."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LATER:
        node = node.args[0]
    return node.id if isinstance(node, ast.Name) else ""
