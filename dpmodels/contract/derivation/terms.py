"""Formulas as sums of terms of few columns each, so that their means are sums of the terms' means.

E (f + g) = E f + E g, however f and g depend on each other. So a formula needs no more columns counted together than
its largest term has: ``fare * (1 - rate) + fee`` those of fare and rate, and fee by itself.
"""

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmodels.contract.continuous import Continuous
from dpmodels.contract.derivation.monotone import ORDERED
from dpmodels.contract.derivation.reach import reach
from dpmodels.contract.formula import BETWEEN, names_in, parsed

KINKED = ("max", "min", "abs")
MOST_TERMS = 32
"""Terms that a formula is written out as; one that has more stays whole."""


def terms_of(formula: str) -> list[str]:
    """Return formulas whose sum is a formula without faults; one whose columns another one has is part of that."""
    terms = list(_written_out(parsed(formula)))
    if len(terms) > MOST_TERMS:
        return [formula]
    merged = list[tuple[set[str], ast.expr]]()
    for term in sorted(terms, key=lambda one: -_columns_of(one)):
        names = {*names_in(ast.unparse(term))}
        place = next((place for place, (others, _) in enumerate(merged) if names <= others), None)
        if place is None:
            merged.append((names, term))
        else:
            merged[place] = merged[place][0], ast.BinOp(merged[place][1], ast.Add(), term)
    return [ast.unparse(term) for _, term in merged]


def may_have_mean(formula: str, columns: Mapping[str, Any], target: str | None) -> bool:
    """Tell whether the mean of a formula without faults may follow from counts of pairs, by the classes of the target.

    It does not where a term has three columns or more, where nothing bounds it, as where it divides by what may be 0,
    and where it needs to know each value of a column that is counted in ranges.
    """
    return is_reckoned(formula, columns) and all(len({*names_in(one)} - {target}) <= 2 for one in terms_of(formula))


def is_reckoned(formula: str, columns: Mapping[str, Any]) -> bool:
    """Tell whether the mean of a formula without faults may follow from counts of all its columns together."""
    is_known = all(not isinstance(columns[name], Continuous) for name in needs_values(formula))
    return is_known and all(map(math.isfinite, reach(formula, columns)))


def _written_out(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the terms of a part: of sums those of both sides, and of a product of sums all products of these."""
    if _columns_of(node) <= 1:
        yield node
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from map(_negative, _written_out(node.operand))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _written_out(node.left)
        right = _written_out(node.right)
        yield from map(_negative, right) if isinstance(node.op, ast.Sub) else right
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _columns_of(node) > 2:
        for left in _written_out(node.left):
            yield from (ast.BinOp(left, ast.Mult(), right) for right in _written_out(node.right))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _columns_of(node) > 2:
        yield from (ast.BinOp(left, ast.Div(), node.right) for left in _written_out(node.left))
    else:
        yield node


def _columns_of(node: ast.expr) -> int:
    return len(names_in(ast.unparse(node)))


def _negative(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.USub(), node)


def needs_values(formula: str) -> Sequence[str]:
    """Name the columns of which a formula needs to know each value: ranges of them tell too little of what it gives.

    It is those of which it takes a remainder, a power, a weekday and the like, and those that it compares.
    """
    odd = [node for node in ast.walk(parsed(formula)) if isinstance(node, ast.expr) and _is_odd(node)]
    return [name for node in odd for name in names_in(ast.unparse(node))]


def has_kink(formula: str) -> bool:
    """Tell whether a formula without faults takes a maximum, a minimum or an absolute value."""
    calls = (node.func for node in ast.walk(parsed(formula)) if isinstance(node, ast.Call))
    return any(isinstance(one, ast.Name) and one.id in KINKED for one in calls)


def _is_odd(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id not in (*ORDERED, *BETWEEN)
    return isinstance(node, ast.Compare) or isinstance(getattr(node, "op", None), ast.Mod | ast.Pow)
