"""Of which derived columns a report will state no mean, and which columns are counted for figures alone."""

from collections.abc import Mapping
from typing import Any

from dpmodels.contract.columns import Derived, computed, copy_of
from dpmodels.contract.derivation.affine import affine_of
from dpmodels.contract.derivation.terms import may_have_mean
from dpmodels.contract.formula import moment_of
from dpmodels.plural import listed

NO_MEAN = (
    "of {names} a report states no mean, since it follows neither from one column nor from two that are counted "
    "together, or needs to know each value of a number that is counted in ranges: where a study asks for it, have it "
    "counted beside, as `{name}_counted: {{type: number, min: LEAST, max: MOST, computed: {name}, keep: drop}}`, whose "
    "means, by groups too, the release then tells (docs/columns-that-depend.md#a-column-for-figures-alone)"
)
FIGURES_ALONE = (
    "{names}, with `keep: drop` and nothing derived from {it}, nobody is handed: counted for figures alone, such as "
    "those of `nacre means`, {it_takes} part of the budget"
)


def of_products(columns: Mapping[str, Any], target: str | None) -> str:
    """Name the derived numbers of whose means a report says nothing."""
    formulas = {name: one.formula for name, one in columns.items() if isinstance(one, Derived) and one.formula}
    numbers = {name: text for name, text in formulas.items() if moment_of(text, columns) is None}
    unknown = [name for name, text in numbers.items() if affine_of(text) is None]
    names = [
        name for name in unknown if not may_have_mean(numbers[name], columns, target) and not copy_of(name, columns)
    ]
    return NO_MEAN.format(names=listed(names, "and"), name=names[0]) if names else ""


def for_figures_alone(columns: Mapping[str, Any]) -> str:
    """Name the columns that are counted, of which nothing is handed over."""
    operands = {name for one in columns.values() if isinstance(one, Derived) for name in one.operands}
    names = [name for name in computed(columns) if columns[name].keep and name not in operands]
    if not names:
        return ""
    it, takes = ("it", "it takes") if len(names) == 1 else ("them", "they take")
    return FIGURES_ALONE.format(names=listed(names, "and"), it=it, it_takes=takes)
