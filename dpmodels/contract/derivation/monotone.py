"""Formulas that keep or reverse the order of their columns' values, so that quantiles become quantiles.

Let g be such a formula of a column X. Whether g(X) <= t is whether X lies on one side of a point. So the shares of
g(X) up to any value are off by no more than those of X are: what the quantiles of X are within holds for g(X) too.
"""

import ast

import numpy as np

from dpmodels.contract.formula import BETWEEN, LATER, parsed, reckon

ORDERED = ("floor", "round", "min", "max", "year", *LATER)
"""Functions that rise, or stay, with each of their operands."""


def is_monotone(formula: str) -> bool:
    """Tell whether a formula without faults rises nowhere or falls nowhere with the one column that it names once."""
    return _is_monotone(parsed(formula))


def is_monotone_in_each(formula: str) -> bool:
    """Tell whether a formula without faults rises nowhere or falls nowhere with any of its columns, each named once.

    What repeats, as a remainder, a weekday or whether two are equal, does not: groups of values tell nothing of it. A
    power may fall and rise again, as the square of a number does.
    """
    node = parsed(formula)
    calls = {one.func.id for one in ast.walk(node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)}
    names = [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and one.id not in calls]
    is_odd = any(isinstance(one, ast.Mod | ast.Pow | ast.Eq | ast.NotEq | ast.Subscript) for one in ast.walk(node))
    repeats = is_odd or not calls <= {*ORDERED, *BETWEEN}
    return not repeats and len(set(names)) == len(names)


def _is_monotone(node: ast.AST) -> bool:
    """Tell this of a part: all parts of it but one are constants, and what is done to that one keeps its order."""
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.UnaryOp):
        return _is_monotone(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = constant_of(node.left), constant_of(node.right)
        if right is not None:
            known = isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
            return (known or (isinstance(node.op, ast.Div | ast.FloorDiv) and right != 0)) and _is_monotone(node.left)
        return left is not None and isinstance(node.op, ast.Add | ast.Sub | ast.Mult) and _is_monotone(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ORDERED:
        further = [operand for operand in node.args if constant_of(operand) is None]
        return len(further) == 1 and _is_monotone(further[0])
    return False


def constant_of(node: ast.AST) -> float | None:
    """Return the value of a part that names no column; None of others, and where there is no finite one."""
    called = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    if any(isinstance(one, ast.Name) and one not in called for one in ast.walk(node)):
        return None
    value = float(reckon(ast.unparse(node), {}, {}))
    return None if np.isnan(value) else value
