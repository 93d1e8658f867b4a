"""Derived columns that follow from derived ones: each is written as what it follows from in the end.

A schema may say ``net: gross / 1.19`` and ``tax: gross - net``. All that reads a schema, from the gate to means by
group, takes a formula of columns that are read or modeled, so what a derived column stands for is written in its place
as the schema is read, rounded as it is, so that a rest adds up.
"""

import ast
from collections.abc import Mapping
from copy import deepcopy
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.derivation.tariff import is_table, name_of, numbers_of, written_table
from dpmodels.contract.formula import LATER, Misread, faults_of, is_whole, names_in, parsed
from dpmodels.limits import LONGEST_FORMULA

NESTED = "names `{}`, which is derived itself, and {}"
OF_FLOAT32 = "is rounded by its `dtype`: leave that out, or write what it follows from in its place"
OF_WORDS = "stands for no numbers: name it in a table, such as `{{{example}}}[{name}]`"
TOO_LONG = f"makes a formula of more than {LONGEST_FORMULA:,} characters"
IN_COMPUTED = (
    "names `{}`, which is {}, and `computed` names columns of the file alone: numbers, datetimes, and what "
    "a `formula` derives"
)


class Later(NamedTuple):
    """A formula that gives moments: a function, the column that it adds to, and how much."""

    function: str
    start: str
    amount: ast.expr


def written_out(columns: dict[str, Any]) -> dict[str, Any]:
    """Return columns none of which is derived from a derived one: what that follows from stands in its place.

    So it does in what is computed from a computed column, or from a looked-up one, which no file has. A column that
    cannot be written so is left as it is; ``nested_fault``, ``not_of_file`` and ``circle_of`` say why.
    """
    follows = followed(columns)
    if not any(follows.values()) or circle_of(columns):
        return columns
    flat = dict(columns)
    for name in TopologicalSorter(follows).static_order():
        if follows[name]:
            flat[name] = _flat(flat[name], follows[name], flat)
    return flat


def circle_of(columns: Mapping[str, Any]) -> list[str]:
    """Name columns each of which follows from the next, and the last is the first again; none where there are none."""
    try:
        TopologicalSorter(followed(columns)).prepare()
    except CycleError as error:
        return [*error.args[1][::-1]]
    return []


def in_names(name: str, columns: Mapping[str, Any]) -> Derived:
    """Return a derived column whose formula names derived columns where it has what these follow from, to be read.

    It is what a person wrote, or would have: no formula that anything is reckoned by.
    """
    column: Derived = columns[name]
    return (
        column
        if column.formula is None
        else column.model_copy(update={"formula": named(column.formula, name, columns)})
    )


def named(formula: str, name: str, columns: Mapping[str, Any]) -> str:
    """Write a formula for the column ``name`` with the names of other derived columns where it has their formulas."""
    others = {other: one for other, one in columns.items() if isinstance(one, Derived) and other != name}
    names = {ast.dump(parsed(text)): other for other, one in others.items() if (text := _stands_for(one, columns))}
    read = parsed(formula)
    node = _Named(names).generic_visit(deepcopy(read))
    return formula if ast.dump(node) == ast.dump(read) else ast.unparse(node)


def _stands_for(column: Derived, columns: Mapping[str, Any]) -> str:
    """Return what stands in a formula in the place of a derived column; empty of one that stands for words."""
    if column.formula is None:
        are_numbers = not any(isinstance(one, bool | str) for one in (column.values or {}).values())
        return written_table(str(column.of), column.values or {}) if are_numbers else ""  # type: ignore[arg-type]
    return _decimals_kept(column, columns)


def words_fault(formula: str, columns: Mapping[str, Any]) -> str:
    """Say that a formula reckons with a looked-up column as with a number, whose values are words; or empty text."""
    for name in _derived_names(formula, columns):
        values = [*(columns[name].values or {}).values()]
        if any(isinstance(value, bool | str) for value in values):
            return NESTED.format(name, OF_WORDS.format(example=f"{values[0]!r}: 1", name=name))
    return ""


def nested_fault(formula: str, columns: Mapping[str, Any]) -> str:
    """Say why a formula that names derived columns cannot be written out, or return an empty text."""
    if not (names := _derived_names(formula, columns)):
        return ""
    rounded = [name for name in names if columns[name].dtype == "float32"]
    return NESTED.format(rounded[0], OF_FLOAT32) if rounded else NESTED.format(names[0], TOO_LONG)


def not_of_file(formula: str, formulas: Mapping[str, str], raw: Mapping[str, Any]) -> str:
    """Say what the formula of a computed column names that no file has, or return an empty text.

    Args:
        formula: of the computed column.
        formulas: those of all computed columns.
        raw: the columns of the file.
    """
    try:
        name = next((one for one in names_in(formula) if one in formulas or _is_looked_up(raw.get(one))), "")
    except Misread:
        return ""  # which stands where it is
    return IN_COMPUTED.format(name, "computed itself" if name in formulas else "looked up by `values`") if name else ""


def names_derived(formula: str, columns: Mapping[str, Any]) -> bool:
    """Tell whether a formula, which may be none, names a column that a formula derives."""
    try:
        return any(columns[name].formula is not None for name in _derived_names(formula, columns))
    except Misread:
        return False


def followed(columns: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return of each derived and computed column those that it names, and that are to be written out in it."""
    derived = {name: column for name, column in columns.items() if isinstance(column, Derived)}
    formulas = {name: text for name, column in columns.items() if (text := getattr(column, "computed", None))}
    no_file = {*formulas, *(name for name, column in derived.items() if _is_looked_up(column))}
    return {name: {*column.operands} & derived.keys() for name, column in derived.items()} | {
        name: {*_names(text)} & no_file for name, text in formulas.items()
    }


def _is_looked_up(column: object) -> bool:
    return isinstance(column, Derived) and column.formula is None


def _names(formula: str) -> list[str]:
    """Return the columns that a formula names; none of what is no formula."""
    try:
        return names_in(formula)
    except Misread:
        return []


def _derived_names(formula: str, columns: Mapping[str, Any]) -> list[str]:
    return [name for name in names_in(formula) if isinstance(columns.get(name), Derived)]


def _flat(column: Any, names: set[str], columns: Mapping[str, Any]) -> Any:
    """Return a column that names none of these; the column itself where it cannot be written so.

    ``columns``: those that it names are written out themselves.
    """
    if _is_looked_up(column):
        inner = columns[str(column.of)]
        return _of_lookup(column, inner) if _is_looked_up(inner) else column
    key = "formula" if isinstance(column, Derived) else "computed"
    formula = getattr(column, key)
    for name in sorted(names):
        formula = _in_place(formula, name, columns[name], columns)
        if not formula or len(formula) > LONGEST_FORMULA:
            return column
    is_at_fault = key == "formula" and faults_of(formula, columns)
    return column if is_at_fault else column.model_copy(update={key: formula})


def _of_lookup(column: Derived, inner: Derived) -> Derived:
    """Return a column that is looked up by a looked-up one as looked up by what that is looked up by."""
    outer, called = column.values or {}, {key: _as_key(value) for key, value in (inner.values or {}).items()}
    if not {*called.values()} <= outer.keys():
        return column
    return column.model_copy(update={"of": inner.of, "values": {key: outer[value] for key, value in called.items()}})


def _as_key(value: object) -> str:
    """Write a value as the key of a table of a schema."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _in_place(formula: str, name: str, column: Any, columns: Mapping[str, Any]) -> str:
    """Write what a column follows from in its place; empty where this gives something else, or no formula."""
    try:
        if _is_looked_up(column):
            return _with(formula, name, "", column) if column.of in columns else ""
        inner = _later(column.formula) if isinstance(column, Derived) else None
        if inner is not None:
            return _added(formula, name, inner, columns)
        return "" if column.dtype == "float32" else _with(formula, name, _decimals_kept(column, columns))
    except Misread:
        return ""


def _decimals_kept(column: Any, columns: Mapping[str, Any]) -> str:
    """Write what a column is derived or computed by, to the decimals that it keeps."""
    text = str(column.formula if isinstance(column, Derived) else column.computed)
    decimals = column.round if hasattr(column, "round") else None
    if column.dtype == "int64" and isinstance(column, Derived) and not is_whole(text, columns):
        decimals = 0
    return _rounded(text, decimals)


def _rounded(formula: str, decimals: int | None) -> str:
    """Write a formula with the decimals that its column keeps."""
    if decimals is None or _is_rounded(parsed(formula), decimals):
        return formula
    return f"round({formula})" if decimals == 0 else f"round(({formula}) * {10**decimals}) / {10**decimals}"


def _is_rounded(node: ast.expr, decimals: int) -> bool:
    """Tell whether a formula rounds to so many decimals itself: ``round(...) / 100``."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or not isinstance(node.left, ast.Call):
        return False
    is_round = isinstance(node.left.func, ast.Name) and node.left.func.id == "round"
    return is_round and isinstance(node.right, ast.Constant) and node.right.value == 10**decimals


def _added(formula: str, name: str, inner: Later, columns: Mapping[str, Any]) -> str:
    """Write what is later than a derived moment, or reckons with it, by what that is later than."""
    outer = _later(formula)
    if (
        outer is None
        or (outer.function, outer.start) != (inner.function, name)
        or not _are_whole(outer, inner, columns)
    ):
        return _with(formula, name, str(columns[name].formula))
    is_less = isinstance(outer.amount, ast.UnaryOp)
    amount = outer.amount.operand if isinstance(outer.amount, ast.UnaryOp) else outer.amount
    total = ast.BinOp(inner.amount, ast.Sub() if is_less else ast.Add(), amount)
    return f"{inner.function}({inner.start}, {ast.unparse(total)})"


def _are_whole(outer: Later, inner: Later, columns: Mapping[str, Any]) -> bool:
    """Tell whether two sums are of whole ones: parts of a day are cut in each."""
    return all(is_whole(ast.unparse(amount), columns) for amount in (outer.amount, inner.amount))


def _later(formula: str | None) -> Later | None:
    node = parsed(formula) if formula is not None else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in LATER:
        return None
    start, amount = node.args
    return Later(node.func.id, start.id, amount) if isinstance(start, ast.Name) else None


def _with(formula: str, name: str, written: str, looked_up: Derived | None = None) -> str:
    """Write a formula with another one, or a table, in the place of a name; empty where that has words for numbers."""
    values = (looked_up.values or {}) if looked_up else {}
    are_words = any(isinstance(value, bool | str) for value in values.values())
    if looked_up and not are_words:
        written = written_table(str(looked_up.of), values)  # type: ignore[arg-type]
    made = _Written(name, parsed(written) if written else None, looked_up)
    text = ast.unparse(made.visit(deepcopy(parsed(formula))))
    return "" if name in names_in(text) else text


class _Written(ast.NodeTransformer):
    """Puts a formula in the place of a name, and in the place of a table that is read by a looked-up name another."""

    def __init__(self, name: str, formula: ast.expr | None, looked_up: Derived | None = None) -> None:
        self.name, self.formula, self.looked_up = name, formula, looked_up

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:  # as ast calls it
        if not is_table(node) or name_of(node) != self.name or self.looked_up is None:
            return node
        numbers = numbers_of(node)
        called = {key: _as_key(value) for key, value in (self.looked_up.values or {}).items()}
        if not {*called.values()} <= numbers.keys():
            return node
        return parsed(written_table(str(self.looked_up.of), {key: numbers[value] for key, value in called.items()}))

    def visit_Name(self, node: ast.Name) -> ast.expr:  # as ast calls it
        return self.formula if node.id == self.name and self.formula is not None else node


class _Named(ast.NodeTransformer):
    """Puts names in the place of parts of a formula."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit(self, node: ast.AST) -> ast.AST:
        name = self.names.get(ast.dump(node))
        return self.generic_visit(node) if name is None else ast.Name(name, ast.Load())
