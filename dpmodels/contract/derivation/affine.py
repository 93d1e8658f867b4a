"""Formulas that add multiples of columns, so that their means are such sums of the columns' means.

Let g = c + a1 X1 + ... + an Xn. Then E g = c + a1 E X1 + ... + an E Xn, however the columns depend on each
other.
"""

import ast
from collections import Counter
from dataclasses import dataclass, field

from dpmodels.contract.derivation.monotone import constant_of
from dpmodels.contract.formula import parsed


@dataclass(frozen=True)
class Affine:
    """A constant, and by column the number that it is multiplied with."""

    constant: float = 0.0
    slopes: Counter[str] = field(default_factory=Counter)

    def times(self, factor: float) -> "Affine":
        """Multiply it."""
        return Affine(self.constant * factor, Counter({name: one * factor for name, one in self.slopes.items()}))

    def plus(self, other: "Affine") -> "Affine":
        """Add another one to it."""
        slopes = Counter(self.slopes)
        slopes.update(other.slopes)
        return Affine(self.constant + other.constant, slopes)


def affine_of(formula: str) -> Affine | None:
    """Read a formula without faults as a sum of multiples of columns; None where it is none."""
    return _affine(parsed(formula))


def _affine(node: ast.expr) -> Affine | None:
    if isinstance(node, ast.Name):
        return Affine(slopes=Counter({node.id: 1.0}))
    if (constant := constant_of(node)) is not None:
        return Affine(constant)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        operand = _affine(node.operand)
        return operand and operand.times(-1.0 if isinstance(node.op, ast.USub) else 1.0)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _affine(node.left), _affine(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Add | ast.Sub):
        return left.plus(right.times(-1.0 if isinstance(node.op, ast.Sub) else 1.0))
    if isinstance(node.op, ast.Mult) and not (left.slopes and right.slopes):
        return right.times(left.constant) if not left.slopes else left.times(right.constant)
    if isinstance(node.op, ast.Div) and not right.slopes and right.constant:
        return left.times(1.0 / right.constant)
    return None
