"""Numbers that a formula takes by the value of a category, as ``{"day": 0.31, "night": 0.25}[contract]``.

The table stands in the formula, so it is public; a null, and a value that the column does not list, have no number.
"""

import ast
from collections.abc import Mapping

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.base import Modelled

FORM = "looks a category up, which is written as `{{{example}}}[{name}]`: a number for each value that `{name}` lists"
EXAMPLE = "'a': 0.31, 'b': 0.25"


def is_table(node: ast.AST) -> bool:
    """Tell whether a part is a table of numbers with the name of a column in brackets behind it."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Name):
        return False
    table = node.value
    return isinstance(table, ast.Dict) and bool(table.keys) and all(map(_is_pair, table.keys, table.values))


def _is_pair(key: ast.expr | None, value: ast.expr) -> bool:
    is_key = isinstance(key, ast.Constant) and isinstance(key.value, str | int | float)
    inner = value.operand if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) else value
    return is_key and isinstance(inner, ast.Constant) and type(inner.value) in (int, float)


def not_a_table(node: ast.Subscript) -> str:
    """Say how a category is looked up, as the tail of a sentence that begins with a formula."""
    name = node.slice.id if isinstance(node.slice, ast.Name) else "COLUMN"
    return FORM.format(name=name, example=EXAMPLE)


def misread_table(node: ast.Subscript, most: float) -> str:
    """Say what is wrong with a table by itself, as the tail of a sentence; empty where nothing is.

    ``most``: how large its numbers may be.
    """
    table = node.value
    keys = [ast.literal_eval(key) for key in table.keys if key] if isinstance(table, ast.Dict) else []
    if len({_as_written(key) for key in keys}) < len(keys):
        return "names a value twice in a table"
    is_small = all(abs(number) <= most for number in numbers_of(node).values())
    return "" if is_small else "holds a number that is too large"


def _as_written(value: object) -> str:
    """Write a value as a schema does."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def numbers_of(node: ast.Subscript) -> dict[str, float]:
    """Return the numbers of a table by the values, as a schema writes them."""
    table: dict[object, float] = ast.literal_eval(node.value)
    return {_as_written(key): number for key, number in table.items()}


def name_of(node: ast.Subscript) -> str:
    """Return the column by whose values a table is read."""
    return node.slice.id if isinstance(node.slice, ast.Name) else ""


def values_of(column: object) -> list[str]:
    """Return the values that a column lists, as a schema writes them; none of any other column."""
    listed = getattr(column, "values", None) if isinstance(column, Modelled) else None
    if not isinstance(listed, tuple):
        return []
    return [_as_written(value) for value in listed]


def table_fault(node: ast.Subscript, columns: Mapping[str, object]) -> str:
    """Say what keeps a table from being read by a column, or return an empty text."""
    name, numbers = name_of(node), numbers_of(node)
    values = values_of(columns.get(name))
    if not values:
        return f"looks `{name}` up, which is no categorical or boolean column"
    missing = [value for value in values if value not in numbers]
    return f"does not say what `{missing[0]}` of `{name}` stands for" if missing else ""


def is_whole_table(node: ast.Subscript) -> bool:
    """Tell whether all numbers of a table are whole."""
    return all(isinstance(number, int) for number in numbers_of(node).values())


def is_placed(column: object) -> bool:
    """Tell whether a column lists values that are no numbers, for which a formula has their places."""
    return isinstance(column, Modelled) and getattr(column, "kind", "") in ("text", "boolean")


def looked_up(node: ast.Subscript, codes: Floats, column: object) -> Floats:
    """Return the number of each row, by its value or the place of that, NaN for none. Shape: [B]."""
    numbers = numbers_of(node)
    given = np.full(codes.shape, np.nan)
    keys = range(len(values_of(column))) if is_placed(column) else getattr(column, "keys", ())
    for key, value in zip(keys, values_of(column), strict=True):
        given[codes == key] = numbers[value]
    return given


def written_table(column: str, values: Mapping[str, float]) -> str:
    """Write a table of numbers that a column is looked up in, as a formula has it."""
    return f"{ {**values}!r}[{column}]"
