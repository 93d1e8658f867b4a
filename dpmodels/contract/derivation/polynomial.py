"""Formulas written out as sums of multiples of products, so that it shows which of them are sums of the others.

``base + 1.5 * hours * rate`` is 1 of ``base`` and 1.5 of ``hours * rate``. What cannot be written out, such as
``max(a - b, 0)``, is a factor as it stands. Rounding to decimals, ``round(x * 100) / 100``, is left out, also of what
is multiplied with no more than 100 and so moves by half at most: it moves a sum of many rows by next to nothing.
"""

import ast
import math
from collections.abc import Mapping
from typing import Any

from dpmodels.contract.derivation.monotone import constant_of
from dpmodels.contract.derivation.reach import Ends, reach
from dpmodels.contract.derivation.tariff import is_table, numbers_of
from dpmodels.contract.formula import parsed

Product = tuple[str, ...]
"""Factors in order; none of a constant."""
Polynomial = dict[Product, float]
"""By product the number that it is multiplied with."""
SMALL, LEAST_UNIT = 1e-12, 10.0
"""What rounding leaves of a factor that cancels; and parts of 1 that are told apart, at least, by what is left out."""
MOST_PRODUCTS = 32
"""Products that a formula is written out as; a part that has more is a factor as it stands."""


def polynomial_of(formula: str) -> Polynomial:
    """Write a formula without faults out."""
    return _without_zeros(_written_out(parsed(formula)))


def moved_by_rounding(formula: str) -> float:
    """Return by how much what a formula without faults gives may differ from what it is written out as."""
    return _moved(parsed(formula), 1.0)


def settled(polynomial: Polynomial, values: Mapping[str, float]) -> Polynomial:
    """Set columns to values, and add up what is then alike."""
    products = Polynomial()
    for product, factor in polynomial.items():
        for one in product:
            factor *= values.get(one, 1.0)
        left = tuple(one for one in product if one not in values)
        products[left] = products.get(left, 0.0) + factor
    largest = max(map(abs, products.values()), default=0.0)
    return {one: factor for one, factor in products.items() if abs(factor) > SMALL * max(largest, 1.0)}


def reach_of(polynomial: Polynomial, columns: Mapping[str, Any]) -> Ends:
    """Return between what a sum of products lies, as far as its products reach each by itself."""
    low = high = 0.0
    for product, factor in polynomial.items():
        ends = reach_of_product(product, columns)
        low, high = low + min(factor * one for one in ends), high + max(factor * one for one in ends)
    return low, high


def reach_of_product(product: Product, columns: Mapping[str, Any]) -> Ends:
    """Return between what a product of columns and formulas lies."""
    low, high = 1.0, 1.0
    for factor in product:
        formula = getattr(columns.get(factor), "formula", None) or factor
        ends = [one * other for one in (low, high) for other in reach(formula, columns)]
        low, high = min(ends), max(ends)
    return low, high


def _written_out(node: ast.expr, times: float = 1.0) -> Polynomial:
    """Write a part out that is multiplied with ``times`` at most.

    A rounded one that is multiplied with more than its unit is a factor as it stands, for so is its rounding.
    """
    if (constant := constant_of(node)) is not None:
        return {(): constant}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return _times(_written_out(node.operand, times), {(): -1.0 if isinstance(node.op, ast.USub) else 1.0})
    if isinstance(node, ast.BinOp) and (rounded := _rounded(node)) is not None:
        inner, unit = rounded
        return _written_out(inner, times) if times <= unit else {(ast.unparse(node),): 1.0}
    if isinstance(node, ast.BinOp):
        left, right = (_written_out(one, times * most) for one, most in _sides(node))
        whole = _of_both(node.op, left, right)
        if whole is not None and len(whole) <= MOST_PRODUCTS:
            return whole
    return {(ast.unparse(node),): 1.0}


def _moved(node: ast.expr, times: float) -> float:
    """Return by how much rounding that is left out may move a part which is multiplied with ``times`` at most."""
    if constant_of(node) is not None:
        return 0.0
    if isinstance(node, ast.UnaryOp):
        return _moved(node.operand, times)
    if isinstance(node, ast.BinOp) and (rounded := _rounded(node)) is not None:
        inner, unit = rounded
        return times / unit / 2 + _moved(inner, times) if times <= unit else 0.0
    if isinstance(node, ast.BinOp):
        return sum(_moved(one, times * most) for one, most in _sides(node))
    return 0.0


def _sides(node: ast.BinOp) -> list[tuple[ast.expr, float]]:
    """Return the sides of an operator, each with the most that it is multiplied with by the other one."""
    if isinstance(node.op, ast.Add | ast.Sub):
        return [(node.left, 1.0), (node.right, 1.0)]
    if isinstance(node.op, ast.Mult):
        return [(node.left, _most(node.right)), (node.right, _most(node.left))]
    divisor = abs(constant_of(node.right) or 0.0)
    return [(node.left, 1.0 / divisor if divisor else math.inf), (node.right, math.inf)]


def _most(node: ast.expr) -> float:
    """Return how large a constant, or the largest number of a table, is; of anything else without end."""
    if isinstance(node, ast.Subscript) and is_table(node):
        return max(map(abs, numbers_of(node).values()))
    constant = constant_of(node)
    return math.inf if constant is None else abs(constant)


def _rounded(node: ast.BinOp) -> tuple[ast.expr, float] | None:
    """Return what a part rounds to decimals, and by which unit: x and 100 of ``round(x * 100) / 100``.

    Of ``round(x) / 100`` it is x / 100.
    """
    call, unit = node.left, constant_of(node.right)
    is_call = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "round"
    if not (isinstance(node.op, ast.Div) and is_call and unit is not None and unit >= LEAST_UNIT):
        return None
    (inner,) = call.args if isinstance(call, ast.Call) and len(call.args) == 1 else (None,)
    is_scaled = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult)
    if isinstance(inner, ast.BinOp) and is_scaled and constant_of(inner.right) == unit:
        return inner.left, unit
    return (ast.BinOp(inner, ast.Div(), node.right), unit) if inner is not None else None


def _of_both(operator: ast.operator, left: Polynomial, right: Polynomial) -> Polynomial | None:
    """Return what an operator makes of two sides; None where that is no sum of products."""
    if isinstance(operator, ast.Add | ast.Sub):
        return _plus(left, right if isinstance(operator, ast.Add) else _times(right, {(): -1.0}))
    if isinstance(operator, ast.Mult):
        return _times(left, right)
    divisor = right.get((), 0.0) if right.keys() <= {()} else 0.0
    return _times(left, {(): 1.0 / divisor}) if isinstance(operator, ast.Div) and divisor else None


def _plus(left: Polynomial, right: Polynomial) -> Polynomial:
    return {one: left.get(one, 0.0) + right.get(one, 0.0) for one in (*left, *right)}


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    products = Polynomial()
    for one, factor in left.items():
        for other, more in right.items():
            both = tuple(sorted((*one, *other)))
            products[both] = products.get(both, 0.0) + factor * more
    return products


def _without_zeros(polynomial: Polynomial) -> Polynomial:
    """Leave out what cancels, but for rounding."""
    largest = max(map(abs, polynomial.values()), default=0.0)
    return {one: factor for one, factor in polynomial.items() if abs(factor) > SMALL * largest}
