"""What to write in place of a rule between a column and a formula, such as ``bonus <= 0.5 * salary``."""

import re
from collections.abc import Mapping
from typing import Any

from dpmodels.namable import is_namable

PRODUCT = re.compile(r"(?P<before>\d*\.?\d+)\s*\*\s*(?P<second>.+)|(?P<first>.+?)\s*\*\s*(?P<after>\d*\.?\d+)")
FORMULA = (
    ", but a formula: let a column be `computed` that says how the two are related, such as their difference, and "
    "derive one of them by it (docs/columns-that-depend.md)"
)
SHARE = (
    ". In place of the rule and of {name} write two columns (docs/columns-that-depend.md#a-part-of-an-amount): "
    '{name}_share: {{type: number, min: {least}, max: {most}{keys}, computed: "{name} / {divisor}", keep: drop}}, '
    'and {name}: {{type: derived, formula: "{name}_share * {whole}"{form}}}{zeros}. The rule, and how often one is '
    "all of the other, are then kept; in return, what {name} has to do with other columns is kept by the share alone, "
    "so less of it"
)
DECIMALS = 4
"""Of a share: so many that few rows have the same by chance, and so few that a share many rows have is found."""


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
    least, most = ("0", factor) if is_most else (factor, "MOST")
    return f", but a formula{as_share(name, whole, columns, least, most)}"


def as_share(name: str, whole: str, columns: Mapping[str, Any], least: str = "0", most: str = "1") -> str:
    """Say how a column is derived by its share of another one, in place of a rule between them.

    A share of nothing would be null, which the least amount above 0 in its place prevents, where decimals say what that
    is. A part with fewer decimals than the whole is given as many, since rounding could carry it beyond.
    """
    part, amount = columns[name], columns[whole]
    decimals, from_zero = getattr(amount, "decimals", None), getattr(amount, "low", 0) == 0
    smallest = "" if decimals is None else f"{10.0**-decimals:.{decimals}f}"
    is_null = from_zero and not smallest
    may_be_null = is_null or any(getattr(one, "nullable", False) for one in (part, amount))
    keys = [f"round: {DECIMALS}"] * all(len(bound.partition(".")[2]) <= DECIMALS for bound in (least, most))
    keys += ["zero_inflated: true"] * (least == "0") + ["nullable: true"] * may_be_null
    return SHARE.format(
        name=name,
        whole=whole,
        least=least,
        most=most,
        keys="".join(f", {key}" for key in keys),
        divisor=f"max({whole}, {smallest})" if from_zero and smallest else whole,
        form=_form(part, amount),
        zeros=f"; both are null where {whole} is 0" * is_null,
    )


def _form(part: Any, whole: Any) -> str:
    """Return the keys by which a derived column has the values of one that it stands for: its decimals, or integers."""
    decimals, of_whole = (getattr(one, "decimals", None) for one in (part, whole))
    if decimals is None:
        return ""
    if of_whole is not None and of_whole > decimals:
        return f", round: {of_whole}"
    return ", dtype: int64" if getattr(part, "type", "") == "integer" else f", round: {decimals}"
