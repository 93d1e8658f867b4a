"""Formulas written out as sums of multiples of products, so that it shows which of them are sums of the others.

``base + 1.5 * hours * rate`` is 1 of ``base`` and 1.5 of ``hours * rate``. What cannot be written out, such as
``max(a - b, 0)``, is a factor as it stands.
"""

import ast

from dpmodels.contract.derivation.monotone import constant_of
from dpmodels.contract.formula import parsed

Product = tuple[str, ...]
"""Factors in order; none of a constant."""
Polynomial = dict[Product, float]
"""By product the number that it is multiplied with."""
MOST_PRODUCTS = 32
"""Products that a formula is written out as; a part that has more is a factor as it stands."""


def polynomial_of(formula: str) -> Polynomial:
    """Write a formula without faults out."""
    return _without_zeros(_written_out(parsed(formula)))


def _written_out(node: ast.expr) -> Polynomial:
    if (constant := constant_of(node)) is not None:
        return {(): constant}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return _times(_written_out(node.operand), {(): -1.0 if isinstance(node.op, ast.USub) else 1.0})
    if isinstance(node, ast.BinOp):
        left, right = _written_out(node.left), _written_out(node.right)
        whole = _of_both(node.op, left, right)
        if whole is not None and len(whole) <= MOST_PRODUCTS:
            return whole
    return {(ast.unparse(node),): 1.0}


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
    return {one: factor for one, factor in polynomial.items() if abs(factor) > 1e-12 * largest}
