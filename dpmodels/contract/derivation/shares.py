"""What to write in place of a rule between a column and a formula, such as ``bonus <= 0.5 * salary``."""

import re
from collections.abc import Mapping
from typing import Any

from dpmodels.namable import is_namable

PRODUCT = re.compile(r"(?P<before>\d*\.?\d+)\s*\*\s*(?P<second>.+)|(?P<first>.+?)\s*\*\s*(?P<after>\d*\.?\d+)")
FORMULA = (
    ", but a formula: let a column be `computed` that says how the two are related, such as their difference, and "
    "derive one of them by it (docs/schema.md#columns-that-depend-on-each-other)"
)
EXACT = (
    "the rule, and that one is the whole of the other, then hold in every row; in return, the report states no error "
    "of the mean of {lower}, and what it has to do with other columns is kept by the share alone, so less of it"
)
"""What is won and lost where a part of an amount is derived by its share."""
SHARE = (
    ", but a formula. In place of the rule and of {name} write two columns (docs/schema.md#a-part-of-an-amount): "
    '{name}_share: {{type: number, min: {least}, max: {most}, computed: "{name} / {divisor}", keep: drop}}, and '
    '{name}: {{type: derived, formula: "{name}_share * {whole}"{form}}}. '
    + EXACT[0].upper()
    + EXACT[1:].replace("lower", "name")
)


def in_place_of(side: str, name: str, is_most: bool, columns: Mapping[str, Any]) -> str:
    """Say what to write for a side that is a formula of columns; empty for any other.

    Args:
        side: what a rule compares a column with.
        name: that column.
        is_most: whether the side is the larger one.
        columns: those of the schema.
    """
    words = set(re.findall(r"[^\W\d]\w*", side))
    if not words or not words <= columns.keys() or not re.search(r"[-+*/(]", side):
        return ""
    match = PRODUCT.fullmatch(side)
    whole = (match["second"] or match["first"]).strip() if match else ""
    if match is None or whole not in columns or name not in columns or not is_namable(name):
        return FORMULA
    factor = match["before"] or match["after"]
    least, most = ("0", f"{factor}, zero_inflated: true") if is_most else (factor, "MOST")
    divisor = f"max({whole}, 0.01)" if getattr(columns[whole], "low", 0) == 0 else whole
    form = form_of(columns[name])
    return SHARE.format(name=name, least=least, most=most, divisor=divisor, whole=whole, form=form)


def form_of(column: Any) -> str:
    """Return the keys by which a derived column has the values of one that it stands for: its decimals, or integers."""
    decimals = getattr(column, "decimals", None)
    if decimals is None:
        return ""
    return ", dtype: int64" if getattr(column, "type", "") == "integer" else f", round: {decimals}"
