"""Formulas that name a derived column, which none may: what to write in their place."""

import ast
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.derivation.tariff import written_table
from dpmodels.contract.formula import LATER, Misread, faults_of, is_whole, names_in, parsed
from dpmodels.limits import LONGEST_FORMULA

NESTED = (
    "names `{}`, which is derived itself, and a formula names no derived column: write what `{}` follows from in its "
    "place{}"
)
LOOKED_UP = "names `{name}`, which is derived itself, and a formula names no derived column: {way}"
IN_COMPUTED = (
    "names `{}`, which is {}, and `computed` names columns of the file alone: numbers, datetimes, and what "
    "a `formula` derives{}"
)
DEEPEST = 8
"""Derived columns, one behind the other, that are replaced for an example."""


class Later(NamedTuple):
    """A formula that gives moments: a function, the column that it adds to, and how much."""

    function: str
    start: str
    amount: ast.expr


def nested_fault(formula: str, columns: Mapping[str, Any]) -> str:
    """Say which derived column a formula names, and the formula to write instead; or return an empty text."""
    if not (name := _derived_name(formula, columns)):
        return ""
    if columns[name].formula is None:
        written = _looked_up_in_place(formula, name, columns[name])
        likewise = f"let this one be looked up likewise, by `of: {columns[name].of}` and `values`"
        return LOOKED_UP.format(name=name, way=f"write `{written}`" if written else likewise)
    written = _written_out(formula, columns)
    return NESTED.format(name, name, f", as in `{written}`" if written else "")


def not_of_file(formula: str, formulas: Mapping[str, str], raw: Mapping[str, Any]) -> str:
    """Say what the formula of a computed column names that no file has so, and what to write; or return an empty text.

    Args:
        formula: of the computed column.
        formulas: those of all computed columns.
        raw: the columns of the file.
    """
    looked_up = {name for name, one in raw.items() if isinstance(one, Derived) and one.formula is None}
    try:
        name = next((one for one in names_in(formula) if one in formulas or one in looked_up), "")
        if name in looked_up:
            in_place = _looked_up_in_place(formula, name, raw[name])
            return IN_COMPUTED.format(name, "looked up by `values`", f"; write `{in_place}`" if in_place else "")
        written = name and ast.unparse(_Written(name, parsed(formulas[name])).visit(deepcopy(parsed(formula))))
    except Misread:
        return ""  # which stands where it is
    in_place = f"; write what `{name}` is computed from in its place, as in `{written}`"
    return IN_COMPUTED.format(name, "computed itself", "" if faults_of(written, raw) else in_place) if name else ""


def names_derived(formula: str, columns: Mapping[str, Any]) -> bool:
    """Tell whether a formula, which may be none, names a column that a formula derives."""
    try:
        names = names_in(formula)
    except Misread:
        return False
    return any(isinstance(column := columns.get(name), Derived) and column.formula is not None for name in names)


def _derived_name(formula: str, columns: Mapping[str, Any]) -> str:
    """Return the first derived column of a formula, one of numbers before one of moments; empty if it names none."""
    names = [name for name in names_in(formula) if isinstance(columns.get(name), Derived)]
    return min(names, key=lambda name: _later(columns[name].formula) is not None, default="")


def _looked_up_in_place(formula: str, name: str, column: Derived) -> str:
    """Write a formula with the numbers that a column is looked up by in its place; empty where these are none."""
    values = column.values or {}
    if any(isinstance(value, bool | str) for value in values.values()):
        return ""
    table = parsed(written_table(str(column.of), values))  # type: ignore[arg-type]
    written = ast.unparse(_Written(name, table).visit(deepcopy(parsed(formula))))
    return written if len(written) <= LONGEST_FORMULA else ""


def _written_out(formula: str, columns: Mapping[str, Any]) -> str:
    """Write a formula without derived columns that gives the same; empty where none is known."""
    for _ in range(DEEPEST):
        try:
            if not (name := _derived_name(formula, columns)):
                return "" if faults_of(formula, columns) else formula
            formula = _replaced(formula, name, columns)
        except Misread:
            return ""
        if not formula or len(formula) > LONGEST_FORMULA:
            return ""
    return ""


def _replaced(formula: str, name: str, columns: Mapping[str, Any]) -> str:
    """Write the formula of a derived column in its place; empty where this gives something else, or no formula."""
    column: Derived = columns[name]
    if column.formula is None or column.dtype:
        return ""
    outer, inner = _later(formula), _later(column.formula)
    if inner is None:
        steps = 10 ** (column.round or 0)
        rounded = f"round({column.formula})" if steps == 1 else f"round(({column.formula}) * {steps}) / {steps}"
        written = column.formula if column.round is None else rounded
        return ast.unparse(_Written(name, parsed(written)).visit(deepcopy(parsed(formula))))
    if outer is None or (outer.function, outer.start) != (inner.function, name):
        return ""
    if not all(is_whole(ast.unparse(amount), columns) for amount in (outer.amount, inner.amount)):
        return ""  # of parts of a day both sums are cut to whole ones
    sign, amount = ("-", outer.amount.operand) if isinstance(outer.amount, ast.UnaryOp) else ("+", outer.amount)
    return f"{inner.function}({inner.start}, {ast.unparse(_sum(inner.amount, sign, amount))})"


def _sum(left: ast.expr, sign: str, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, ast.Sub() if sign == "-" else ast.Add(), right)


def _later(formula: str | None) -> Later | None:
    node = parsed(formula) if formula is not None else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in LATER:
        return None
    start, amount = node.args
    return Later(node.func.id, start.id, amount) if isinstance(start, ast.Name) else None


class _Written(ast.NodeTransformer):
    """Puts a formula in the place of a name."""

    def __init__(self, name: str, formula: ast.expr) -> None:
        self.name, self.formula = name, formula

    def visit_Name(self, node: ast.Name) -> ast.expr:  # as ast calls it
        return self.formula if node.id == self.name else node
